"""All servers of one satchel: opened in turn, told of together, closed in reverse."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from satchel.mcp_servers.listed_skills import ListedSkill, SkillFile
from satchel.mcp_servers.server_addresses import RemoteServer, WorkerServer
from satchel.mcp_servers.server_connection import OnProgress
from satchel.mcp_servers.server_supervisor import ELSEWHERE, ServerSnapshot, ServerSupervisor
from satchel.mcp_servers.tool_definitions import ToolDefinition
from satchel.runtime.event_loop_thread import EventLoopThread
from satchel.settings import Limits
from satchel.sources.skill_files import ServedFile
from satchel.tools import ToolResult
from satchel.tools.callables import in_thread

_log = logging.getLogger("satchel.mcp_servers")

_END = 10.0
"""Seconds that the end waits for a server; its process is killed long before."""

_MOMENT = 0.5
"""Seconds that a server has to end before the next one is told to."""


class ServerHandle:
    """One server of a fleet, for those on other threads."""

    def __init__(self, supervised: ServerSupervisor, thread: EventLoopThread) -> None:
        self._supervised, self._thread = supervised, thread
        self._task: asyncio.Task[None] | None = None
        self._was_awaited = False

    @property
    def offer(self) -> ServerSnapshot:
        """Return what the server offers at the moment."""
        if self._thread.is_elsewhere:
            return self._supervised.offer_elsewhere
        return self._supervised.offer

    @property
    def opened_at(self) -> float:
        """Return when it was last connected to, on the clock of the loop."""
        return self._supervised.opened_at

    @property
    def is_settled(self) -> bool:
        """Tell whether it is known if the server answers, or somebody waited for that in vain."""
        return self._was_awaited or self._supervised.settled.is_set()

    @property
    def patience(self) -> float:
        """Return the seconds that the end waits for it."""
        server = self._supervised.server
        return _END + (server.patience if isinstance(server, WorkerServer) else 0.0)

    def wait(self, seconds: float) -> bool:
        """Wait until it is known whether the server answers; if not, it is told as it is."""
        if self._thread.is_elsewhere:
            return True
        self._thread.wait_until_ready()
        is_known = self._supervised.settled.wait(seconds)
        self._was_awaited = True
        return is_known

    def call(
        self, tool: ToolDefinition, arguments: Mapping[str, Any], on_progress: OnProgress
    ) -> "Future[ToolResult]":
        """Begin a call; cancelling the future cancels it, at the server, too.

        Raises `ToolError` once all is closed.
        """
        self._be_here()
        try:
            return self._thread.begin(self._supervised.call(tool, arguments, on_progress))
        except RuntimeError:
            raise self._supervised.away() from None

    def read(self, skill: ListedSkill, file: SkillFile, seconds: float) -> "Future[ServedFile]":
        """Begin to read a file of a skill; cancelling the future cancels it."""
        self._be_here()
        reading = self._supervised.read(skill, file, seconds)
        try:
            return self._thread.begin(reading)
        except RuntimeError:  # the loop is closed
            reading.close()
            raise

    def _be_here(self) -> None:
        if self._thread.is_elsewhere:
            raise self._supervised.away(ELSEWHERE)

    def begin(self) -> None:
        """Begin the supervision; to be called on the loop."""
        self._task = asyncio.create_task(self._supervised.run(), name=self._supervised.name)

    async def end(self, *, drain: float = 0.0) -> None:
        """End the supervision and close the connection, on the loop; calls may end first."""
        if drain:
            await self._supervised.drained(drain)
        if self._task is not None:
            self._supervised.end(self._task)
            await asyncio.wait([self._task], timeout=self.patience)
            if self._task.done() and not self._task.cancelled():
                self._task.exception()


class ServerPool:
    """The servers of one satchel. Its thread is started for the first of them."""

    def __init__(self, limits: Limits, on_news: Callable[[], None]) -> None:
        self._limits, self._on_news = limits, on_news
        self._thread: EventLoopThread | None = None
        self._members: list[ServerHandle] = []
        self._leaving: list[ServerHandle] = []
        self._news: asyncio.Event | None = None
        self._teller: asyncio.Task[None] | None = None

    def add(self, name: str, server: RemoteServer, *, stateless: bool = False) -> ServerHandle:
        """Take a server under supervision; it is connected to from now on."""
        thread = self._thread = self._thread or EventLoopThread("satchel-mcp", _load_sdk)
        supervised = ServerSupervisor(name, server, self._limits, self._note, stateless=stateless)
        member = ServerHandle(supervised, thread)
        self._members.append(member)
        thread.soon(self._begin, member)
        return member

    def remove(self, member: ServerHandle) -> None:
        """Let go of a server, once its calls have ended."""
        if member in self._members:
            self._members.remove(member)
            self._leaving.append(member)
            if self._thread is not None and not self._thread.is_elsewhere:
                leaving = self._thread.begin(member.end(drain=self._limits.drain))
                leaving.add_done_callback(lambda _: self._leaving.remove(member))

    def poke(self) -> None:
        """Tell of news, from any thread."""
        if self._thread is not None:
            self._thread.soon(self._note)

    def close(self) -> None:
        """Close all connections, the last opened first, and end the thread."""
        thread, self._thread = self._thread, None
        members, self._members = [*self._members, *self._leaving], []
        if thread is None or thread.is_elsewhere:
            return
        in_turn = sorted(members, key=lambda member: member.opened_at, reverse=True)
        if thread.is_here:  # where a collector of garbage may have brought us
            ending = asyncio.ensure_future(self._close(in_turn))
            ending.add_done_callback(lambda _: thread.stop(0))
        else:
            closing = thread.begin(self._close(in_turn))
            try:
                patience = max((member.patience for member in members), default=0)
                closing.result(_END + patience + _MOMENT * len(members))
            except TimeoutError:
                _log.warning("servers did not end in time")
            thread.stop(_END)

    async def _close(self, members: list[ServerHandle]) -> None:
        if self._teller is not None:
            self._teller.cancel()
        endings = []
        for member in members:
            endings.append(asyncio.create_task(member.end()))
            await asyncio.wait(endings[-1:], timeout=_MOMENT)
        await asyncio.gather(*endings)

    def _begin(self, member: ServerHandle) -> None:
        if self._news is None:
            self._news = asyncio.Event()
            self._teller = asyncio.create_task(self._tell(self._news))
        member.begin()

    def _note(self) -> None:
        if self._news is not None:
            self._news.set()

    async def _tell(self, news: asyncio.Event) -> None:
        """Tell of news, many at once if they come quickly; never on the loop, which must go on."""
        while True:
            await news.wait()
            news.clear()
            try:
                await in_thread(self._on_news)
            except Exception:
                _log.exception("news of servers could not be told")


def _load_sdk() -> None:
    """Load the SDK before any time limit runs: it takes a second, or more."""
    import mcp.client.streamable_http  # noqa: F401
