import asyncio
from dataclasses import dataclass

import pytest
from runs import a_run, a_tool, begun, each_item, now, play, play_for_real, turns

from satchel.errors import ToolError
from satchel.runtime import answer_memory as module
from satchel.runtime.answer_memory import AnswerMemory
from satchel.runtime.call_task import prepare_call
from satchel.settings import Limits
from satchel.tools import Tool, ToolCall, ToolResult


class Counted:
    """A tool that counts its runs, each of which takes a second, and fails as it is told to."""

    def __init__(self, *problems, **options):
        self.runs, self.problems, self.answers = 0, list(problems), AnswerMemory()
        self.tool = a_tool(self._fn, idempotent=True, **options)

    async def _fn(self, x: int = 0, y: str = ""):
        self.runs += 1
        number = self.runs
        await asyncio.sleep(1)
        if self.problems and (problem := self.problems.pop(0)):
            raise problem
        return {"run": number}

    def run(self, arguments=None, **options):
        return a_run(self.tool, arguments, answers=self.answers, **options)


def numbers(results):
    return [result.structured and result.structured["run"] for result in results]


def test_a_repeated_call_is_answered_from_memory_under_its_own_id():
    async def main():
        probe = Counted()
        first = await probe.run({"x": 1, "y": "a"}, id="one").result()
        again = await probe.run('{"y": "a", "x": 1}', id="two").result()
        nobodys = await probe.run({"x": 1, "y": "a"}, id="").result()
        assert numbers([first, again, nobodys]) == [1, 1, 1]
        assert [first.call_id, again.call_id, nobodys.call_id] == ["one", "two", None]
        assert now() == 1

    play(main())


@pytest.mark.parametrize("other", [{"x": 2}, {"x": 1, "y": "a"}, {}])
def test_other_arguments_are_another_call(other):
    async def main():
        probe = Counted()
        await probe.run({"x": 1}).result()
        await probe.run(other).result()
        assert probe.runs == 2

    play(main())


def test_another_session_and_another_tool_have_their_own_answers():
    async def main():
        probe, other = Counted(), Counted()
        other.answers = probe.answers
        assert numbers([await probe.run().result(), await other.run().result()]) == [1, 1]
        probe.answers = AnswerMemory()
        assert numbers([await probe.run().result()]) == [2]

    play(main())


def test_equal_calls_at_once_run_once():
    async def main():
        probe = Counted()
        results = await asyncio.gather(*(probe.run().result() for _ in range(5)))
        assert numbers(results) == [1] * 5
        assert now() == 1

    play(main())


def test_who_changes_an_answer_changes_only_their_own():
    async def main():
        probe = Counted()
        for result in await asyncio.gather(*(probe.run().result() for _ in range(2))):
            result.structured["run"] = 9
        assert numbers([await probe.run().result()]) == [1]

    play(main())


@pytest.mark.parametrize("problem", [ToolError("no"), ValueError()])
def test_failures_are_shared_but_not_kept(problem):
    async def main():
        probe = Counted(problem)
        results = await asyncio.gather(*(probe.run().result() for _ in range(2)))
        assert numbers(results) == [None, None]
        assert probe.runs == 1
        assert numbers([await probe.run().result()]) == [2]

    play(main())


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
def test_a_first_call_that_is_ended_takes_no_other_with_it(how):
    async def main():
        probe = Counted()
        first = probe.run()
        task = await begun(first.result())
        others = [await begun(probe.run().result()) for _ in range(3)]
        if how == "cancel":
            task.cancel()
        else:
            first.interrupt()
        results = await asyncio.gather(*others)
        assert numbers(results) == [2, 2, 2]
        if how == "cancel":
            assert task.cancelled()
        else:
            assert (await task).is_interrupted

    play(main())


def test_one_that_waits_may_leave():
    async def main():
        probe = Counted()
        first = await begun(probe.run().result())
        second, third = probe.run(), await begun(probe.run().result())
        task = await begun(second.result())
        second.interrupt()
        third.cancel()
        assert (await task).is_interrupted
        assert numbers([await first]) == [1]
        assert third.cancelled()

    play(main())


def test_a_stream_is_kept_but_no_one_waits_for_it():
    count = []

    async def fn():
        count.append(1)
        yield "a"
        await asyncio.sleep(1)
        yield "b"

    async def main():
        answers, tool = AnswerMemory(), a_tool(fn, idempotent=True)
        results = await asyncio.gather(*(a_run(tool, answers=answers).result() for _ in range(3)))
        assert [result.text for result in results] == ["ab"] * 3
        assert (await a_run(tool, answers=answers).result()).text == "ab"

    play(main())
    assert len(count) == 3


