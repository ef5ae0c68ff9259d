"""Keep one server connected, list its tools and send its calls."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import replace
from enum import Enum
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from satchel.diagnostics import Diagnostic
from satchel.errors import ToolError
from satchel.mcp_servers.backoff import Backoff
from satchel.mcp_servers.client_callbacks import ClientCallbacks
from satchel.mcp_servers.connection_errors import (
    GONE,
    CannotAskError,
    HeldProgramError,
    SessionExpiredError,
    SlowStartError,
    down_diagnostic,
    first_error,
    is_expired,
    reason,
    starting_diagnostic,
)
from satchel.mcp_servers.connection_plan import ConnectionPlan
from satchel.mcp_servers.listed_skills import ListedSkill, SkillFile
from satchel.mcp_servers.resource_reader import ServerFiles
from satchel.mcp_servers.resource_subscriptions import ResourceSubscriptions
from satchel.mcp_servers.server_addresses import StdioServer, WorkerServer, describe_server
from satchel.mcp_servers.server_connection import ServerConnection, connect, connection_lost
from satchel.mcp_servers.server_login import ServerLogin
from satchel.mcp_servers.server_options import ServerConfig
from satchel.mcp_servers.server_process import StderrBuffer
from satchel.mcp_servers.tool_definitions import ServerSnapshot, ToolDefinition
from satchel.settings import Limits
from satchel.sources.skill_files import ServedFile
from satchel.task_set import TaskSet
from satchel.text import visible
from satchel.tools.callables import in_thread

T = TypeVar("T")

ToolCheck = Callable[[ServerSnapshot, ToolDefinition], ToolError | None]
"""Returns why a tool of a snapshot must not be called, or `None`."""

_plugin_log = logging.getLogger("satchel.workers")
_log = logging.getLogger("satchel.mcp_servers")

_LIST_INTERVAL = 60.0
"""Seconds after which the tools of a network server are listed again in any case."""

AFTER_FORK = "cannot be reached from a forked process; make a Satchel in each process"
CLOSED = "cannot be reached any more: it was disconnected"
_UNAVAILABLE = "is restarting; try again later, or continue without it"

_CANCELLED_LIMIT = 3
"""Cancelled calls in a row after which a program's connection is checked."""
_SHORTEST_TTL = 1.0
_FIRST_LIST_PAUSE, _LONGEST_LIST_PAUSE = 0.025, 7.5
"""Seconds between listings of a server that reports changes again and again."""
_STABLE = 5.0
"""Seconds after which a connection or a quiet period resets its backoff."""


class Phase(Enum):
    """How far the supervision of a server is."""

    LAZY = "lazy"
    """Not started; the first call starts it."""
    STARTING = "starting"
    """It is connecting, for the first time or after Satchel closed a connection; calls wait."""
    UP = "up"
    """It is connected, and its tools are listed."""
    DOWN = "down"
    """It is not connected; the next attempt follows."""
    ENDED = "ended"
    """It is disconnected for good."""


