"""The task that keeps one server connected, its tools listed, and its calls answered."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import SatchelError, ToolError
from satchel.mcp_servers.backoff import Backoff
from satchel.mcp_servers.connection_errors import GONE, first_error, reason
from satchel.mcp_servers.listed_skills import ListedSkill, SkillFile
from satchel.mcp_servers.resource_reader import ServerFiles
from satchel.mcp_servers.server_addresses import (
    RemoteServer,
    StdioServer,
    WorkerServer,
    describe_server,
)
from satchel.mcp_servers.server_connection import (
    Era,
    OnProgress,
    ServerConnection,
    connect,
    connection_lost,
)
from satchel.mcp_servers.server_transports import StderrBuffer
from satchel.mcp_servers.tool_definitions import ToolDefinition, ToolList, with_skills
from satchel.mcp_servers.tool_lister import too_late
from satchel.runtime.redaction import redacted
from satchel.settings import Limits
from satchel.sources.skill_files import ServedFile
from satchel.text import one_line, shorten, visible
from satchel.tools import ToolResult

T = TypeVar("T")

_log_of_plugins = logging.getLogger("satchel.workers")
_log = logging.getLogger("satchel.mcp_servers")

_CHECK = 60.0
"""Seconds after which a connection over a network is looked at, whatever it says."""

ELSEWHERE = "cannot be reached by a fork of the process that did; make a Satchel in each process"
_AWAY = "cannot be reached at the moment; try again later, or go on without it"

_GIVEN_UP = 3
"""How many calls of a process of somebody else are given up before it is looked at."""
_LEAST_FRESH = 1.0
_SETTLED = 5.0
"""Seconds after which a connection, or a silence, counts as a success."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSnapshot:
    """What a server offers at the moment."""

    listing: ToolList = field(default_factory=ToolList)
    """What it offers, or what it last did."""
    version: str = ""
    odd_files: tuple[tuple[SkillFile, Diagnostic], ...] = ()
    """Files of its skills that were not what it lists."""
    trouble: Diagnostic | None = None
    """Why none of that can be had, if it cannot."""

    @property
    def is_up(self) -> bool:
        """Tell whether its tools can be called."""
        return self.trouble is None


