import asyncio
import threading

import pytest
from runs import a_run, begun, each_item, forever, play, play_for_real

from satchel.tools import Text, ToolChunk, ToolResult


async def fn():
    return "raw"


def keep(call, result): ...


def shorten(call, result):
    return f"{call.name}: {result.text}!"


async def shorten_async(call, result):
    await asyncio.sleep(0)
    return ToolResult(content=(Text("mine"),), structured=[1])


@pytest.mark.parametrize(
    ("postprocess", "message"), [(keep, "raw"), (shorten, "probe: raw!"), (shorten_async, "mine")]
)
def test_what_it_returns_takes_the_place_of_the_result(postprocess, message):
    result = play_for_real(a_run(fn, postprocess=postprocess).result())
    assert (result.text, result.call_id) == (message, "call-1")


def test_a_plain_function_does_not_hold_up_the_loop():
    release = threading.Event()

    def wait(call, result):
        return release.wait(60)

    async def main():
        asyncio.get_running_loop().call_later(0.01, release.set)
        return await a_run(fn, postprocess=wait).result()

    assert play_for_real(main()).structured is True


def test_chunks_pass_through():
    async def stream():
        yield "a"
        yield "b"

    async def main():
        run = a_run(stream, postprocess=lambda call, result: result.text.upper())
        return [item async for item in each_item(run)]

    *chunks, result = play_for_real(main())
    assert [chunk.text for chunk in chunks] == ["a", "b"]
    assert all(isinstance(chunk, ToolChunk) for chunk in chunks)
    assert result.text == "AB"


@pytest.mark.parametrize(
    ("created", "code"), [(float("nan"), "invalid_result"), (b"bytes", "invalid_result")]
)
def test_what_cannot_be_sent_is_an_error(created, code):
    result = play_for_real(a_run(fn, postprocess=lambda call, result: created).result())
    assert result.error_code == code


def test_one_that_fails_is_a_failure_of_the_tool(log):
    def broken(call, result):
        raise ValueError

    assert play_for_real(a_run(fn, postprocess=broken).result()).error_code == "tool_failed"
    assert "test_postprocess.py" in log.text


def test_one_that_streams_is_an_error():
    async def streaming(call, result):
        yield 1

    result = play(a_run(fn, postprocess=streaming).result())
    assert result.error_code == "invalid_result"


def test_an_interrupted_call_stays_marked_whatever_is_made_of_it():
    async def shout(call, result):
        return result.text.upper()

    async def main():
        run = a_run(forever, postprocess=shout)
        task = await begun(run.result())
        run.interrupt()
        return await task

    result = play(main())
    assert (result.is_interrupted, result.is_error) == (True, True)
    assert (result.error_code, result.call_id) == ("interrupted", "call-1")
    assert result.text.startswith("[PROBE WAS INTERRUPTED")
    assert "interrupted by the user" in result.text
