"""Start the processes of plugins, send them requests, and end them after their last user.

Catalogs and tools hold the `WorkerHandle` of a process, as they hold the `ImportedCode` of a plugin
in this process. A new version starts beside the old one; the old process ends when the last
catalog or tool that uses it is gone.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from satchel.errors import ToolError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from satchel.diagnostics import Diagnostic
    from satchel.mcp_servers.server_addresses import WorkerServer
    from satchel.mcp_servers.server_connection import OnProgress
    from satchel.mcp_servers.server_pool import ServerHandle, ServerPool
    from satchel.mcp_servers.tool_definitions import ServerSnapshot, ToolDefinition
    from satchel.runtime.error_results import ErrorText
    from satchel.settings import Limits
    from satchel.tools import ToolResult

_START = 10.0
"""Seconds for the start of Python and of the MCP server."""

_ASK_TIMEOUT = 1.0
"""Seconds for a question: the caller's thread is blocked meanwhile."""


class WorkerPool:
    """The processes of one satchel's plugins."""

    def __init__(
        self, limits: Limits, on_change: Callable[[], None], errors: ErrorText = "summary"
    ) -> None:
        self.limits, self.errors = limits, errors
        self._start_timeout = limits.plugin_import + limits.hook * 2 + _START
        self._on_change = on_change
        self._pool: ServerPool | None = None
        # Reentrant: garbage collection may end one process while another is starting.
        self._lock = threading.RLock()

    def start(self, name: str, server: WorkerServer, values: Mapping[str, Any]) -> WorkerHandle:
        """Start a process, and wait until its plugin is loaded or has failed."""
        # Lazy: needed only with a process.
        from satchel.mcp_servers.server_options import ServerConfig
        from satchel.mcp_servers.server_pool import ServerPool

        started_at = time.perf_counter()
        with self._lock:
            if self._pool is None:
                limits = replace(self.limits, mcp_connect=self._start_timeout)
                self._pool = ServerPool(limits, self._on_change)
            pool = self._pool
            handle = pool.add(ServerConfig(name=name, server=server))
        worker = WorkerHandle(handle, values, self.errors)
        weakref.finalize(worker, self._end, pool, handle)
        handle.wait(self._start_timeout * 2)
        worker.seconds = time.perf_counter() - started_at
        return worker

    def _end(self, pool: ServerPool, handle: ServerHandle) -> None:
        with self._lock:
            pool.remove(handle)

    def close(self) -> None:
        """End all processes."""
        if self._pool is not None:
            self._pool.close()


class WorkerHandle:
    """The process of one version of a plugin; it is restarted when it exits."""

    def __init__(
        self, handle: ServerHandle, values: Mapping[str, Any], errors: ErrorText = "summary"
    ) -> None:
        self._handle, self._values, self.errors = handle, values, errors
        self.seconds = 0.0
        """How long the start took."""

    @property
    def snapshot(self) -> ServerSnapshot:
        """Return its current snapshot."""
        return self._handle.snapshot

    @property
    def outage(self) -> Diagnostic | None:
        """Return why it does not run now, without its configuration values, or `None`."""
        if (outage := self.snapshot.outage) is None:
            return None
        from satchel.runtime.redaction import redacted  # lazy: needed only by an error

        return replace(outage, message=redacted(outage.message, self._values))

    def begin(
        self, tool: ToolDefinition, arguments: Mapping[str, Any], on_progress: OnProgress
    ) -> Future[ToolResult]:
        """Start a call."""
        return self._handle.call(tool, arguments, on_progress)

    def ask(self, question_kind: str, **question: Any) -> Any:
        """Send a question and wait for the answer, at most a second. Raises `ToolError`."""
        if self.snapshot.outage is not None:
            raise ToolError("the process of the plugin is not running now; try again later")
        from satchel.mcp_servers.tool_definitions import (
            ToolDefinition,  # lazy: needed only with a process
        )

        asking = self._handle.call(ToolDefinition(name=question_kind), question, lambda _: None)
        try:
            result = asking.result(_ASK_TIMEOUT)
        except TimeoutError:
            asking.cancel()
            raise ToolError(
                f"the process of the plugin did not answer within {_ASK_TIMEOUT:g} s; "
                "try again later"
            ) from None
        if result.is_error:
            raise ToolError(result.text)
        return (result.structured or {}).get("answer")