class ServerSupervisor:
    """Supervise one server in the task `run`.

    `snapshot` and `settled` may be read in any thread; all else belongs to the task's event loop.
    Errors of the server are not raised: they are in `snapshot`, and `on_change` is called whenever
    that changes.
    """

    def __init__(
        self,
        config: ServerConfig,
        limits: Limits,
        on_change: Callable[[], None],
        *,
        pinned: tuple[ToolDefinition, ...] = (),
        folder: str = "",
        callbacks: ClientCallbacks | None = None,
        refusal: ToolCheck | None = None,
    ) -> None:
        """Prepare to supervise; `pinned` are the tools that it had when it was last connected."""
        self.name, self.server = name, server = config.name, config.server
        self._stateless, self._options = config.stateless, config.options
        self._limits, self._on_change = limits, on_change
        self._callbacks, self._refusal = callbacks, refusal
        self._login = ServerLogin.of(name, server, folder)
        self.plan = ConnectionPlan(server, limits, self._options)
        most_calls = self._options.max_calls
        self._call_slots: AbstractAsyncContextManager[None] = (
            asyncio.Semaphore(most_calls) if most_calls else nullcontext()
        )
        self._calls = TaskSet()
        self.subscriptions = ResourceSubscriptions(name, stateless=config.stateless)
        self._files = ServerFiles(name, str(server), limits)
        self._stderr = self._new_stderr()
        self._list_backoff = Backoff(_FIRST_LIST_PAUSE, _LONGEST_LIST_PAUSE)
        self._cancelled_calls = 0
        self.opened_at = 0.0
        """When the newest connection was opened, by `time.monotonic`."""
        self._connection: ServerConnection | None = None
        """The connection that calls may use; only while the phase is `UP`."""
        self._connections = TaskSet()
        """The tasks of the connection, and of earlier ones that still have calls."""
        self._connection_left = asyncio.Event()
        """Set when the connection has ended, or another one replaces it."""
        self._must_reconnect_at_once = False
        """Whether to skip the pause before the next connection: a call waits for it."""
        self._must_list = asyncio.Event()
        """Set if its tools may have changed, or the connection may have ended."""
        self.settled = threading.Event()
        """Set once the first connection succeeded or failed, and for a lazy server."""
        self._phase, self._phase_changed = Phase.STARTING, asyncio.Event()
        is_lazy = self._options.lazy and bool(pinned)
        if is_lazy:
            self._enter(Phase.LAZY)
        starting = starting_diagnostic(name, server)
        self.snapshot = ServerSnapshot(tools=pinned, outage=None if is_lazy else starting)

    def _enter(self, phase: Phase) -> None:
        """Enter a phase, and wake the tasks that wait for it."""
        self._phase = phase
        if phase is not Phase.STARTING:
            self.settled.set()
        changed, self._phase_changed = self._phase_changed, asyncio.Event()
        changed.set()

    async def _until(self, *phases: Phase) -> None:
        """Wait until it is in one of these phases."""
        while self._phase not in phases:
            await self._phase_changed.wait()

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
        return replace(self.snapshot, outage=self._outage(AFTER_FORK))

    # ---- the task -------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, and reconnect whenever the connection ends, until the task is cancelled."""
        await self._until(Phase.STARTING, Phase.ENDED)
        try:
            await self._reconnect_forever()
        finally:
            self._connections.cancel()
            await self._connections.wait()

    async def _reconnect_forever(self) -> None:
        backoff = Backoff()
        while True:
            began = monotonic()
            if self._login is not None:
                self._login.begin()
            try:
                await (self._poll if self._stateless else self._hold_connection)()
            except BaseException as problem:
                # Any error of a transport: none of them may end the supervision.
                if self._phase is Phase.ENDED:
                    raise
                why = reason(problem)
                if self.opened_at < began:  # it could not be connected
                    if self.plan.switch_transport(problem):
                        continue
                    why = self.plan.failed(problem)
                held_program = first_error(problem, HeldProgramError)
                self._revoke(why, held_program.diagnostic if held_program else None)
            # A server that starts slowly and then ends at once does not reset the backoff.
            if self.opened_at > began and monotonic() - self.opened_at > _STABLE:
                backoff.reset()
            await self._pause(backoff)

    async def _pause(self, backoff: Backoff) -> None:
        """Wait before the next connection: for a login if one is needed, else for a while."""
        if self._must_reconnect_at_once:
            self._must_reconnect_at_once = False
        elif self._login is not None and self._login.blocks:
            await self._login.until_changed()
        else:
            await asyncio.sleep(backoff.next())

    async def _hold_connection(self) -> None:
        """Open a connection. Return when it has ended, or when another one must replace it."""
        self._connection_left = left = asyncio.Event()
        # A task of its own: its calls may run longer than the next connection takes to open.
        task = self._connections.start(self._run_connection())
        task.add_done_callback(lambda _: left.set())
        task.add_done_callback(_log_error)
        await left.wait()
        if task.done():
            await task

    async def _run_connection(self) -> None:
        """List the tools whenever they may have changed, until the connection ends."""
        self._stderr = self._new_stderr()
        async with self._connected(
            on_change=self._must_list.set,
            on_late=self._on_slow_start,
            subscriptions=self.subscriptions,
        ) as connection:
            self._opened(connection)
            try:
                while not connection.is_over:
                    snapshot = await self._listed(connection)
                    if connection.is_replaced:
                        break
                    # Only now: its tools may differ from those that were approved.
                    self._connection = connection
                    self._publish(snapshot)
                    if await self._until_list_is_due() and not connection.is_over:
                        await asyncio.sleep(self._list_backoff.next())
            except BaseException as problem:
                error = first_error(problem, Exception)
                if error is not None and is_expired(error):
                    self._replace(connection)
                if not connection.is_replaced:
                    self._connection = None
                    self._revoke(reason(problem))
                    raise
                if error is None:  # cancelled
                    raise
            if connection.is_replaced:
                await connection.callers.until_idle()
            else:
                self._connection = None
                self._revoke(GONE)

    def _replace(self, connection: ServerConnection, *, is_needed: bool = False) -> None:
        """Use another connection for new calls, which wait until it is open."""
        if connection.is_replaced or self._phase is Phase.ENDED:
            return
        connection.is_replaced, self._must_reconnect_at_once = True, is_needed
        self._connection = None
        self._enter(Phase.STARTING)
        self._must_list.set()
        # An idle connection is closed first: two processes could disturb each other.
        if not connection.callers.are_idle:
            self._connection_left.set()

    async def _poll(self) -> None:
        """List the tools now and then, and keep no connection in between."""
        while True:
            self._stderr = self._new_stderr()
            async with self._connected(on_late=self._on_slow_start) as connection:
                self._opened(connection)
                self._publish(await self._listed(connection))
            if await self._until_list_is_due():
                await asyncio.sleep(self._list_backoff.next())

    def _connected(self, **options: Any) -> AbstractAsyncContextManager[ServerConnection]:
        """Connect with the transport and the limits of the current plan."""
        return connect(
            self.name,
            self.plan.transport,
            self._limits,
            mode=self.plan.mode,
            stderr=self._stderr,
            start_limit=self.plan.start_limit,
            auth=self._login.auth if self._login is not None else None,
            callbacks=self._callbacks,
            roots=self._options.roots,
            **options,
        )

    def _opened(self, connection: ServerConnection) -> None:
        self.opened_at = monotonic()
        self.plan.worked(connection.mode)

    def _on_slow_start(self, error: SlowStartError) -> None:
        self.plan.allow_longer_start()
        self._revoke(error.message)

    def _revoke(self, why: str, outage: Diagnostic | None = None) -> None:
        """Revoke the tools before the connection is closed, which may take long."""
        if self._phase is not Phase.ENDED:
            # The last listing stays, so that no other tool takes the names.
            self._publish(replace(self.snapshot, outage=outage or self._outage(why)))

    def _outage(self, why: str) -> Diagnostic:
        if self._login is not None and self._login.blocks:
            return self._login.diagnostic()
        return down_diagnostic(self.name, self.server, why, self._stderr)

    async def _listed(self, connection: ServerConnection) -> ServerSnapshot:
        self._must_list.clear()
        snapshot = await connection.snapshot()
        self._files.listed(snapshot.skills)
        return replace(snapshot, drifted_files=self._files.drifted)

    def _publish(self, snapshot: ServerSnapshot) -> None:
        has_changed, self.snapshot = snapshot != self.snapshot, snapshot
        if self._phase is not Phase.ENDED:
            self._enter(Phase.UP if snapshot.is_up else Phase.DOWN)
        if has_changed:
            self._on_change()

    async def _until_list_is_due(self) -> bool:
        """Wait for a reason to list the tools again. Return whether they may have changed."""
        began = monotonic()
        try:
            async with asyncio.timeout(self._seconds_to_list()):
                await self._must_list.wait()
        except TimeoutError:
            return False
        if monotonic() - began > _STABLE:
            self._list_backoff.reset()
        return True

    def _seconds_to_list(self) -> float | None:
        """Return after how many seconds to list the tools again, or `None` for never."""
        ttl = self.snapshot.ttl
        if ttl is not None:
            ttl = max(ttl, _SHORTEST_TTL)
        if isinstance(self.server, StdioServer) and not self._stateless:
            return ttl  # the end of a process is noticed at once
        return _LIST_INTERVAL if ttl is None else min(ttl, _LIST_INTERVAL)

    # ---- its calls ------------------------------------------------------------------------

    async def send(
        self,
        request: Callable[[ServerConnection], Awaitable[T]],
        tool: ToolDefinition | None = None,
    ) -> T:
        """Use the connection for a call, on the task's event loop. Raises `ToolError`.

        `tool` is the definition from the caller's listing, which may be outdated.
        """
        if (task := asyncio.current_task()) is not None:
            self._calls.add(task)
        try:
            async with self._call_slots:
                if self._phase is Phase.LAZY:
                    self._enter(Phase.STARTING)
                await self._until(Phase.UP, Phase.DOWN, Phase.ENDED)
                await self._require_approved(tool)
                try:
                    result = await self._with_connection(request)
                except CannotAskError:
                    self.plan.allow_questions()
                    await self._until_connected()
                    raise
                except SessionExpiredError:
                    await self._until_connected()
                    await self._require_approved(tool)
                    result = await self._with_connection(request)
        except ToolError:
            # Its tools may have changed, or the session may be gone.
            self._cancelled_calls = 0
            self._must_list.set()
            if self._login is not None and (error := self._login.take_error()) is not None:
                raise error from None
            raise
        except asyncio.CancelledError:
            self._cancelled_calls += 1
            # A program that handles one request at a time is slow, not broken: do not end it.
            is_program = type(self.server) is StdioServer
            if self._cancelled_calls >= (_CANCELLED_LIMIT if is_program else 1):
                self._must_list.set()  # it may hang
            raise
        self._cancelled_calls = 0
        return result

    async def _until_connected(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.mcp_connect):
                await self._until(Phase.UP, Phase.ENDED)

    async def read(self, skill: ListedSkill, file: SkillFile) -> ServedFile:
        """Read a file of a skill, on the task's event loop. Raises `ToolError`."""
        before = self._files.drifted
        try:
            return await self._files.read(
                skill,
                file,
                lambda uri: self._with_connection(lambda connection: connection.read(uri)),
            )
        except ToolError:
            # Its skills may have changed.
            self._must_list.set()
            raise
        finally:
            if self._files.drifted != before:
                self._publish(replace(self.snapshot, drifted_files=self._files.drifted))

    async def _require_approved(self, tool: ToolDefinition | None) -> None:
        """Raise `ToolError` if a tool is held by now; its caller may have an older listing."""
        if tool is None or self._refusal is None:
            return
        snapshot = self.snapshot
        if any(item is tool for item in snapshot.tools):
            return
        # In a thread: it reads the file of pins.
        if (error := await in_thread(partial(self._refusal, snapshot, tool))) is not None:
            raise error

    async def _with_connection(self, request: Callable[[ServerConnection], Awaitable[T]]) -> T:
        if self._stateless:
            return await self._with_own_connection(request)
        if isinstance(self.server, WorkerServer):
            # The process of a plugin is restarted at once, and its tools stay listed.
            await self._until_connected()
        if (connection := self._connection) is None:
            raise self.unavailable()
        try:
            return await request(connection)
        except (CannotAskError, SessionExpiredError):
            self._replace(connection, is_needed=True)
            raise

    async def _with_own_connection(self, request: Callable[[ServerConnection], Awaitable[T]]) -> T:
        has_begun = False
        try:
            async with self._connected() as connection:
                has_begun = True
                return await request(connection)
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

    def unavailable(self, why: str = _UNAVAILABLE) -> ToolError:
        """Return the error for a call that cannot be sent."""
        return ToolError(f"{describe_server(self.server, self.name)} {why}")

    # ---- its end --------------------------------------------------------------------------

    def end(self, task: "asyncio.Task[None]") -> None:
        """Cancel the task for good; after a cancellation by a library it only reconnects."""
        # Once: a second cancellation would interrupt closing.
        if self._phase is not Phase.ENDED:
            self._enter(Phase.ENDED)
            task.cancel()

    async def drain(self, seconds: float) -> None:
        """Wait until no call runs, at most so many seconds."""
        if not await self._calls.wait(seconds):
            _log.warning("server %s was closed while its calls were running", self.name)


def _log_error(task: "asyncio.Task[None]") -> None:
    """Take the error of a connection: nothing waits for one that was replaced or given up."""
    if not task.cancelled() and (problem := task.exception()) is not None:
        _log.debug("a connection ended: %s", reason(problem))
