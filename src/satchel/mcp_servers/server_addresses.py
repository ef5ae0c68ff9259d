"""Describe how an MCP server is started or reached."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from itertools import chain
from typing import ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from satchel.configuration.configuration import config_folder
from satchel.configuration.env_file import env_variables
from satchel.diagnostics import Diagnostic
from satchel.errors import DefinitionError
from satchel.files.file_reader import real_path
from satchel.formats.mcp_json import is_header
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.oauth_client import OAuthClient, may_carry_tokens
from satchel.text import one_line
from satchel.tools.empty_mapping import NOTHING
from satchel.trust.server_outline import address_outline, command_outline

_NESTED = "SATCHEL_NESTED"


def nesting() -> dict[str, str]:
    """Return the variable that passes the configuration folders of the outer satchels on."""
    above = os.environ.get(_NESTED)
    return {_NESTED: os.pathsep.join(filter(None, [above, real_path(config_folder())]))}


def is_nested() -> bool:
    """Return whether a satchel above has this configuration, whose servers would start again."""
    return real_path(config_folder()) in os.environ.get(_NESTED, "").split(os.pathsep)


class StartVariables:
    """The variables of a server with an `env-file`, which is read again before each start."""

    def __init__(self, env_file: str, env: Mapping[str, str]) -> None:
        self._env_file, self._env = env_file, env
        self.values: frozenset[str] = frozenset()
        """All values that were read; messages must not contain them."""

    def read(self) -> dict[str, str]:
        """Return the variables of the file, and those that win over them.

        Raises `SatchelError`.
        """
        variables = {**env_variables(self._env_file), **self._env}
        self.values = self.values.union(variables.values())
        return variables


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioServer:
    """A program that speaks MCP on its standard input and output.

    Its environment is a small safe part of this process's, and `env`.
    """

    transport: ClassVar[str] = "stdio"
    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] | None = field(default=None, repr=False)
    start_variables: StartVariables | None = field(default=None, repr=False, compare=False)
    """Replaces `env` at each start, after `check`, since its file may have changed meanwhile."""
    cwd: str | None = None
    hidden: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Secret values in its arguments."""
    shown: str = field(default="", repr=False, compare=False)
    """What messages show: the outline of the command as it is declared."""
    check: Callable[[], Diagnostic | None] | None = field(default=None, repr=False, hash=False)
    """Called in a thread before each start; it returns why the program must not be started."""

    def __post_init__(self) -> None:
        if not isinstance(self.command, str) or not self.command.strip():
            raise DefinitionError("a StdioServer needs a command")
        if isinstance(self.args, str):
            raise DefinitionError(
                f"the arguments of {self.command!r} are one string", fix="pass a tuple of strings"
            )
        args = tuple(self.args) if isinstance(self.args, Iterable) else (self.args,)
        if not _are_strings(args):
            raise DefinitionError(f"the arguments of {self.command!r} must be strings")
        object.__setattr__(self, "args", args)
        if not isinstance(self.cwd, str | None):
            raise DefinitionError(f"the working folder of {self.command!r} must be a string")
        _require_strings("env", self.env)
        texts = (self.command, *self.args, self.cwd or "", *chain(*(self.env or NOTHING).items()))
        if any("\0" in text for text in texts):
            raise DefinitionError(
                f"the command, arguments or environment of {one_line(self.command)!r} contain a "
                "null character"
            )

    @property
    def name(self) -> str:
        """Return the default name."""
        return as_name(os.path.splitext(os.path.basename(self.command))[0])

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the values that messages about the server must not contain."""
        read = self.start_variables.values if self.start_variables else ()
        values = (*(self.env or NOTHING).values(), *read, *self.hidden)
        # An existing path is not a secret; a secret may look like a path.
        return tuple(value for value in values if not os.path.exists(value))

    def __str__(self) -> str:
        return self.shown or " ".join(command_outline(self.command, self.args))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerServer(StdioServer):
    """The process of one plugin, started by us."""

    greeting: bytes = field(default=b"", repr=False)
    """The first line on its stdin; no other process can read it."""
    folder: str = ""
    patience: float = 2.0
    """Seconds in which it must exit after its stdin closes."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return nothing: its environment is the host's."""
        return ()

    def __str__(self) -> str:
        return self.folder


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class _OnNetwork:
    """A server at a URL. `str` and `repr` have only what `address_outline` shows of it."""

    url: str = field(kw_only=False)
    headers: Mapping[str, str] | None = field(default=None, kw_only=False)
    oauth: OAuthClient | None = field(default=None, kw_only=False)
    """As which client to log in, if the server asks for it; `None` for any."""
    shown: str = field(default="", compare=False)
    """The URL as it is declared, with placeholders that are not filled in."""
    hidden: tuple[str, ...] = field(default=(), compare=False)
    """Secret values in the URL."""

    def __post_init__(self) -> None:
        _require_url(self.url)
        if not isinstance(self.oauth, OAuthClient | None):
            raise DefinitionError("the oauth of a server must be an OAuthClient")
        if self.oauth is not None and not may_carry_tokens(self.url):
            raise DefinitionError("a server with oauth needs a URL that begins with https://")
        _require_strings("headers", self.headers)
        for name, value in (self.headers or NOTHING).items():
            if not is_header(name, value) or not value.isascii():
                raise DefinitionError(
                    f"the header {name!r} of a server is not a valid HTTP header",
                    fix="remove line breaks and characters that are not ASCII from its value",
                )

    @property
    def name(self) -> str:
        """Return the default name."""
        return as_name(urlsplit(self.url).hostname or "")

    @property
    def has_credentials(self) -> bool:
        """Return whether its URL or headers have credentials, which a login would replace."""
        in_headers = any(name.lower() == "authorization" for name in self.headers or ())
        return in_headers or "@" in urlsplit(self.url).netloc

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the values that messages about the server must not contain."""
        parts = urlsplit(self.url)
        values = [parts.password or parts.username or "", parts.query]
        values += [unquote(text) for text in values]
        values += [value for _, value in parse_qsl(parts.query)]
        for value in (self.headers or NOTHING).values():
            values += [value, value.rpartition(" ")[2]]  # the part after `Bearer`
        values += [self.oauth.client_secret] if self.oauth else []
        return (*values, *self.hidden)

    def __str__(self) -> str:
        return address_outline(self.shown or self.url)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


@dataclass(frozen=True, slots=True, repr=False)
class HttpServer(_OnNetwork):
    """A server at a URL that speaks MCP over streamable HTTP."""

    transport: ClassVar[str] = "streamable-http"
    or_sse: bool = field(default=False, compare=False)
    """Whether to try server-sent events if it refuses streamable HTTP with a status of 4xx."""


@dataclass(frozen=True, slots=True, repr=False)
class SseServer(_OnNetwork):
    """A server at a URL that speaks MCP over server-sent events, as older ones do."""

    transport: ClassVar[str] = "sse"


RemoteServer = StdioServer | HttpServer | SseServer
"""Every kind of server that a satchel can connect to."""


def describe_server(server: RemoteServer, name: str) -> str:
    """Return how messages to a model refer to a server."""
    is_worker = isinstance(server, WorkerServer)
    return f"the process of plugin {name!r}" if is_worker else f"the server {name!r}"


def _require_url(url: object) -> None:
    if isinstance(url, str):
        try:
            parts = urlsplit(url)
            if parts.scheme in {"http", "https"} and parts.hostname:
                return
        except ValueError:
            pass
    raise DefinitionError("a remote server needs a URL that begins with https:// or http://")


def _require_strings(field_name: str, values: Mapping[str, str] | None) -> None:
    if not isinstance(values, Mapping | None) or not _are_strings(
        chain(*(values or NOTHING).items())
    ):
        raise DefinitionError(f"the {field_name} of a server must map strings to strings")


def _are_strings(values: Iterable[object]) -> bool:
    return all(isinstance(text, str) for text in values)


def as_name(text: str) -> str:
    """Turn any text into a valid server name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:64].strip("._-") or "server"
