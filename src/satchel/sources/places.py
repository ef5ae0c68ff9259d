"""Places: the folders that are searched, whom they belong to, and which wins."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from satchel.errors import DefinitionError

_OWN_PLUGINS = ".satchel/plugins"


class Scope(IntEnum):
    """How near a source is to the user's own words; of two equal names the nearer wins."""

    EXPLICIT = 0
    PROJECT = 1
    USER = 2
    PLUGIN = 3
    BUNDLED = 4
    REMOTE = 5


class Holds(StrEnum):
    """What a place is searched for."""

    SKILLS = "skills"
    PLUGINS = "plugins"


@dataclass(frozen=True, slots=True)
class Place:
    """One folder to search; `source` is what people and diagnostics call it.

    The path is absolute but not resolved, so that a link in it may be switched while we watch.
    """

    path: str
    holds: Holds
    scope: Scope
    source: str
    optional: bool = False
    """Whether it may be missing without a word."""
    groups: tuple[str, ...] = ()
    """The groups that the skills found there belong to."""
    within: str = ""
    """The plugin that it is a part of: links may lead anywhere in it, and nowhere else."""
    is_open: bool = False
    """Whether it is the `skills` of an open plugin, held to the letter.

    Only folders directly in it are skills, and none that breaks the format.
    """
    follows_links_out: bool = False
    """Whether links that lie directly in it may lead anywhere: its owner made them."""


def place(path: str | os.PathLike[str], holds: Holds, scope: Scope = Scope.EXPLICIT) -> Place:
    """Make a place of a path as the user wrote it; `~` is the user's home.

    Raises `DefinitionError` for an empty path, which would quietly mean the current folder.
    """
    written = os.fspath(path)
    if not written.strip():
        raise DefinitionError(f"a folder of {holds} has an empty path", fix="use '.' for this one")
    tidy = written.rstrip("/") or "/"
    path = _absolute(os.path.expanduser(written))
    return Place(path, holds, scope, tidy, follows_links_out=path == own_plugins())


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise DefinitionError(
            f"{path!r} lies below the current folder, which was deleted",
            fix="change to a folder that exists",
        ) from None


def well_known_places(
    project: str | os.PathLike[str] | None = None, *, claude: bool = False
) -> tuple[Place, ...]:
    """Return the places that are searched when the user names none.

    Those under the user's home always; those of `project` only when it is given, because
    a folder that somebody else wrote may bring code. `claude` adds `.claude/skills`.
    """
    found: list[Place] = []
    if project is not None:
        found += _under(_absolute(os.fspath(project)), Scope.PROJECT, "", claude=claude)
    found += _under(os.path.expanduser("~"), Scope.USER, "~/", claude=claude)
    first: dict[tuple[str, Holds], Place] = {}
    for item in found:
        first.setdefault((item.path, item.holds), item)
    return tuple(first.values())


def own_plugins() -> str:
    """Return the folder that `satchel install` puts plugins into, whether it exists or not."""
    return os.path.join(os.path.expanduser("~"), *_OWN_PLUGINS.split("/"))


def _under(base: str, scope: Scope, shown: str, *, claude: bool) -> Iterable[Place]:
    for relative, holds in (
        ("skills", Holds.SKILLS),
        (".agents/skills", Holds.SKILLS),
        (".satchel/skills", Holds.SKILLS),
        *(((".claude/skills", Holds.SKILLS),) if claude else ()),
        ("plugins", Holds.PLUGINS),
        (_OWN_PLUGINS, Holds.PLUGINS),
    ):
        path = os.path.join(base, *relative.split("/"))
        yield Place(
            path,
            holds,
            scope,
            shown + relative,
            optional=True,
            follows_links_out=path == own_plugins(),
        )
