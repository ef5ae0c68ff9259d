from dataclasses import replace
from functools import partial

import pytest
from runs import a_run, play

from satchel.errors import DefinitionError
from satchel.runtime.middleware_chain import ScopedMiddleware, middleware_for
from satchel.tools import FunctionTool


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
def test_what_cannot_be_called_is_no_middleware(middleware):
    with pytest.raises(DefinitionError, match="middleware is an async generator"):
        ScopedMiddleware(middleware)


def test_a_coroutine_is_no_middleware():
    async def log(call, inner):
        return inner(call)

    with pytest.raises(DefinitionError) as caught:
        ScopedMiddleware(log)
    assert "`yield` in it" in str(caught.value)


def test_whatever_else_can_be_called_is_a_middleware():
    assert ScopedMiddleware(partial(a_layer("a"), 1)).scope_rank == 0


def test_the_broadest_middleware_is_outermost_else_the_first_that_came():
    names = {}

    def layer(name, **about):
        created = a_layer(name)
        names[created] = name
        return ScopedMiddleware(created, **about)

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
    fitting = [names[created] for created in middleware_for(layers, "one", ("maps",))]
    assert fitting == ["all", "all too", "group", "tool", "both"]


def test_a_middleware_of_a_group_stands_around_every_tool_of_it_whatever_else_that_belongs_to():
    maps, web = a_layer("maps"), a_layer("web")
    layers = [ScopedMiddleware(maps, group="maps"), ScopedMiddleware(web, group="web")]
    assert middleware_for(layers, "one", ("geo", "maps")) == (maps,)
    assert middleware_for(layers, "one", ("web", "maps")) == (maps, web)
    assert middleware_for(layers, "one", ("geo",)) == middleware_for(layers, "one", ()) == ()


def test_middleware_stands_around_a_call_like_the_skins_of_an_onion():
    noted = []

    async def fn():
        noted.append("tool")
        return "done"

    run = a_run(fn, layers=[a_layer("M1", noted), a_layer("M2", noted)], name="one")
    assert play(run.result()).text == "done"
    assert noted == ["M1 pre one", "M2 pre one", "tool", "M2 post", "M1 post"]


def test_those_inside_see_the_tool_to_which_a_call_was_sent():
    met = []

    async def outer(call, inner):
        async for item in inner(replace(call, name="two", approved=True)):
            yield item

    async def inside(call, inner):
        met.append((call.tool, call.groups, call.approved))
        async for item in inner(call):
            yield item

    run = a_run(ONE, layers=[outer, inside, inside], others=[TWO])
    assert not play(run.result()).is_error
    assert met == [(TWO, ("basic",), False)] * 2


def test_a_call_keeps_its_tool_as_long_as_it_names_that():
    met = []

    async def outer(call, inner):
        async for item in inner(replace(call, approved=True)):
            yield item

    async def inside(call, inner):
        met.append((call.tool, call.approved))
        async for item in inner(call):
            yield item

    play(a_run(ONE, layers=[outer, inside]).result())
    assert met == [(ONE, True)]


def test_a_call_that_names_nothing_has_no_tool():
    met = []

    async def outer(call, inner):
        async for item in inner(replace(call, name="three")):
            yield item

    async def inside(call, inner):
        met.append((call.tool, call.groups))
        async for item in inner(call):
            yield item

    assert play(a_run(ONE, layers=[outer, inside]).result()).error_code == "tool_not_found"
    assert met == [(None, ())]
