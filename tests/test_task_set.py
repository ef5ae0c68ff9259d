import asyncio

from satchel.task_set import TaskSet


def test_tasks_are_kept_until_they_end_or_are_cancelled():
    async def main():
        tasks, may_end = TaskSet(), asyncio.Event()
        assert await tasks.wait()
        short = tasks.start(may_end.wait())
        long = tasks.add(asyncio.create_task(asyncio.Event().wait()))
        may_end.set()
        await short
        assert not await tasks.wait(0)
        tasks.cancel()
        assert await tasks.wait()
        assert (long.cancelled(), short.cancelled()) == (True, False)

    asyncio.run(main())
