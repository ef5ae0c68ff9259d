import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest
from layer_stage import (
    CHUNK,
    FAILED,
    OK,
    Clock,
    Inside,
    a_call,
    a_tool,
    answer,
    first,
    forever,
    read,
    turns,
)

from satchel.errors import DefinitionError
from satchel.runtime.middleware import by_arguments, by_session, cache
from satchel.tools import Text, ToolResult

TOOL = a_tool(idempotent=True)
STATE = {}


def ask(n=1, **parts):
    return a_call(**{"tool": TOOL, "state": STATE, "arguments": {"n": n}, **parts})


def runs(calls, script=(OK,), **options):
    """Return how many of the calls, made one after another, reached the inside."""
    layer, inside = cache(**options), Inside(script)

    async def main():
        for call in calls:
            await read(layer, inside, call)

    asyncio.run(main())
    return len(inside.calls)


def test_an_equal_call_is_answered_from_memory_under_its_own_id():
    layer, inside = cache(), Inside([CHUNK, replace(OK, metadata={"cost": 3})])

    async def main():
        assert await read(layer, inside, ask()) == [CHUNK, replace(OK, metadata={"cost": 3})]
        (again,) = await read(layer, inside, ask(id="call-2"))
        assert again == replace(OK, call_id="call-2", metadata={"cost": 3, "cached": True})
        assert (await answer(layer, inside, ask(id=""))).call_id is None

    asyncio.run(main())
    assert len(inside.calls) == 1


def test_the_order_of_arguments_does_not_matter():
    one, other = ask(arguments={"a": 1, "b": {"c": 2, "d": 3}}), {"b": {"d": 3, "c": 2}, "a": 1}
    assert runs([one, ask(arguments=other)]) == 1


@pytest.mark.parametrize(
    "other",
    [
        ask(2),
        ask(True),
        ask(1.0),
        ask("1"),
        ask(tool=a_tool(idempotent=True)),
        ask(state={}),
        ask(context={"metadata": {"user": "eve"}}),
        ask(context={"config": {"units": "miles"}}),
    ],
    ids=["argument", "bool", "float", "text", "tool", "session", "metadata", "config"],
)
def test_a_call_that_differs_is_another(other):
    assert runs([ask(), other]) == 2


def test_sessions_that_are_gone_are_not_mistaken_for_new_ones():
    # Their states would have the same identity if nobody held them.
    assert runs(ask(state={}) for _ in range(100)) == 100


@pytest.mark.parametrize(
    "call",
    [
        ask(tool=a_tool()),
        ask(tool=a_tool(annotations={"idempotentHint": True})),
        ask(tool=a_tool(idempotent=True, background=True)),
        replace(ask(), tool=None),
        replace(ask(), name="other"),
        ask(object()),
        ask(context={"metadata": {"connection": object()}}),
    ],
    ids=["plain", "hints", "background", "unknown", "sent on", "no JSON", "no JSON said"],
)
def test_what_is_not_repeatable_or_cannot_be_compared_always_runs(call):
    assert runs([call, call]) == 2


def test_arguments_that_contain_themselves_always_run():
    endless = {}
    endless["n"] = endless
    assert runs([ask(arguments=endless)] * 2) == 2


@pytest.mark.parametrize(
    "script", [[FAILED], [ToolResult(is_interrupted=True)], [CHUNK]], ids=["error", "end", "none"]
)
def test_only_successes_are_remembered(script):
    assert runs([ask(), ask()], script) == 2


def test_other_calls_can_be_chosen():
    call = ask(tool=a_tool(name="weather"))
    assert runs([call, call], which=lambda call: call.name == "weather") == 1
    assert runs([ask(), ask()], which=lambda call: call.name == "weather") == 2


def test_a_key_by_arguments_is_one_for_all_sessions():
    others = [ask(state={}), ask(context={"metadata": {"user": "eve"}}), ask(2)]
    assert runs([ask(), *others], key=by_arguments) == 2
    assert by_arguments(ask()) == by_arguments(ask(state={}))
    assert by_session(ask()) != by_session(ask(state={}))


def test_a_key_of_none_is_not_remembered():
    assert runs([ask(), ask()], key=lambda _: None) == 2


def test_an_answer_lives_so_many_seconds():
    clock, inside = Clock(), Inside()
    layer = cache(10, clock=clock)

    async def main():
        for passed in (0, 9, 1, 9, 1):
            clock.now += passed
            await read(layer, inside, ask())

    asyncio.run(main())
    assert len(inside.calls) == 3


def test_beyond_the_size_the_oldest_goes():
    assert runs([ask(1), ask(2), ask(3), ask(2), ask(3)], size=2) == 3
    assert runs([ask(1), ask(2), ask(3), ask(1)], size=2) == 4


def test_no_one_can_change_what_is_remembered():
    layer, inside = cache(), Inside([ToolResult(structured={"a": [1]}, metadata={"b": 2})])

    async def main():
        for _ in range(3):
            result = await answer(layer, inside, ask())
            assert result.structured == {"a": [1]}
            assert result.metadata["b"] == 2
            result.structured["a"].append("changed")
            if "cached" in result.metadata:
                result.metadata["b"] = "changed"

    asyncio.run(main())


WRITER, READER = a_tool(name="write"), a_tool(name="read", annotations={"readOnlyHint": True})


