"""The effects of several calls: in the order of the calls, whoever runs them, and however."""

import asyncio
import gc
import logging
from contextlib import aclosing, suppress
from dataclasses import replace

import pytest
from contracted import appends, hold, in_time
from hypothesis import given
from hypothesis import strategies as st
from leaving_early import WAYS_TO_LEAVE

from satchel import (
    Satchel,
    ToolCall,
    ToolError,
    ToolInvariant,
    ToolResult,
    ToolStateEffect,
    ToolStateRead,
)
from satchel.contracts.plan import Validation, Verdict
from satchel.runtime.executors import CircuitBreaker, Concurrent, RateLimited, Sequential
from satchel.session.planning import log_verdicts


class Backwards:
    """Runs the last call first."""

    async def stream(self, calls, run):
        for index in reversed(range(len(calls))):
            yield index, await run(calls[index])


class AllAtTheEnd:
    """Runs the last call first, and tells nothing before all have ended."""

    async def stream(self, calls, run):
        results = [await run(call) for call in reversed(calls)]
        for index, result in enumerate(reversed(results)):
            yield index, result


class Twice:
    """Runs each call twice, and tells the second result."""

    async def stream(self, calls, run):
        for index, call in enumerate(calls):
            await run(call)
            yield index, await run(call)


class Repeating:
    """Tells each result twice."""

    async def stream(self, calls, run):
        for index, call in enumerate(calls):
            result = await run(call)
            yield index, result
            yield index, result


class Copying:
    """Runs copies of the calls, the last first."""

    async def stream(self, calls, run):
        for index, call in reversed(list(enumerate(calls))):
            yield index, await run(replace(call))


class Forgetful:
    """Forgets the first call."""

    async def stream(self, calls, run):
        for index, call in list(enumerate(calls))[1:]:
            yield index, await run(call)


def limited():
    return RateLimited(Concurrent(), per_second=1e6, burst=100)


def breaking():
    return CircuitBreaker(Concurrent(), failures=100)


EXECUTORS = {
    "default": lambda: None,
    "one at once": lambda: Concurrent(1),
    "two at once": lambda: Concurrent(2),
    "sequential": Sequential,
    "limited": limited,
    "breaking": breaking,
    "both": lambda: RateLimited(breaking(), per_second=1e6, burst=100),
    "limited backwards": lambda: RateLimited(Backwards(), per_second=1e6, burst=100),
    "backwards": Backwards,
    "at the end": AllAtTheEnd,
    "repeating": Repeating,
    "copying": Copying,
}


@pytest.fixture(params=EXECUTORS)
def executor(request):
    return EXECUTORS[request.param]()


def say(word: str) -> str:
    """Say a word."""
    if word == "fail":
        raise ToolError("no")
    return word


def saying() -> Satchel:
    app = Satchel()
    hold(app, say, {"word": "str - w"}, state_effects=(appends("said"),))
    return app


def words(*texts: str) -> list[ToolCall]:
    return [
        ToolCall(name="say", arguments={"word": word}, id=str(at)) for at, word in enumerate(texts)
    ]


# ---- every executor -----------------------------------------------------------------------


def test_effects_are_written_in_the_order_of_the_calls(executor):
    session = saying().session()
    results = in_time(session.execute(words("a", "fail", "b", "c"), executor=executor))
    assert [result.call_id for result in results] == list("0123")
    assert [result.error_code for result in results] == [None, "tool_error", None, None]
    assert session.state == {"said": ["a", "b", "c"]}


def test_each_call_is_reported_once(executor):
    async def main():
        plan = words("a", "fail", "b")
        session = saying().session()
        messages = session.execute_streaming(plan, executor=executor)
        return [(index, result.call_id) async for index, result in messages]

    assert sorted(in_time(main())) == [(0, "0"), (1, "1"), (2, "2")]


def test_a_call_that_an_executor_forgot_is_answered_and_blocks_nothing():
    session = saying().session()
    results = in_time(session.execute(words("a", "b", "c"), executor=Forgetful()))
    assert [result.error_code for result in results] == ["tool_failed", None, None]
    assert [result.call_id for result in results] == list("012")
    assert session.state == {"said": ["b", "c"]}


def test_a_call_that_is_run_again_is_written_once():
    session = saying().session()
    results = in_time(session.execute(words("a", "b"), executor=Twice()))
    assert [result.text for result in results] == ["a", "b"]
    assert session.state == {"said": ["a", "b"]}


