"""Keep one server connected, list its tools and send its calls."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import SatchelError, ToolError
from satchel.mcp_servers.backoff import Backoff
from satchel.mcp_servers.client_callbacks import ClientCallbacks
from satchel.mcp_servers.connection_errors import (
    GONE,
    HeldProgramError,
    first_error,
    is_refused,
    reason,
)
from satchel.mcp_servers.listed_skills import ListedSkill, SkillFile
from satchel.mcp_servers.resource_reader import ServerFiles
from satchel.mcp_servers.resource_subscriptions import ResourceSubscriptions
from satchel.mcp_servers.server_addresses import (
    HttpServer,
    RemoteServer,
    SseServer,
    StdioServer,
    WorkerServer,
    describe_server,
)
from satchel.mcp_servers.server_connection import (
    ProtocolMode,
    ServerConnection,
    StartLimit,
    connect,
    connection_lost,
)
from satchel.mcp_servers.server_login import ServerLogin
from satchel.mcp_servers.server_options import ServerOptions
from satchel.mcp_servers.server_transports import StderrBuffer
from satchel.mcp_servers.tool_definitions import ServerSnapshot, ToolDefinition, with_skills
from satchel.runtime.redaction import redacted
from satchel.settings import Limits
from satchel.sources.skill_files import ServedFile
from satchel.text import one_line, shorten, visible
from satchel.tools.callables import in_thread

T = TypeVar("T")

Refusal = Callable[[ServerSnapshot, ToolDefinition], ToolError | None]
"""Returns why a tool of a snapshot must not be called, or `None`."""

_plugin_log = logging.getLogger("satchel.workers")
_log = logging.getLogger("satchel.mcp_servers")

_CHECK = 60.0
"""Seconds after which the tools of a network server are listed again in any case."""

AFTER_FORK = "cannot be reached by a fork of the process that did; make a Satchel in each process"
CLOSED = "cannot be reached any more: it was disconnected"
_UNAVAILABLE = "is restarting; try again later, or continue without it"

_LONGEST_START = 600.0
"""Seconds to which the time for a start grows."""

_CANCELLED_LIMIT = 3
"""Cancelled calls in a row after which a stdio server's connection is checked."""
_SHORTEST_TTL = 1.0
_STABLE = 5.0
"""Seconds after which a connection or a quiet period resets its backoff."""


