import asyncio
import logging
import threading
from dataclasses import replace
from functools import partial

import pytest
from layer_stage import OK, Inside, a_call, a_tool, answer, read, turns

from satchel.runtime.middleware import Approval, approve


def asked(ask, call=None, **options):
    """Return the result, and the calls that came through."""
    inside = Inside()
    return asyncio.run(answer(approve(ask, **options), inside, call)), inside.calls


@pytest.mark.parametrize("yes", [True, Approval(allowed=True)])
def test_what_is_approved_runs(yes):
    call = a_call()
    assert asked(lambda _: yes, call) == (OK, [call])


@pytest.mark.parametrize(
    ("no", "message"),
    [
        (False, "continue without it, or ask why"),
        ("too risky", "too risky"),
        ("", "continue without it, or ask why"),
        ("True", "True"),
        (Approval(allowed=False), "continue without it, or ask why"),
        (Approval(allowed=False, reason="not \ud800 today"), "not ? today"),
        (Approval(allowed="yes"), "continue without it, or ask why"),
        (Approval(allowed=1), "continue without it, or ask why"),
    ],
)
def test_what_is_denied_does_not_run_and_the_model_learns_why(no, message):
    result, calls = asked(lambda _: no)
    assert (result.error_code, result.call_id, calls) == ("denied", "call-1", [])
    assert result.text == f"the call of probe was denied: {message}"


@pytest.mark.parametrize(
    "odd", [None, 1, b"yes", [True], object(), Approval(allowed=True, reason=None)]
)
def test_any_other_answer_is_no_approval(odd, caplog):
    with caplog.at_level(logging.ERROR, "satchel.runtime"):
        result, calls = asked(lambda _: odd)
    assert (result.error_code, calls) == ("denied", [])
    assert result.text == "the call of probe was denied: asking for approval failed"
    assert "is no approval" in caplog.text


async def async_ask(call):
    await asyncio.sleep(0)
    return True


async def async_error(call):
    raise LookupError("secret")


def error(call):
    raise LookupError("secret")


async def async_generator(call):
    yield True


def generator(call):
    yield True


class AsyncAsker:
    async def __call__(self, _call):
        return True


def lends_a_coroutine(call):
    return async_ask(call)


@pytest.mark.parametrize("ask", [async_ask, partial(async_ask), AsyncAsker(), lends_a_coroutine])
def test_ask_may_be_async_in_any_way(ask):
    assert asked(ask)[0] is OK


@pytest.mark.parametrize("ask", [error, async_error])
def test_an_ask_that_raises_approves_nothing_and_the_model_learns_no_detail(ask, caplog):
    with caplog.at_level(logging.ERROR, "satchel.runtime"):
        result, calls = asked(ask)
    assert (result.error_code, calls) == ("denied", [])
    assert "secret" not in result.text
    assert "secret" in caplog.text


@pytest.mark.parametrize("ask", [generator, async_generator])
def test_a_generator_is_no_answer(ask, caplog):
    assert asked(ask)[0].error_code == "denied"


def test_an_ask_that_ends_the_thread_approves_nothing():
    def ask(call):
        raise SystemExit

    inside = Inside()
    with pytest.raises(SystemExit):
        asyncio.run(read(approve(ask), inside))
    assert inside.calls == []


def test_a_blocking_ask_runs_in_a_thread_and_an_async_one_on_the_loop():
    threads = []

    def blocking(call):
        threads.append(threading.current_thread())
        return True

    async def quick(call):
        threads.append(threading.current_thread())
        return True

    asked(blocking)
    asked(quick)
    assert [thread is threading.main_thread() for thread in threads] == [False, True]


def test_ask_sees_the_call():
    seen, call = [], a_call(arguments={"path": "/"})
    asked(lambda call: seen.append(call) or True, call)
    assert seen == [call]


def test_an_approval_may_change_the_arguments():
    yes = Approval(allowed=True, arguments={"path": "/tmp"})
    _, (call,) = asked(lambda _: yes, a_call(arguments={"path": "/"}))
    assert (call.arguments, call.id) == ({"path": "/tmp"}, "call-1")
    _, (call,) = asked(lambda _: Approval(allowed=True, arguments={}), a_call(arguments={"a": 1}))
    assert call.arguments == {}


@pytest.mark.parametrize(
    ("annotations", "is_asked"),
    [
        (None, True),
        ({}, True),
        ({"readOnlyHint": True}, False),
        ({"readOnlyHint": False}, True),
        ({"readOnlyHint": "true"}, True),
        ({"readOnlyHint": 1}, True),
        ({"idempotentHint": True}, True),
    ],
)
def test_by_default_all_but_reading_must_be_approved(annotations, is_asked):
    result, _ = asked(lambda _: False, a_call(a_tool(annotations=annotations)))
    assert result.is_error == is_asked


def test_a_call_that_was_sent_to_another_tool_does_not_pass_as_the_first():
    sent = replace(a_call(a_tool(annotations={"readOnlyHint": True})), name="rm")
    assert asked(lambda _: False, sent)[0].is_error


def test_which_calls_need_approval_can_be_said():
    needs = {"needs": lambda call: call.arguments["path"] == "/"}
    assert asked(lambda _: False, a_call(arguments={"path": "/"}), **needs)[0].is_error
    assert not asked(lambda _: False, a_call(arguments={"path": "."}), **needs)[0].is_error


@pytest.mark.parametrize("odd", [None, 0, "", 1, "yes"])
def test_only_a_plain_false_needs_no_approval(odd):
    assert asked(lambda _: False, needs=lambda _: odd)[0].is_error


def test_an_error_while_deciding_approves_nothing(caplog):
    result, calls = asked(lambda _: True, needs=lambda call: call.arguments["path"])
    assert (result.error_code, calls) == ("denied", [])


def test_cancellation_while_a_person_is_asked_runs_nothing():
    inside = Inside()

    async def never(call):
        await asyncio.Event().wait()

    async def main():
        task = asyncio.create_task(read(approve(never), inside))
        await turns()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert inside.calls == []


def test_an_answer_after_the_cancellation_runs_nothing():
    inside, answered = Inside(), threading.Event()

    def slow(call):
        answered.wait(10)
        return True

    async def main():
        task = asyncio.create_task(read(approve(slow), inside))
        await turns()
        task.cancel()
        await asyncio.wait([task])
        answered.set()
        await turns()

    asyncio.run(main())
    assert inside.calls == []


def test_what_a_remote_server_says_of_its_tool_grants_nothing():
    tool = a_tool(annotations={"readOnlyHint": True}, is_remote=True)
    assert asked(lambda _: False, a_call(tool))[0].is_error
