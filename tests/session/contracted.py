"""Tools with contracts, in short words."""

import asyncio
from typing import Any

from satchel import Satchel, ToolContract, ToolStateEffect

PATIENCE = 120.0


def in_time(main):
    """Run a coroutine; what never ends fails instead of hanging, and no task may be left."""

    async def bounded():
        async with asyncio.timeout(PATIENCE):
            result = await main
            # What was told to end may take a step more; what nobody told would never end.
            if left := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(left)
        return result

    return asyncio.run(bounded())


def hold(app: Satchel, function, schema=None, /, *, options: dict[str, Any] | None = None, **parts):
    """Register a function, and hold it to a contract of these parts."""
    function_tool = app.register_tool(function, **(options or {}))
    contract = ToolContract(
        name=function_tool.name,
        schema=schema or {},
        description=f"About {function_tool.name}.",
        **parts,
    )
    app.register_contract(contract)
    return contract


def holding(function, schema=None, /, **parts) -> Satchel:
    """Return a satchel with one tool that is held to a contract."""
    app = Satchel()
    hold(app, function, schema, **parts)
    return app


def appends(key: str = "log", **options) -> ToolStateEffect:
    """Return an effect that adds to a list."""
    return ToolStateEffect(key=key, type_hint=list, merge="append", **options)


async def as_call(place, name, arguments=None, **options):
    """Make one call by `call`."""
    return await place.call(name, arguments, **options)


async def as_stream(place, name, arguments=None, **options):
    """Make one call by `stream`; the result comes last."""
    return [item async for item in place.stream(name, arguments, **options)][-1]


async def as_plan(place, name, arguments=None, *, call_id="", **options):
    """Make one call by `execute`."""
    from satchel import ToolCall

    call = ToolCall(name=name, arguments={} if arguments is None else arguments, id=call_id)
    (result,) = await place.execute([call], **options)
    return result


async def as_streamed_plan(place, name, arguments=None, *, call_id="", **options):
    """Make one call by `execute_streaming`."""
    from satchel import ToolCall

    call = ToolCall(name=name, arguments={} if arguments is None else arguments, id=call_id)
    ((_, result),) = [item async for item in place.execute_streaming([call], **options)]
    return result


WAYS = [as_call, as_stream, as_plan, as_streamed_plan]
PLACES = [lambda session: session, lambda session: session.step()]
