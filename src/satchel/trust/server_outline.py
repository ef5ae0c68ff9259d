"""Outline how an MCP server is reached, for lists, messages and files that are shared.

An outline has only what is no secret: the name of the command, scripts, the package or image that a
known runner starts, names of options and variables, paths of plain words without the name of a
user, some usual words such as `stdio`, and the scheme, host and port of an address, with a path of
short words.
"""

import json
import re
from collections.abc import Mapping, Sequence

from satchel.trust.runner_commands import PACKAGE_OPTIONS, inner_runner_index, parse_runner

MASK = "***"
_PACKAGE = re.compile(
    r"(?:npm:|jsr:)?@?(?:[a-z0-9][\w.-]*(?::\d+)?/)*[a-z0-9][\w.-]*(?:\[[\w,-]+\])?"
    r"(?:(?:@|==|:)[\w.^~-]+)?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII | re.IGNORECASE,
)  # @acme/server@1.0, tool[extra]==2.0, ghcr.io/acme/server:latest
_OPTION_OR_VARIABLE = re.compile(
    r"(-[a-z]|--[a-z][a-z-]*)(?:(=).*)?|(\$\{\w+\})", re.IGNORECASE | re.DOTALL
)
"""An option, also one with a value behind `=`; or a variable."""
_VARIABLE = re.compile(r"([A-Z][A-Z_]{0,39})(=.*)?", re.DOTALL)
"""`NAME=value`, or `NAME` alone, which docker takes from the host."""
_VARIABLE_OPTIONS = frozenset(("-e", "--env"))
_CONTAINERS = frozenset(("docker", "podman"))
_USUAL_WORDS = frozenset(("stdio", "sse", "http", "mcp", "serve", "server", "start", "run"))
"""Commands and transports of many servers."""
_FOLDER = r"\.?[A-Z]?[a-z]{1,15}(?:[-_.][A-Z]?[a-z]{1,15}){0,3}\d{0,2}"
_ROOTS = "app|data|etc|home|media|mnt|opt|projects|srv|tmp|usr|Users|var|Volumes|workspace"
_PATH = re.compile(
    rf"\.\.?|(?:(?:\.\.?|~|[A-Z]:)[/\\]|/(?=(?:{_ROOTS})(?:/|$)))"
    rf"(?:\.\.[/\\])*(?:{_FOLDER}[/\\])*(?:{_FOLDER}|\.\.)?"
)
"""A path of words that begins as only paths do."""
_PLAIN_OPTIONS = frozenset(
    (
        *("--repository", "--directory", "--project", "--root", "--dir", "--path", "--db-path"),
        "--transport",
    )
)
"""Options whose value is never a secret; it is shown if it is such a path or word."""
_HOME = re.compile(r"([/\\](?:home|media|users)[/\\])[^/\\]+", re.IGNORECASE)
"""A folder with the name of a user."""
_SCRIPT = re.compile(r"(?:\$\{\w+\}/)?[\w./~-]*\.(?:py|js|mjs|cjs|ts|sh|rb|jar)")
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
    if inner := inner_runner_index(plain_name, args):
        front = args[:1] if plain_name == "cmd" else map(_variable, args[:inner])
        return [name, *front, *command_outline(args[inner], args[inner + 1 :])]
    shown = _shown_arguments(plain_name, args)
    name = name if re.fullmatch(r"[\w.+-]+|\$\{\w+\}", name) else MASK
    words = zip(args, ("", *args), strict=False)
    return [name, *(shown.get(at) or _word(*pair) for at, pair in enumerate(words))]


def address_outline(url: str) -> str:
    """Return scheme, host and port, and a path of short words; `***` stands for the rest."""
    if not (match := _ADDRESS.fullmatch(url)):
        return MASK
    place, path = f"{match[1]}{match[2]}", match[3]
    return f"{place}{path if _PLAIN_PATH.fullmatch(path) else f'/{MASK}'}"


def _word(word: str, previous_word: str = "") -> str:
    """Return what is shown of a word."""
    is_plain = not previous_word.startswith("-") or previous_word in _PLAIN_OPTIONS
    # In the test, any name of a user passes: it is masked.
    is_known = word in _USUAL_WORDS or _PATH.fullmatch(_HOME.sub(r"\1me", word))
    if _SCRIPT.fullmatch(word) or (is_plain and is_known):
        return _HOME.sub(rf"\1{MASK}", word)
    if not (match := _OPTION_OR_VARIABLE.fullmatch(word)):
        return address_outline(word)
    return f"{match[1]}={MASK}" if match[2] else match[0]


def _shown_arguments(name: str, args: Sequence[str]) -> Mapping[int, str]:
    """Return the arguments of a runner that are shown, by their indices.

    They are its command words (`run`, `-m`), flags, the package, and names of variables.
    """
    if (parts := parse_runner(name, args)) is None:
        return {}
    shown = {at: word for word, value, at in parts.options if value is None}
    packages = [(it.value, it.last_index) for it in parts.options if it.name in PACKAGE_OPTIONS]
    packages.append((parts.program, parts.program_at))
    shown |= {
        at: word for word, at in packages if word and args[at] == word and _PACKAGE.fullmatch(word)
    }
    for option, value, at in parts.options if name in _CONTAINERS else ():
        if option in _VARIABLE_OPTIONS and value:
            variable = _variable(value)
            shown[at] = variable if args[at] == value else f"{option}={variable}"
    return shown


def _variable(text: str) -> str:
    """Return the name of a variable that a program gets, without its value."""
    match = _VARIABLE.fullmatch(text)
    name = match[1] if match else MASK
    return f"{name}={MASK}" if match and match[2] else name