def test_a_call_that_fails_and_is_run_again_is_written_when_it_went_well():
    tries = []

    def shaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ToolError("not yet")
        return "there"

    app = saying()
    hold(app, shaky, state_effects=(appends("said"),))
    session = app.session()
    plan = [*words("a"), ToolCall(name="shaky"), *words("b")]
    in_time(session.execute(plan, executor=Twice()))
    assert session.state == {"said": ["a", "there", "b"]}


def test_an_executor_that_raises_leaves_what_was_written():
    class Broken:
        async def stream(self, calls, run):
            yield 0, await run(calls[0])
            raise RuntimeError("broken")

    session = saying().session()
    with pytest.raises(RuntimeError, match="broken"):
        in_time(session.execute(words("a", "b"), executor=Broken()))
    assert session.state == {"said": ["a"]}


@pytest.fixture(scope="module")
def merging() -> Satchel:
    """Return a tool for each way to merge."""
    app = Satchel()

    def run(merge: str, value=None, fails: bool = False) -> ToolResult:
        if fails:
            raise ToolError("no")
        return ToolResult(metadata={"effects": {} if value is None else {merge: value}})

    for merge in ("append", "replace", "merge_dict"):

        def tool(merge: str = merge, value=None, fails: bool = False) -> ToolResult:
            brought = {"k": value} if merge == "merge_dict" and value != 3 else value
            return run(merge, None if value is None else brought, fails=fails)

        hold(
            app,
            tool,
            {"type": "object", "properties": {"value": {}, "fails": {"type": "boolean"}}},
            options={"name": merge},
            state_effects=(ToolStateEffect(key=merge, type_hint=object, merge=merge),),
        )
    return app


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["append", "replace", "merge_dict"]),
            st.one_of(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=2), st.none()),
            st.booleans(),
        ),
        max_size=8,
    ),
    st.sampled_from(list(EXECUTORS)),
)
def test_effects_of_a_plan_are_those_of_its_calls_one_after_another(merging, plan, executor):
    session = merging.session()
    calls = [
        ToolCall(name=merge, arguments={"value": value, "fails": f}) for merge, value, f in plan
    ]
    results = in_time(session.execute(calls, executor=EXECUTORS[executor]()))

    state, codes = {}, []
    for merge, value, fails in plan:
        code = "tool_error" if fails else None
        if value is not None and not fails:
            if merge == "append":
                state.setdefault(merge, []).extend(value if isinstance(value, list) else [value])
            elif merge == "replace":
                state[merge] = value
            elif value == 3:
                code = "effect_failed"
            else:
                state.setdefault(merge, {})["k"] = value
        codes.append(code)
    assert session.state == state
    assert [result.error_code for result in results] == codes


# ---- tools that end in any order ----------------------------------------------------------


class Doors:
    """Tools that each wait at a door of their own; `opened` in any order."""

    def __init__(self, *names: str, effects=True) -> None:
        self.app = Satchel()
        self.doors = {name: asyncio.Event() for name in names}
        self.began = {name: asyncio.Event() for name in names}
        self.ended = {name: asyncio.Event() for name in names}
        for name in names:
            parts = {"state_effects": (appends("log"),)} if effects else {}
            hold(self.app, self._through(name), options={"name": name}, **parts)

    def _through(self, name: str):
        async def through() -> str:
            self.began[name].set()
            try:
                await self.doors[name].wait()
            finally:
                self.ended[name].set()
            return name

        return through

    async def open(self, *names: str) -> None:
        for name in names:
            await self.began[name].wait()
            self.doors[name].set()
            await self.ended[name].wait()
            for _ in range(5):  # until its result has arrived
                await asyncio.sleep(0)


def calls(names: str) -> list[ToolCall]:
    return [ToolCall(name=name, id=name) for name in names]


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
@pytest.mark.parametrize("make", [Concurrent, limited, breaking])
def test_effects_do_not_depend_on_the_order_in_which_tools_ended(order, make):
    async def main():
        doors = Doors(*"abc")
        session = doors.app.session()
        work = asyncio.create_task(session.execute(calls("abc"), executor=make()))
        await doors.open(*order)
        results = await work
        return session.state, [result.text for result in results]

    assert in_time(main()) == ({"log": ["a", "b", "c"]}, ["a", "b", "c"])


