"""What the cache remembers, and the runs that others wait for."""

from collections.abc import Callable, Hashable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from satchel.tools import Item, ToolCall, ToolResult

if TYPE_CHECKING:
    from concurrent.futures import Future

Place = tuple[int, Hashable]
"""The identity of a tool, and the key of a call: where equal calls meet."""


@dataclass(eq=False, slots=True, kw_only=True)
class CachedRun:
    """One run of a tool, and what came of it."""

    place: Place
    call: ToolCall  # held, so that the identities in its place stay its own
    outcome: "Future[ToolResult | None]"
    """What those who wait get; `None` sends them on to run themselves."""
    result: ToolResult | None = None
    until: float = 0
    is_fresh: bool = True
    """Whether nothing was changed since it began."""


class AnswerCache:
    """The runs that have answers for others, or will have."""

    def __init__(self, seconds: float, size: int, clock: Callable[[], float]) -> None:
        self._seconds, self._size, self._clock = seconds, size, clock
        self._running: set[CachedRun] = set()
        self._joinable: dict[Place, CachedRun] = {}
        self._kept: dict[Place, CachedRun] = {}  # the oldest first

    def find(self, place: Place) -> CachedRun | None:
        """Return a run that answers, or will answer, calls at this place."""
        now = self._clock()
        for run in [*self._kept.values()]:
            if run.until > now:
                break
            self._kept.pop(run.place, None)
        return self._kept.get(place) or self._joinable.get(place)

    def begin(self, place: Place, call: ToolCall) -> CachedRun:
        """Note a run that others may wait for."""
        # Not asyncio's: it belongs to one event loop, and whoever waits may cancel it.
        from concurrent.futures import Future

        run = CachedRun(place=place, call=call, outcome=Future())
        run.outcome.set_running_or_notify_cancel()
        self._running.add(run)
        self._joinable[place] = run
        return run

    def note(self, run: CachedRun, item: Item) -> None:
        """Take an item of a run to its end, or let go of those who wait.

        After a chunk nobody waits: when the run goes on is up to whoever reads the chunks.
        """
        if not isinstance(item, ToolResult) or item.is_interrupted:
            self._settle(run, None)
            return
        result = replace(item, structured=deepcopy(item.structured))
        if run.is_fresh and not result.is_error:
            run.result, run.until = result, self._clock() + self._seconds
            self._kept.pop(run.place, None)
            self._kept[run.place] = run
            if len(self._kept) > self._size:
                del self._kept[next(iter(self._kept))]
        self._settle(run, result)

    def end(self, run: CachedRun) -> None:
        """Note that a run is over, whatever became of it."""
        self._running.discard(run)
        self._settle(run, None)

    def forget(self, state: object) -> None:
        """Forget what the session with this state read before."""
        for run in [*self._running, *self._kept.values()]:
            if run.call.context.state is state:
                run.is_fresh = False
                for table in (self._joinable, self._kept):
                    if table.get(run.place) is run:
                        del table[run.place]

    def _settle(self, run: CachedRun, result: ToolResult | None) -> None:
        if not run.outcome.done():
            run.outcome.set_result(result)
        if self._joinable.get(run.place) is run:
            del self._joinable[run.place]
