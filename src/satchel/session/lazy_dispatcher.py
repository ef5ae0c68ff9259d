"""The dispatcher of a session's calls, made for the first call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel.session.calls import CallDispatcher
    from satchel.session.session_state import SessionState


class LazyDispatcher:
    """Makes the dispatcher when it is first used; a session and its steps share it."""

    __slots__ = ("_dispatchers", "_session_state")

    def __init__(self, session_state: SessionState) -> None:
        self._session_state = session_state
        self._dispatchers: dict[str, CallDispatcher] = {}

    def get(self) -> CallDispatcher:
        """Return the dispatcher."""
        if (dispatcher := self._dispatchers.get("dispatcher")) is not None:
            return dispatcher
        from satchel.session.calls import CallDispatcher  # lazy: needed only with calls

        # Two threads get the same one.
        return self._dispatchers.setdefault("dispatcher", CallDispatcher(self._session_state))

    @property
    def has_tasks(self) -> bool:
        """Whether any call was ever started in the background."""
        return any(dispatcher.has_tasks for dispatcher in self._dispatchers.values())
