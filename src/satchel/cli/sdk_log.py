"""The log of the MCP SDK and its HTTP client: silent, or on stderr without secrets."""

import logging
from typing import TYPE_CHECKING, Any

import click

from satchel.mcp_servers.server_pool import SDK_LOGGERS
from satchel.runtime.redaction import redacted
from satchel.text import visible

if TYPE_CHECKING:
    import satchel


class _WithoutTracebacks(logging.Formatter):
    """Names errors by their type: their texts have parts of messages, perhaps of secrets."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return str(ei[0].__name__) if ei[0] else ""


class SdkLog(logging.Handler):
    """Writes the log to stderr, at every level without the secrets of servers; or nothing at all.

    Records wait until `know` says which servers there are.
    """

    def __init__(self, *, verbose: bool) -> None:
        super().__init__()
        self.setFormatter(_WithoutTracebacks("%(name)s: %(levelname)s: %(message)s"))
        self._verbose = verbose
        self._app: satchel.Satchel | None = None
        self._secrets: set[str] = set()
        self._waiting: list[logging.LogRecord] = []
        for name in SDK_LOGGERS:
            logger = logging.getLogger(name)
            logger.handlers[:] = [self]
            logger.propagate = False
            if verbose:
                logger.setLevel(logging.DEBUG)

    def know(self, app: "satchel.Satchel") -> None:
        """Learn the secrets of the servers of a satchel."""
        self._app = app
        waiting, self._waiting = self._waiting, []
        for record in waiting:
            self.emit(record)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        if not self._verbose:
            return
        if self._app is None:
            self._waiting.append(record)
            return
        # They are kept: a satchel that is closed has no servers, but their connections still log.
        for item in self._app.declared_mcp_servers.values():
            self._secrets.update(item.server.secrets)
        text = redacted(self.format(record), {"": tuple(self._secrets)})
        click.echo(visible(text), err=True)
