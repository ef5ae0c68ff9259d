"""Sessions take turns, and no room holds more calls than it has places."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from satchel.remote.fair_gate import FairGate


def test_a_session_with_many_calls_does_not_hold_up_another():
    async def main():
        gate, order = FairGate(lambda room: 1), []

        async def call(session):
            await gate.enter(session, ["version"])
            order.append(session)
            await asyncio.sleep(0)
            gate.leave(["version"])

        busy = [asyncio.create_task(call("busy")) for _ in range(50)]
        await asyncio.sleep(0)
        await asyncio.gather(*busy, asyncio.create_task(call("other")))
        assert order.index("other") <= 3
        assert gate.waiting == 0

    asyncio.run(main())


def test_a_full_group_holds_up_only_its_own_calls():
    async def main():
        sizes = {"version": 10, "gpu": 1}
        gate = FairGate(sizes.__getitem__)
        await gate.enter("s", ["version", "gpu"])
        waiting = asyncio.create_task(gate.enter("s", ["version", "gpu"]))
        await asyncio.sleep(0)
        await gate.enter("s", ["version"])
        assert not waiting.done()
        gate.leave(["version", "gpu"])
        await waiting

    asyncio.run(main())


def test_a_room_that_grows_lets_calls_through():
    async def main():
        sizes = {"version": 0}
        gate = FairGate(sizes.__getitem__)
        waiting = asyncio.create_task(gate.enter("s", ["version"]))
        await asyncio.sleep(0)
        assert gate.waiting == 1
        sizes["version"] = 1
        gate.admit()
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
def test_rooms_are_never_too_full_and_empty_at_the_end(calls):
    sizes = {"v": 3, "w": 2, "g": 2}

    async def main():
        gate, inside = FairGate(sizes.__getitem__), Counter()

        async def call(session, rooms, turns):
            await gate.enter(session, rooms)
            inside.update(rooms)
            try:
                assert all(inside[room] <= sizes[room] for room in rooms)
                for _ in range(turns):
                    await asyncio.sleep(0)
            finally:
                inside.subtract(rooms)
                gate.leave(rooms)

        tasks = []
        for session, rooms, turns, is_cancelled in calls:
            tasks.append(asyncio.create_task(call(session, rooms, turns)))
            await asyncio.sleep(0)
            if is_cancelled:
                tasks[-1].cancel()
        async with asyncio.timeout(60):
            results = await asyncio.gather(*tasks, return_exceptions=True)
        unexpected = (AssertionError, TimeoutError)
        assert not any(isinstance(result, unexpected) for result in results)
        assert gate.waiting == 0
        for room, size in sizes.items():
            for _ in range(size):
                async with asyncio.timeout(60):
                    await gate.enter("last", [room])

    asyncio.run(main())
