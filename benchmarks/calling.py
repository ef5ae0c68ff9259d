"""How much a call costs, as ratios to a floor that is measured in the same run.

    python benchmarks/calling.py [CALLS]

The floor is the bare function behind pydantic's own `validate_call`: the arguments are checked
and coerced, and nothing else is done. For a blocking function it stands in `asyncio.to_thread`.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from pydantic import validate_call

from satchel import Satchel, ToolCall

ROUNDS = 7
ARGUMENTS = {"city": "Oslo", "days": 5}
TEXT = json.dumps(ARGUMENTS)


async def words(city: str, days: int = 3, unit: str = "C") -> str:
    """Answer with text."""
    return f"{city} {days} {unit}"


async def data(city: str, days: int = 3, unit: str = "C") -> dict[str, Any]:
    """Answer with data, which becomes JSON as well."""
    return {"city": city, "days": days, "unit": unit}


async def waiting(city: str, days: int = 3, unit: str = "C") -> str:
    """Wait for one turn of the loop, as whatever talks to somebody does."""
    await asyncio.sleep(0)
    return f"{city} {days} {unit}"


def blocking(city: str, days: int = 3, unit: str = "C") -> str:
    """Answer from a thread."""
    return f"{city} {days} {unit}"


async def counting(city: str, days: int = 3, unit: str = "C") -> AsyncIterator[str]:
    """Tell ten chunks."""
    for _ in range(10):
        yield f"{city} {days} {unit}"


async def passing(call: Any, next: Any) -> AsyncIterator[Any]:  # noqa: A002 - its name everywhere
    """Do nothing, as a layer."""
    async for item in next(call):
        yield item


Call = Callable[[], Awaitable[object]]


async def main() -> None:
    """Measure and print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    app = Satchel()
    for tool in (words, data, waiting, blocking, counting):
        app.register_tool(tool)
    session = app.session()
    checked: dict[str, Any] = {
        fn.__name__: validate_call(fn) for fn in (words, data, waiting, counting, blocking)
    }

    async def floor_of_text() -> object:
        return await checked["words"](**json.loads(TEXT))

    async def floor_of_stream() -> object:
        return [chunk async for chunk in checked["counting"](**ARGUMENTS)]

    async def floor_of_many() -> object:
        return await asyncio.gather(*(checked["waiting"](**ARGUMENTS) for _ in range(10)))

    many = [ToolCall(name="waiting", arguments=ARGUMENTS) for _ in range(10)]
    rows: list[tuple[str, Call, Call]] = [
        ("answers with text", lambda: session.call("words", ARGUMENTS), floor("words", checked)),
        ("the same, arguments as JSON", lambda: session.call("words", TEXT), floor_of_text),
        ("answers with data", lambda: session.call("data", ARGUMENTS), floor("data", checked)),
        ("waits once", lambda: session.call("waiting", ARGUMENTS), floor("waiting", checked)),
        (
            "blocks, in a thread",
            lambda: session.call("blocking", ARGUMENTS),
            lambda: asyncio.to_thread(checked["blocking"], **ARGUMENTS),
        ),
        ("tells ten chunks", lambda: session.call("counting", ARGUMENTS), floor_of_stream),
        ("ten at once", lambda: session.execute(many), floor_of_many),
    ]
    print(f"{count} calls, microseconds each")
    print(f"{'':34}{'satchel':>9}{'floor':>9}{'ratio':>8}")
    for name, ours, theirs in rows:
        await show(name, count, ours, theirs)
    undo = app.register_middleware(passing)
    layered = lambda: session.call("words", ARGUMENTS)  # noqa: E731 - as the rows above
    await show("text, through one layer", count, layered, floor("words", checked))
    undo()


def floor(name: str, checked: dict[str, Any]) -> Call:
    """Return the bare function behind its validation."""
    return lambda: checked[name](**ARGUMENTS)


async def show(name: str, count: int, ours: Call, theirs: Call) -> None:
    """Measure both in turn, so that a busy machine is busy for both, and print the best of each."""
    mine, floors = [], []
    for _ in range(ROUNDS):
        floors.append(await each(count, theirs))
        mine.append(await each(count, ours))
    print(f"{name:34}{min(mine) * 1e6:9.2f}{min(floors) * 1e6:9.2f}{min(mine) / min(floors):8.2f}")


async def each(count: int, call: Call) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    for _ in range(count):
        await call()
    return (time.perf_counter() - start) / count


if __name__ == "__main__":
    asyncio.run(main())
