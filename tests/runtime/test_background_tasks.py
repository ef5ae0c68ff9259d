import asyncio

import pytest
from runs import a_run, a_tool, begun, forever, ignoring, now, play, play_for_real, turns

from satchel.errors import ToolError
from satchel.runtime import background_tasks as module
from satchel.runtime.background_tasks import BackgroundTasks, task_tool


async def slowly(seconds: float = 5, fails: bool = False):
    await asyncio.sleep(seconds)
    if fails:
        raise ToolError("no")
    return {"took": seconds}


async def streaming():
    yield "a"
    await asyncio.sleep(1)
    yield "b"
    await asyncio.sleep(1)
    yield "c"


class Desk:
    """A book, and the ways in which a model uses it."""

    def __init__(self):
        self.registry = BackgroundTasks()
        names = ("view_task", "wait_task", "cancel_task")
        self.tools = {it: task_tool(it).with_injected({"tasks": self.registry}) for it in names}

    async def start(self, fn=slowly, arguments=None, **options):
        tool = a_tool(fn, background=True)
        return await a_run(tool, arguments, tasks=self.registry, **options).result()

    async def ask(self, tool_name, task_id="task_1", **arguments):
        return await a_run(self.tools[tool_name], {"task_id": task_id, **arguments}).result()

    def run(self, tool_name, task_id="task_1", **arguments):
        return a_run(self.tools[tool_name], {"task_id": task_id, **arguments})


def test_the_tools_say_what_they_take_and_hide_the_book():
    tools = Desk().tools
    assert list(tools) == ["view_task", "wait_task", "cancel_task"]
    assert list(tools["wait_task"].parameters["properties"]) == ["task_id", "timeout"]
    assert tools["wait_task"].parameters["properties"]["timeout"]["default"] == 10
    assert tools["view_task"].annotations == {"readOnlyHint": True}


def test_a_call_answers_at_once_with_the_id_of_its_task():
    async def main():
        desk = Desk()
        result = await desk.start()
        assert now() == 0
        assert result.structured == {"task_id": "task_1"}
        assert result.metadata == {"task_id": "task_1"}
        assert result.call_id == "call-1"
        assert "probe continues in the background as task_1" in result.text
        assert (await desk.start()).structured == {"task_id": "task_2"}
        assert len(desk.registry) == 2
        await desk.ask("cancel_task")
        await desk.ask("cancel_task", "task_2")

    play(main())


def test_a_task_continues_for_as_long_as_it_takes():
    async def main():
        desk = Desk()
        await desk.start(arguments={"seconds": 100_000})
        assert (await desk.ask("view_task")).text == "task task_1 (probe): running"
        await asyncio.sleep(100_001)
        result = await desk.ask("view_task")
        assert result.text == 'task task_1 (probe): done\n{"took":100000.0}'
        assert result.structured == {"took": 100_000.0}
        assert result.metadata == {"task_id": "task_1", "status": "done"}

    play(main())


def test_a_caller_that_waits_gets_the_result_or_hears_that_it_still_runs():
    async def main():
        desk = Desk()
        await desk.start(arguments={"seconds": 15})
        result = await desk.ask("wait_task")
        assert (result.metadata["status"], now()) == ("running", 10)
        result = await desk.ask("wait_task", timeout=120)
        assert (result.metadata["status"], now()) == ("done", 15)
        assert (await desk.ask("wait_task")).metadata["status"] == "done"
        assert now() == 15

    play(main())


@pytest.mark.parametrize(("timeout", "until"), [(0, 0), (-5, 0), (1e9, 3600)])
def test_no_one_waits_for_less_than_no_time_nor_for_ever(timeout, until):
    async def main():
        desk = Desk()
        await desk.start(arguments={"seconds": 9999})
        assert (await desk.ask("wait_task", timeout=timeout)).metadata["status"] == "running"
        assert now() == until
        await desk.ask("cancel_task")

    play(main())


def test_one_that_stops_waiting_does_not_end_the_task():
    async def main():
        desk = Desk()
        await desk.start()
        run = desk.run("wait_task")
        task = await begun(run.result())
        run.interrupt()
        assert (await task).is_interrupted
        other = await begun(desk.ask("wait_task"))
        other.cancel()
        await asyncio.wait([other])
        assert (await desk.ask("wait_task")).metadata["status"] == "done"

    play(main())


def test_what_a_task_sends_is_there_while_it_runs():
    async def main():
        desk = Desk()
        await desk.start(streaming)
        await asyncio.sleep(1.5)
        assert (await desk.ask("view_task")).text == "task task_1 (probe): running\nab"
        assert (await desk.ask("wait_task")).text == "task task_1 (probe): done\nabc"

    play(main())


