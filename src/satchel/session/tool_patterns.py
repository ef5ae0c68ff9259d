"""The patterns of `allowed-tools`, as authors of skills write them.

`Read`, `Bash(git:*)`, `mcp__server__tool`, `read_*`: a name, with what its argument must match in
parentheses. Names of other clients stand for the built-in tools of Satchel that do the same.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from satchel.lazy_dataclass import dataclass
from satchel.tools.empty_mapping import NOTHING

_PATTERN = re.compile(r"(?P<name>[^\s()]+)(?:\((?P<inside>.*)\))?", re.DOTALL)
_SHELL = frozenset({"execute_shell_command", "run_skill_script"})
_ALIASES: Mapping[str, frozenset[str]] = {
    "read": frozenset({"view_text_file"}),
    "write": frozenset({"write_text_file"}),
    "edit": frozenset({"write_text_file", "insert_text_file"}),
    "multiedit": frozenset({"write_text_file", "insert_text_file"}),
    "bash": _SHELL,
    "shell": _SHELL,
    "python": frozenset({"execute_python_code"}),
}
"""Tools of Satchel by the names that other clients use, in lower case."""
_MAIN_ARGUMENTS = ("command", "path", "file_path", "url", "query")
_SEPARATORS = re.compile(r"\|\||&&|[;|&\n]")
_BLANKS = re.compile(r"[ \t]+")  # Of white space, a shell splits words only there.
# What a command may run or write besides its own name cannot be seen.
_HIDDEN = re.compile(r"[`<>\\]|\$[({]")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCall:
    """A call that patterns may allow."""

    names: frozenset[str]
    """All names of the tool, such as those of a server: `search`, `mcp__docs__search`."""
    arguments: Mapping[str, Any] = NOTHING
    is_shell: bool = False
    """Whether its main argument is a command line."""


def allows(patterns: Iterable[str], call: WantedCall) -> bool:
    """Return whether one of the patterns allows a call."""
    patterns = tuple(patterns)
    if call.is_shell:
        return _allows_command(patterns, call)
    return any(_allows(pattern, call) for pattern in patterns)


def _allows(pattern: str, call: WantedCall) -> bool:
    inside = _inside(pattern, call.names)
    if inside is None or inside in {"", "*", ":*"}:
        return inside is not None
    text = _main_argument(call.arguments)
    if text is None:
        return False
    if inside.startswith("domain:"):
        host = (urlsplit(text).hostname or "").lower()
        return fnmatchcase(host, inside.removeprefix("domain:").strip().lower())
    if inside.endswith(":*"):
        return text == inside[:-2] or text.startswith(inside[:-2])
    # `docs/../secret` is not in `docs`.
    return fnmatchcase(posixpath.normpath(text), posixpath.normpath(inside))


def _inside(pattern: str, names: frozenset[str]) -> str | None:
    """Return what a pattern says of the argument, `""` for anything; `None` for other tools."""
    match = _PATTERN.fullmatch(pattern.strip())
    if match is None:
        return None
    name = match["name"]
    is_meant = any(fnmatchcase(own, name) for own in names)
    if not is_meant and names.isdisjoint(_ALIASES.get(name.lower(), frozenset())):
        return None
    return (match["inside"] or "").strip()


def _allows_command(patterns: tuple[str, ...], call: WantedCall) -> bool:
    insides = [it for pattern in patterns if (it := _inside(pattern, call.names)) is not None]
    if not {"", "*", ":*"}.isdisjoint(insides):
        return True
    command = _main_argument(call.arguments)
    if command is None or not insides or _HIDDEN.search(command):
        return False
    parts = [_BLANKS.sub(" ", part).strip(" ") for part in _SEPARATORS.split(command)]
    return all(any(_fits_command(part, inside) for inside in insides) for part in parts if part)


def _fits_command(command: str, inside: str) -> bool:
    prefix = inside.removesuffix("*").removesuffix(":").rstrip() if inside.endswith("*") else None
    if prefix is not None and "*" not in prefix:
        return command == prefix or command.startswith(f"{prefix} ")
    return fnmatchcase(command, inside)


def _main_argument(arguments: Mapping[str, Any]) -> str | None:
    """Return the argument that a pattern is about; `None` if that is not certain."""
    for name in _MAIN_ARGUMENTS:
        if isinstance(value := arguments.get(name), str):
            return value
    texts = [value for value in arguments.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else None
