import asyncio
from concurrent.futures import Future

from satchel.remote.definitions import Definition
from satchel.remote.tool import RemoteTool
from satchel.tools import ToolContext, ToolResult


async def test_news_without_progress_is_no_chunk():
    answer, told = Future(), []

    def begin(definition, arguments, on_progress):
        told.append(on_progress)
        return answer

    tool = RemoteTool(Definition("a"), begin)
    running = asyncio.create_task(tool.start({}, ToolContext(tool="a")))
    while not told:
        await asyncio.sleep(0)
    told[0]({"progress": 1})
    items = await running
    # Heard of twice, once it was taken already.
    asyncio.get_running_loop().call_soon(items.ag_frame.f_locals["self"]._news.set)
    asyncio.get_running_loop().call_later(0.01, answer.set_result, ToolResult(()))
    *chunks, result = [item async for item in items]
    assert [chunk.metadata["progress"] for chunk in chunks] == [{"progress": 1}]
    assert isinstance(result, ToolResult)