def test_a_result_is_reported_only_once_its_effects_are_final():
    async def main():
        doors = Doors(*"ab")
        doors.app.register_tool(lambda: "plain", name="plain", description="Plain.")
        session = doors.app.session()
        plan = [*calls("ab"), ToolCall(name="plain")]
        async with aclosing(session.execute_streaming(plan)) as answers:
            assert (await anext(answers))[0] == 2, "what writes nothing waits for nothing"
            waiting = asyncio.ensure_future(anext(answers))
            await doors.open("b")
            assert session.state == {}
            assert not waiting.done()
            await doors.open("a")
            messages = [await waiting, await anext(answers)]
            assert [(index, result.text) for index, result in messages] == [(0, "a"), (1, "b")]
            assert session.state == {"log": ["a", "b"]}
            with pytest.raises(StopAsyncIteration):
                await anext(answers)

    in_time(main())


def test_a_call_that_failed_does_not_wait_to_be_reported():
    async def main():
        doors = Doors("a")
        hold(doors.app, say, {"word": "str - w"}, state_effects=(appends("log"),))
        session = doors.app.session()
        answers = session.execute_streaming([*calls("a"), *words("fail")])
        async with aclosing(answers):
            assert (await anext(answers))[0] == 1
            await doors.open("a")
            assert (await anext(answers))[0] == 0

    in_time(main())


def test_a_call_that_is_ended_writes_nothing_and_blocks_nothing():
    async def main():
        doors = Doors(*"abc")
        session = doors.app.session()
        work = asyncio.create_task(session.execute(calls("abc")))
        await doors.open("c", "b")
        assert session.state == {}
        assert session.interrupt("a") == 1
        results = await work
        assert [result.is_interrupted for result in results] == [True, False, False]
        assert session.state == {"log": ["b", "c"]}

    in_time(main())


def test_a_call_that_is_ended_before_it_begins_writes_nothing():
    async def main():
        doors = Doors(*"abc")
        session = doors.app.session()
        work = asyncio.create_task(session.execute(calls("abc"), executor=Sequential()))
        await doors.began["a"].wait()
        assert session.interrupt("b") == 1
        await doors.open("a", "c")
        results = await work
        assert [result.is_interrupted for result in results] == [False, True, False]
        assert session.state == {"log": ["a", "c"]}

    in_time(main())


def test_an_effect_that_cannot_be_written_is_reported_for_its_call_alone():
    async def main():
        doors = Doors(*"ac")

        async def odd() -> ToolResult:
            return ToolResult(metadata={"effects": {"log": ["x"], "table": "no table"}})

        table = ToolStateEffect(key="table", merge="merge_dict")
        hold(doors.app, odd, state_effects=(appends("log"), table))
        session = doors.app.session()
        work = asyncio.create_task(
            session.execute([*calls("a"), ToolCall(name="odd", id="o"), *calls("c")])
        )
        await doors.open("c", "a")
        results = await work
        assert [result.error_code for result in results] == [None, "effect_failed", None]
        assert results[1].call_id == "o"
        assert session.state == {"log": ["a", "c"]}

    in_time(main())


# ---- leaving early ------------------------------------------------------------------------


@pytest.mark.parametrize("leave", WAYS_TO_LEAVE)
@pytest.mark.parametrize("make", [Concurrent, limited, breaking])
def test_a_caller_that_stops_reading_a_plan_ends_what_still_runs(leave, make):
    async def main():
        doors = Doors(*"ab")
        session = doors.app.session()
        doors.doors["a"].set()
        await leave(session.execute_streaming(calls("ab"), executor=make()))
        gc.collect()
        await doors.ended["b"].wait()
        return session

    session = in_time(main())
    assert (session.state, session.interrupt()) == ({"log": ["a"]}, 0)


def test_a_plan_that_is_cancelled_ends_its_calls_and_keeps_what_was_written():
    async def main():
        doors = Doors(*"abc")
        session = doors.app.session()
        work = asyncio.create_task(session.execute(calls("abc")))
        await doors.open("a", "c")
        await doors.began["b"].wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert doors.ended["b"].is_set()
        assert session.state == {"log": ["a", "c"]}
        assert session.interrupt() == 0

    in_time(main())


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_plan_that_was_left_reports_nothing_more(is_begun):
    async def main():
        session = saying().session()
        answers = session.execute_streaming(words("a", "b", "c"), executor=Sequential())
        if is_begun:
            await anext(answers)
        await answers.aclose()
        assert [answer async for answer in answers] == []
        return session.state

    assert in_time(main()) == ({"said": ["a"]} if is_begun else {})


def test_a_plan_that_is_torn_down_from_outside_ends_without_a_complaint():
    async def main():
        doors = Doors(*"ab")
        session = doors.app.session()
        running = session.execute(calls("ab"))
        running.send(None)
        await doors.began["b"].wait()
        running.close()
        await doors.ended["a"].wait()
        await doors.ended["b"].wait()
        return session

    session = in_time(main())
    assert (session.state, session.interrupt()) == ({}, 0)