class ServerSupervisor:
    """One server under supervision.

    `run` is its task; all else but `call` may be used from any thread. Nothing that the server
    does is raised: it is told by `offer`, of which `on_news` hears whenever it is another.
    """

    def __init__(
        self,
        name: str,
        server: RemoteServer,
        limits: Limits,
        on_news: Callable[[], None],
        *,
        stateless: bool = False,
    ) -> None:
        self.name, self.server, self._limits, self._on_news = name, server, limits, on_news
        self._stateless = stateless
        self._era: Era = "auto"
        self._tail = self._new_tail()
        self._files = ServerFiles(name, str(server), limits)
        self.offer = ServerSnapshot(trouble=self._down("is not connected yet"))
        self.settled = threading.Event()
        """Set once it is known whether the server answers, or nobody asks any more."""
        self.opened_at = 0.0
        self._connection: ServerConnection | None = None
        self._changed, self._ended = asyncio.Event(), asyncio.Event()
        self._back, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._calls = self._given_up = 0
        self._is_ending = False

    def _new_tail(self) -> StderrBuffer:
        """Return what hears the errors of a process; those of a plugin of ours are for the log."""
        if not isinstance(self.server, WorkerServer):
            return StderrBuffer()
        return StderrBuffer(
            lambda line: _log_of_plugins.warning("%s: %s", self.name, visible(line))
        )

    @property
    def offer_elsewhere(self) -> ServerSnapshot:
        """Return what it offers to a fork of this process, which has no such task."""
        return replace(self.offer, trouble=self._down(ELSEWHERE))

    # ---- the task -------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, and connect anew whenever that ends, until the task is cancelled."""
        pauses, spacing = Backoff(), Backoff()
        while True:
            began, why = _now(), GONE
            try:
                await (self._visit if self._stateless else self._serve)(spacing)
            except BaseException as problem:
                if self._is_ending:
                    raise
                # Any: whatever the way to a server does, it must not end the supervision.
                why = reason(problem)
                if self.opened_at < began:
                    # Some older servers do not answer what they do not know.
                    is_late = isinstance(problem, SatchelError)
                    self._era = "legacy" if is_late and self._era == "auto" else "auto"
            # One that needs long to come up, and then goes, is no success.
            if self.opened_at > began and _now() - self.opened_at > _SETTLED:
                pauses.reset()
            self._lose(why)
            await asyncio.sleep(pauses.next())

    async def _serve(self, spacing: Backoff) -> None:
        """Serve while one connection lasts."""
        self._ended.clear()
        self._tail = self._new_tail()
        async with self._connected(
            on_change=self._changed.set, on_end=self._end, on_late=self._be_late
        ) as connection:
            self._connection = connection
            self._note(connection)
            self._back.set()
            try:
                while not self._ended.is_set():
                    await self._list(connection)
                    await self._until_stale(spacing)
            except BaseException as problem:
                self._lose(reason(problem))
                raise
            finally:
                self._connection = None
                self._back.clear()
            self._lose(GONE)

    async def _visit(self, spacing: Backoff) -> None:
        """Look now and then what is offered, and keep no connection meanwhile."""
        while True:
            self._tail = self._new_tail()
            async with self._connected(on_late=self._be_late) as connection:
                self._note(connection)
                await self._list(connection)
            await self._until_stale(spacing)

    def _connected(
        self, **hears: Callable[[], None]
    ) -> AbstractAsyncContextManager[ServerConnection]:
        """Connect in the way that the server was last found to understand."""
        return connect(
            self.name, self.server, self._limits, era=self._era, tail=self._tail, **hears
        )

    def _note(self, connection: ServerConnection) -> None:
        self.opened_at, self._era = _now(), connection.era

    def _be_late(self) -> None:
        self._lose(too_late("gave no answer", self._limits).message)

    def _lose(self, why: str) -> None:
        """Withdraw the tools now, and not when the connection is closed at last."""
        if not self._is_ending:
            # With what it offered last: nobody else may have the names meanwhile.
            self._tell(replace(self.offer, trouble=self._down(why)))

    async def _list(self, connection: ServerConnection) -> None:
        self._changed.clear()
        listing = with_skills(await connection.listing(), await connection.skills())
        self._files.listed(listing.skills)
        self._tell(
            ServerSnapshot(listing=listing, version=connection.version, odd_files=self._files.odd)
        )

    async def _until_stale(self, spacing: Backoff) -> None:
        """Wait for a reason to list the tools again; one that never rests is asked less often."""
        began = _now()
        try:
            async with asyncio.timeout(self._freshness()):
                await self._changed.wait()
        except TimeoutError:
            return
        if _now() - began > _SETTLED:
            spacing.reset()
        if not self._ended.is_set():
            await asyncio.sleep(spacing.next() / 4)

    def _freshness(self) -> float | None:
        """Return after how many seconds its tools are listed anew, if ever."""
        fresh = self.offer.listing.fresh
        if fresh is not None:
            fresh = max(fresh, _LEAST_FRESH)
        if isinstance(self.server, StdioServer) and not self._stateless:
            return fresh  # its end is seen at once
        return _CHECK if fresh is None else min(fresh, _CHECK)

    def _end(self) -> None:
        self._ended.set()
        self._changed.set()

    def _tell(self, offer: ServerSnapshot) -> None:
        is_news, self.offer = offer != self.offer, offer
        self.settled.set()
        if is_news:
            self._on_news()

    def _down(self, why: str) -> Diagnostic:
        said = shorten(one_line(self._tail.last_line), 200)
        why += f", and said last: {said}" if said else ""
        why = redacted(why, {"": self.server.secrets})
        if isinstance(self.server, WorkerServer):
            return make_diagnostic(
                "plugin-worker-down",
                Where(str(self.server)),
                f"the process of plugin {self.name!r} {why}",
                "see to its code; it is started again by itself",
            )
        return make_diagnostic(
            "mcp-server-down",
            Where(str(self.server)),
            f"MCP server {self.name!r} {why}; its tools are withdrawn",
            "see to the server; it is tried again by itself",
        )

    # ---- its calls ------------------------------------------------------------------------

    @property
    def _patience(self) -> int:
        """How many calls are given up, one after the other, before it is looked at.

        A process of somebody else may do one thing at a time, and is not to be ended for that.
        """
        is_foreign = isinstance(self.server, StdioServer) and not isinstance(
            self.server, WorkerServer
        )
        return _GIVEN_UP if is_foreign else 1

    async def call(
        self, tool: ToolDefinition, arguments: Mapping[str, Any], on_progress: OnProgress
    ) -> ToolResult:
        """Call a tool, on the loop of the task. Raises `ToolError`."""
        self._calls += 1
        self._idle.clear()
        try:
            result = await self._answer(
                lambda connection: connection.call(tool, arguments, on_progress)
            )
        except ToolError:
            # Perhaps its tools are others by now, or it is gone and the session with it.
            self._given_up = 0
            self._changed.set()
            raise
        except asyncio.CancelledError:
            self._given_up += 1
            if self._given_up >= self._patience:
                self._changed.set()  # perhaps it hangs
            raise
        else:
            self._given_up = 0
            return result
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def read(self, skill: ListedSkill, file: SkillFile, seconds: float) -> ServedFile:
        """Read a file of a skill, on the loop of the task. Raises `ToolError`."""
        before = self._files.odd
        try:
            async with asyncio.timeout(seconds):
                return await self._files.read(
                    skill, file, lambda uri: self._answer(lambda connection: connection.read(uri))
                )
        except TimeoutError:
            raise ToolError(
                f"the server {self.name!r} did not give {file.name} within {seconds:g} s"
            ) from None
        except ToolError:
            # Perhaps its skills are others by now.
            self._changed.set()
            raise
        finally:
            if self._files.odd != before:
                self._tell(replace(self.offer, odd_files=self._files.odd))

    async def _answer(self, ask: Callable[[ServerConnection], Awaitable[T]]) -> T:
        if self._stateless:
            has_begun = False
            try:
                async with self._connected() as connection:
                    has_begun = True
                    return await ask(connection)
            except (ToolError, asyncio.CancelledError):
                raise
            except BaseException as problem:
                # Any: the way to a server may raise groups of whatever it likes.
                if (told := first_error(problem, ToolError)) is not None:
                    raise told from None
                _log.debug("server %s: %s", self.name, reason(problem))
                if has_begun:
                    raise connection_lost(describe_server(self.server, self.name)) from None
                raise self.away() from None
        if self._connection is None and isinstance(self.server, WorkerServer):
            # Its tools stay: one that ends is started again at once.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.mcp_connect):
                    await self._back.wait()
        if self._connection is None:
            raise self.away()
        return await ask(self._connection)

    def away(self, why: str = _AWAY) -> ToolError:
        """Return the error for a call that cannot be made."""
        return ToolError(f"{describe_server(self.server, self.name)} {why}")

    def end(self, task: "asyncio.Task[None]") -> None:
        """End the task; all other cancellations in it are those of libraries."""
        # Once: a second cancellation would disturb the closing.
        if not self._is_ending:
            self._is_ending = True
            self.settled.set()
            task.cancel()

    async def drained(self, patience: float) -> None:
        """Wait until no call runs, but not for ever."""
        try:
            async with asyncio.timeout(patience):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("server %s was closed while calls of it ran", self.name)


def _now() -> float:
    return asyncio.get_running_loop().time()
