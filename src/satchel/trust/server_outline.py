"""Outline how an MCP server is reached, for lists, messages and files that are shared.

An outline has only what is no secret: the name of the command, scripts, the package or image that a
known runner starts, names of options and variables, and the scheme, host and port of an address,
with a path of short words.
"""

import json
import re
from collections.abc import Sequence

from satchel.trust.runner_commands import PACKAGE_OPTIONS, parse_runner, start_of_inner

MASK = "***"
_PACKAGE = re.compile(
    r"(?:npm:|jsr:)?@?(?:[a-z0-9][\w.-]*(?::\d+)?/)*[a-z0-9][\w.-]*(?:\[[\w,-]+\])?"
    r"(?:(?:@|==|:)[\w.^~-]+)?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII | re.IGNORECASE,
)  # @acme/server@1.0, tool[extra]==2.0, ghcr.io/acme/server:latest
_SHOWN = re.compile(r"(-[a-z]|--[a-z][a-z-]*)(?:(=).*)?|(\$\{\w+\})", re.IGNORECASE | re.DOTALL)
"""An option, also one with a value behind `=`; or a variable."""
_SCRIPT = re.compile(r"[\w./~-]*\.(?:py|js|mjs|cjs|ts|sh|rb|jar)")
_ADDRESS = re.compile(
    r"([a-z][a-z0-9+.-]*://)(?:[^/?#\\\s]*@)?"
    r"((?:(?:[\w.-]|\$\{\w+\})+|\[[0-9a-f:.]+\])(?::\d+)?)(/?|[/?#][^@]+)",
    re.IGNORECASE,
)
"""An address; no `@` stands behind its host, as it does behind a password with a slash."""

_PLAIN_PATH = re.compile(r"(?:/(?:[a-z]{1,12}|v\d))*/?")
"""A path of short words, such as `/mcp` or `/api/v1/mcp`, which is no secret."""


def server_outline(reached: str) -> str:
    """Return the outline of a server; `reached` is the JSON text of its `ServerOrigin`."""
    command, args, _, url = json.loads(reached)
    return address_outline(url) if url else " ".join(command_outline(command, args or ()))


def command_outline(command: str, args: Sequence[str]) -> list[str]:
    """Return a command with its arguments, in which most values are `***`."""
    name = re.split(r"[/\\]", command)[-1]
    plain_name = name.removesuffix(".exe").removesuffix(".cmd")
    if inner := start_of_inner(plain_name, args):
        before = args[:1] if plain_name == "cmd" else map(_word, args[:inner])
        return [name, *before, *command_outline(args[inner], args[inner + 1 :])]
    shown = _shown_arguments(plain_name, args)
    name = name if re.fullmatch(r"[\w.+-]+|\$\{\w+\}", name) else MASK
    return [name, *(word if at in shown else _word(word) for at, word in enumerate(args))]


def address_outline(url: str) -> str:
    """Return scheme, host and port, and a path of short words; `***` stands for the rest."""
    if not (match := _ADDRESS.fullmatch(url)):
        return MASK
    place, path = f"{match[1]}{match[2]}", match[3]
    return f"{place}{path if _PLAIN_PATH.fullmatch(path) else f'/{MASK}'}"


def _word(word: str) -> str:
    if _SCRIPT.fullmatch(word):
        return word
    if not (match := _SHOWN.fullmatch(word)):
        return address_outline(word)
    return f"{match[1]}={MASK}" if match[2] else match[0]


def _shown_arguments(name: str, args: Sequence[str]) -> set[int]:
    """Return the indices of the arguments of a runner that are shown.

    They are its command words (`run`, `-m`), flags, and the package.
    """
    if (parts := parse_runner(name, args)) is None:
        return set()
    shown = {option.at for option in parts.options if option.value is None}
    packages = [
        (parts.program, parts.program_at),
        *((it.value, it.at) for it in parts.options if it.name in PACKAGE_OPTIONS),
    ]
    return shown | {
        at for name, at in packages if name and _PACKAGE.fullmatch(name) and args[at] == name
    }
