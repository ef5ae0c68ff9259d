"""What may be a name, and what a mistyped name may have meant."""

import difflib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from satchel.errors import DefinitionError
from satchel.text import one_line

_SKILL_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_PLUGIN_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")

SKILL_NAME_LENGTH = 64
"""Longest skill name of the Agent Skills format, in characters."""

ACCEPTED_NAME_LENGTH = 256
"""Longest name that loads at all; real folders stay far below it."""

BASIC_GROUP = "basic"
"""The name of the group that is always active; no plugin or group may take it."""


SESSION_TOOLS = frozenset(
    {
        *("reset_equipped_tools", "load_skill", "read_skill_file", "run_skill_script"),
        *("search_tools", "search_skills", "view_task", "wait_task", "cancel_task"),
    }
)
"""The names of the tools that sessions offer themselves; another tool may take their place."""


@dataclass(frozen=True, slots=True)
class NamePatterns:
    """Names that are enabled or disabled by patterns.

    A pattern is a name, or a glob such as `read_*` with `*`, `?` and `[...]`. Case matters.
    """

    enable: tuple[str, ...] | None = None
    """Only what fits one of these is enabled; `None` enables every name."""
    disable: tuple[str, ...] = ()
    """What fits one of these is disabled, whatever `enable` says."""

    @property
    def let_all(self) -> bool:
        """Tell whether every name is enabled."""
        return self.enable is None and not self.disable

    def lets(self, name: str) -> bool:
        """Tell whether a name is enabled."""
        return not fits(name, self.disable) and (self.enable is None or fits(name, self.enable))


def fits(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether a name fits one of some patterns; see `NamePatterns`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def skill_name_fault(name: str) -> str:
    """Say how a name breaks the Agent Skills format, or `""` if it keeps to it."""
    if len(name) > SKILL_NAME_LENGTH:
        return f"is {len(name)} characters long, the format allows {SKILL_NAME_LENGTH}"
    if not _SKILL_NAME.fullmatch(name):
        return "must be lowercase letters and digits joined by single hyphens"
    return ""


def composed(name: str) -> str:
    """Return a name in NFC: what looks the same however it was typed becomes the same."""
    return unicodedata.normalize("NFC", name)


def tidy_name(name: str) -> str:
    """Return a name as it is kept: composed, and a single blank for each run of white space."""
    return composed(" ".join(name.split()))


def unsafe_name_fault(name: str) -> str:
    """Say why a tidy name cannot be used even leniently, or `""` if it can.

    Refused are names that could pass for one of the format, for an option or for a path.
    """
    if not name.strip():
        return "is empty"
    if len(name) > ACCEPTED_NAME_LENGTH:
        return f"is {len(name)} characters long, at most {ACCEPTED_NAME_LENGTH} are accepted"
    if one_line(name) != name:
        return "contains control or invisible characters, or blanks that cannot be told apart"
    if _has_odd_part(name):
        return "has a part that is empty or starts with '.' or '-'"
    folded = unicodedata.normalize("NFKC", name)
    if folded != name and (not skill_name_fault(folded) or _has_odd_part(folded)):
        return "uses look-alike characters that fold to other letters"
    return ""


def _has_odd_part(name: str) -> bool:
    return any(not part or part[0] in ".-" for part in re.split(r"[/\\]", name))


def tool_name_fault(name: str) -> str:
    """Say why model providers would reject a tool name, or `""` if they accept it."""
    if _TOOL_NAME.fullmatch(name):
        return ""
    return (
        "must start with a letter or '_' and go on with letters, digits, '_' or '-', "
        "64 characters at most (some model providers reject anything else)"
    )


def plugin_name_fault(name: str) -> str:
    """Say why a name cannot be a plugin's or a group's, or `""` if it can."""
    if name == BASIC_GROUP:
        return "is kept for the group that is always active"
    if _PLUGIN_NAME.fullmatch(name):
        return ""
    return "must be at most 64 letters, digits, '.', '_' or '-', with a letter or digit at each end"


def group_names(given: Any) -> tuple[str, ...]:
    """Return the names of one group, of several, or of none, each once.

    Raises `DefinitionError` for what is no text.
    """
    named = (given,) if isinstance(given, str) else given or ()
    names = tuple(named) if isinstance(named, Iterable) else (named,)
    if not all(isinstance(name, str) for name in names):
        raise DefinitionError(f"a group is named by text, not by {given!r}")
    return tuple(dict.fromkeys(name for name in names if name))


def near_misses(name: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Return up to `most` known names that look like `name`, the likeliest first."""
    by_fold = {candidate.casefold(): candidate for candidate in sorted(known, reverse=True)}
    found = difflib.get_close_matches(name.casefold(), by_fold, n=most, cutoff=0.6)
    return tuple(by_fold[fold] for fold in found)