def test_a_task_that_fails_says_so():
    async def main():
        desk = Desk()
        await desk.start(arguments={"fails": True})
        result = await desk.ask("wait_task")
        assert (result.is_error, result.error_code) == (True, "tool_error")
        assert result.text == "task task_1 (probe): failed\nno"

    play(main())


def test_wrong_arguments_are_reported_at_once():
    async def main():
        desk = Desk()
        result = await desk.start(arguments={"second": 1})
        assert result.error_code == "invalid_arguments"
        assert len(desk.registry) == 0

    play(main())


def test_a_task_that_is_cancelled_keeps_its_chunks():
    async def main():
        desk = Desk()
        await desk.start(streaming)
        await asyncio.sleep(0.5)
        result = await desk.ask("cancel_task")
        assert (result.is_interrupted, result.metadata["status"]) == (True, "cancelled")
        assert result.text.startswith("task task_1 (probe): cancelled\na\n[probe was interrupted")
        assert now() == 0.5
        assert (await desk.ask("cancel_task")).text == result.text

    play(main())


def test_a_task_that_was_done_stays_done_when_it_is_cancelled():
    async def main():
        desk = Desk()
        await desk.start()
        await asyncio.sleep(6)
        assert (await desk.ask("cancel_task")).metadata["status"] == "done"

    play(main())


def test_a_task_that_ignores_its_end_delays_nothing(log):
    async def main():
        desk = Desk()
        await desk.start(ignoring)
        await turns()
        result = await desk.ask("cancel_task")
        assert result.metadata == {"leaked": True, "task_id": "task_1", "status": "cancelled"}
        assert now() == 1

    play(main())
    assert "leaked" in log.text


def test_middleware_that_hangs_after_an_interruption_delay_nothing():
    async def keep(call, result):
        await forever()

    async def main():
        desk = Desk()
        tool = a_tool(forever, background=True, postprocess=keep)
        await a_run(tool, tasks=desk.registry).result()
        await turns()
        assert (await desk.ask("cancel_task")).metadata["status"] == "cancelled"
        assert now() <= 4

    play(main())


def test_those_that_run_can_be_ended():
    async def main():
        desk = Desk()
        for _ in range(2):
            await desk.start()
        runs = desk.registry.running()
        assert len(runs) == 2
        for run in runs:
            run.interrupt()
        await turns()
        assert desk.registry.running() == []
        assert (await desk.ask("view_task")).metadata["status"] == "cancelled"

    play(main())


def test_a_task_that_the_loop_ended_is_cancelled_and_keeps_its_chunks():
    desk = Desk()

    async def first():
        await desk.start(streaming)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(first())
    for tool_name in ("view_task", "wait_task", "cancel_task"):
        result = asyncio.run(desk.ask(tool_name))
        assert result.text == "task task_1 (probe): cancelled\na"
    assert desk.registry.running() == []


def test_a_task_on_a_loop_that_was_closed_is_over():
    desk = Desk()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(desk.start(forever))
    task = desk.registry.get("task_1")
    assert task.status == "running"
    work = task.work
    loop.close()
    for tool_name in ("view_task", "wait_task", "cancel_task"):
        assert play_for_real(desk.ask(tool_name)).metadata["status"] == "cancelled"
    assert desk.registry.running() == []
    work._log_destroy_pending = False


@pytest.mark.parametrize("tool_name", ["view_task", "wait_task", "cancel_task"])
def test_an_unknown_id_is_reported_with_those_that_are_near(tool_name):
    async def main():
        desk = Desk()
        result = await desk.ask(tool_name)
        assert result.text == "there is no task 'task_1'. There are none."
        assert result.error_code == "tool_error"
        for _ in range(5):
            await desk.start()
        result = await desk.ask(tool_name, "task_33")
        assert "task_3" in result.text
        result = await desk.ask(tool_name, "zzz")
        assert result.text == "there is no task 'zzz'. There are: task_3, task_4, task_5."
        await asyncio.sleep(6)

    play(main())


def test_of_those_that_ended_only_the_last_are_kept(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 2)

    async def main():
        desk = Desk()
        await desk.start(forever)
        for _ in range(4):
            await desk.start()
            await asyncio.sleep(6)
        await desk.start()
        assert list(desk.registry._tasks) == ["task_1", "task_4", "task_5", "task_6"]
        await asyncio.sleep(6)
        await desk.ask("cancel_task")

    play(main())
