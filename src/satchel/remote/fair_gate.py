"""Which waiting call may go next: sessions take turns, and groups have limits."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Mapping
from contextlib import asynccontextmanager

Rooms = tuple[Hashable, ...]


class FairGate:
    """Lets calls through while there is room; those that wait take turns by session.

    A call needs a place in each of its `rooms`; `size_of` returns how many places a room has.
    """

    def __init__(self, size_of: Callable[[Hashable], int]) -> None:
        self._size_of = size_of
        self._used: Counter[Hashable] = Counter()
        # By rooms first, so that no call waits behind one that needs another room.
        self._lines: dict[Rooms, dict[Hashable, deque[asyncio.Future[None]]]] = {}
        self.waiting = 0
        """How many calls wait."""

    async def enter(self, session: Hashable, rooms: Collection[Hashable]) -> None:
        """Wait for a place in each room; who gets them calls `leave` with the same rooms."""
        rooms = tuple(rooms)
        if rooms not in self._lines and self._has_place(rooms):
            self._used.update(rooms)
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(rooms, {}).setdefault(session, deque()).append(place)
        self.waiting += 1
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave(rooms)  # it was let through in the same moment
            raise
        finally:
            self.waiting -= 1

    def leave(self, rooms: Collection[Hashable]) -> None:
        """Give the places back."""
        self._used.subtract(rooms)
        self.admit()

    def admit(self) -> None:
        """Let calls through while there is room; call it when a room has grown."""
        for rooms in tuple(self._lines):
            turns = self._lines[rooms]
            has_moved = False
            while turns and self._has_place(rooms):
                session = next(iter(turns))
                line = turns.pop(session)
                place = line.popleft()
                if not place.done():  # else its caller has left
                    place.set_result(None)
                    self._used.update(rooms)
                    has_moved = True
                if line:
                    turns[session] = line  # behind the others
            if has_moved or not turns:
                del self._lines[rooms]
                if turns:
                    self._lines[rooms] = turns

    def _has_place(self, rooms: Rooms) -> bool:
        return all(self._used[room] < self._size_of(room) for room in rooms)


class GroupPlaces:
    """The places of groups on one worker: calls of all its plugins take them in turns by host."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits, self._gate = limits, FairGate(lambda group: limits[str(group)])

    @asynccontextmanager
    async def taken(self, host: str, groups: Collection[str]) -> AsyncIterator[None]:
        """Wait for a place in each of the groups that have a limit, and hold them inside."""
        rooms = tuple(group for group in groups if group in self._limits)
        await self._gate.enter(host, rooms)
        try:
            yield
        finally:
            self._gate.leave(rooms)