class ServerSupervisor:
    """Supervise one server in the task `run`.

    `snapshot` and `settled` may be read in any thread. Errors of the server are not raised: they
    are in `snapshot`, and `on_news` is called whenever that changes.
    """

    def __init__(
        self,
        name: str,
        server: RemoteServer,
        limits: Limits,
        on_news: Callable[[], None],
        *,
        stateless: bool = False,
        options: ServerOptions | None = None,
        known: tuple[ToolDefinition, ...] = (),
        folder: str = "",
        callbacks: ClientCallbacks | None = None,
        refusal: Refusal | None = None,
    ) -> None:
        """Prepare to supervise; `known` are the tools that it had when it was last connected."""
        self._callbacks, self._refusal = callbacks, refusal
        self.name, self.server, self._limits, self._on_news = name, server, limits, on_news
        is_worker = isinstance(server, WorkerServer)
        self._is_program = isinstance(server, StdioServer) and not is_worker
        self._login = ServerLogin.of(name, server, folder)
        self._stateless, self._options = stateless, options or ServerOptions()
        self._transport: RemoteServer = server
        """How it is reached now: over HTTP, or over SSE after it refused that."""
        self._late_starts = 0
        self._mode: ProtocolMode = "auto"
        self._stderr = self._new_stderr()
        self._files = ServerFiles(name, str(server), limits)
        self.subscriptions = ResourceSubscriptions(name, stateless=stateless)
        self._waits_for_call = self._options.lazy and bool(known)
        outage = self._starting_diagnostic()
        self.snapshot = ServerSnapshot(tools=known, outage=None if self._waits_for_call else outage)
        self.settled = threading.Event()
        """Set after the first connection succeeded or failed, or when supervision ends."""
        self.opened_at = 0.0
        self._connection: ServerConnection | None = None
        self._changed, self._ended = asyncio.Event(), asyncio.Event()
        self._reconnected, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._calls = self._cancelled_calls = 0
        most = self._options.max_calls
        self._slots: AbstractAsyncContextManager[None] = (
            asyncio.Semaphore(most) if most else nullcontext()
        )
        self._wanted, self._attempted = asyncio.Event(), asyncio.Event()
        self._is_ending = False
        if self._waits_for_call:
            self.settled.set()

    def _new_stderr(self) -> StderrBuffer:
        """Return a buffer for the process's stderr; a plugin's lines also go to the log."""
        if not isinstance(self.server, WorkerServer):
            return StderrBuffer()
        return StderrBuffer(lambda line: _plugin_log.warning("%s: %s", self.name, visible(line)))

    @property
    def log(self) -> str:
        """Return the end of what the server's process wrote to its standard error."""
        return self._stderr.text

    @property
    def snapshot_after_fork(self) -> ServerSnapshot:
        """Return the snapshot for a fork of this process, where the task does not run."""
        return replace(self.snapshot, outage=self._unavailable_diagnostic(AFTER_FORK))

    # ---- the task -------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, and reconnect whenever the connection ends, until the task is cancelled."""
        if self._waits_for_call:
            await self._wanted.wait()
        reconnect_backoff, list_backoff = Backoff(), Backoff()
        refusal = ""
        while True:
            began, why, held = _now(), GONE, None
            if self._login is not None:
                self._login.begin()
            try:
                await (self._poll if self._stateless else self._serve)(list_backoff)
            except BaseException as problem:
                if self._is_ending:
                    raise
                # Any error of a transport: none of them may end the supervision.
                why, held = reason(problem), first_error(problem, HeldProgramError)
                if self.opened_at < began and held is None:
                    # Some older servers never answer a request that they do not know.
                    is_late = isinstance(problem, SatchelError)
                    self._mode = "legacy" if is_late and self._mode == "auto" else "auto"
                    if (older := self._older_transport(problem)) is not None:
                        refusal, self._transport = why, older
                        continue
                    if self._transport is not self.server:
                        # Neither works; what it said to the newer transport is more useful.
                        why, self._transport = refusal or why, self.server
            # A server that starts slowly and then ends at once does not reset the backoff.
            if self.opened_at > began and _now() - self.opened_at > _STABLE:
                reconnect_backoff.reset()
            self._set_unavailable(why, held.diagnostic if held else None)
            await self._pause(reconnect_backoff)

    async def _pause(self, backoff: Backoff) -> None:
        """Wait before the next connection: for a login if one is needed, else for a while."""
        if self._login is not None and self._login.blocks:
            await self._login.until_changed()
        else:
            await asyncio.sleep(backoff.next())

    def _older_transport(self, problem: BaseException) -> SseServer | None:
        """Return the older transport, if the server refused the newer one and may speak it."""
        server = self.server
        if not isinstance(server, HttpServer) or self._transport is not server:
            return None
        is_older = server.or_sse and is_refused(problem)
        return SseServer(server.url, server.headers, server.oauth) if is_older else None

    async def _serve(self, list_backoff: Backoff) -> None:
        self._ended.clear()
        self._stderr = self._new_stderr()
        async with self._connected(
            on_change=self._changed.set,
            on_end=self._end,
            on_late=self._on_late,
            subscriptions=self.subscriptions,
        ) as connection:
            self._note(connection)
            try:
                while not self._ended.is_set():
                    await self._list(connection)
                    # Only now: its tools may differ from those that were approved.
                    self._connection = connection
                    self._reconnected.set()
                    await self._until_stale(list_backoff)
            except BaseException as problem:
                self._set_unavailable(reason(problem))
                raise
            finally:
                self._connection = None
                self._reconnected.clear()
            self._set_unavailable(GONE)

    async def _poll(self, list_backoff: Backoff) -> None:
        """List tools now and then, and keep no connection in between."""
        while True:
            self._stderr = self._new_stderr()
            async with self._connected(on_late=self._on_late) as connection:
                self._note(connection)
                await self._list(connection)
            await self._until_stale(list_backoff)

    def _connected(
        self, *, subscriptions: ResourceSubscriptions | None = None, **callbacks: Callable[[], None]
    ) -> AbstractAsyncContextManager[ServerConnection]:
        """Connect in the protocol mode that last worked."""
        auth = self._login.auth if self._login is not None else None
        return connect(
            self.name,
            self._transport,
            self._limits,
            mode=self._mode,
            stderr=self._stderr,
            start=self.start_limit,
            auth=auth,
            callbacks=self._callbacks,
            roots=self._options.roots,
            subscriptions=subscriptions,
            **callbacks,
        )

    @property
    def start_limit(self) -> StartLimit:
        """How long it may take to start now: twice as long after each late start."""
        limits, given = self._limits, self._options.startup_timeout
        if given is not None:
            seconds, setting = given, "startup-timeout"
        elif self._is_program:
            seconds, setting = limits.mcp_startup, "limit mcp_startup"
        else:
            seconds, setting = limits.mcp_connect, "limit mcp_connect"
        if not isinstance(self.server, WorkerServer):
            longest = max(seconds, _LONGEST_START)
            seconds = min(seconds * 2.0 ** min(self._late_starts, 30), longest)
        return StartLimit(seconds, setting)

    def _note(self, connection: ServerConnection) -> None:
        self.opened_at, self._mode = _now(), connection.mode
        self._late_starts = 0

    def _on_late(self) -> None:
        why = self.start_limit.error.message
        self._late_starts += 1
        self._set_unavailable(why)

    def _set_unavailable(self, why: str, outage: Diagnostic | None = None) -> None:
        """Withdraw the tools at once: closing the connection may take long."""
        if not self._is_ending:
            # The last listing stays, so that no other tool takes the names.
            outage = outage or self._unavailable_diagnostic(why)
            self._publish(replace(self.snapshot, outage=outage))

    async def _list(self, connection: ServerConnection) -> None:
        self._changed.clear()
        tools, skills, offers = await asyncio.gather(
            connection.listing(), connection.skills(), connection.offers()
        )
        self._files.listed(skills.skills)
        self._publish(
            replace(
                with_skills(tools, skills),
                offers=offers,
                version=connection.version,
                drifted_files=self._files.drifted,
            )
        )

    async def _until_stale(self, list_backoff: Backoff) -> None:
        """Wait for a reason to list the tools again; back off from frequent changes."""
        began = _now()
        try:
            async with asyncio.timeout(self._seconds_to_list()):
                await self._changed.wait()
        except TimeoutError:
            return
        if _now() - began > _STABLE:
            list_backoff.reset()
        if not self._ended.is_set():
            await asyncio.sleep(list_backoff.next() / 4)

    def _seconds_to_list(self) -> float | None:
        """Return after how many seconds to list the tools again, or `None` for never."""
        ttl = self.snapshot.ttl
        if ttl is not None:
            ttl = max(ttl, _SHORTEST_TTL)
        if isinstance(self.server, StdioServer) and not self._stateless:
            return ttl  # the end of a process is noticed at once
        return _CHECK if ttl is None else min(ttl, _CHECK)

    def _end(self) -> None:
        self._ended.set()
        self._changed.set()

    def _publish(self, snapshot: ServerSnapshot) -> None:
        is_news, self.snapshot = snapshot != self.snapshot, snapshot
        self.settled.set()
        self._attempted.set()
        if is_news:
            self._on_news()

    def _starting_diagnostic(self) -> Diagnostic:
        if isinstance(self.server, WorkerServer) or (self._login and self._login.blocks):
            return self._unavailable_diagnostic("is not connected yet")
        return make_diagnostic(
            "mcp-server-starting",
            Where(str(self.server)),
            f"MCP server {self.name!r} is starting; its tools come when it is connected",
            "wait until it is connected, or reports why it is not",
        )

    def _unavailable_diagnostic(self, why: str) -> Diagnostic:
        if self._login is not None and self._login.blocks:
            return self._login.diagnostic()
        last_line = shorten(one_line(self._stderr.last_line), 200)
        why += f"; its last line on stderr: {last_line}" if last_line else ""
        printed = shorten(one_line(self._stderr.printed), 200)
        why += f"; on stdout it printed, in place of MCP messages: {printed}" if printed else ""
        why = redacted(why, {"": self.server.secrets})
        if isinstance(self.server, WorkerServer):
            return make_diagnostic(
                "plugin-worker-down",
                Where(str(self.server)),
                f"the process of plugin {self.name!r} {why}",
                "fix its code; it is restarted automatically",
            )
        return make_diagnostic(
            "mcp-server-down",
            Where(str(self.server)),
            f"MCP server {self.name!r} {why}; its tools are withdrawn",
            "start or fix the server; it is reconnected automatically",
        )

    # ---- its calls ------------------------------------------------------------------------

    async def send(
        self,
        send: Callable[[ServerConnection], Awaitable[T]],
        tool: ToolDefinition | None = None,
    ) -> T:
        """Use the connection for a call, on the task's event loop. Raises `ToolError`.

        `tool` is the tool that is called, as its caller knows it.
        """
        self._calls += 1
        self._idle.clear()
        try:
            async with self._slots:
                if self._waits_for_call:
                    self._wanted.set()
                    await self._attempted.wait()
                await self._require_approved(tool)
                result = await self._with_connection(send)
        except ToolError:
            # Its tools may have changed, or the session may be gone.
            self._cancelled_calls = 0
            self._changed.set()
            if self._login is not None and (error := self._login.take_error()) is not None:
                raise error from None
            raise
        except asyncio.CancelledError:
            self._cancelled_calls += 1
            # A program may handle one request at a time, and must not be ended for that.
            if self._cancelled_calls >= (_CANCELLED_LIMIT if self._is_program else 1):
                self._changed.set()  # it may hang
            raise
        else:
            self._cancelled_calls = 0
            return result
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def read(self, skill: ListedSkill, file: SkillFile, seconds: float) -> ServedFile:
        """Read a file of a skill, on the task's event loop. Raises `ToolError`."""
        before = self._files.drifted
        try:
            async with asyncio.timeout(seconds):
                return await self._files.read(
                    skill,
                    file,
                    lambda uri: self._with_connection(lambda connection: connection.read(uri)),
                )
        except TimeoutError:
            raise ToolError(
                f"the server {self.name!r} did not return {file.name} within {seconds:g} s"
            ) from None
        except ToolError:
            # Its skills may have changed.
            self._changed.set()
            raise
        finally:
            if self._files.drifted != before:
                self._publish(replace(self.snapshot, drifted_files=self._files.drifted))

    async def _require_approved(self, tool: ToolDefinition | None) -> None:
        """Raise `ToolError` if a tool is held by now; its caller may know an older listing."""
        if tool is None or self._refusal is None:
            return
        snapshot = self.snapshot
        if any(item is tool for item in snapshot.tools):
            return
        # In a thread: it reads the file of pins.
        if (error := await in_thread(partial(self._refusal, snapshot, tool))) is not None:
            raise error

    async def _with_connection(self, send: Callable[[ServerConnection], Awaitable[T]]) -> T:
        if self._stateless:
            has_begun = False
            try:
                async with self._connected() as connection:
                    has_begun = True
                    return await send(connection)
            except (ToolError, asyncio.CancelledError):
                raise
            except BaseException as problem:
                # Any: a transport may raise groups of any errors.
                if (tool_error := first_error(problem, ToolError)) is not None:
                    raise tool_error from None
                _log.debug("server %s: %s", self.name, reason(problem))
                if has_begun:
                    raise connection_lost(describe_server(self.server, self.name)) from None
                raise self.unavailable() from None
        if self._connection is None and isinstance(self.server, WorkerServer):
            # Wait: the process of a plugin is restarted at once, and its tools stay listed.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.mcp_connect):
                    await self._reconnected.wait()
        if self._connection is None:
            raise self.unavailable()
        return await send(self._connection)

    def unavailable(self, why: str = _UNAVAILABLE) -> ToolError:
        """Return the error for a call that cannot be sent."""
        return ToolError(f"{describe_server(self.server, self.name)} {why}")

    def end(self, task: "asyncio.Task[None]") -> None:
        """Cancel the task for good; libraries may cancel it, too, and that does not end it."""
        # Once: a second cancellation would interrupt closing.
        if not self._is_ending:
            self._is_ending = True
            self.settled.set()
            task.cancel()

    async def drain(self, patience: float) -> None:
        """Wait until no call runs, at most `patience` seconds."""
        try:
            async with asyncio.timeout(patience):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("server %s was closed while its calls were running", self.name)


def _now() -> float:
    return asyncio.get_running_loop().time()
