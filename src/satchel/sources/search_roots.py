"""Places: the folders that are searched, whom they belong to, and which wins."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from satchel.errors import DefinitionError
from satchel.sources.plugin_formats import TOOLKIT, FormatPolicy

_OWN_PLUGINS = ".satchel/plugins"


class Precedence(IntEnum):
    """How near a source is to the user's own words; of two equal names the nearer wins."""

    EXPLICIT = 0
    PROJECT = 1
    USER = 2
    PLUGIN = 3
    BUNDLED = 4
    REMOTE = 5


class RootKind(StrEnum):
    """What a place is searched for."""

    SKILLS = "skills"
    PLUGINS = "plugins"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRoot:
    """One folder to search; `source` is what people and diagnostics call it.

    The path is absolute but not resolved, so that a link in it may be switched while we watch.
    """

    path: str
    holds: RootKind
    scope: Precedence
    source: str
    optional: bool = False
    """Whether it may be missing without a word."""
    groups: tuple[str, ...] = ()
    """The groups that the skills found there belong to."""
    within: str = ""
    """The plugin that it is a part of: links may lead anywhere in it, and nowhere else."""
    policy: FormatPolicy = TOOLKIT
    """That of the plugin that it is a part of."""
    follows_links_out: bool = False
    """Whether links that lie directly in it may lead anywhere: its owner made them."""


def search_root(
    path: str | os.PathLike[str], holds: RootKind, scope: Precedence = Precedence.EXPLICIT
) -> SearchRoot:
    """Make a place of a path as the user wrote it; `~` is the user's home.

    Raises `DefinitionError` for an empty path, which would quietly mean the current folder.
    """
    written = os.fspath(path)
    if not written.strip():
        raise DefinitionError(f"a folder of {holds} has an empty path", fix="use '.' for this one")
    tidy = written.rstrip("/") or "/"
    path = _absolute(os.path.expanduser(written))
    return SearchRoot(
        path=path, holds=holds, scope=scope, source=tidy, follows_links_out=path == own_plugins()
    )


def skills_of_plugin(
    folder: str, plugin: str, policy: FormatPolicy, source: str = ""
) -> SearchRoot:
    """Return a folder with skills of the plugin whose folder is `plugin`."""
    return SearchRoot(
        path=folder,
        holds=RootKind.SKILLS,
        scope=Precedence.PLUGIN,
        source=source,
        optional=True,
        within=plugin if policy.is_contained else "",
        policy=policy,
    )


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise DefinitionError(
            f"{path!r} lies below the current folder, which was deleted",
            fix="change to a folder that exists",
        ) from None


def conventional_roots(
    project: str | os.PathLike[str] | None = None, *, claude: bool = False
) -> tuple[SearchRoot, ...]:
    """Return the places that are searched when the user names none.

    Those under the user's home always; those of `project` only when it is given, because
    a folder that somebody else wrote may bring code. `claude` adds `.claude/skills`.
    """
    found: list[SearchRoot] = []
    if project is not None:
        found += _under(_absolute(os.fspath(project)), Precedence.PROJECT, "", claude=claude)
    found += _under(os.path.expanduser("~"), Precedence.USER, "~/", claude=claude)
    first: dict[tuple[str, RootKind], SearchRoot] = {}
    for item in found:
        first.setdefault((item.path, item.holds), item)
    return tuple(first.values())


def own_plugins() -> str:
    """Return the folder that `satchel install` puts plugins into, whether it exists or not."""
    return os.path.join(os.path.expanduser("~"), *_OWN_PLUGINS.split("/"))


def _under(base: str, scope: Precedence, shown: str, *, claude: bool) -> Iterable[SearchRoot]:
    for relative, holds in (
        ("skills", RootKind.SKILLS),
        (".agents/skills", RootKind.SKILLS),
        (".satchel/skills", RootKind.SKILLS),
        *(((".claude/skills", RootKind.SKILLS),) if claude else ()),
        ("plugins", RootKind.PLUGINS),
        (_OWN_PLUGINS, RootKind.PLUGINS),
    ):
        path = os.path.join(base, *relative.split("/"))
        yield SearchRoot(
            path=path,
            holds=holds,
            scope=scope,
            source=shown + relative,
            optional=True,
            follows_links_out=path == own_plugins(),
        )
