"""The official SDK's server, for contents that change while it runs."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions

UNCACHED = MappingProxyType({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
"""Results change with each edit, so clients should not cache them."""


class ChangingServer(Server[None]):
    """A server whose handshake announces list changes and has the current instructions."""

    greeting: Callable[[], str]

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the options of a handshake that begins now."""
        changing = notification_options or NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        options = super().create_initialization_options(
            changing, experimental_capabilities, extensions
        )
        return options.model_copy(update={"instructions": self.greeting() or None})
