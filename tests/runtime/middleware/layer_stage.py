"""Stand-ins for what lies around a layer: a tool, a handler inside, and whoever reads outside."""

import asyncio
from contextlib import aclosing
from types import SimpleNamespace

from satchel.tools import Text, ToolCall, ToolChunk, ToolContext, ToolResult, failure

OK = ToolResult(content=(Text("done"),), structured={"a": [1]}, call_id="call-1")
FAILED = failure("tool_failed", "tool failed")
CHUNK = ToolChunk(content=(Text("half"),))


def a_tool(**attributes):
    expected = {"name": "probe", "description": "Probes.", "idempotent": False, "background": False}
    return SimpleNamespace(**{**expected, "annotations": None, "is_remote": False, **attributes})


def a_call(tool=None, state=None, **parts):
    """Return a call of an idempotent tool, unless another is given."""
    tool = a_tool(idempotent=True) if tool is None else tool
    context = ToolContext(state={} if state is None else state, **parts.pop("context", {}))
    parts = {"name": tool.name, "id": "call-1", "groups": ("basic",), **parts}
    return ToolCall(tool=tool, context=context, **parts)


class Inside:
    """A handler that follows a script for each call, the last script for all that come after.

    A script holds items to yield, exceptions to raise, and functions to call, which may give
    something to await.
    """

    def __init__(self, *scripts):
        self.scripts = scripts or ([OK],)
        self.calls = []
        self.open = 0
        self.noted = []

    async def __call__(self, call):
        self.calls.append(call)
        script = self.scripts[min(len(self.calls), len(self.scripts)) - 1]
        self.open += 1
        try:
            for step in script:
                if isinstance(step, BaseException):
                    raise step  # noqa: TRY301 - it is to come from here
                if not callable(step):
                    yield step
                elif (waits := step()) is not None:
                    await waits
        except BaseException as problem:
            self.noted.append(type(problem))
            raise
        finally:
            await asyncio.sleep(0)  # closing may take its time
            self.open -= 1


def forever():
    return asyncio.Event().wait()


async def read(layer, inside, call=None):
    """Return all that a layer yields for a call."""
    return [item async for item in layer(call or a_call(), inside)]


async def answer(layer, inside, call=None):
    """Return the result, which must be the last."""
    *chunks, result = await read(layer, inside, call)
    assert not any(isinstance(chunk, ToolResult) for chunk in chunks)
    return result


async def first(layer, inside, call=None):
    """Read one item, and close."""
    async with aclosing(layer(call or a_call(), inside)) as items:
        return await anext(items)


async def turns(count=20):
    """Let everything that can go on go on until it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


class Clock:
    """A clock that goes on only when somebody sleeps, which takes a turn of the loop."""

    def __init__(self):
        self.now = 1000.0
        self.slept = []

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(round(seconds, 6))
        await asyncio.sleep(0)
        self.now += seconds


def wrap(handler, layers):
    """Return a handler inside layers, without a call."""

    def around(layer, inner):
        return lambda call: layer(call, inner)

    for layer in reversed(layers):
        handler = around(layer, handler)
    return handler
