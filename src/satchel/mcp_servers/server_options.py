"""How a server is started, and how its tools appear here."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import chain
from typing import Any

from satchel.errors import DefinitionError
from satchel.formats import is_header
from satchel.lazy_dataclass import dataclass
from satchel.tools.empty_mapping import NOTHING

OPTION_KEYS = (
    *("active", "startup-timeout", "lazy", "prefix", "rename", "rename-arguments"),
    *("descriptions", "roots", "max-calls", "forward-headers"),
)
"""The keys of a server's table in `satchel.toml`."""

_OWN_HEADERS = frozenset({"host", "content-length", "content-type", "accept", "connection"})
"""Headers of a connection, which are never forwarded; nor are those of the protocol, `mcp-...`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How to start a server, and how to show its tools. Names of tools are those at the server."""

    active: bool | None = None
    """Whether its own group is active in a new session.

    `None` is no, but `satchel serve` shows it to clients that cannot switch groups.
    """
    startup_timeout: float | None = None
    """Seconds to start or connect; the limit `mcp_startup` or `mcp_connect` without it."""
    lazy: bool = False
    """Whether it is started at its first call; until then its pins say which tools it has."""
    prefix: str = ""
    """Text in front of the name of each tool that is not renamed."""
    rename: Mapping[str, str] = field(default=NOTHING, hash=False)
    """Other names for tools."""
    rename_arguments: Mapping[str, Mapping[str, str]] = field(default=NOTHING, hash=False)
    """Other names for arguments, by tool."""
    descriptions: Mapping[str, str] = field(default=NOTHING, hash=False)
    """Descriptions for tools instead of those of the server."""
    roots: tuple[str, ...] = ()
    """Folders that the server may ask for, as its roots."""
    max_calls: int | None = None
    """How many calls may run at once; further calls wait."""
    forward_headers: tuple[str, ...] = ()
    """Names of HTTP headers of the caller's request that are sent on with each call."""

    def __post_init__(self) -> None:
        for name in ("roots", "forward_headers"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        for fault in _faults(self):
            raise DefinitionError(f"its {fault}")

    def name_of(self, tool: str) -> str:
        """Return the name that a tool should have here."""
        return self.rename.get(tool) or self.prefix + tool


def _faults(options: ServerOptions) -> Iterable[str]:
    """Yield what is wrong with the values, each beginning with the key."""
    seconds, most, arguments = options.startup_timeout, options.max_calls, options.rename_arguments
    is_time = type(seconds) in {int, float} and 0 < (seconds or 0) < math.inf
    is_number = type(most) is int and most > 0
    is_nested = isinstance(arguments, Mapping) and all(map(_maps_texts, arguments.values()))
    checks = (
        (isinstance(options.active, bool | None), "active must be true or false"),
        (isinstance(options.lazy, bool), "lazy must be true or false"),
        (isinstance(options.prefix, str), "prefix must be a string"),
        (
            seconds is None or is_time,
            f"startup-timeout must be a number of seconds above 0, not {seconds!r}",
        ),
        (most is None or is_number, f"max-calls must be a whole number above 0, not {most!r}"),
        (_maps_texts(options.rename), "rename must map names of tools to text"),
        (_maps_texts(options.descriptions), "descriptions must map names of tools to text"),
        (is_nested, "rename-arguments must map names of tools to tables of names"),
        (_are_texts(options.roots), "roots must be a list of strings"),
        (_are_texts(options.forward_headers), "forward-headers must be a list of strings"),
    )
    yield from (message for is_valid, message in checks if not is_valid)
    for header in options.forward_headers:
        if not is_header(header, "") or header.lower() in _OWN_HEADERS or _is_protocol(header):
            yield f"forward-headers has {header!r}, which cannot be forwarded"


def _are_texts(items: Iterable[Any]) -> bool:
    return all(isinstance(item, str) and item for item in items)


def _is_protocol(header: str) -> bool:
    return header.lower().startswith(("mcp-", "proxy-"))


def _maps_texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(item, str) and item for item in chain(*value.items())
    )


def options_of(table: Mapping[str, Any]) -> ServerOptions:
    """Return the options in a table of `satchel.toml`. Raises `DefinitionError`."""
    values = {key.replace("-", "_"): table[key] for key in OPTION_KEYS if key in table}
    for key in ("roots", "forward-headers"):
        if not isinstance(table.get(key, ""), str | list):
            raise DefinitionError(f"its {key} must be a list of strings")
    return ServerOptions(**values)


def forwarded(options: ServerOptions, headers: Any) -> dict[str, str]:
    """Return the headers of a caller's request that are sent on to the server."""
    if not options.forward_headers or not isinstance(headers, Mapping):
        return {}
    given = {str(name).lower(): value for name, value in headers.items()}
    values = ((name, given.get(name.lower())) for name in options.forward_headers)
    return {
        name: value
        for name, value in values
        if isinstance(value, str) and value.isascii() and is_header(name, value)
    }


def unknown_names(
    options: ServerOptions, properties: Mapping[str, Iterable[str]]
) -> Iterable[tuple[str, str, Iterable[str]]]:
    """Yield what the options name that a server does not have: key, name and the existing names.

    `properties` are the arguments of its tools, by tool.
    """
    named = {
        "rename": options.rename,
        "rename-arguments": options.rename_arguments,
        "descriptions": options.descriptions,
    }
    for key, tools in named.items():
        yield from ((key, name, properties) for name in tools if name not in properties)
    for tool, arguments in options.rename_arguments.items():
        known = tuple(properties.get(tool, arguments))
        yield from (
            (f"rename-arguments of {tool}", name, known) for name in arguments if name not in known
        )