def test_cancelling_a_single_call_goes_through():
    async def main():
        doors = Doors("a")
        session = doors.app.session()
        work = asyncio.create_task(session.call("a"))
        await doors.began["a"].wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert doors.ended["a"].is_set()
        assert (session.state, session.interrupt()) == ({}, 0)

    in_time(main())


def test_leaving_the_stream_of_one_call_ends_its_tool():
    async def main():
        began, ended = asyncio.Event(), asyncio.Event()

        async def talk():
            try:
                yield "so far"
                began.set()
                await asyncio.Event().wait()
            finally:
                ended.set()

        app = Satchel()
        hold(app, talk, state_effects=(appends("log"),))
        session = app.session()
        async with aclosing(session.stream("talk")) as items:
            assert (await anext(items)).text == "so far"
            reading = asyncio.ensure_future(anext(items))
            await began.wait()
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
        assert ended.is_set()
        assert (session.state, session.interrupt()) == ({}, 0)

    in_time(main())


def test_a_stream_reports_chunks_as_they_come_and_writes_before_the_result_is_reported():
    async def main():
        async def talk():
            yield "a"
            yield "b"

        app = Satchel()
        hold(app, talk, state_effects=(appends("log"),))
        session = app.session()
        seen = [(item.text, list(session.state)) async for item in session.stream("talk")]
        assert seen == [("a", []), ("b", []), ("ab", ["log"])]

    in_time(main())


# ---- what calls see of each other ---------------------------------------------------------


def test_later_calls_of_a_sequential_plan_read_what_earlier_ones_wrote():
    def add(word: str, message: list) -> str:
        return "+".join([*message, word])

    def plan(executor):
        app = Satchel()
        hold(
            app,
            add,
            {"word": "str - w"},
            state_reads=(ToolStateRead("message", []),),
            state_effects=(appends("message"),),
        )
        session = app.session()
        several = [ToolCall(name="add", arguments={"word": word}) for word in "abc"]
        return [result.text for result in in_time(session.execute(several, executor=executor))]

    assert plan(Sequential()) == ["a", "a+b", "a+a+b+c"]


def test_each_call_is_handed_a_default_of_its_own():
    def spoil(message: list) -> int:
        message.append("spoiled")
        return len(message)

    app = Satchel()
    hold(app, spoil, state_reads=(ToolStateRead("message", []),))
    session = app.session()
    assert [in_time(session.call("spoil")).structured for _ in range(2)] == [1, 1]
    assert session.state == {}


def test_rules_see_the_state_as_it_was_when_the_plan_was_judged():
    once = ToolInvariant(
        id="once",
        rule="Only while nothing was said.",
        check=lambda call, state, config: not state.get("said"),
    )
    app = Satchel()
    hold(app, say, {"word": "str - w"}, invariants=(once,), state_effects=(appends("said"),))
    session = app.session()
    results = in_time(session.execute(words("a", "b"), executor=Sequential()))
    assert [result.error_code for result in results] == [None, None]
    assert in_time(session.execute(words("c")))[0].error_code == "rejected"


def test_what_rules_do_is_logged_with_their_ids(caplog):
    def verdict(name, **fields):
        return Verdict(index=0, sent=ToolCall(name=name), call=None, **fields)

    validation = Validation(
        plan=(),
        pruned=(verdict("find", ids=("once",)),),
        rejected=(
            verdict("send", ids=("polite", "short"), code="rejected"),
            verdict("post", message="post was refused", code="rejected", problem="KeyError: x"),
        ),
    )
    with caplog.at_level(logging.INFO, "satchel.contracts"):
        log_verdicts(validation)
    assert [record.getMessage() for record in caplog.records] == [
        "find was pruned by once",
        "send was rejected by polite, short",
        "post was refused (KeyError: x)",
    ]


def test_a_plan_that_is_interrupted_before_it_is_read_answers_refused_and_other_calls():
    async def main():
        app = Satchel()
        rule = ToolInvariant(id="never", rule="Never.", check=lambda call, state, config: False)
        hold(app, refused, invariants=[rule])
        app.register_tool(free)
        session = app.session()
        plan = [ToolCall(name=name, id=name) for name in ("refused", "free")]
        answers = session.execute_streaming(plan)
        assert session.interrupt() == 2
        return {plan[index].id: result.error_code async for index, result in answers}

    def refused() -> str:
        return "ran"

    def free() -> str:
        return "ran"

    assert in_time(main()) == {"refused": "rejected", "free": "interrupted"}
