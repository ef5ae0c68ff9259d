"""Run the connections to all servers of one satchel in one thread."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from satchel.mcp_servers.client_callbacks import Caller, ClientCallbacks
from satchel.mcp_servers.listed_skills import ListedSkill, SkillFile
from satchel.mcp_servers.resource_subscriptions import OnUpdate
from satchel.mcp_servers.server_addresses import WorkerServer
from satchel.mcp_servers.server_connection import OnProgress
from satchel.mcp_servers.server_options import ServerConfig
from satchel.mcp_servers.server_supervisor import AFTER_FORK, CLOSED, ServerSupervisor, ToolCheck
from satchel.mcp_servers.tool_definitions import ServerSnapshot, ToolDefinition
from satchel.runtime.event_loop_thread import EventLoopThread
from satchel.settings import Limits
from satchel.sources.skill_files import ServedFile
from satchel.tools import ToolResult
from satchel.tools.callables import in_thread
from satchel.tools.empty_mapping import NOTHING

T = TypeVar("T")

_log = logging.getLogger("satchel.mcp_servers")

_CLOSE_LIMIT = 10.0
"""Seconds that closing waits for a server; its process is killed long before."""

_CLOSE_INTERVAL = 0.5
"""Seconds between closing one server and the next, unless it closes sooner."""


SDK_LOGGERS = ("mcp", "client", "httpx2", "httpcore2", "uvicorn", "starlette", "sse_starlette")
"""The loggers of the MCP SDK, whose client session has the name `client`, and of what it uses."""

_DEBOUNCE = 0.01
"""Seconds in which further changes join the first one."""


class ServerHandle:
    """One server of a pool, used from other threads."""

    def __init__(self, supervisor: ServerSupervisor, thread: EventLoopThread) -> None:
        self._supervisor, self._thread = supervisor, thread
        self._task: asyncio.Task[None] | None = None

    @property
    def snapshot(self) -> ServerSnapshot:
        """Return what the server offers now."""
        if self._thread.is_elsewhere:
            return self._supervisor.snapshot_after_fork
        return self._supervisor.snapshot

    @property
    def log(self) -> str:
        """Return the end of what the server's process wrote to its standard error."""
        return self._supervisor.log

    @property
    def opened_at(self) -> float:
        """Return when the newest connection was opened, by `time.monotonic`."""
        return self._supervisor.opened_at

    @property
    def is_settled(self) -> bool:
        """Return whether the first connection succeeded or failed."""
        return self._supervisor.settled.is_set()

    @property
    def patience(self) -> float:
        """Return how many seconds closing waits for this server."""
        server = self._supervisor.server
        return _CLOSE_LIMIT + (server.patience if isinstance(server, WorkerServer) else 0.0)

    @property
    def start_seconds(self) -> float:
        """Return how long the server may take to start or to be reached."""
        return self._supervisor.plan.start_limit.seconds

    def wait(self, seconds: float) -> bool:
        """Wait until the first connection succeeds or fails. Return `False` after `seconds`."""
        if self._thread.is_elsewhere:
            return True
        self._thread.wait_until_ready()
        return self._supervisor.settled.wait(seconds)

    def call(
        self,
        tool: ToolDefinition,
        arguments: Mapping[str, Any],
        on_progress: OnProgress,
        caller: Caller | None = None,
        headers: Mapping[str, str] = NOTHING,
    ) -> "Future[ToolResult]":
        """Start a call. Cancelling the future cancels it at the server, too.

        `headers` are sent with the request, if it is sent over HTTP. Raises `ToolError` after the
        pool was closed.
        """
        return self._begin(
            self._supervisor.send(
                lambda connection: connection.call(tool, arguments, on_progress, caller, headers),
                tool,
            )
        )

    def request(
        self, method: str, params: Mapping[str, Any], caller: Caller | None
    ) -> "Future[dict[str, Any]]":
        """Start a request about a prompt or a resource. Raises `ToolError` after closing."""
        return self._begin(
            self._supervisor.send(lambda connection: connection.request(method, params, caller))
        )

    def follow(self, uri: str, on_update: OnUpdate) -> "Future[Callable[[], None]]":
        """Start to follow a resource; the result ends that, in any thread.

        Raises `ToolError` after closing.
        """
        subscriptions = self._supervisor.subscriptions

        async def following() -> Callable[[], None]:
            await subscriptions.add(uri, on_update)
            return partial(self._thread.soon, subscriptions.remove, uri, on_update)

        return self._begin(following())

    def read(self, skill: ListedSkill, file: SkillFile) -> "Future[ServedFile]":
        """Start to read a file of a skill. Cancelling the future cancels it.

        Raises `ToolError` after closing.
        """
        return self._begin(self._supervisor.read(skill, file))

    def _begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        if self._thread.is_elsewhere:
            work.close()
            raise self._supervisor.unavailable(AFTER_FORK)
        try:
            return self._thread.begin(work)
        except RuntimeError:  # the loop is closed
            raise self._supervisor.unavailable(CLOSED) from None

    def begin(self) -> None:
        """Start the supervisor's task. Call it on the event loop."""
        self._task = asyncio.create_task(self._supervisor.run(), name=self._supervisor.name)

    async def end(self, *, drain: float = 0.0) -> None:
        """Close the connection. Call it on the event loop.

        Running calls get `drain` seconds to finish.
        """
        if drain:
            await self._supervisor.drain(drain)
        if self._task is not None:
            self._supervisor.end(self._task)
            await asyncio.wait([self._task], timeout=self.patience)
            if self._task.done() and not self._task.cancelled():
                self._task.exception()