@pytest.mark.parametrize(
    ("between", "count"),
    [
        (ask(tool=WRITER), 3),
        (ask(tool=READER), 2),
        (ask(tool=WRITER, state={}), 2),
        (ask(2), 2),
    ],
    ids=["write", "read", "write in another session", "idempotent"],
)
def test_what_may_change_something_makes_its_session_forget(between, count):
    assert runs([ask(), between, ask()]) == count


def test_a_write_that_fails_makes_forget_too():
    layer = cache()

    async def main():
        inside = Inside([OK], [RuntimeError()], [OK])
        await read(layer, inside, ask())
        with pytest.raises(RuntimeError):
            await read(layer, inside, ask(tool=WRITER))
        await read(layer, inside, ask())
        assert len(inside.calls) == 3

    asyncio.run(main())


@pytest.mark.parametrize("script", [[], [CHUNK]])
def test_a_read_that_began_before_a_write_ended_is_not_remembered(script):
    async def main():
        layer, gate = cache(), asyncio.Event()
        slow = Inside([*script, gate.wait, ToolResult(content=(Text("old"),))])
        quick = Inside()
        reading = asyncio.create_task(read(layer, slow, ask()))
        await turns()
        await read(layer, quick, ask(tool=WRITER))
        late = asyncio.create_task(answer(layer, quick, ask()))
        await turns()
        assert late.done()  # it did not wait for what it cannot use
        gate.set()
        await reading
        assert await answer(layer, quick, ask()) == replace(OK, metadata={"cached": True})
        assert len(quick.calls) == 2
        assert len(slow.calls) == 1

    asyncio.run(main())


def together(script, count=3, others=()):
    """Make equal calls at once; return the results, the calls inside, and what ended them."""

    async def main():
        layer, gate = cache(), asyncio.Event()
        inside = Inside([gate.wait, *script], *others)
        calls = [ask(id=str(number)) for number in range(count)]
        tasks = [asyncio.create_task(read(layer, inside, call)) for call in calls]
        await turns()
        assert len(inside.calls) == 1
        gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True), inside

    return asyncio.run(main())


@pytest.mark.parametrize("result", [OK, FAILED])
def test_of_equal_calls_at_once_one_runs(result):
    results, inside = together([result])
    assert len(inside.calls) == 1
    assert [item.call_id for (item,) in results[1:]] == ["1", "2"]
    assert [item.metadata for (item,) in results] == [{}, {"cached": True}, {"cached": True}]
    assert {item.error_code for (item,) in results} == {result.error_code}


@pytest.mark.parametrize(
    "script",
    [[ToolResult(is_interrupted=True)], [RuntimeError()], []],
    ids=["interrupted", "raised", "without result"],
)
def test_if_the_one_is_given_up_another_runs(script):
    result, inside = together(script, others=[[OK]])
    assert len(inside.calls) == 2
    assert [item.text for (item,) in result[1:]] == ["done", "done"]


def test_if_the_one_is_cancelled_another_runs():
    async def main():
        layer, inside = cache(), Inside([forever], [OK])
        one, other = (asyncio.create_task(read(layer, inside, ask())) for _ in range(2))
        await turns()
        one.cancel()
        assert await other == [OK]
        assert one.cancelled()

    asyncio.run(main())


def test_cancelling_one_that_waits_hurts_no_other():
    async def main():
        layer, gate = cache(), asyncio.Event()
        inside = Inside([gate.wait, OK])
        tasks = [asyncio.create_task(answer(layer, inside, ask())) for _ in range(3)]
        await turns()
        tasks[1].cancel()
        await turns()
        gate.set()
        one, gone, other = await asyncio.gather(*tasks, return_exceptions=True)
        assert (one.text, other.text) == ("done", "done")
        assert isinstance(gone, asyncio.CancelledError)
        assert len(inside.calls) == 1

    asyncio.run(main())


def test_a_call_between_the_chunks_of_an_equal_one_does_not_wait_for_it():
    async def main():
        layer, inside = cache(), Inside([CHUNK, OK])
        async with aclosing(layer(ask(), inside)) as items:
            await anext(items)
            assert (await asyncio.wait_for(answer(layer, inside, ask()), 10)).text == "done"
            assert len(inside.calls) == 2
            assert (await anext(items)).text == "done"
        assert (await answer(layer, inside, ask())).metadata == {"cached": True}

    asyncio.run(main())


def test_a_reader_that_stops_at_the_result_leaves_it_for_others():
    async def main():
        layer, inside = cache(), Inside()
        await first(layer, inside, ask())
        await read(layer, inside, ask())
        assert len(inside.calls) == 1

    asyncio.run(main())


def test_memory_lasts_from_one_event_loop_to_the_next():
    layer, inside = cache(), Inside([lambda: asyncio.sleep(0), OK])
    for _ in range(2):
        asyncio.run(read(layer, inside, ask()))
    assert len(inside.calls) == 1


def test_an_event_loop_that_ended_in_the_middle_leaves_no_caller_waiting():
    layer, inside = cache(), Inside([forever], [OK])

    async def main():
        task = asyncio.create_task(read(layer, inside, ask()))
        await turns()
        assert not task.done()  # the loop ends, and cancels it

    asyncio.run(main())
    assert asyncio.run(read(layer, inside, ask())) == [OK]


@pytest.mark.parametrize("options", [{"seconds": 0}, {"seconds": float("nan")}, {"size": 0}])
def test_a_memory_of_nothing_is_refused(options):
    with pytest.raises(DefinitionError, match="cannot be remembered"):
        cache(**options)