def test_a_stream_that_is_left_early_is_not_kept():
    async def main():
        async def fn():
            yield "a"
            yield "b"

        answers, tool = AnswerMemory(), a_tool(fn, idempotent=True)
        run = a_run(tool, answers=answers)
        await run.next()
        await run.aclose()
        assert [item.text async for item in each_item(a_run(tool, answers=answers))][-1] == "ab"

    play(main())


class OddKey:
    def __iter__(self):
        raise TypeError


@pytest.mark.parametrize("sent", ["{", "[]", {"x": OddKey()}, {1: 2}])
def test_what_cannot_be_read_is_for_the_tool_to_refuse(sent):
    async def main():
        probe = Counted()
        for _ in range(2):
            assert (await probe.run(sent).result()).error_code == "invalid_arguments"

    play(main())


def test_arguments_that_contain_themselves_are_no_key():
    endless = {}
    endless["x"] = endless

    async def main():
        assert (await Counted().run(endless).result()).is_error

    play(main())


@dataclass
class Handmade(Tool):
    """A dataclass has no hash."""

    city: str
    name: str = "probe"
    idempotent: bool = True

    async def execute(self):
        return [self.city]


def test_a_tool_that_is_a_dataclass_is_itself_and_no_other():
    async def main():
        answers = AnswerMemory()
        oslo, bergen, other_oslo = Handmade("Oslo"), Handmade("Bergen"), Handmade("Oslo")
        for tool in (oslo, bergen, other_oslo, oslo):
            result = await a_run(tool, answers=answers).result()
            assert result.structured == [tool.city]
        assert len(answers._kept) == 3

    play(main())


def test_a_new_turn_forgets_unless_the_tool_asks_for_the_session():
    async def main():
        probe, lasting = Counted(), Counted(remember="session")
        for run in (1, 1):
            assert numbers([await probe.run().result(), await lasting.run().result()]) == [run, 1]
        module.forget_turn(probe.answers)
        module.forget_turn(lasting.answers)
        assert numbers([await probe.run().result(), await lasting.run().result()]) == [2, 1]

    play(main())


def test_what_began_in_the_last_turn_is_not_kept_for_the_next():
    async def main():
        probe = Counted()
        running = await begun(probe.run().result())
        module.forget_turn(probe.answers)
        assert numbers([await probe.run().result(), await running]) == [2, 1]
        assert numbers([await probe.run().result()]) == [2]

    play(main())


def test_an_answer_from_memory_says_so():
    async def main():
        probe = Counted()
        first, again = await probe.run().result(), await probe.run().result()
        assert (first.metadata, again.metadata) == ({}, {"cached": True})

    play(main())


def test_the_answer_that_was_used_longest_ago_goes_first():
    async def main():
        probe = Counted()
        probe.answers = AnswerMemory(2)
        for x in (1, 2, 1, 3):
            await probe.run({"x": x}).result()
        assert probe.runs == 3
        await probe.run({"x": 1}).result()
        assert probe.runs == 3
        await probe.run({"x": 2}).result()
        assert probe.runs == 4

    play(main())


def test_what_another_loop_left_behind_is_waited_for_by_no_one():
    probe = Counted()
    loop = asyncio.new_event_loop()
    task = loop.create_task(probe.run().result())
    loop.run_until_complete(turns())
    assert numbers([play_for_real(probe.run().result())]) == [2]
    loop.run_until_complete(task)
    loop.close()
    assert probe.runs == 2


def test_a_call_without_a_tool_passes_through():
    async def main():
        async def inner(call):
            yield ToolResult()

        layer = module.answer_from(AnswerMemory())
        for _ in range(2):
            assert [item async for item in layer(ToolCall(name="probe"), inner)] == [ToolResult()]

    play(main())


def test_a_middleware_that_yields_several_results_settles_once():
    async def main():
        async def inner(call):
            yield ToolResult(structured=1)
            yield ToolResult(structured=2)

        call = ToolCall(name="probe", tool=Handmade("Oslo"))
        items = [item.structured async for item in module.answer_from(AnswerMemory())(call, inner)]
        assert items == [1, 2]

    play(main())


def test_without_a_memory_each_call_runs():
    async def main():
        probe = Counted()
        for _ in range(2):
            await prepare_call(ToolCall(name="probe"), probe.tool, Limits()).result()
        assert probe.runs == 2

    play(main())
