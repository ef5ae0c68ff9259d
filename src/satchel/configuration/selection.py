"""Which units are enabled and disabled by the `satchel.toml` of the user and of a project.

The project's file wins over the user's. Inside one file, a name wins over a source or a glob, and
`enable` over `disable`. Units that no file mentions keep their default. A plugin that any file
disables stays disabled.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import translate
from shlex import quote
from typing import Any

from satchel.configuration.configuration import ProjectLayer, config_folder
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.files.file_reader import Stamp, StampedPath, real_path
from satchel.lazy_dataclass import dataclass
from satchel.names import BASIC_GROUP, composed
from satchel.sources.search_roots import (
    Precedence,
    RootKind,
    ScriptRule,
    SearchRoot,
    search_root,
)

SELECTION_FILE = "satchel.toml"
KINDS = ("skill", "tool", "group", "plugin")
_UNREADABLE = frozenset({"choices-unreadable", "mcp-invalid"})
DECISIVE = frozenset({"disable", "mcp"})
"""The keys without which it is not known which code the user does not want, and whose it is."""
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class SelectionPatterns:
    """The patterns of one key: names, addresses, sources or globs, of one kind or of all."""

    texts: tuple[str, ...] = ()
    _exact: Mapping[tuple[str, str], str] = field(init=False, compare=False, repr=False)
    _globs: tuple[tuple[str, re.Pattern[str], str], ...] = field(
        init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        parts = [(*_kind_and_text(pattern), pattern) for pattern in self.texts]
        # Compiled here, because the cache of `fnmatchcase` is limited.
        globs = tuple(
            (kind, re.compile(translate(text)), pattern)
            for kind, text, pattern in parts
            if _GLOB.search(text)
        )
        object.__setattr__(self, "_exact", {(kind, text): pattern for kind, text, pattern in parts})
        object.__setattr__(self, "_globs", globs)

    def concerns(self, kind: str) -> bool:
        """Return whether a pattern may match units of this kind."""
        return any(_kind_and_text(pattern)[0] in {"", kind} for pattern in self.texts)

    @property
    def of_skills(self) -> "SelectionPatterns":
        """Return the patterns as far as they are for skills."""
        kinds = map(_kind_and_text, self.texts)
        return SelectionPatterns(
            tuple(f"skill:{text}" for kind, text in kinds if kind in {"", "skill"})
        )

    @property
    def without_skills(self) -> "SelectionPatterns":
        """Return the patterns as far as they are for other units than skills."""
        kinds = map(_kind_and_text, self.texts)
        return SelectionPatterns(
            tuple(
                f"{kind}:{text}"
                for named, text in kinds
                for kind in KINDS[1:]
                if named in {"", kind}
            )
        )

    def __or__(self, other: "SelectionPatterns") -> "SelectionPatterns":
        return SelectionPatterns((*self.texts, *other.texts))

    @property
    def beyond_skills(self) -> tuple[str, ...]:
        """Return the patterns that may match more than skills."""
        return tuple(text for text in self.texts if _kind_and_text(text)[0] != "skill")

    def match(self, kind: str, texts: Iterable[str]) -> str | None:
        """Return the pattern that matches one of the names of a unit."""
        texts = tuple(texts)
        return self.naming(kind, texts) or self.covering(kind, texts)

    def naming(self, kind: str, texts: Iterable[str]) -> str | None:
        """Return the pattern that equals one of these texts."""
        for named in ("", kind):
            for text in texts:
                if (pattern := self._exact.get((named, text))) is not None:
                    return pattern
        return None

    def covering(self, kind: str, texts: Sequence[str]) -> str | None:
        """Return the glob that matches one of these texts."""
        for named, glob, pattern in self._globs:
            if named in {"", kind} and any(map(glob.match, texts)):
                return pattern
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionFile:
    """One file as it was read, with the last good values while it is broken."""

    path: str
    scope: Precedence
    stamp: Stamp = field(default_factory=Stamp)
    enable: SelectionPatterns = field(default_factory=SelectionPatterns)
    disable: SelectionPatterns = field(default_factory=SelectionPatterns)
    config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, hash=False)
    """Configuration values by plugin; only in a project's file."""
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, hash=False)
    """MCP servers by name, as written."""
    first_skills: tuple[str, ...] = ()
    """Patterns of the skills that the prompt describes first if it cannot describe all."""
    limits: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Limits by name: how many folders are searched, and how long imports take; the user's only."""
    worker: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    """What `satchel worker` does without options, as written; the user's only."""
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    """Folders and installed plugins by the keys in `SOURCE_KEYS`, as written."""
    diagnostics: tuple[Diagnostic, ...] = ()
    digest: str = ""
    """The digest of the bytes that were read, valid or not; `""` if there are none."""
    unread: frozenset[str] = frozenset()
    """The keys that cannot be read, and of which no valid version is known."""

    @property
    def chooses(self) -> bool:
        """Return whether it enables or disables anything."""
        return bool(self.enable.texts or self.disable.texts)

    @property
    def roots(self) -> tuple[SearchRoot, ...]:
        """Return the folders that it names; relative paths are relative to the file."""
        base, is_project = os.path.dirname(self.path), self.scope is Precedence.PROJECT
        base = real_path(base) if is_project else base
        return tuple(
            replace(
                search_root(os.path.join(base, os.path.expanduser(folder)), holds, self.scope),
                source=folder.rstrip("/") or "/",
                within=base if is_project else "",
                project=base if is_project else "",
            )
            for holds in RootKind
            for folder in self.sources.get(holds, ())
        )

    @property
    def as_data(self) -> "SelectionFile":
        """Return the file with what concerns only skills: it starts and configures nothing."""
        return replace(
            self,
            enable=self.enable.of_skills,
            disable=self.disable.of_skills,
            config={},
            servers={},
        )

    @property
    def is_unreadable(self) -> bool:
        """Return whether the file cannot be read, so that the last good values are used."""
        return any(item.code in _UNREADABLE for item in self.diagnostics)

    @property
    def hides_choices(self) -> bool:
        """Return whether it is not known what it disables or declares."""
        return not self.unread.isdisjoint(DECISIVE)

    def verdict(self, kind: str, texts: tuple[str, ...]) -> "SelectionMatch | None":
        """Return the matching pattern for a unit: an exact one wins over a glob or source."""
        names = (texts[0], *(text for text in texts if ":" in text))
        for is_on, patterns in ((True, self.enable), (False, self.disable)):
            if pattern := patterns.naming(kind, names):
                return SelectionMatch(is_on, self, pattern)
        for is_on, patterns in ((True, self.enable), (False, self.disable)):
            if pattern := patterns.match(kind, texts):
                return SelectionMatch(is_on, self, pattern)
        return None

    @property
    def option(self) -> str:
        """Return the command-line option that selects this file."""
        return " --project" if self.scope is Precedence.PROJECT else ""


