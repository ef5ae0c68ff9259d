"""Plans that the host runs call by call."""

import asyncio
import threading

import pytest
from contracted import appends, hold, in_time

from satchel import (
    ConflictError,
    NotFoundError,
    Satchel,
    ToolCall,
    ToolChunk,
    ToolContext,
    ToolInvariant,
)
from satchel.runtime.middleware import approve


def read_first(plan, state):
    names = [call.name for call in plan]
    return None if "read" in names or "write" not in names else "Read before you write."


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(name=name, id=name) for name in names]


@pytest.fixture
def desk():
    app = Satchel()
    app.register_tool(lambda: "read it", name="read", description="Read the file.")
    app.register_tool(lambda: "wrote it", name="write", description="Write the file.")
    return app.session(plan_policy=read_first)


def test_the_policy_judges_all_calls_of_a_message_though_each_runs_alone(desk):
    async def main():
        plan = desk.step().plan(calls("read", "write"))
        assert (await plan.run("write")).text == "wrote it"
        assert (await plan.run("read")).text == "read it"
        alone = await desk.step().plan(calls("write")).run("write")
        assert alone.error_code == "plan_refused"

    in_time(main())


def test_calls_run_at_the_same_time():
    app, both = Satchel(), asyncio.Barrier(2)

    async def meet() -> str:
        """Wait for the other."""
        await both.wait()
        return "met"

    app.register_tool(meet)

    async def main():
        plan = app.session().step().plan([ToolCall(name="meet"), ToolCall(name="meet")])
        results = await asyncio.gather(plan.run(0), plan.run(1))
        assert [item.text for item in results] == ["met", "met"]

    in_time(main())


def test_a_call_runs_once_and_gives_its_result_again():
    app, runs = Satchel(), []

    def count() -> int:
        """Count the runs."""
        runs.append(1)
        return len(runs)

    app.register_tool(count)

    async def main():
        plan = app.session().step().plan(calls("count"))
        assert [(await plan.run("count")).text for _ in range(2)] == ["1", "1"]

    in_time(main())


def test_calls_with_one_id_are_two_calls():
    app = Satchel()
    app.register_tool(lambda word: word, name="say", description="Say a word.")
    created = [ToolCall(name="say", arguments={"word": word}, id="x") for word in "ab"]

    async def main():
        plan = app.session().step().plan(created)
        assert [(await plan.run("x")).text for _ in range(2)] == ["a", "b"]

    in_time(main())


def test_a_call_that_runs_is_not_run_a_second_time():
    app, began, go_on = Satchel(), asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait until it may go on."""
        began.set()
        await go_on.wait()
        return "waited"

    app.register_tool(wait)

    async def main():
        plan = app.session().step().plan(calls("wait"))
        first = asyncio.ensure_future(plan.run("wait"))
        await began.wait()
        with pytest.raises(ConflictError, match="runs already"):
            await plan.run("wait")
        go_on.set()
        assert (await first).text == "waited"

    in_time(main())


def test_a_cancelled_call_ends_its_tool_and_may_run_again():
    app, began, ended = Satchel(), asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait until it is cancelled."""
        if ended.is_set():
            return "again"
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    app.register_tool(wait)

    async def main():
        plan = app.session().step().plan(calls("wait"))
        task = asyncio.ensure_future(plan.run("wait"))
        await began.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert ended.is_set()
        assert (await plan.run("wait")).text == "again"

    in_time(main())


def test_an_unknown_id_is_an_error_with_near_misses(desk):
    plan = desk.step().plan([ToolCall(name="read", id="call_17")])
    for wrong in ("call_71", 1, -1):
        with pytest.raises(NotFoundError):
            plan.needs_approval(wrong)
    with pytest.raises(NotFoundError, match="call_17"):
        plan.stream("call_71")


