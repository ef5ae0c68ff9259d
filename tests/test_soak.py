"""A hundred thousand calls, some cancelled, interrupted or failing, leave nothing behind."""

import asyncio
import gc
import logging
import random
import resource
import threading
from contextlib import aclosing
from pathlib import Path

import pytest

from satchel import Limits, Satchel, Settings, ToolCall, ToolContext, ToolError, ToolResult, tool
from satchel.tools.callables import MAX_IDLE_THREADS

CALLS = 100_000
AT_ONCE = 50


@tool
async def quick(n: int) -> dict:
    return {"n": n}


@tool
async def slow(n: int) -> str:
    await asyncio.sleep(3600)
    return str(n)


@tool
async def turns(n: int) -> str:
    for _ in range(n % 5):
        await asyncio.sleep(0)
    return str(n)


@tool
def blocking(n: int) -> str:
    return str(n)


@tool
async def reporting(n: int):
    try:
        for number in range(n % 7):
            yield f"{number} "
            await asyncio.sleep(0)
    finally:
        await asyncio.sleep(0)


@tool
def drawn(n: int):
    for number in range(n % 3):
        yield f"{number} "


@tool
async def failing(n: int) -> str:
    raise (ToolError, ValueError, SystemExit, asyncio.CancelledError)[n % 4]("no")


@tool
async def unfit(n: int) -> object:
    return [float("nan"), b"bytes", object(), "\ud800"][n % 4]


@tool(idempotent=True)
async def same(n: int) -> int:
    return n


@tool(background=True)
async def later(n: int) -> int:
    await asyncio.sleep(0)
    return n


@tool
async def reported(n: int, context: ToolContext) -> str:
    context.state["n"] = n
    return context.call_id


# The blocking ones have threads, which take longest; they are as many as time allows.
TOOLS = [quick, slow, turns, reporting, failing, unfit, same, later, reported]
KINDS = [tool.__name__ for tool in TOOLS] * 4 + ["blocking", "drawn"]


async def passing(call, next):  # noqa: A002 - its name everywhere
    async for item in next(call):
        yield item


async def one(session, dice, number):
    """Make one call in one of several ways; return its outcome."""
    name, call_id = dice.choice(KINDS), str(number)
    arguments = {"n": number % 100} if dice.random() < 0.95 else {"m": "wrong"}
    way = dice.randrange(6)
    if way == 0 and name != "slow":
        return (await session.call(name, arguments, call_id=call_id)).error_code
    if way == 1:
        async with aclosing(session.stream(name, arguments, call_id=call_id)) as items:
            if name != "slow":
                async for _ in items:
                    break
        return "left"
    if way == 2 and name != "slow":
        calls = [
            ToolCall(name=name, arguments=arguments, id=call_id),
            ToolCall(name="quick", arguments={"n": 1}),
        ]
        first, _ = await session.execute(calls)
        return first.error_code
    task = asyncio.create_task(session.call(name, arguments, call_id=call_id))
    for _ in range(dice.randrange(3)):
        await asyncio.sleep(0)
    if way == 3:
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"
        return "too late"
    while not task.done():
        session.interrupt(call_id)
        await asyncio.sleep(0)
    return task.result().error_code


async def many(app, count, seed):
    """Make calls, some at once; each worker has its own sessions."""
    seen = {}

    async def work(worker):
        dice, session = random.Random(f"{seed}-{worker}"), app.session()
        for number in range(count // AT_ONCE):
            if number % 50 == 0:
                session = app.session()
            outcome = await one(session, dice, number)
            seen[outcome] = seen.get(outcome, 0) + 1

    await asyncio.gather(*(work(worker) for worker in range(AT_ONCE)))
    # What goes on in the background ends by itself.
    if others := asyncio.all_tasks() - {asyncio.current_task()}:
        _, pending = await asyncio.wait(others, timeout=10)
        assert not pending
    return seen


def left():
    gc.collect()
    return len(gc.get_objects()), threading.active_count()


def resident():
    """Return the resident memory in bytes; `gc` does not count strings and bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells memory as Linux does")
def test_a_hundred_thousand_mixed_calls_leave_nothing_behind(monkeypatch):
    # Failures are logged, each with its traceback; here there are too many to keep.
    monkeypatch.setattr(logging.getLogger("satchel.runtime"), "disabled", True)
    app = Satchel(settings=Settings(limits=Limits(cancel_grace=10)))
    for function in (*TOOLS, blocking, drawn):
        app.register_tool(function)
    app.register_middleware(passing, tool="turns")
    asyncio.run(many(app, AT_ONCE * 20, "warm"))
    objects, threads = left()
    memory = resident()
    seen = asyncio.run(many(app, CALLS, "soak"))
    after, threads_after = left()
    assert sum(seen.values()) == CALLS
    expected = {None, "left", "cancelled", "interrupted", "invalid_arguments", "invalid_result"}
    assert expected | {"tool_error", "tool_failed"} <= set(seen)
    assert min(seen[outcome] for outcome in expected) > CALLS / 500
    assert threads_after <= threads + MAX_IDLE_THREADS
    assert after - objects < 2_000
    assert resident() - memory < 24 * 1024 * 1024


@pytest.mark.slow
def test_a_session_of_many_calls_does_not_grow():
    app = Satchel()
    app.register_tool(same)
    app.register_tool(quick)
    session = app.session()

    async def main(count):
        for number in range(count):
            result = await session.call(("same", "quick")[number % 2], {"n": number})
            assert isinstance(result, ToolResult)

    asyncio.run(main(2_000))
    objects, _ = left()
    asyncio.run(main(10_000))
    assert left()[0] - objects < 500


@pytest.mark.parametrize("name", sorted({*KINDS}))
def test_every_kind_of_tool_of_the_soak_can_be_called(name, monkeypatch):
    monkeypatch.setattr(logging.getLogger("satchel.runtime"), "disabled", True)
    app = Satchel(settings=Settings(limits=Limits(tool_call=0.01)))
    for function in (*TOOLS, blocking, drawn):
        app.register_tool(function)
    result = asyncio.run(app.session().call(name, {"n": 5}))
    assert isinstance(result, ToolResult)
