"""The answers of a call pool, as an async iterator.

It is no async generator: before Python 3.13 a waiting generator does not notice that its reader is
closed (`coroutine.close()`, as for a task that is left behind), and could not end its calls.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress

from satchel.runtime.executors.call_pool import CallPool
from satchel.runtime.executors.executor import Answer, CallGate, RunCall
from satchel.tools import ToolCall


class AnswerStream(AsyncIterator[Answer]):
    """Runs up to `limit` calls at once, and yields each answer as it comes.

    Calls start in their order when an answer is asked for, but a call that waits at a gate lets
    calls of other tools go first. They see the context variables of the reader that asks for the
    first answer. A call whose task is cancelled is answered as interrupted.
    """

    __slots__ = ("_calls", "_gates", "_is_over", "_is_read", "_limit", "_pool", "_run")

    def __init__(
        self, calls: Sequence[ToolCall], run: RunCall, limit: int, gates: Sequence[CallGate] = ()
    ) -> None:
        self._calls, self._run, self._limit, self._gates = calls, run, limit, gates
        self._pool: CallPool | None = None
        self._is_read = self._is_over = False

    async def __anext__(self) -> Answer:
        with self._reading():
            if self._is_over:
                raise StopAsyncIteration
            if self._pool is None:
                self._pool = CallPool(
                    tuple(self._calls), self._run, self._limit, tuple(self._gates)
                )
            try:
                answer = await self._pool.next()
            except GeneratorExit:
                # Closed, perhaps outside the loop: nothing can be awaited any more.
                self._is_over = True
                self._pool.cancel()
                raise
            except BaseException:
                # Any: the calls that still run end with the reader.
                self._is_over = True
                await self._pool.close()
                raise
            if answer is None:
                self._is_over = True
                raise StopAsyncIteration
            return answer

    async def aclose(self) -> None:
        """Cancel the calls that still run, and wait until they have ended."""
        with self._reading():
            self._is_over = True
            if self._pool is not None:
                await self._pool.close()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        if self._is_read:
            raise RuntimeError("the answers are being read already")
        self._is_read = True
        try:
            yield
        finally:
            self._is_read = False

    def __del__(self) -> None:
        # Garbage collection may run in another thread.
        if self._pool is not None and not self._is_over:
            with suppress(RuntimeError):  # the loop is closed: nothing runs any more
                self._pool.loop.call_soon_threadsafe(self._pool.cancel)
