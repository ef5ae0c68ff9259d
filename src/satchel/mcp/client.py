"""The client that made a call, as a tool may talk to it while it works."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

KEY = "mcp"
"""Where a tool finds it: `context.get_metadata("mcp")`."""

Context = ServerRequestContext[Any, Any]


def is_stateless(ctx: Context) -> bool:
    """Tell whether a request belongs to the protocol without a handshake, since 2026-07-28."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


class Client:
    """The client that made a call; what is told after the call has ended is lost."""

    __slots__ = ("_last", "_level", "sdk")

    def __init__(self, sdk: Context, level: Level) -> None:
        self.sdk = sdk
        """The request as the official SDK has it, for whatever else the protocol offers."""
        asked = self.meta.get(types.LOG_LEVEL_META_KEY)
        # Without a handshake nothing is logged for a request that does not ask for it.
        self._level = asked if is_stateless(sdk) else level
        self._last = float("-inf")

    @property
    def protocol_version(self) -> str:
        """Return the version of the protocol that it speaks."""
        return self.sdk.protocol_version

    @property
    def meta(self) -> Mapping[str, Any]:
        """Return what it sent with the request beside the arguments."""
        return self.sdk.meta or {}

    @property
    def wants_progress(self) -> bool:
        """Whether it asked to be told of progress."""
        return "progress_token" in self.meta

    async def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell how far the call is; what is not more than the last time is not sent."""
        if done > self._last:
            self._last = done
            await self.sdk.session.report_progress(done, total, message or None)

    async def advance(self, message: str) -> None:
        """Tell that there is one more part, and what it says."""
        await self.progress(max(self._last, 0.0) + 1, None, message)

    async def log(self, level: Level, data: Any, logger: str = "") -> None:
        """Send a line for its log, if it wants lines of that level; `data` is anything JSON has."""
        if self._level not in LEVELS or LEVELS.index(level) < LEVELS.index(self._level):
            return
        told = types.LoggingMessageNotificationParams(level=level, data=data, logger=logger or None)
        await self.sdk.session.send_notification(
            types.LoggingMessageNotification(params=told), self.sdk.request_id
        )
