"""Rules for names, and suggestions for mistyped ones."""

import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Any

from satchel.errors import DefinitionError, NotFoundError
from satchel.mixed_scripts import mixes_scripts, unstyled
from satchel.text import escaped, one_line

_SKILL_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
PLUGIN_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")

SKILL_NAME_LENGTH = 64
"""Longest skill name of the Agent Skills format, in characters."""

ACCEPTED_NAME_LENGTH = 256
"""Longest name that is accepted; real names are far shorter."""

BASIC_GROUP = "basic"
"""The group that is always active; no plugin or other group may have this name."""


SESSION_TOOLS = frozenset(
    {
        *("reset_equipped_tools", "load_skill", "read_skill_file", "run_skill_script"),
        *("search_tools", "activate_tools", "search_skills"),
        *("view_task", "wait_task", "cancel_task"),
    }
)
"""The names of the built-in tools of a session; another tool may replace them."""


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


_SESSION_TOOL_LETTERS = frozenset(map(_letters, SESSION_TOOLS))


def reads_like_session_tool(name: str) -> bool:
    """Return whether a name is that of a session's built-in tool, but for case, `_` and `-`."""
    return _letters(name) in _SESSION_TOOL_LETTERS


def skill_name_fault(name: str) -> str:
    """Return how a name breaks the Agent Skills format, or `""`."""
    if len(name) > SKILL_NAME_LENGTH:
        return f"is {len(name)} characters long, the format allows {SKILL_NAME_LENGTH}"
    if not _SKILL_NAME.fullmatch(name):
        return "must be lowercase letters from a to z and digits joined by single hyphens"
    return ""


def composed(name: str) -> str:
    """Return a name in NFC, so that names that look the same are equal."""
    return unicodedata.normalize("NFC", name)


def tidy_name(name: str) -> str:
    """Return a name in NFC with each run of white space replaced by one space."""
    return composed(" ".join(name.split()))


def unsafe_name_fault(name: str) -> str:
    """Return why a tidy name is refused even when loading leniently, or `""`.

    Refused are names that could be mistaken for another name, an option or a path.
    """
    if not name.strip():
        return "is empty"
    if len(name) > ACCEPTED_NAME_LENGTH:
        return f"is {len(name)} characters long, at most {ACCEPTED_NAME_LENGTH} are accepted"
    if one_line(name) != name:
        return "contains control or invisible characters, or extra spaces"
    if _has_odd_part(name):
        return "has a part that is empty or starts with '.' or '-'"
    return _look_alike_fault(name)


def _look_alike_fault(name: str) -> str:
    folded = unstyled(name)
    if folded != name and (not skill_name_fault(folded) or _has_odd_part(folded)):
        return f"uses look-alike characters that fold to other letters: it is {escaped(name)}"
    if mixes_scripts(name):
        return f"has letters that look like those of another alphabet: it is {escaped(name)}"
    return ""


def _has_odd_part(name: str) -> bool:
    return any(not part or part[0] in ".-" for part in re.split(r"[/\\]", name))


def tool_name_fault(name: str) -> str:
    """Return why model providers would reject a tool name, or `""`."""
    if TOOL_NAME.fullmatch(name):
        return ""
    return (
        "must start with a letter or '_' and continue with letters, digits, '_' or '-', "
        f"64 characters at most (some model providers reject anything else){_escapes(name)}"
    )


def plugin_name_fault(name: str) -> str:
    """Return why a name is invalid for a plugin or group, or `""`."""
    if name == BASIC_GROUP:
        return "is reserved for the group that is always active"
    if PLUGIN_NAME.fullmatch(name):
        return ""
    return (
        "must be at most 64 letters, digits, '.', '_' or '-', with a letter or digit at each end"
        f"{_escapes(name)}"
    )


def _escapes(name: str) -> str:
    """Return how a name is written, if a reader may take its letters for others."""
    return "" if name.isascii() else f"; it is {escaped(name)}"


def group_names(value: Any) -> tuple[str, ...]:
    """Normalize one group name, several or none to a tuple without duplicates.

    Raises `DefinitionError` for a name that is not a string.
    """
    items = (value,) if isinstance(value, str) else value or ()
    names = tuple(items) if isinstance(items, Iterable) else (items,)
    if not all(isinstance(name, str) for name in names):
        raise DefinitionError(f"the name of a group must be a string, not {value!r}")
    return tuple(dict.fromkeys(name for name in names if name))


def near_misses(
    name: str, names: Iterable[str], most: int = 3, *, cutoff: float = 0.6
) -> tuple[str, ...]:
    """Return up to `most` known names that are similar to `name`, the best match first.

    `cutoff` is the least similarity, from 0 to 1.
    """
    import difflib

    by_fold = {candidate.casefold(): candidate for candidate in sorted(names, reverse=True)}
    matches = difflib.get_close_matches(name.casefold(), by_fold, n=most, cutoff=cutoff)
    return tuple(by_fold[fold] for fold in matches)


def require_known(kind: str, name: str, names: Collection[str]) -> None:
    """Raise `NotFoundError`, with the near misses, if a name is not known."""
    if name not in names:
        raise NotFoundError(kind, name, near_misses(name, names))


_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def split_camel_case(text: str) -> str:
    """Insert spaces between the words of camelCase names."""
    return _HUMP.sub(" ", text)


def sentence_of(name: str) -> str:
    """Return a name in snake_case or camelCase as a sentence: `get_name` is "Get name."."""
    words = re.sub(r"[\W_]+", " ", split_camel_case(name)).strip().lower()
    return f"{words[:1].upper()}{words[1:]}." if words else ""
