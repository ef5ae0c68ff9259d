"""Where a remote server is: how it is started, or connected to."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from satchel.errors import DefinitionError
from satchel.tools.nothing import NOTHING


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A program that speaks MCP on its standard input and output.

    It gets a small safe environment, and `env` on top of it.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = field(default=None, repr=False)
    cwd: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.command, str) or not self.command.strip():
            raise DefinitionError("a server that is started needs a command")
        if isinstance(self.args, str):
            raise DefinitionError(
                f"the arguments of {self.command!r} are one text", fix="give a tuple of texts"
            )
        object.__setattr__(self, "args", tuple(self.args))
        _require_texts("env", self.env)

    @property
    def name(self) -> str:
        """Return what it is called unless somebody gives it a name."""
        return as_name(os.path.splitext(os.path.basename(self.command))[0])

    def __str__(self) -> str:
        return self.command


@dataclass(frozen=True, slots=True)
class WorkerServer(StdioServer):
    """A process of ours that serves one plugin."""

    greeting: bytes = field(default=b"", repr=False)
    """The line that it is told before all else; no other process can read it."""
    folder: str = ""
    patience: float = 2.0
    """Seconds that it has to end by itself."""

    def __str__(self) -> str:
        return self.folder


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server at a URL that speaks MCP over streamable HTTP."""

    url: str
    headers: Mapping[str, str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _require_url(self.url)
        _require_texts("headers", self.headers)

    @property
    def name(self) -> str:
        """Return what it is called unless somebody gives it a name."""
        return as_name(urlsplit(self.url).hostname or "")

    def __str__(self) -> str:
        return _without_secrets(self.url)


@dataclass(frozen=True, slots=True)
class SseServer:
    """A server at a URL that speaks MCP over server-sent events, as older ones do."""

    url: str
    headers: Mapping[str, str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _require_url(self.url)
        _require_texts("headers", self.headers)

    @property
    def name(self) -> str:
        """Return what it is called unless somebody gives it a name."""
        return as_name(urlsplit(self.url).hostname or "")

    def __str__(self) -> str:
        return _without_secrets(self.url)


RemoteServer = StdioServer | HttpServer | SseServer
"""Every kind of server that can be carried."""


def in_words(server: RemoteServer, name: str) -> str:
    """Return what a model is told that a server is."""
    is_ours = isinstance(server, WorkerServer)
    return f"the process of plugin {name!r}" if is_ours else f"the server {name!r}"


def _require_url(url: object) -> None:
    if isinstance(url, str):
        try:
            parts = urlsplit(url)
            if parts.scheme in {"http", "https"} and parts.hostname:
                return
        except ValueError:
            pass
    raise DefinitionError("a remote server needs a URL that begins with https:// or http://")


def _require_texts(what: str, given: Mapping[str, str] | None) -> None:
    texts = (text for pair in (given or NOTHING).items() for text in pair)
    if not all(isinstance(text, str) for text in texts):
        raise DefinitionError(f"the {what} of a server are texts by name")


def _without_secrets(url: str) -> str:
    """Return a URL without what may be a password in it: user and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def as_name(text: str) -> str:
    """Return a name for a server that is made of any text."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:64].strip("._-") or "server"
