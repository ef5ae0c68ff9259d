"""The patterns of `allowed-tools`, as authors of skills write them.

`Read`, `Bash(git:*)`, `mcp__server__tool`, `read_*`: a name in any case, with a condition in
parentheses.
Names of other clients stand for the built-in tools of Satchel that do the same.

A condition is about the only text argument of a call, read as one command of plain words. What
is not certain fits no condition.
"""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from satchel.files.contained_files import Bounds
from satchel.files.file_reader import real_path
from satchel.formats.skill_manifest import TOOL_PATTERN
from satchel.lazy_dataclass import dataclass
from satchel.tools.empty_mapping import NOTHING

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
FILE_TOOLS = _ALIASES["read"] | _ALIASES["edit"]
_ANYTHING = {"*", ":*"}
_DOMAIN = "domain:"

# A command has only signs that no shell gives a meaning. In `cmd`, quotes protect nothing.
_PLAIN = r"[A-Za-z0-9_@+:,./~-]"
_QUOTED = r"""'[^'\x00-\x1f\x7f]*'|"[^"$`\\!\x00-\x1f\x7f]*\""""
_PART = rf"[A-Za-z0-9_@+:,./~=-]{'' if sys.platform == 'win32' else f'|{_QUOTED}'}"
_WORD = re.compile(rf"(?:{_PART})+")
_COMMAND = re.compile(rf"{_PLAIN}+(?:[ \t]+(?:{_PART})+)*")  # no assignment in front

_ADDRESS = re.compile(
    r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::[0-9]{1,5})?(?:[/?#][^\s\\]*)?",
    re.ASCII | re.IGNORECASE,
)
# Several words: nothing that a tool could read as a host, as `localhost`, or append to an address.
_NO_ADDRESS = re.compile(r"""(?=\s*\S+\s+\S)(?:[\w\s,;!()'"-]|[.:?](?=\s|\Z))*""")

_SCHEME = re.compile(r"\s*(https?|wss?|ftps?|file|data|javascript):", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCall:
    """A call that patterns may allow."""

    names: frozenset[str]
    """All names of the tool, such as those of a server: `search`, `mcp__docs__search`."""
    arguments: Mapping[str, Any] = NOTHING
    folder: str | None = None
    """The working folder of a built-in file tool, whose `path` is the argument that counts."""


def allows(patterns: Iterable[str], call: WantedCall) -> bool:
    """Return whether one of the patterns allows a call."""
    return any(
        it is None or it in _ANYTHING or _fits(call, it) for it in conditions(patterns, call.names)
    )


def conditions(patterns: Iterable[str], names: frozenset[str]) -> list[str | None]:
    """Return the conditions of the patterns that mean a tool, `None` where one has none."""
    matches = filter(None, (TOOL_PATTERN.fullmatch(pattern.strip()) for pattern in patterns))
    return [
        match["condition"] and match["condition"].strip()
        for match in matches
        if any(fnmatchcase(name.lower(), match["name"].lower()) for name in names)
        or not names.isdisjoint(_ALIASES.get(match["name"].lower(), ()))
    ]


def _fits(call: WantedCall, condition: str) -> bool:
    if call.folder is not None:
        return _fits_path(call.folder, str(call.arguments.get("path", "")), condition)
    values = [it for it in call.arguments.values() if it and not isinstance(it, int | float)]
    texts = [it for it in values if isinstance(it, str)]
    if len(texts) < len(values):  # a list or an object may have anything in it
        return False
    if condition.startswith(_DOMAIN):
        return _fits_domain(texts, condition.removeprefix(_DOMAIN).strip().lower())
    command = texts[0].strip(" \t") if len(texts) == 1 else ""
    return bool(_COMMAND.fullmatch(command)) and _fits_words(_WORD.findall(command), condition)


def _fits_path(folder: str, path: str, condition: str) -> bool:
    """Return whether a path in a folder fits; a link counts as what it leads to."""
    base = Bounds(folder).root()
    try:
        target = os.path.relpath(real_path(os.path.join(base, path)), base)
    except ValueError:  # a null character, or another drive
        return False
    return fnmatchcase(target, os.path.normpath(condition))


def _fits_domain(texts: Sequence[str], domain: str) -> bool:
    """Return whether all texts are addresses of a domain, or no addresses at all."""
    addresses = [text for text in texts if not _NO_ADDRESS.fullmatch(text) or _has_scheme(text)]
    matches = [_ADDRESS.fullmatch(text) for text in addresses]
    return bool(matches) and all(it and fnmatchcase(it[1].lower(), domain) for it in matches)


def _has_scheme(text: str) -> bool:
    # URL parsers leave tabs and line breaks out.
    return _SCHEME.match(re.sub(r"[\t\r\n]", "", text)) is not None


def _fits_words(words: Sequence[str], condition: str) -> bool:
    """Return whether each word fits; more words may follow a `:*`, or a `*` at the end."""
    globs = re.sub(r":\*$", " *", condition).split()
    if globs[-1:] == ["*"]:
        globs.pop()
        words = words[: len(globs)]
    return bool(globs) and len(words) == len(globs) and all(map(_fits_word, words, globs))


def _fits_word(word: str, pattern: str) -> bool:
    if pattern in {"*", word}:
        return True
    # `docs/../secret` is not in `docs`, and quotes may hide the dots.
    is_quoted = "'" in word or '"' in word
    return not is_quoted and ".." not in word.split("/") and fnmatchcase(word, pattern)
