from dataclasses import replace
from functools import partial

import pytest
from runs import play

from satchel.errors import DefinitionError
from satchel.runtime.middleware_chain import (
    MiddlewareFrame,
    ScopedMiddleware,
    find_no_tool,
    middleware_for,
    redirected,
    wrap,
)
from satchel.tools import FunctionTool, Text, ToolCall, ToolResult


def a_layer(name, noted=None):
    async def layer(call, inner):
        noted.append(f"{name} pre {call.name}")
        async for item in inner(call):
            yield item
        noted.append(f"{name} post")

    layer.__name__ = name
    return layer


def tool(name):
    async def fn(): ...

    return FunctionTool(fn, name=name)


ONE, TWO = tool("one"), tool("two")


@pytest.mark.parametrize("middleware", [None, "text", 1])
def test_what_cannot_be_called_is_no_layer(middleware):
    with pytest.raises(DefinitionError, match="middleware is an async generator"):
        ScopedMiddleware(middleware)


def test_a_coroutine_is_no_layer():
    async def log(call, inner):
        return inner(call)

    with pytest.raises(DefinitionError) as caught:
        ScopedMiddleware(log)
    assert "`yield` in it" in str(caught.value)


def test_whatever_else_can_be_called_is_a_layer():
    assert ScopedMiddleware(partial(a_layer("a"), 1)).scope_rank == 0


def test_the_broadest_layer_is_outermost_else_the_first_that_came():
    names = {}

    def layer(name, **about):
        made = a_layer(name)
        names[made] = name
        return ScopedMiddleware(made, **about)

    layers = [
        layer("tool", tool="one"),
        layer("group", group="maps"),
        layer("all"),
        layer("other tool", tool="two"),
        layer("other group", group="basic"),
        layer("all too"),
        layer("both", tool="one", group="maps"),
        layer("neither", tool="one", group="basic"),
    ]
    fitting = [names[made] for made in middleware_for(layers, "one", ("maps",))]
    assert fitting == ["all", "all too", "group", "tool", "both"]


def test_a_layer_of_a_group_stands_around_every_tool_of_it_whatever_else_that_belongs_to():
    maps, web = a_layer("maps"), a_layer("web")
    layers = [ScopedMiddleware(maps, group="maps"), ScopedMiddleware(web, group="web")]
    assert middleware_for(layers, "one", ("geo", "maps")) == (maps,)
    assert middleware_for(layers, "one", ("web", "maps")) == (maps, web)
    assert middleware_for(layers, "one", ("geo",)) == middleware_for(layers, "one", ()) == ()


def test_layers_stand_around_a_call_like_the_skins_of_an_onion():
    noted = []

    async def bottom(call):
        noted.append("tool")
        yield ToolResult(content=(Text("done"),))

    async def main():
        handler = wrap(bottom, [a_layer("M1", noted), a_layer("M2", noted)])
        return [item.text async for item in handler(ToolCall(name="one", tool=ONE))]

    assert play(main()) == ["done"]
    assert noted == ["M1 pre one", "M2 pre one", "tool", "M2 post", "M1 post"]


def test_nothing_around_a_handler_is_the_handler():
    assert wrap(forever := object(), []) is forever


def test_what_each_layer_opens_is_noted_from_the_outside_in():
    around = MiddlewareFrame(find_no_tool, [])

    async def main():
        async def bottom(call):
            yield ToolResult()

        handler = wrap(bottom, [a_layer("M1", []), a_layer("M2", [])], around)
        async for _ in handler(ToolCall(name="one", tool=ONE)):
            pass

    play(main())
    assert [items.__name__ for items in around.opened] == ["M1", "M2"]


def test_those_inside_are_told_of_the_tool_to_which_a_call_was_sent():
    met = []

    async def outer(call, inner):
        async for item in inner(replace(call, name="two")):
            yield item

    async def inside(call, inner):
        met.append((call.tool, call.groups))
        async for item in inner(call):
            yield item

    async def bottom(call):
        yield ToolResult()

    async def main():
        around = MiddlewareFrame({"two": (TWO, ("maps",))}.get, [])
        handler = wrap(bottom, [outer, inside], around)
        async for _ in handler(ToolCall(name="one", tool=ONE)):
            pass

    play(main())
    assert met == [(TWO, ("maps",))]


def test_a_call_keeps_its_tool_as_long_as_it_names_that():
    call = ToolCall(name="one", tool=ONE)
    assert redirected(call, find_no_tool) is call
    assert redirected(ToolCall(name="one"), {"one": (ONE, ("basic",))}.get).tool is ONE


def test_a_call_that_names_nothing_has_no_tool():
    assert redirected(ToolCall(name="three", tool=ONE, groups=("maps",)), find_no_tool).tool is None
