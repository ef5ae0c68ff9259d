"""Start the processes of plugins, send them requests, and end them after their last user.

Catalogs and tools hold the `WorkerHandle` of a process, as they hold the `ImportedCode` of a plugin
in this process. A new version starts beside the old one; the old process ends when the last
catalog or tool that uses it is gone.
"""

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from satchel.diagnostics import Diagnostic
from satchel.errors import ToolError
from satchel.mcp_servers import (
    ServerHandle,
    ServerPool,
    ServerSnapshot,
    ToolDefinition,
    WorkerServer,
)
from satchel.mcp_servers.server_connection import OnProgress
from satchel.runtime.redaction import redacted
from satchel.settings import Limits
from satchel.tools import ToolResult

_START = 10.0
"""Seconds for Python itself, and for what serves MCP."""

_ASKED = 1.0
"""Seconds for a question that somebody waits for who can do nothing else meanwhile."""


class WorkerPool:
    """The processes of one satchel's plugins."""

    def __init__(self, limits: Limits, on_news: Callable[[], None]) -> None:
        patience = limits.plugin_import + limits.hook * 2 + _START
        self.limits = limits
        self._fleet = ServerPool(replace(limits, mcp_connect=patience), on_news)
        self._patience = patience
        # Whoever lets go of a process may do so while another is being started.
        self._lock = threading.RLock()

    def start(self, name: str, server: WorkerServer, values: Mapping[str, Any]) -> "WorkerHandle":
        """Start a process, and wait until it is known what it brings, or that it cannot run."""
        begun = time.perf_counter()
        with self._lock:
            member = self._fleet.add(name, server)
        worker = WorkerHandle(member, values)
        weakref.finalize(worker, self._end, member)
        member.wait(self._patience * 2)
        worker.seconds = time.perf_counter() - begun
        return worker

    def _end(self, member: ServerHandle) -> None:
        with self._lock:
            self._fleet.remove(member)

    def close(self) -> None:
        """End all processes."""
        self._fleet.close()


class WorkerHandle:
    """The process of one version of a plugin: it is started again when it ends by itself."""

    def __init__(self, member: ServerHandle, values: Mapping[str, Any]) -> None:
        self._member, self._values = member, values
        self.seconds = 0.0
        """How long it took to start."""

    @property
    def offer(self) -> ServerSnapshot:
        """Return what it brings."""
        return self._member.offer

    @property
    def trouble(self) -> Diagnostic | None:
        """Return why it does not run at the moment, without the values that it was given."""
        if (found := self.offer.trouble) is None:
            return None
        return replace(found, message=redacted(found.message, self._values))

    def begin(
        self, tool: ToolDefinition, arguments: Mapping[str, Any], on_progress: OnProgress
    ) -> "Future[ToolResult]":
        """Begin a call."""
        return self._member.call(tool, arguments, on_progress)

    def ask(self, what: str, **question: Any) -> Any:
        """Ask for something, and wait for it, but not for long. Raises `ToolError`."""
        if self.offer.trouble is not None:
            raise ToolError("the process of the plugin does not run at the moment")
        asked = self._member.call(ToolDefinition(name=what), question, lambda _: None)
        try:
            result = asked.result(_ASKED)
        except TimeoutError:
            asked.cancel()
            told = f"the process of the plugin gave no answer within {_ASKED:g} s"
            raise ToolError(told) from None
        if result.is_error:
            raise ToolError(result.text)
        return (result.structured or {}).get("answer")
