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

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._work, self._is_dropped = work, False

    def send(self, value: Any) -> Any:
        """Take the next step."""
        return self._end() if self._is_dropped else self._work.send(value)

    def throw(self, *problem: Any) -> Any:
        """Take the next step with an exception."""
        return self._end() if self._is_dropped else self._work.throw(*problem)

    def close(self) -> None:
        """Drop it at once: it was never started, or its loop is closed."""
        self.drop()
        self._discard()

    def drop(self) -> None:
        """Let it take no further step."""
        self._is_dropped = True

    def __await__(self) -> Generator[Any, Any, None]:
        return self._work.__await__()

    def _end(self) -> NoReturn:
        self._discard()
        raise asyncio.CancelledError

    def _discard(self) -> None:
        with suppress(BaseException):  # also StopIteration, if it returns
            self._work.throw(Abandoned())