def test_chunks_come_before_the_result():
    app = Satchel()

    async def count():
        """Count in parts."""
        yield "1"
        yield "2"

    app.register_tool(count)

    async def main():
        plan = app.session().step().plan(calls("count"))
        items = [item async for item in plan.stream("count")]
        assert [type(item) is ToolChunk for item in items] == [True, True, False]

    in_time(main())


def test_effects_of_calls_that_run_together_are_written_in_the_order_of_the_message():
    app, second_ended = Satchel(), asyncio.Event()

    async def slow() -> str:
        """End after the other."""
        await second_ended.wait()
        return "slow"

    async def quick() -> str:
        """End first."""
        second_ended.set()
        return "quick"

    hold(app, slow, state_effects=(appends(),))
    hold(app, quick, state_effects=(appends(),))
    session = app.session()

    async def main():
        plan = session.step().plan(calls("slow", "quick"))
        await asyncio.gather(plan.run("slow"), plan.run("quick"))

    in_time(main())
    assert session.state["log"] == ["slow", "quick"]


def test_calls_that_end_together_in_another_order_all_give_their_results():
    app, may_end = Satchel(), [asyncio.Event() for _ in range(3)]

    async def work(at: int) -> str:
        """Wait for leave to end, then let the next one end."""
        await may_end[at].wait()
        may_end[(at + 1) % 3].set()
        return f"done {at}"

    app.register_tool(work)

    async def main():
        plan = (
            app.session()
            .step()
            .plan([ToolCall(name="work", arguments={"at": at}) for at in range(3)])
        )
        running = [asyncio.ensure_future(plan.run(at)) for at in range(3)]
        may_end[1].set()  # the second ends first, then the third, and the first one last
        results = await asyncio.gather(*running)
        assert [result.text for result in results] == ["done 0", "done 1", "done 2"]

    in_time(main())


def test_one_at_a_time_in_another_order_does_not_wait_for_what_was_not_started():
    app = Satchel()
    hold(app, lambda: "a", options={"name": "first"}, state_effects=(appends(),))
    hold(app, lambda: "b", options={"name": "second"}, state_effects=(appends(),))
    session = app.session()

    async def main():
        plan = session.step().plan(calls("first", "second"))
        await plan.run("second")
        assert session.state["log"] == ["b"]
        await plan.run("first")
        assert session.state["log"] == ["b", "a"]

    in_time(main())


def test_a_call_without_effects_does_not_wait_for_an_earlier_one_that_runs():
    app = Satchel()

    async def parts():
        """Give parts."""
        yield "a part"

    app.register_tool(parts)
    app.register_tool(lambda: "done", name="work", description="Work.")

    async def main():
        plan = app.session().step().plan(calls("parts", "work"))
        async for item in plan.stream("parts"):
            if isinstance(item, ToolChunk):
                assert (await plan.run("work")).text == "done"

    in_time(main())


