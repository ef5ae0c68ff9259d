"""Tools and hosts that use anyio, whose cancel scopes cancel a task again and again."""

import asyncio

import pytest
from runs import a_run, forever, ignoring, play_for_real

from satchel.settings import Limits

anyio = pytest.importorskip("anyio")

QUICK = Limits(cancel_grace=0.05)


async def moving_on():
    with anyio.move_on_after(0.01) as scope:
        await anyio.sleep(100)
    return scope.cancelled_caught


async def failing():
    with anyio.fail_after(0.01):
        await anyio.sleep(100)


async def cleaning_up_for_long():
    with anyio.move_on_after(0.01):
        try:
            await anyio.sleep(100)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.2)
    return "clean"


async def grouping():
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 100)
        await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    return "grouped"


async def using_a_thread():
    return await anyio.to_thread.run_sync(lambda: 7)


async def using_an_event():
    event = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(event.wait)
        await anyio.sleep(0)
        event.set()
    return event.is_set()


async def swallowing():
    try:
        await anyio.sleep(100)
    except BaseException:
        return "I go on"


async def shielding():
    with anyio.CancelScope(shield=True):
        await anyio.sleep(0.02)
    await anyio.sleep(0)


@pytest.mark.parametrize(
    ("fn", "value"),
    [
        (moving_on, True),
        (cleaning_up_for_long, None),
        (grouping, None),
        (using_a_thread, 7),
        (using_an_event, True),
    ],
)
def test_scopes_inside_of_a_tool_work_as_ever(fn, value):
    result = play_for_real(a_run(fn, limits=QUICK).result())
    assert not result.is_error
    assert result.structured == value


def test_a_scope_that_fails_is_a_failure_of_the_tool():
    assert play_for_real(a_run(failing).result()).error_code == "tool_failed"


@pytest.mark.parametrize("fn", [forever, swallowing, ignoring, shielding])
def test_a_scope_around_a_call_ends_it_and_catches_its_own(fn):
    async def main():
        for _ in range(2):
            with anyio.move_on_after(0.01) as scope:
                await a_run(fn, limits=QUICK).result()
            assert scope.cancelled_caught
            assert asyncio.current_task().cancelling() == 0
            await anyio.sleep(0)

    play_for_real(main())


def test_a_group_around_calls_ends_them():
    async def main():
        async with anyio.create_task_group() as group:
            for fn in (forever, swallowing, ignoring):
                group.start_soon(a_run(fn, limits=QUICK).result)
            await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        assert group.cancel_scope.cancelled_caught

    play_for_real(main())


def test_who_cancels_a_scope_of_a_tool_from_outside_ends_only_that():
    scopes = []

    async def fn():
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await forever()
        await anyio.sleep(0.2)
        return "went on"

    async def main():
        task = asyncio.create_task(a_run(fn, limits=QUICK).result())
        await anyio.sleep(0.01)
        scopes[0].cancel()
        assert (await task).text == "went on"

    play_for_real(main())


@pytest.mark.parametrize("fn", [forever, ignoring])
def test_a_tool_that_is_ended_inside_of_its_scope_is_ended(fn):
    async def shielded():
        with anyio.CancelScope(shield=True):
            await fn()

    async def main():
        result = await a_run(shielded, limits=QUICK, timeout=0.01).result()
        assert result.error_code == "timeout"
        assert await moving_on()

    play_for_real(main())