class ServerPool:
    """The servers of one satchel. The first one starts the thread.

    `on_change` is called in a thread whenever a server's snapshot changes. `folder` has the state
    files, with the logins. `callbacks` answer what servers ask.
    """

    def __init__(
        self,
        limits: Limits,
        on_change: Callable[[], None],
        *,
        folder: str = "",
        callbacks: ClientCallbacks | None = None,
    ) -> None:
        self._limits, self._on_change = limits, on_change
        self._new_supervisor = partial(
            ServerSupervisor,
            limits=limits,
            on_change=self._set_news,
            folder=folder,
            callbacks=callbacks,
        )
        self._thread: EventLoopThread | None = None
        self._handles: list[ServerHandle] = []
        self._leaving: list[ServerHandle] = []
        self._news: asyncio.Event | None = None
        self._notifying: asyncio.Task[None] | None = None

    def add(
        self,
        config: ServerConfig,
        *,
        pinned: tuple[ToolDefinition, ...] = (),
        refusal: ToolCheck | None = None,
    ) -> ServerHandle:
        """Start to connect to a server and keep it connected.

        `pinned` are the tools that it had when it was last connected. `refusal` is asked about
        calls of tools that are not as they are listed now.
        """
        thread = self._thread = self._thread or EventLoopThread("satchel-mcp", load_sdk)
        supervisor = self._new_supervisor(config, pinned=pinned, refusal=refusal)
        handle = ServerHandle(supervisor, thread)
        self._handles.append(handle)
        thread.soon(self._begin, handle)
        return handle

    def remove(self, handle: ServerHandle) -> None:
        """Close a server after its running calls."""
        if handle in self._handles:
            self._handles.remove(handle)
            self._leaving.append(handle)
            if self._thread is not None and not self._thread.is_elsewhere:
                leaving = self._thread.begin(handle.end(drain=self._limits.drain))
                leaving.add_done_callback(lambda _: self._leaving.remove(handle))

    def close(self) -> None:
        """Close all connections, the last opened first, and end the thread."""
        thread, self._thread = self._thread, None
        handles, self._handles = [*self._handles, *self._leaving], []
        if thread is None or thread.is_elsewhere:
            return
        newest_first = sorted(handles, key=lambda handle: handle.opened_at, reverse=True)
        if thread.is_here:  # garbage collection can run this on our own thread
            closing_here = asyncio.ensure_future(self._close(newest_first))
            closing_here.add_done_callback(lambda _: thread.stop(0))
        else:
            closing = thread.begin(self._close(newest_first))
            try:
                patience = max((handle.patience for handle in handles), default=0)
                closing.result(_CLOSE_LIMIT + patience + _CLOSE_INTERVAL * len(handles))
            except TimeoutError:
                _log.warning("MCP servers did not close in time")
            thread.stop(_CLOSE_LIMIT)

    async def _close(self, handles: list[ServerHandle]) -> None:
        if self._notifying is not None:
            self._notifying.cancel()
        tasks = []
        for handle in handles:
            tasks.append(asyncio.create_task(handle.end()))
            await asyncio.wait(tasks[-1:], timeout=_CLOSE_INTERVAL)
        await asyncio.gather(*tasks)

    def _begin(self, handle: ServerHandle) -> None:
        if self._news is None:
            self._news = asyncio.Event()
            self._notifying = asyncio.create_task(self._notify(self._news))
        handle.begin()

    def _set_news(self) -> None:
        if self._news is not None:
            self._news.set()

    async def _notify(self, news: asyncio.Event) -> None:
        """Call `on_change`, once for several quick changes, and never on the event loop."""
        while True:
            await news.wait()
            await asyncio.sleep(_DEBOUNCE)  # several servers often start together
            news.clear()
            try:
                await in_thread(self._on_change)
            except Exception:
                _log.exception("cannot publish a change of MCP servers")


def load_sdk() -> None:
    """Import the SDK, before any time limit starts: it takes a second or more. Silence its log."""
    import mcp.client.streamable_http  # noqa: F401

    for logger in map(logging.getLogger, SDK_LOGGERS):
        if not logger.handlers:
            # A program without logging set up would have their warnings on its stderr.
            logger.addHandler(logging.NullHandler())