def test_calls_in_several_event_loops_write_their_effects_in_the_order_of_the_message():
    app, others_wait = Satchel(), threading.Barrier(3)

    async def work(context: ToolContext) -> str:
        """End after the others, if it is the first call."""
        if context.call_id == "0":
            await asyncio.to_thread(others_wait.wait)
        return context.call_id

    hold(app, work, state_effects=(appends(),))
    session = app.session()
    plan = session.step().plan([ToolCall(name="work", id=f"{at}") for at in range(3)])
    texts = {}

    async def one(at):
        task = asyncio.ensure_future(plan.run(at))
        for _ in range(100):  # the tool ends, and the call waits for the first one
            await asyncio.sleep(0)
        if at:
            await asyncio.to_thread(others_wait.wait)
        texts[at] = (await task).text

    def run(at):
        in_time(one(at))

    threads = [threading.Thread(target=run, args=(at,)) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {0: "0", 1: "1", 2: "2"}
    assert session.state["log"] == ["0", "1", "2"]


def test_hosts_without_a_loop_run_the_calls_in_threads(desk):
    plan, texts = desk.step().plan(calls("read", "write")), {}

    def run(name):
        texts[name] = plan.run_sync(name).text

    threads = [threading.Thread(target=run, args=(name,)) for name in ("read", "write")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {"read": "read it", "write": "wrote it"}
    assert [item.text for item in plan.stream_sync("read")] == ["read it"]


def test_the_context_reaches_every_call():
    app, seen = Satchel(), []

    def who(context: ToolContext) -> None:
        """Tell who calls."""
        seen.append((context.agent_id, context.run_id, context.iteration, context.call_id))

    app.register_tool(who)
    context = ToolContext(agent_id="planner", run_id="r1", iteration=3)
    in_time(app.session().step().plan(calls("who"), context=context).run("who"))
    assert seen == [("planner", "r1", 3, "who")]


# ---- approval -------------------------------------------------------------------------------


@pytest.fixture
def guarded():
    app = Satchel()
    app.register_tool(lambda: "gone", name="delete", description="Delete the file.")
    app.register_tool(
        lambda: "seen", name="look", description="Look.", annotations={"readOnlyHint": True}
    )
    return app


def test_a_host_asks_before_the_call_and_says_that_it_was_approved(guarded):
    asked = []
    guarded.register_middleware(approve(asked.append))
    plan = guarded.session().step().plan(calls("delete", "look"))
    assert plan.needs_approval("delete")
    assert not plan.needs_approval("look")
    assert asked == []
    assert in_time(plan.run("delete", approved=True)).text == "gone"
    assert asked == []


def test_without_a_person_to_ask_a_call_is_denied_unless_it_was_approved(guarded):
    guarded.register_middleware(approve())
    step = guarded.session().step()
    call = ToolCall(name="delete")
    (denied,) = in_time(step.execute([call]))
    assert (denied.error_code, "not approved" in denied.text) == ("denied", True)
    assert step.needs_approval(call)
    approved = call.changed(approved=True)
    assert not step.needs_approval(approved)
    (done,) = in_time(step.execute([approved]))
    assert done.text == "gone"
    plan = step.plan([approved])
    assert not plan.needs_approval(0)
    assert in_time(plan.run(0)).text == "gone"


@pytest.mark.parametrize("call", [ToolCall(name="delte"), ToolCall(name="delete", arguments="{")])
def test_a_call_that_will_not_run_needs_no_approval(guarded, call):
    guarded.register_middleware(approve())
    assert not guarded.session().step().needs_approval(call)


def test_a_call_that_a_rule_refuses_needs_no_approval():
    app = Satchel()
    never = ToolInvariant(id="never", rule="Never.", check=lambda call, state, config: False)
    hold(app, lambda: "x", options={"name": "delete"}, invariants=(never,))
    app.register_middleware(approve())
    assert not app.session().step().needs_approval(ToolCall(name="delete"))


def test_without_middleware_that_asks_nothing_needs_approval(guarded):
    assert not guarded.session().step().needs_approval(ToolCall(name="delete"))


def test_what_needs_approval_reads_the_arguments_as_the_tool_gets_them():
    app = Satchel()

    def pay(euros: int) -> str:
        """Pay money."""
        return f"paid {euros}"

    app.register_tool(pay)
    app.register_middleware(approve(needs=lambda call: call.arguments["euros"] > 5))
    step = app.session().step()
    assert step.needs_approval(ToolCall(name="pay", arguments='{"euros": "10"}'))
    assert not step.needs_approval(ToolCall(name="pay", arguments={"euros": 1}))


def test_if_it_cannot_be_known_a_call_needs_approval(guarded):
    guarded.register_middleware(approve(needs=lambda call: 1 / 0))
    assert guarded.session().step().needs_approval(ToolCall(name="look"))


def test_an_approval_does_not_count_for_another_tool(guarded):
    async def divert(call, inner):
        async for item in inner(call.changed(name="delete")):
            yield item

    guarded.register_middleware(divert)
    guarded.register_middleware(approve())
    call = ToolCall(name="look", approved=True)
    (result,) = in_time(guarded.session().execute([call]))
    assert result.error_code == "denied"
