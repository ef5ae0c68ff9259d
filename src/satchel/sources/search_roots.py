"""The folders that are searched for skills and plugins, with their precedence."""

import os
from collections.abc import Iterable
from enum import IntEnum, StrEnum

from satchel.errors import DefinitionError
from satchel.files.file_reader import is_inside, real_path
from satchel.lazy_dataclass import dataclass
from satchel.sources.plugin_formats import TOOLKIT, FormatPolicy
from satchel.text import shorten

_OWN_PLUGINS = ".satchel/plugins"


class Precedence(IntEnum):
    """The precedence of a source; of two equal names, the lower value wins."""

    EXPLICIT = 0
    PROJECT = 1
    USER = 2
    PLUGIN = 3
    BUNDLED = 4
    REMOTE = 5


class RootKind(StrEnum):
    """What a search root contains."""

    SKILLS = "skills"
    PLUGINS = "plugins"
    COMMANDS = "commands"


class ScriptRule(StrEnum):
    """Whether scripts of skills may be run, if the host lets a session run scripts."""

    RUN = "run"
    COMPARE = "compare"
    """Only while the file has the content that the user trusted."""
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRoot:
    """One folder to search; `source` is its name in messages.

    The path is absolute but not resolved, so a link in it may be switched while it is watched.
    """

    path: str
    holds: RootKind
    scope: Precedence
    source: str
    optional: bool = False
    """Whether it may be missing, without a diagnostic."""
    groups: tuple[str, ...] = ()
    """The groups of the skills in it."""
    within: str = ""
    """The folder of its plugin or project, if links must stay inside that; `""` otherwise.

    That of a project is resolved once, when the root is made.
    """
    policy: FormatPolicy = TOOLKIT
    """The policy of the plugin that it belongs to."""
    visits_once: bool = False
    """Whether a link to a folder that was searched is left alone, as there may be many."""
    follows_links_out: bool = False
    """Whether links directly in it may lead to a skill or plugin anywhere: the user made them."""
    scripts: ScriptRule = ScriptRule.RUN
    """Whether scripts of its skills may be run."""
    project: str = ""
    """The resolved folder of its project, which it never leaves, also if a link replaces that.

    Repositories inside of it are left out.
    """

    @property
    def is_folder(self) -> bool:
        """Return whether it is a folder, and not the address of skills without one."""
        return os.path.isabs(self.path)

    def bounds(self) -> str:
        """Return the resolved folder that all its files must be inside."""
        real = real_path(self.within or self.path)
        return real if is_inside(real, self.project or real) else self.project


def search_root(
    path: str | os.PathLike[str], holds: RootKind, scope: Precedence = Precedence.EXPLICIT
) -> SearchRoot:
    """Return the search root of a path as the user wrote it; `~` is the user's home.

    Raises `DefinitionError` for an empty path, which would otherwise mean the current folder, and
    for one that no file can have.
    """
    text = os.fspath(path)
    if not _is_possible(text):
        raise DefinitionError(
            f"a folder of {holds} has a path that cannot exist: {shorten(repr(text), 100)}",
            fix="correct the path",
        )
    if not text.strip():
        raise DefinitionError(f"a folder of {holds} has an empty path", fix="use '.' for this one")
    source = text.rstrip("/") or "/"
    path = full_path(text)
    return SearchRoot(
        path=path,
        holds=holds,
        scope=scope,
        source=source,
        follows_links_out=_leads_out(path, holds, scope),
    )


def _is_possible(path: str) -> bool:
    """Return whether the system takes a path: a null byte or half a character is an error."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def skills_of_plugin(
    folder: str,
    plugin: str,
    policy: FormatPolicy,
    source: str = "",
    holds: RootKind = RootKind.SKILLS,
) -> SearchRoot:
    """Return the search root of a folder of skills or commands of the plugin in `plugin`."""
    return SearchRoot(
        path=folder,
        holds=holds,
        scope=Precedence.PLUGIN,
        source=source,
        optional=True,
        within=plugin if policy.is_contained else "",
        policy=policy,
    )


def full_path(path: str | os.PathLike[str]) -> str:
    """Return the absolute path of a path as a user wrote it; `~` is the user's home."""
    return _absolute(os.path.expanduser(os.fspath(path)))


def home_path(path: str) -> str:
    """Return a path relative to `~`, where possible."""
    home = os.path.expanduser("~")
    return f"~{path.removeprefix(home)}" if path.startswith(f"{home}{os.sep}") else path


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise DefinitionError(
            f"{path!r} is below the current folder, which was deleted",
            fix="change to a folder that exists",
        ) from None


def conventional_roots(
    project: str | os.PathLike[str] | None = None, *, claude: bool = False
) -> tuple[SearchRoot, ...]:
    """Return the search roots that are used if the user names none.

    Folders in the user's home are always searched, also if `project` is the home. Those of
    `project` are searched only if it is given, because a project written by others may contain
    code. `claude` adds `.claude/skills`.
    """
    of_project = () if project is None else roots_in_project(project, claude=claude)
    own = _roots_in(os.path.expanduser("~"), Precedence.USER, "~/", claude=claude)
    return distinct_roots((*of_project, *own))


def roots_in_project(
    project: str | os.PathLike[str], *, claude: bool = False
) -> tuple[SearchRoot, ...]:
    """Return the search roots of a project, also those that are the user's own folders as well."""
    base = real_path(_absolute(os.fspath(project)))
    return tuple(_roots_in(base, Precedence.PROJECT, "", claude=claude))


def distinct_roots(roots: Iterable[SearchRoot]) -> tuple[SearchRoot, ...]:
    """Keep one search root of each folder: the first of the user's own, else the first."""
    chosen: dict[tuple[str, RootKind], SearchRoot] = {}
    for root in roots:
        first = chosen.setdefault((root.path, root.holds), root)
        if first.scope is Precedence.PROJECT and root.scope is not Precedence.PROJECT:
            chosen[root.path, root.holds] = root
    return tuple(chosen.values())


def own_plugins() -> str:
    """Return the folder into which `satchel install` puts plugins; it may not exist."""
    return os.path.join(os.path.expanduser("~"), *_OWN_PLUGINS.split("/"))


def _leads_out(path: str, holds: RootKind, scope: Precedence) -> bool:
    """Return whether links directly in a root may lead anywhere: the user made them."""
    is_users = scope is not Precedence.PROJECT
    return path == own_plugins() or (holds is RootKind.SKILLS and is_users)


def _roots_in(base: str, scope: Precedence, shown: str, *, claude: bool) -> Iterable[SearchRoot]:
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
            within=base if scope is Precedence.PROJECT else "",
            project=base if scope is Precedence.PROJECT else "",
            follows_links_out=_leads_out(path, holds, scope),
        )
