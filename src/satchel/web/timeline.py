"""What happened while the server ran: changes of the catalog, and calls."""

import itertools
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict
from typing import Any

from satchel.catalog.catalog_changes import Change
from satchel.lazy_dataclass import dataclass
from satchel.runtime.middleware.call_ending import as_text, ending_of
from satchel.runtime.middleware_chain import Handler
from satchel.runtime.stream_opening import opened
from satchel.text import shorten
from satchel.tools import Item, ToolCall, ToolResult

MOST_KEPT = 1_000
_MOST_OF_ARGUMENTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One change or call."""

    number: int
    at: float
    """Seconds since 1970."""
    kind: str
    """`change` or `call`."""
    name: str
    what: str
    """`skill`, `tool`, `group` or `plugin`."""
    event: str
    """What happened to it, or how the call ended."""
    message: str
    cause: str = ""
    """The plugin whose change brought this one, or the conversation that called."""
    generation: int | None = None
    seconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as JSON."""
        seconds = None if self.seconds is None else round(self.seconds, 6)
        return {**asdict(self), "seconds": seconds}


class Timeline:
    """The newest entries. Any thread may add to it."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._entries: deque[TimelineEntry] = deque(maxlen=MOST_KEPT)
        self._numbers = itertools.count(1)
        self._on_change = on_change

    def __iter__(self) -> Iterator[TimelineEntry]:
        """Return the entries, the newest first."""
        return iter(tuple(self._entries)[::-1])

    def add_change(self, change: Change) -> None:
        """Add a change of the catalog."""
        self._add(
            kind="change",
            name=change.name,
            what=change.kind,
            event=str(change.event),
            message=change.message,
            cause="" if change.kind == "plugin" else change.source,
            generation=change.generation,
        )

    async def record(self, call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        """Run a call, and add it when it ended; middleware for all calls."""
        start, result, problem = time.monotonic(), None, None
        try:
            async with opened(inner, call) as items:
                async for item in items:
                    result = item if isinstance(item, ToolResult) else result
                    yield item
        except BaseException as raised:
            problem = raised
            raise
        finally:
            self._add(
                kind="call",
                name=call.name,
                what="tool",
                event=ending_of(result, problem).status,
                message=shorten(as_text(call.arguments), _MOST_OF_ARGUMENTS),
                cause=call.context.run_id or "",
                seconds=time.monotonic() - start,
            )

    def _add(self, **parts: Any) -> None:
        entry = TimelineEntry(number=next(self._numbers), at=time.time(), **parts)
        self._entries.append(entry)
        self._on_change()
