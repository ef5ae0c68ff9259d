"""Outline how an MCP server is reached, for lists, messages and files that are shared.

An outline has only what is no secret: the name of the command, scripts, the package or image that a
known runner starts, names of options and variables, and the scheme, host and port of an address,
with a path of short words.
"""

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from satchel.trust.fetched_servers import FETCH_FLAGS, PACKAGE_OPTIONS, VALUE_OPTIONS

MASK = "***"
_RUNNERS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("npx", "bunx", "uvx"), frozenset[str]()),
        **dict.fromkeys(("docker", "podman", "pipx", "deno"), frozenset(("run",))),
        **dict.fromkeys(("pnpm", "yarn"), frozenset(("dlx",))),
        "bun": frozenset(("x",)),
        "npm": frozenset(("exec",)),
        "uv": frozenset(("tool", "run")),
        **dict.fromkeys(("python", "python3"), frozenset(("-m",))),
    }
)
"""Programs that start a package, image or module by its name -> the words in front of it."""
_FLAGS = FETCH_FLAGS | frozenset(
    ("-i", "-t", "-it", "--interactive", "--tty", "--rm", "--init", "-A", "--allow-all", "--")
)
"""Options of runners without a value."""
_WITH_VALUE = VALUE_OPTIONS | frozenset(
    (
        *("-e", "--env", "--env-file", "-v", "--volume", "--mount", "-u", "--user", "--name"),
        *("-p", "--publish", "--network", "--workdir", "--platform", "--entrypoint"),
        *("--directory", "--project", "--loglevel"),
    )
)
"""Options of runners with a value, which is masked."""
_PYTHON_FLAGS = re.compile("-[bBdEiIOPqsSuv]+")
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_NAMES_PACKAGE = PACKAGE_OPTIONS | {"--spec"}
"""Options of runners whose value is a package."""
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
    if inner := _start_of_inner(plain_name, args):
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
    if name not in _RUNNERS:
        return set()
    shown, needs_word = set[int](), bool(_RUNNERS[name])
    words = iter(enumerate(args))
    for at, word in words:
        if word in _RUNNERS[name]:
            needs_word = False
            shown.add(at)
        elif word in _FLAGS or (name.startswith("python") and _PYTHON_FLAGS.fullmatch(word)):
            shown.add(at)
        elif word in _NAMES_PACKAGE | _WITH_VALUE:
            value_at, value = next(words, (at, ""))
            if word in _NAMES_PACKAGE and _PACKAGE.fullmatch(value):
                shown.add(value_at)
        elif needs_word:
            return set()
        elif "=" not in word or not word.startswith("--"):
            return shown | {at} if _PACKAGE.fullmatch(word) else shown
    return set() if needs_word else shown


def _start_of_inner(name: str, args: Sequence[str]) -> int:
    """Return where the runner is that `cmd /c` or `env` starts, 0 if there is none."""
    if name == "env":
        start = next((at for at, it in enumerate(args) if not _ASSIGNMENT.fullmatch(it)), 0)
    else:
        start = int(name == "cmd" and bool(args) and args[0].lower() == "/c")
    return start if args[start : start + 1] and args[start] in _RUNNERS else 0
