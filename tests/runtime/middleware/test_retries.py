import asyncio
from dataclasses import replace

import pytest
from layer_stage import CHUNK, FAILED, OK, Clock, Inside, a_call, a_tool, answer, first, read, turns

from satchel.errors import DefinitionError
from satchel.runtime.middleware import backoff, retry
from satchel.tools import failure

TIMEOUT = failure("timeout", "too slow")


def tried(*scripts, call=None, **options):
    """Return what came out, how often the tool was called, and the seconds between."""
    clock, inside = Clock(), Inside(*scripts)
    options = {"wait": lambda failed: failed, **options}
    items = asyncio.run(read(retry(sleep=clock.sleep, **options), inside, call))
    assert inside.open == 0
    return items, len(inside.calls), clock.slept


def test_a_failure_is_tried_again_until_it_goes_well():
    items, calls, slept = tried([FAILED], [TIMEOUT], [OK])
    assert items == [replace(OK, metadata={"attempts": 3})]
    assert (calls, slept) == (3, [1, 2])


def test_after_the_last_attempt_the_last_failure_is_the_answer():
    items, calls, slept = tried([FAILED], [TIMEOUT], attempts=2)
    assert items == [replace(TIMEOUT, metadata={"attempts": 2})]
    assert (calls, slept) == (2, [1])


def test_metadata_of_the_tool_is_kept():
    (result,), _, _ = tried([replace(OK, metadata={"cost": 3})])
    assert result.metadata == {"cost": 3, "attempts": 1}


@pytest.mark.parametrize(
    "result",
    [failure("tool_error", "no such city"), replace(FAILED, is_interrupted=True), OK],
)
def test_what_would_go_the_same_way_again_is_not_tried_again(result):
    items, calls, _ = tried([result])
    assert (items, calls) == ([replace(result, metadata={"attempts": 1})], 1)


def test_the_codes_can_be_chosen():
    _, calls, _ = tried([FAILED], [TIMEOUT], [OK], codes=["tool_failed"])
    assert calls == 2


@pytest.mark.parametrize("tool", [a_tool(), a_tool(annotations={"idempotentHint": True}), None])
def test_only_tools_that_are_idempotent_by_their_own_word_are_called_again(tool):
    items, calls, _ = tried([FAILED], [OK], call=replace(a_call(), tool=tool))
    assert (items[0].error_code, calls) == ("tool_failed", 1)


def test_the_promise_of_one_tool_is_not_that_of_another_which_the_call_was_sent_to():
    _, calls, _ = tried([FAILED], [OK], call=a_call(name="other"))
    assert calls == 1


def test_what_was_sent_cannot_be_taken_back():
    items, calls, _ = tried([CHUNK, FAILED], [OK])
    assert items == [CHUNK, replace(FAILED, metadata={"attempts": 1})]
    assert calls == 1


def test_an_attempt_without_a_chunk_is_followed_by_one_with_chunks():
    items, _, _ = tried([FAILED], [CHUNK, OK])
    assert items == [CHUNK, replace(OK, metadata={"attempts": 2})]


def test_a_failed_attempt_is_closed_before_the_wait():
    inside, seen = Inside([FAILED], [OK]), []

    async def sleep(seconds):
        seen.append(inside.open)

    asyncio.run(read(retry(sleep=sleep), inside))
    assert seen == [0]


def test_cancellation_while_waiting_ends_the_matter():
    inside = Inside([FAILED])

    async def main():
        task = asyncio.create_task(read(retry(wait=lambda _: 3600), inside))
        await turns()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert len(inside.calls) == 1


def test_a_reader_that_leaves_is_not_followed():
    inside = Inside([CHUNK, FAILED])
    assert asyncio.run(first(retry(), inside)) is CHUNK
    assert len(inside.calls) == 1


def test_the_default_wait_is_real_and_uses_the_loop():
    result = asyncio.run(answer(retry(wait=backoff(0.001)), Inside([FAILED], [OK])))
    assert result.metadata == {"attempts": 2}


def test_waits_double_up_to_the_longest_and_chance_takes_up_to_half():
    late, early = backoff(1, 5, chance=lambda: 1), backoff(1, 5, chance=lambda: 0)
    assert [late(failed) for failed in range(1, 5)] == [1, 2, 4, 5]
    assert [early(failed) for failed in range(1, 5)] == [0.5, 1, 2, 2.5]
    assert late(100_000) == 5


def test_no_attempt_at_all_is_refused():
    with pytest.raises(DefinitionError, match="0 times"):
        retry(0)