@dataclass(frozen=True, slots=True)
class SelectionMatch:
    """Whether a file enables or disables a unit, and the pattern that decides."""

    is_on: bool
    file: SelectionFile
    pattern: str


@dataclass(frozen=True, slots=True)
class Selection:
    """The files in use, the one with the highest precedence first."""

    files: tuple[SelectionFile, ...] = ()

    @property
    def chooses(self) -> bool:
        """Return whether any file enables or disables anything; usually none does."""
        return any(file.chooses for file in self.files)

    @property
    def stamps(self) -> tuple[StampedPath, ...]:
        """Return the files with their stamps, which change when a file does."""
        return tuple((file.path, file.stamp) for file in self.files)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of all files."""
        return tuple(item for file in self.files for item in file.diagnostics)

    def layer(self, plugin: str) -> ProjectLayer:
        """Return a project's configuration values for a plugin."""
        for file in self.files:
            if values := file.config.get(plugin):
                return ProjectLayer(file.path, values)
        return ProjectLayer()

    @property
    def servers(self) -> dict[str, tuple[SelectionFile, Mapping[str, Any]]]:
        """Return the MCP servers by name, each with its file; the first file wins."""
        return {
            name: (file, table)
            for file in reversed(self.files)
            for name, table in file.servers.items()
        }

    @property
    def first_skills(self) -> tuple[str, ...]:
        """Return patterns of the skills that come first if not all can be described."""
        return tuple(name for file in self.files for name in file.first_skills)

    @property
    def limits(self) -> Mapping[str, Any]:
        """Return the limits that the user sets, by name."""
        return {name: value for file in self.files for name, value in file.limits.items()}

    def verdict(self, kind: str, texts: Iterable[str]) -> SelectionMatch | None:
        """Return the match of the first file that mentions a unit, `None` if none does.

        `texts` are all names of the unit: its name, its addresses and its source.
        """
        texts = tuple(texts)
        matches = [match for file in self.files if (match := file.verdict(kind, texts))]
        if kind == "plugin":
            # A project must not enable code that the user has disabled.
            matches.sort(key=lambda match: match.is_on)
        return next(iter(matches), None)

    def disabled(self, kind: str, name: str, texts: Iterable[str] = ()) -> Diagnostic | None:
        """Return a diagnostic if a unit is disabled; `texts` are its other names."""
        match = self.verdict(kind, (name, *texts))
        if match is None or match.is_on or (kind, name) == ("group", BASIC_GROUP):
            return None
        return make_diagnostic(
            "disabled",
            Where(match.file.path),
            f"{kind} {name!r} is disabled by disable = [{match.pattern!r}]",
            f"satchel enable {quote(name)}{match.file.option}",
        )

    def allows_tool(self, source: str, tool: str) -> bool:
        """Return whether a tool is not disabled, by itself or with its plugin or server."""
        return self.disabled("tool", tool, (f"{source}:{tool}", source)) is None

    def withheld(self, unit: str) -> Diagnostic | None:
        """Return a diagnostic while it is not known whether a plugin or server is disabled."""
        file = next((file for file in self.files if file.hides_choices), None)
        if file is None:
            return None
        return make_diagnostic(
            "choices-held",
            Where(file.path),
            f"{unit} is not used: {SELECTION_FILE} cannot be read, so it is not known which "
            "plugins and servers are disabled",
            f"correct {SELECTION_FILE}",
        )

    def ruled(self, root: SearchRoot) -> SearchRoot:
        """Return a search root; no scripts run while it is not known which skills are disabled."""
        is_unknown = any(file.hides_choices for file in self.files)
        return replace(root, scripts=ScriptRule.NEVER) if is_unknown else root


