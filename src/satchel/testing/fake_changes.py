"""A stream of changes for tests of code that uses `Satchel.watch()`."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from satchel.catalog.catalog_changes import Change, Event
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
    """Return a change, such as `change("changed", "tool", "forecast")`.

    Raises `ValueError` for an unknown event.
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
    """Replace `Satchel.watch()`: yield an iterator over these changes, which then ends."""
    stream = Changes()
    for item in changes:
        stream.put(item)
    await asyncio.sleep(0)  # the changes arrive in the loop's next iteration
    stream.close()
    yield stream
