"""Sessions take turns, and no limit holds more calls than it has slots."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from satchel.remote.call_limits import FairSemaphore


def test_a_session_with_many_calls_does_not_hold_up_another():
    async def main():
        semaphore, order = FairSemaphore(lambda limit: 1), []

        async def call(session):
            await semaphore.acquire(session, ["version"])
            order.append(session)
            await asyncio.sleep(0)
            semaphore.release(["version"])

        busy = [asyncio.create_task(call("busy")) for _ in range(50)]
        await asyncio.sleep(0)
        await asyncio.gather(*busy, asyncio.create_task(call("other")))
        assert order.index("other") <= 3
        assert semaphore.waiting == 0

    asyncio.run(main())


def test_a_full_group_holds_up_only_its_own_calls():
    async def main():
        sizes = {"version": 10, "gpu": 1}
        semaphore = FairSemaphore(sizes.__getitem__)
        await semaphore.acquire("s", ["version", "gpu"])
        waiting = asyncio.create_task(semaphore.acquire("s", ["version", "gpu"]))
        await asyncio.sleep(0)
        await semaphore.acquire("s", ["version"])
        assert not waiting.done()
        semaphore.release(["version", "gpu"])
        await waiting

    asyncio.run(main())


def test_a_limit_that_grows_lets_calls_through():
    async def main():
        sizes = {"version": 0}
        semaphore = FairSemaphore(sizes.__getitem__)
        waiting = asyncio.create_task(semaphore.acquire("s", ["version"]))
        await asyncio.sleep(0)
        assert semaphore.waiting == 1
        sizes["version"] = 1
        semaphore.admit()
        await waiting

    asyncio.run(main())


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.sampled_from([("v",), ("v", "g"), ("w", "g")]),
            st.integers(0, 3),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_limits_are_never_exceeded_and_free_at_the_end(calls):
    sizes = {"v": 3, "w": 2, "g": 2}

    async def main():
        semaphore, inside = FairSemaphore(sizes.__getitem__), Counter()

        async def call(session, limits, turns):
            await semaphore.acquire(session, limits)
            inside.update(limits)
            try:
                assert all(inside[limit] <= sizes[limit] for limit in limits)
                for _ in range(turns):
                    await asyncio.sleep(0)
            finally:
                inside.subtract(limits)
                semaphore.release(limits)

        tasks = []
        for session, limits, turns, is_cancelled in calls:
            tasks.append(asyncio.create_task(call(session, limits, turns)))
            await asyncio.sleep(0)
            if is_cancelled:
                tasks[-1].cancel()
        async with asyncio.timeout(60):
            results = await asyncio.gather(*tasks, return_exceptions=True)
        unexpected = (AssertionError, TimeoutError)
        assert not any(isinstance(result, unexpected) for result in results)
        assert semaphore.waiting == 0
        for limit, size in sizes.items():
            for _ in range(size):
                async with asyncio.timeout(60):
                    await semaphore.acquire("last", [limit])

    asyncio.run(main())
