import asyncio
from dataclasses import replace

import pytest
from runs import Scope, a_run, a_tool, play

from satchel.runtime.answer_memory import AnswerMemory
from satchel.runtime.background_tasks import BackgroundTasks
from satchel.runtime.call_task import CallTask, prepare_call
from satchel.runtime.prepared_tool import PreparedTool
from satchel.settings import Limits
from satchel.tools import ToolCall


async def fn():
    return "done"


async def other(x: int = 1):
    return f"other {x}"


async def passing(call, inner):
    async for item in inner(call):
        yield item


def sending(name, **changes):
    async def layer(call, inner):
        async for item in inner(replace(call, name=name, **changes)):
            yield item

    return layer


def test_a_tool_without_middleware_runs_as_it_is():
    assert not a_run(fn).prepared.has_middleware
    assert not a_run(fn, idempotent=True).prepared.has_middleware
    assert not a_run(fn, background=True).prepared.has_middleware
    assert a_run(fn, idempotent=True, answers=AnswerMemory()).prepared.has_middleware
    assert a_run(fn, layers=[passing]).prepared.has_middleware


def test_a_call_knows_its_tool():
    met = []

    async def meeting(call, inner):
        met.append((call.tool, call.groups))
        async for item in inner(call):
            yield item

    tool = a_tool(fn)
    play(a_run(tool, layers=[meeting]).result())
    assert met == [(tool, ("basic",))]


def test_one_call_runs_with_nothing_around_it():
    assert play(prepare_call(ToolCall(name="probe"), a_tool(fn), Limits()).result()).text == "done"


def test_what_a_tool_asks_for_stands_inside_of_the_middleware():
    noted = []

    def post(call, result):
        noted.append(result.text)
        return f"post {result.text}"

    async def shout(call, inner):
        async for item in inner(call):
            noted.append(item.text)
            yield item

    async def main():
        answers, tool = AnswerMemory(), a_tool(other, idempotent=True, postprocess=post_async(post))
        for _ in range(2):
            result = await a_run(tool, answers=answers, layers=[shout]).result()
            assert result.text == "post other 1"

    play(main())
    assert noted == ["other 1", "post other 1", "post other 1"]


def post_async(fn):
    async def postprocess(call, result):
        return fn(call, result)

    return postprocess


def test_a_call_that_is_sent_to_another_tool_runs_in_the_ways_of_that_tool():
    async def shout(call, result):
        return result.text.upper()

    async def never(call, result):
        raise AssertionError

    async def main():
        second = a_tool(other, name="second", postprocess=shout)
        run = a_run(
            fn,
            layers=[sending("second", arguments={"x": 2})],
            others=[second],
            postprocess=never,
        )
        assert (await run.result()).text == "OTHER 2"

    play(main())


def test_a_call_that_is_sent_nowhere_finds_no_tool():
    async def main():
        for options in ({}, {"background": True, "tasks": BackgroundTasks()}):
            result = await a_run(fn, layers=[sending("third")], **options).result()
            assert result.error_code == "tool_not_found"
            assert result.text == "there is no tool 'third'"
            assert result.call_id == "call-1"

    play(main())


def test_a_background_call_that_is_sent_to_another_tool_runs_that():
    async def main():
        book = BackgroundTasks()
        second = a_tool(other, name="second", background=True)
        options = {"background": True, "tasks": book}
        run = a_run(fn, layers=[sending("second")], others=[second], **options)
        result = await run.result()
        assert result.text.startswith("second continues in the background as task_1")
        await asyncio.wait([book.get("task_1").work])
        assert book.get("task_1").view().text == "task task_1 (second): done\nother 1"
        here = a_tool(other, name="here")
        run = a_run(fn, layers=[sending("here")], others=[here], **options)
        assert (await run.result()).text == "other 1"

    play(main())


def test_middleware_stands_around_the_start_of_a_background_task():
    noted = []

    async def noting(call, inner):
        async for item in inner(call):
            noted.append(item.structured)
            yield item

    async def shout(call, result):
        return result.text.upper()

    async def main():
        book = BackgroundTasks()
        tool = a_tool(fn, background=True, postprocess=shout)
        await a_run(tool, layers=[noting], tasks=book).result()
        await asyncio.wait([book.get("task_1").work])
        assert book.get("task_1").result.text == "DONE"

    play(main())
    assert noted == [{"task_id": "task_1"}]


def test_no_one_gets_around_the_middleware_of_one_tool_by_way_of_another():
    noted = []

    def noting(name):
        async def layer(call, inner):
            noted.append((name, call.name))
            async for item in inner(call):
                yield item

        return layer

    everywhere, guard = noting("everywhere"), noting("guard")

    def prepared(tool, *layers):
        return PreparedTool(tool=tool, limits=Limits(), middleware=layers)

    async def main():
        second = prepared(a_tool(other, name="second"), everywhere, guard)
        first = prepared(a_tool(fn), everywhere, sending("second"))
        call = ToolCall(name="probe")
        run = CallTask(call, first, Scope({"second": second}))
        assert (await run.result()).text == "other 1"

    play(main())
    assert noted == [("everywhere", "probe"), ("guard", "second")]


def test_a_middleware_that_asks_twice_at_once_does_not_run_the_function_twice():
    runs = []

    async def counted():
        runs.append(1)
        await asyncio.sleep(1)
        return "done"

    async def hasty(call, inner):
        items = inner(call)
        first = asyncio.create_task(anext(items))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError):
            await anext(items)
        yield await first

    assert play(a_run(counted, layers=[hasty]).result()).text == "done"
    assert runs == [1]
