"""Where a remote server is: how it is started, or connected to."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from urllib.parse import parse_qsl, unquote, urlsplit

from satchel.errors import DefinitionError
from satchel.formats import is_header
from satchel.text import one_line
from satchel.tools.empty_mapping import NOTHING

CARRIED = "SATCHEL_CARRIED"
"""Set in what is started: a satchel that is carried carries nobody, itself least of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioServer:
    """A program that speaks MCP on its standard input and output.

    It gets a small safe environment, and `env` on top of it.
    """

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] | None = field(default=None, repr=False)
    cwd: str | None = None
    hidden: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """What its arguments hold that is secret."""

    def __post_init__(self) -> None:
        if not isinstance(self.command, str) or not self.command.strip():
            raise DefinitionError("a server that is started needs a command")
        if isinstance(self.args, str):
            raise DefinitionError(
                f"the arguments of {self.command!r} are one text", fix="give a tuple of texts"
            )
        args = tuple(self.args) if isinstance(self.args, Iterable) else (self.args,)
        if not _are_texts(args):
            raise DefinitionError(f"the arguments of {self.command!r} are texts")
        object.__setattr__(self, "args", args)
        if not isinstance(self.cwd, str | None):
            raise DefinitionError(f"the folder for {self.command!r} is no text")
        _require_texts("env", self.env)
        given = (self.command, *self.args, self.cwd or "", *chain(*(self.env or NOTHING).items()))
        if any("\0" in text for text in given):
            raise DefinitionError(f"{one_line(self.command)!r} is started with a null character")

    @property
    def name(self) -> str:
        """Return what it is called unless somebody gives it a name."""
        return as_name(os.path.splitext(os.path.basename(self.command))[0])

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return what no text about it may hold."""
        values = (*(self.env or NOTHING).values(), *self.hidden)
        # A secret may begin like a path, and what is there is none.
        return tuple(value for value in values if not os.path.exists(value))

    def __str__(self) -> str:
        return self.command


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerServer(StdioServer):
    """A process of ours that serves one plugin."""

    greeting: bytes = field(default=b"", repr=False)
    """The line that it is told before all else; no other process can read it."""
    folder: str = ""
    patience: float = 2.0
    """Seconds that it has to end by itself."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return nothing: it has the environment of the host."""
        return ()

    def __str__(self) -> str:
        return self.folder


@dataclass(frozen=True, slots=True, repr=False)
class _OnNetwork:
    """A server at a URL, whose texts are without what may be secret in that."""

    url: str
    headers: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        _require_url(self.url)
        _require_texts("headers", self.headers)
        for name, value in (self.headers or NOTHING).items():
            if not is_header(name, value) or not value.isascii():
                raise DefinitionError(
                    f"the header {name!r} of a server is none that HTTP has",
                    fix="see whether its value ends with a line break, or is not ASCII",
                )

    @property
    def name(self) -> str:
        """Return what it is called unless somebody gives it a name."""
        return as_name(urlsplit(self.url).hostname or "")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return what no text about it may hold."""
        parts = urlsplit(self.url)
        given = [parts.password or parts.username or "", parts.query]
        given += [unquote(text) for text in given]
        given += [value for _, value in parse_qsl(parts.query)]
        for value in (self.headers or NOTHING).values():
            given += [value, value.rpartition(" ")[2]]  # after `Bearer`, perhaps
        return tuple(given)

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


@dataclass(frozen=True, slots=True, repr=False)
class HttpServer(_OnNetwork):
    """A server at a URL that speaks MCP over streamable HTTP."""


@dataclass(frozen=True, slots=True, repr=False)
class SseServer(_OnNetwork):
    """A server at a URL that speaks MCP over server-sent events, as older ones do."""


RemoteServer = StdioServer | HttpServer | SseServer
"""Every kind of server that can be carried."""


def describe_server(server: RemoteServer, name: str) -> str:
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
    if not isinstance(given, Mapping | None) or not _are_texts(chain(*(given or NOTHING).items())):
        raise DefinitionError(f"the {what} of a server are texts by name")


def _are_texts(given: Iterable[object]) -> bool:
    return all(isinstance(text, str) for text in given)


def as_name(text: str) -> str:
    """Return a name for a server that is made of any text."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:64].strip("._-") or "server"
