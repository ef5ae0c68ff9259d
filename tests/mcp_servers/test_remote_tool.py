import asyncio
from concurrent.futures import Future

from satchel.mcp_servers.remote_tool import RemoteTool
from satchel.mcp_servers.tool_definitions import ToolDefinition
from satchel.tools import ToolContext, ToolResult


async def test_news_without_progress_is_no_chunk():
    answer = Future()

    def begin(definition, arguments, on_progress, caller):
        on_progress_later(on_progress, {"progress": 1})
        return answer

    on_progress_later = asyncio.get_running_loop().call_soon
    tool = RemoteTool(ToolDefinition(name="a"), begin)
    items = await tool.start({}, ToolContext(tool="a"))
    # Heard of twice, once it was taken already.
    asyncio.get_running_loop().call_soon(items.ag_frame.f_locals["self"]._wakeup.set)
    asyncio.get_running_loop().call_later(0.01, answer.set_result, ToolResult(content=()))
    *chunks, result = [item async for item in items]
    assert [chunk.metadata["progress"] for chunk in chunks] == [{"progress": 1}]
    assert isinstance(result, ToolResult)


async def test_progress_that_comes_together_with_the_result_is_not_lost():
    answer = Future()
    answer.set_result(ToolResult(content=()))

    def begin(definition, arguments, on_progress, caller):
        for number in range(20):
            on_progress({"progress": number})
        return answer

    tool = RemoteTool(ToolDefinition(name="a"), begin)
    *chunks, result = [item async for item in await tool.start({}, ToolContext(tool="a"))]
    # The newest: a server may send any number.
    assert [chunk.metadata["progress"]["progress"] for chunk in chunks] == [*range(4, 20)]
    assert isinstance(result, ToolResult)
