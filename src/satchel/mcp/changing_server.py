"""The official SDK's server, for contents that change while it runs."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions

UNCACHED = MappingProxyType({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
"""Results change with each edit, so clients should not cache them."""

HANDSHAKE, DISCOVERY = "initialize", "server/discover"
"""The methods whose results have instructions, up to version 2025-11-25 and later."""


class ChangingServer(Server[None]):
    """A server that announces list changes, and gives each client the instructions of now.

    `greeting` returns them, given the method of the request.
    """

    def __init__(self, name: str, *, greeting: Callable[[str], str], **options: Any) -> None:
        super().__init__(name, **options)
        self._greeting = greeting
        self.middleware.append(self._greet)

    async def _greet(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method not in {HANDSHAKE, DISCOVERY} or not isinstance(result, dict):
            return result
        # Not with the options of the handshake: on stdio, they are made before the client connects.
        instructions = self._greeting(ctx.method)
        return {**result, **({"instructions": instructions} if instructions else {})}

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the options of a handshake."""
        changing = notification_options or NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return super().create_initialization_options(
            changing, experimental_capabilities, extensions
        )
