"""The executor that limits how fast the calls of a tool start."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from time import monotonic

from satchel.runtime.executors.executor import Answer, CallGate, Executor, RunCall, through
from satchel.runtime.rate_limiter import RateLimiter, pause
from satchel.tools import ToolCall


class RateLimited:
    """Starts the calls of a tool at its rate, over all the steps that this executor runs.

    `per_second` is one rate for each tool, or rates by the names of the tools; a tool that is
    not named there has the rate of `"*"`, or no limit. After a pause, up to `burst` calls start
    together. A call that waits does not block other tools, if `inner` is a `GatedExecutor`. A call
    keeps its turn when `inner` has no free place: for each tool and step, one call may thus start
    later than its turn.
    """

    __slots__ = ("_inner", "_turns")

    def __init__(
        self,
        inner: Executor,
        per_second: float | Mapping[str, float],
        burst: int = 1,
        *,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[object]] = pause,
    ) -> None:
        self._inner = inner
        self._turns = RateLimiter(per_second, burst, clock=clock, sleep=sleep)

    def stream(self, calls: Sequence[ToolCall], run: RunCall) -> AsyncIterator[Answer]:
        """Run the calls, each at its turn, and yield each answer as it comes."""
        return self.stream_through(calls, run, ())

    def stream_through(
        self, calls: Sequence[ToolCall], run: RunCall, gates: Sequence[CallGate]
    ) -> AsyncIterator[Answer]:
        """Do as `stream`, and let each call pass the gates first."""
        return through(self._inner, calls, run, (*gates, self._turns))