def tool_pattern(pattern: str) -> str:
    """Return a pattern of tools as one that counts for no other kind."""
    return pattern if pattern.startswith("tool:") else f"tool:{pattern}"


def tool_filter(enable: Iterable[str] | None, disable: Iterable[str]) -> Callable[..., bool]:
    """Return whether patterns enable the tool of some names; all tools if `enable` is `None`.

    Servers may have tools such as `group:delete`, so no other kind than `tool:` is split off.
    """
    enabled = None if enable is None else SelectionPatterns(tuple(map(tool_pattern, enable)))
    disabled = SelectionPatterns(tuple(map(tool_pattern, disable)))

    def accepts(*texts: str) -> bool:
        names = tuple(map(composed, texts))
        if disabled.match("tool", names):
            return False
        return enabled is None or enabled.match("tool", names) is not None

    return accepts


def is_glob(pattern: str) -> bool:
    """Return whether a pattern has wildcards."""
    return _GLOB.search(pattern) is not None


def selection_path(folder: str = "") -> str:
    """Return the path of the user's file, which may not exist."""
    return os.path.join(folder or config_folder(), SELECTION_FILE)


def project_selection_path(project: str | os.PathLike[str]) -> str:
    """Return the absolute path of a project's file.

    Raises `DefinitionError` for an empty path, which would otherwise mean the current folder.
    """
    if not os.fspath(project).strip():
        raise DefinitionError("the project has an empty path", fix="use '.' for this one")
    return os.path.join(
        search_root(project, RootKind.SKILLS, Precedence.PROJECT).path, SELECTION_FILE
    )


def _kind_and_text(pattern: str) -> tuple[str, str]:
    """Split a pattern: `tool:delete_*` is for one kind, `acme:pdf` for all."""
    kind, colon, rest = pattern.partition(":")
    # Names are stored in composed Unicode form.
    return (kind, composed(rest)) if colon and kind in KINDS else ("", composed(pattern))
