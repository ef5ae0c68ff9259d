"""A feed of changes that nobody has to cause."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from satchel.catalog import Change, Event
from satchel.watch_thread import Changes


def change(
    event: str,
    kind: str,
    name: str,
    *,
    source: str = "plugins",
    generation: int = 1,
    message: str = "",
) -> Change:
    """Make a change, such as `change("changed", "tool", "forecast")`.

    Raises `ValueError` for an event that there is not.
    """
    return Change(
        event=Event(event),
        kind=kind,
        name=name,
        source=source,
        generation=generation,
        message=message,
    )


@asynccontextmanager
async def feed(changes: Iterable[Change]) -> AsyncIterator[Changes]:
    """Stand in for `Satchel.watch()`: the iterator gives these changes, and then ends."""
    stream = Changes()
    for item in changes:
        stream.put(item)
    await asyncio.sleep(0)  # what was put arrives in the loop's next round
    stream.close()
    yield stream
