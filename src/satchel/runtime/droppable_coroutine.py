"""A coroutine that can be dropped in the middle, whatever it awaits."""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import suppress
from typing import Any, NoReturn


class Abandoned(BaseException):
    """Thrown into a coroutine that ignored its cancellation; it takes no step after this."""


class Droppable(Coroutine[Any, Any, None]):
    """A coroutine that can be dropped: it then ends at its next step, whatever it awaits.

    Otherwise the event loop would wait for the task when the loop closes.
    """

    # A slot in place of a method: every call takes some steps, so it is that of the coroutine.
    __slots__ = ("__weakref__", "_work", "send")
    send: Any

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work, self.send = work, work.send

    def throw(self, *problem: Any) -> Any:
        """Raise an exception in the coroutine, as a task does that is cancelled."""
        return self._end() if self.send == self._end else self._work.throw(*problem)

    def close(self) -> None:
        """Drop it at once: it was never started, or its loop is closed."""
        self.drop()
        self._discard()

    def drop(self) -> None:
        """Let it take no further step."""
        self.send = self._end

    def __await__(self) -> Generator[Any, Any, None]:
        return self._work.__await__()

    def _end(self, *_: object) -> NoReturn:
        self._discard()
        raise asyncio.CancelledError

    def _discard(self) -> None:
        with suppress(BaseException):  # also StopIteration, if it returns
            self._work.throw(Abandoned())
