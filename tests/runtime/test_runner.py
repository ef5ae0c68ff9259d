import asyncio
from dataclasses import replace

import pytest
from runs import a_run, a_tool, begun, each_item, now, play

from satchel import Satchel, ToolContext
from satchel.errors import DefinitionError
from satchel.tools import FunctionTool, Text, ToolChunk, ToolResult
from satchel.tools.runner import Runner
from satchel.tools.tool_results import FinalResult


class Elsewhere(Runner):
    """Stands for a queue in front of another machine: it sends what JSON can carry."""

    def __init__(self):
        self.sent, self.cancelled = [], []

    async def run(self, call):
        self.sent.append((call.name, dict(call.arguments), call.id))
        try:
            await asyncio.sleep(call.arguments.get("seconds", 0))
        except asyncio.CancelledError:
            self.cancelled.append(call.id)
            raise
        return self.chunks() if call.arguments.get("stream") else {"ran": "elsewhere"}

    async def chunks(self):
        yield ToolChunk(content=(Text("one"),))
        yield FinalResult(content=(Text("one, and all of it"),))


async def never(seconds: int = 0, stream: bool = False):
    raise AssertionError


def a_remote_tool(**options):
    tool = a_tool(never, **options)
    tool.runner = Elsewhere()
    return tool


async def passing(call, inner):
    async for item in inner(call):
        yield item


@pytest.mark.parametrize("layers", [(), (passing,)])
def test_a_runner_stands_in_place_of_the_function(layers):
    tool = a_remote_tool()
    result = play(a_run(tool, '{"seconds": "3"}', layers=layers).result())
    assert result.structured == {"ran": "elsewhere"}
    assert tool.runner.sent == [("probe", {"seconds": 3}, "call-1")]


def test_a_runner_may_stream():
    async def main():
        run = a_run(a_remote_tool(), {"stream": True}, layers=[passing])
        return [item async for item in each_item(run)]

    chunk, result = play(main())
    assert (chunk.text, result.text) == ("one", "one, and all of it")
    assert type(result) is ToolResult


def test_arguments_that_do_not_fit_never_reach_it():
    tool = a_remote_tool()
    assert play(a_run(tool, {"seconds": "x"}).result()).error_code == "invalid_arguments"
    assert tool.runner.sent == []


def test_its_time_is_limited_and_it_hears_of_the_end():
    tool = a_remote_tool(timeout=5)

    async def main():
        assert (await a_run(tool, {"seconds": 9}).result()).error_code == "timeout"
        run = a_run(tool, {"seconds": 3}, id="two")
        task = await begun(run.result())
        run.interrupt()
        assert (await task).is_interrupted
        assert now() == 5

    play(main())
    assert tool.runner.cancelled == ["call-1", "two"]


def test_it_stands_behind_answers_from_memory_and_before_postprocessing():
    seen = []

    async def postprocess(call, result):
        seen.append(result.structured)

    tool = a_remote_tool(idempotent=True, postprocess=postprocess)
    satchel = Satchel()
    satchel.register_tool(tool)
    session = satchel.session()

    async def main():
        return [await session.call("probe", {"seconds": 0}) for _ in range(2)]

    assert [result.structured for result in asyncio.run(main())] == [{"ran": "elsewhere"}] * 2
    assert len(tool.runner.sent) == len(seen) == 1


def test_what_the_host_injects_is_there_for_a_runner_that_binds():
    class Here(Runner):
        async def run(self, call):
            return call.bind()()

    def fn(city: str, key: str, context: ToolContext):
        return [city, key, context.call_id]

    tool = FunctionTool(fn, name="probe", presets={"key": "secret"})
    tool.runner = Here()
    satchel = Satchel()
    satchel.register_tool(tool)
    result = asyncio.run(satchel.session().call("probe", {"city": "Oslo"}, call_id="7"))
    assert result.structured == ["Oslo", "secret", "7"]


def test_middleware_sees_arguments_as_the_function_gets_them():
    seen = []

    async def seeing(call, inner):
        seen.append(call.arguments)
        async for item in inner(call):
            yield item

    async def fn(days: int, city: str = "Oslo"):
        return [days, city]

    result = play(a_run(fn, '{"days": "3", "city": null}', layers=[seeing]).result())
    assert (seen, result.structured) == ([{"days": 3}], [3, "Oslo"])
    result = play(a_run(fn, {"days": "x"}, layers=[seeing]).result())
    assert (len(seen), result.error_code) == (1, "invalid_arguments")


def test_arguments_that_middleware_changes_are_checked_again():
    def changing(**arguments):
        async def layer(call, inner):
            async for item in inner(replace(call, arguments={**call.arguments, **arguments})):
                yield item

        return layer

    async def fn(days: int):
        return days

    assert play(a_run(fn, {"days": 1}, layers=[changing(days="4")]).result()).structured == 4
    result = play(a_run(fn, {"days": 1}, layers=[changing(days="x")]).result())
    assert result.error_code == "invalid_arguments"


@pytest.mark.parametrize("blocking", [True, False])
def test_blocking_is_for_plain_functions_only(blocking):
    async def fn(): ...

    with pytest.raises(DefinitionError, match="neither async nor generators"):
        FunctionTool(fn, blocking=blocking)


def test_a_memory_that_lasts_for_something_else_is_refused():
    with pytest.raises(DefinitionError, match="'turn' or 'session'"):
        FunctionTool(never, remember="ever")


def test_a_task_that_the_closing_loop_cancels_is_interrupted_and_no_failure(caplog):
    run = a_run(never_ending)
    results = []

    async def work():
        results.append(await run.result())

    async def main():
        background.append(asyncio.create_task(work()))
        await asyncio.sleep(0.01)

    background = []
    asyncio.run(main())
    assert caplog.records == []
    assert background[0].cancelled() or results[0].is_interrupted


async def never_ending():
    await asyncio.get_running_loop().create_future()
