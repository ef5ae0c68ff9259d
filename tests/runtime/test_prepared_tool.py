import pytest

from satchel.runtime.prepared_tool import PreparedTool
from satchel.settings import Limits
from satchel.tools import FunctionTool, ToolContext


async def plain(x: int = 1): ...


async def reading(context: ToolContext): ...


async def passing(call, inner):
    async for item in inner(call):
        yield item


async def postprocess(call, result): ...


def prepared(fn=plain, *, postprocess=None, **parts):
    tool = FunctionTool(fn, postprocess=postprocess)
    return PreparedTool(tool=tool, limits=Limits(), **parts)


def test_most_tools_need_nothing_but_their_function():
    tool = prepared()
    assert not tool.has_middleware
    assert not tool.needs_context


@pytest.mark.parametrize(
    "parts",
    [
        {"middleware": (passing,)},
        {"postprocess": postprocess},
        {"is_remembered": True},
        {"is_background": True},
    ],
)
def test_what_stands_around_a_function_may_read_the_context(parts):
    tool = prepared(**parts)
    assert tool.has_middleware
    assert tool.needs_context


def test_a_function_that_reads_the_context_has_nothing_around_it():
    tool = prepared(reading)
    assert tool.needs_context
    assert not tool.has_middleware
