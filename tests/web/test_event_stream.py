"""The stream of events: what a page gets, and what it costs."""

import asyncio
import json
from contextlib import asynccontextmanager

from dev_servers import PATIENCE

from satchel.web.event_stream import EventStream


class Reader:
    """A page that reads a stream."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue = asyncio.Queue()
        self._gone = asyncio.Event()
        self.ended = asyncio.Event()

    async def receive(self):
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message) -> None:
        if message["type"] == "http.response.body":
            if not message.get("more_body"):
                self.ended.set()
            if message["body"].startswith(b"data: "):
                self.messages.put_nowait(json.loads(message["body"][6:]))

    def leave(self) -> None:
        self._gone.set()

    async def next(self) -> dict:
        return await asyncio.wait_for(self.messages.get(), PATIENCE)


@asynccontextmanager
async def reading(stream, count=1):
    readers = [Reader() for _ in range(count)]
    tasks = [asyncio.create_task(stream({}, one.receive, one.send)) for one in readers]
    try:
        yield readers
    finally:
        for reader in readers:
            reader.leave()
        await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)


def test_each_page_gets_the_state_now_and_then_each_change():
    async def run():
        state = {"generation": 1}
        stream = EventStream(lambda: state)
        async with reading(stream, 3) as readers:
            first = [await one.next() for one in readers]
            state["generation"] = 2
            stream.publish()
            second = [await one.next() for one in readers]
        assert [one["generation"] for one in first] == [1, 1, 1]
        assert [one["generation"] for one in second] == [2, 2, 2]

    asyncio.run(run())


def test_the_state_is_described_once_for_all_pages():
    async def run():
        described = []
        stream = EventStream(lambda: described.append(1) or {})
        async with reading(stream, 20) as readers:
            for reader in readers:
                await reader.next()
            stream.publish()
            for reader in readers:
                await reader.next()
        assert len(described) == 2

    asyncio.run(run())


def test_a_slow_page_misses_only_older_states():
    async def run():
        numbers = iter(range(100))
        stream = EventStream(lambda: {"number": next(numbers)})
        async with reading(stream) as (reader,):
            await reader.next()
            for _ in range(50):
                stream.publish()
            assert (await reader.next())["revision"] == 50
            assert reader.messages.empty()

    asyncio.run(run())


def test_closing_ends_every_stream():
    async def run():
        stream = EventStream(dict)
        async with reading(stream, 2) as readers:
            for reader in readers:
                await reader.next()
            stream.close()
            for reader in readers:
                await reader.ended.wait()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))


def test_a_page_whose_connection_breaks_is_forgotten():
    async def run():
        async def broken(_message):
            raise OSError("gone")

        stream = EventStream(dict)
        reader = Reader()
        task = asyncio.create_task(stream({}, reader.receive, broken))
        await asyncio.wait([task], timeout=PATIENCE)
        assert isinstance(task.exception(), OSError)

    asyncio.run(run())
