"""Read which units are enabled and disabled in the `satchel.toml` of the user or of a project.

The project's file wins over the user's. Inside one file, a name wins over a source or a glob, and
`enable` over `disable`. Units that no file mentions keep their default. A plugin that any file
disables stays disabled.
"""

import math
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import translate
from functools import partial
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.names import BASIC_GROUP, composed, near_misses
from satchel.settings import KIB, Limits
from satchel.sources.configuration import ProjectLayer, config_folder
from satchel.sources.file_reader import (
    Stamp,
    StampedPath,
    UnreadableFileError,
    digest_of,
    read_regular,
    real_path,
)
from satchel.sources.open_folder import read_inside
from satchel.sources.projects import SERVERS_FILE
from satchel.sources.search_roots import Precedence, RootKind, SearchRoot, search_root
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    from satchel.formats.mcp_json import McpServerManifest

SELECTION_FILE = "satchel.toml"
SELECTION_LIMIT = 256 * KIB
"""Largest file that is read, in bytes."""
KEYS = ("enable", "disable")
CONFIG = "config"
"""The key of the table with configuration values of plugins, in a project's file."""
SKILLS, FIRST = "skills", "first"
"""The key of the table about the skill prompt; its only key is `first`."""
FIND_FOLDERS = "find_folders"
"""The key of the number of folders to search, in the user's file."""
PLUGIN_IMPORT = "plugin_import"
"""The key of the processor time that importing a plugin may take, in the user's file."""
_LIMITS = (FIND_FOLDERS, PLUGIN_IMPORT)
WORKER = "worker"
"""The key of the table of `satchel worker`, in the user's file."""
_OWN_KEYS = (*_LIMITS, WORKER)
SOURCES = "sources"
"""The key of the table with folders and installed plugins to read."""
SOURCE_KEYS = ("skills", "plugins", "entry-points")
"""Its keys; a project's file has only the first, because code needs the user's trust."""
_LISTS = MappingProxyType({SKILLS: (FIRST,), SOURCES: SOURCE_KEYS})
"""The tables whose values are lists of texts, with their keys."""
MCP = "mcp"
"""The key of the table with MCP servers."""
KINDS = ("skill", "tool", "group", "plugin")
_UNREADABLE = frozenset({"choices-unreadable", "mcp-invalid"})
_GLOB = re.compile(r"[*?\[]")
_TOML_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


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
            f"{kind} {name!r} is switched off by disable = [{match.pattern!r}]",
            f"satchel enable {quote(name)}{match.file.option}",
        )


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


def read_selection(
    user: str, project: str = "", before: Selection | None = None, patience: float = 0.0
) -> Selection:
    """Read the user's file and, if given, the project's, with the `.mcp.json` beside it.

    While a file is broken, its last good values in `before` are used. A file that became empty or
    broken less than `patience` seconds ago may be half written, and counts as unchanged.
    """
    previous = {file.path: file for file in before.files} if before else {}
    scopes = {user: Precedence.USER}
    if project and os.path.realpath(project) != os.path.realpath(user):
        servers = os.path.join(os.path.dirname(project), SERVERS_FILE)
        scopes = {project: Precedence.PROJECT, servers: Precedence.PROJECT, **scopes}
    return Selection(
        tuple(_read(path, scope, previous.get(path), patience) for path, scope in scopes.items())
    )


def parse_selection(path: str, scope: Precedence, data: bytes) -> SelectionFile:
    """Parse the content of a file; errors are in its diagnostics."""
    return _parsed(SelectionFile(path=path, scope=scope), None, data)


def _read(
    path: str, scope: Precedence, before: SelectionFile | None, patience: float
) -> SelectionFile:
    # Stamped first: a file that changes while it is read is read again.
    stamp = Stamp.at(path)
    empty = SelectionFile(path=path, scope=scope, stamp=stamp)
    if not os.path.lexists(path):
        return empty
    is_projects = scope is Precedence.PROJECT
    root = os.path.realpath(os.path.dirname(path)) if is_projects else ""
    has_servers = os.path.basename(path) == SERVERS_FILE
    parse, broken = (_parsed_servers, _broken_servers) if has_servers else (_parsed, _broken)
    try:
        read = partial(read_inside, root=root) if root else read_regular
        data, status = read(path, SELECTION_LIMIT)
    except UnreadableFileError as error:
        return broken(empty, before, str(error))
    if before is not None and before.digest == digest_of(data):
        return replace(before, stamp=stamp)
    parsed = parse(replace(empty, digest=digest_of(data)), before, data)
    is_recent = abs(time.time() - status.st_mtime) < patience
    if before is not None and is_recent and (parsed.is_unreadable or not data):
        # With its old stamp, so that it is read again at the next heartbeat.
        return before
    return parsed


def _parsed(empty: SelectionFile, before: SelectionFile | None, data: bytes) -> SelectionFile:
    if len(data) > SELECTION_LIMIT:
        return _broken(empty, before, f"it is larger than {SELECTION_LIMIT} bytes")
    # Lazy: most users have no such file.
    import tomllib

    try:
        text = data.decode("utf-8-sig")
        table = tomllib.loads(text)
    except UnicodeDecodeError:
        return _broken(empty, before, "it is not UTF-8")
    except tomllib.TOMLDecodeError as error:
        reason, position = _TOML_POSITION.sub("", str(error)), _TOML_POSITION.search(str(error))
        end = (text.count("\n") + 1, None)
        line, column = position.groups() if position and position[1] else end
        message = f"it is not TOML: {shorten(one_line(reason), 200)}"
        return _broken(empty, before, message, int(line), int(column) if column else None)
    except RecursionError:
        return _broken(empty, before, "it is nested too deeply")
    keys = (
        *KEYS,
        SOURCES,
        MCP,
        SKILLS,
        *([CONFIG] if empty.scope is Precedence.PROJECT else _OWN_KEYS),
    )
    for key in keys:
        if fault := _fault(key, table, empty.scope):
            return _broken(empty, before, f"{key!r} {fault}", _line_of(key, text))
    enable, disable = (SelectionPatterns(tuple(table.get(key, ()))) for key in KEYS)
    unknown = [_unknown(empty.path, key, text, keys) for key in table if key not in keys]
    for name, known in _LISTS.items():
        below = (key for key in table.get(name, {}) if key not in known)
        unknown += [_unknown(empty.path, key, text, known, name) for key in below]
    config = table.get(CONFIG, {}) if CONFIG in keys else {}
    return replace(
        empty,
        enable=enable,
        disable=disable,
        config=config,
        servers=table.get(MCP, {}),
        first_skills=tuple(table.get(SKILLS, {}).get(FIRST, ())),
        sources=table.get(SOURCES, {}),
        worker=table.get(WORKER, {}) if WORKER in keys else {},
        limits={name: table[name] for name in _LIMITS if name in keys and name in table},
        diagnostics=tuple(unknown),
    )


def _parsed_servers(
    empty: SelectionFile, before: SelectionFile | None, data: bytes
) -> SelectionFile:
    """Read a project's `.mcp.json`; its commands run in the project's folder."""
    from satchel.formats.server_entries import read_claude_servers  # lazy: few projects have it

    if len(data) > SELECTION_LIMIT:
        return _broken_servers(empty, before, f"it is larger than {SELECTION_LIMIT} bytes")
    folder = os.path.dirname(empty.path)
    folders = {
        **dict.fromkeys(("workspaceFolder", "CLAUDE_PROJECT_DIR"), folder),
        "workspaceFolderBasename": os.path.basename(folder),
        "userHome": os.path.expanduser("~"),
    }
    reading = read_claude_servers(data, empty.path, Limits(), folders)
    if reading.value is None:
        return _broken_servers(empty, before, reading.diagnostics[0].message)
    servers = {server.name: _server_table(server, folder) for server in reading.value}
    return replace(empty, servers=servers, diagnostics=reading.diagnostics)


def _broken_servers(
    empty: SelectionFile, before: SelectionFile | None, reason: str
) -> SelectionFile:
    """Return the file with its last good servers and a diagnostic."""
    last_good = replace(before, stamp=empty.stamp, digest=empty.digest) if before else empty
    fix = 'write {"mcpServers": {"NAME": {...}}}'
    problem = make_diagnostic("mcp-invalid", Where(empty.path), f"cannot be read: {reason}", fix)
    return replace(last_good, diagnostics=(problem,))


def _server_table(server: "McpServerManifest", folder: str) -> dict[str, Any]:
    """Return a server as a table of a satchel.toml."""
    table: dict[str, Any]
    if server.transport == "stdio":
        table = {"command": server.command, "args": [*server.args], "env": {**server.env}}
        table |= {"cwd": os.path.join(folder, server.cwd), "env-file": server.env_file}
    else:
        table = {"url": server.url, "headers": {**server.headers}}
        table["transport"] = "sse" if server.transport == "sse" else None
        oauth = {"client-id": server.client_id, "redirect": server.redirect}
        oauth = {key: value for key, value in oauth.items() if value}
        table["oauth"] = {**oauth, **({"scopes": [*server.scopes]} if server.scopes else {})}
    limits = {"timeout": server.timeout, "startup-timeout": server.startup_timeout}
    table |= {**limits, "disable": [*server.disable]}
    chosen = {} if server.enable is None else {"enable": [*server.enable]}
    needed = ("command", "args", "env", "url", "headers")
    return {key: value for key, value in table.items() if value or key in needed} | chosen


def _fault(key: str, table: Mapping[str, Any], scope: Precedence) -> str:
    """Return what is wrong with the value of a key, or `""`."""
    if key in _LISTS:
        return _lists_fault(key, table.get(key, {}), scope)
    if key in KEYS:
        return "" if _is_list_of_texts(table.get(key, [])) else "is not a list of texts"
    if key == FIND_FOLDERS:
        number = table.get(key, 1)
        is_valid = isinstance(number, int) and not isinstance(number, bool) and number > 0
        return "" if is_valid else "is not a positive number"
    if key == PLUGIN_IMPORT:
        seconds = table.get(key, 1)
        is_valid = type(seconds) in {int, float} and 0 < seconds < math.inf
        return "" if is_valid else "is not a number of seconds above 0"
    if key == WORKER:
        return "" if isinstance(table.get(key, {}), dict) else "is not a table"
    tables = table.get(key, {})
    is_valid = isinstance(tables, dict) and all(isinstance(v, dict) for v in tables.values())
    owners = "plugins'" if key == CONFIG else "servers'"
    return "" if is_valid else f"is not a table of the {owners} tables"


def _lists_fault(table: str, value: object, scope: Precedence) -> str:
    """Return what is wrong with a table of lists, or `""`; unknown keys are only reported."""
    if not isinstance(value, dict):
        return "is not a table"
    known = _LISTS[table]
    if table == SOURCES and scope is Precedence.PROJECT and value.keys() & set(known[1:]):
        return "may only have 'skills' in a project: plugins are code, which only the user enables"
    for key in known:
        texts = value.get(key, [])
        if not _is_list_of_texts(texts):
            return f"has {key!r}, which is not a list of texts"
        if table == SOURCES and not all(map(str.strip, texts)):
            return f"has {key!r} with an empty name"
        if table == SOURCES and any("\0" in text for text in texts):
            return f"has {key!r} with a null byte"
    return ""


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _broken(
    empty: SelectionFile,
    before: SelectionFile | None,
    reason: str,
    line: int | None = None,
    column: int | None = None,
) -> SelectionFile:
    """Return the file with its last good values and a diagnostic."""
    last_good = before or empty
    values = (
        last_good.config,
        last_good.servers,
        last_good.first_skills,
        last_good.limits,
        last_good.sources,
    )
    has_values = last_good.chooses or any(values)
    kept = "; its last good version stays in use" if has_values else ""
    error = make_diagnostic(
        "choices-unreadable",
        Where(empty.path, line, column),
        f"the choices cannot be read: {reason}{kept}",
        'correct it; it may say enable = ["NAME"] and disable = ["NAME"], '
        'first = ["NAME"] below [skills], skills = ["FOLDER"] below [sources], '
        "and KEY = VALUE below [mcp.SERVER]"
        + (" and [config.PLUGIN]" if empty.scope is Precedence.PROJECT else ""),
    )
    return replace(last_good, stamp=empty.stamp, digest=empty.digest, diagnostics=(error,))


def _unknown(path: str, key: str, text: str, keys: Sequence[str], table: str = "") -> Diagnostic:
    """Report an unknown key at the top, or in a table."""
    below = f" below [{table}]" if table else ""
    near = near_misses(key, keys)
    return make_diagnostic(
        "choices-unknown",
        Where(path, _line_of(key, text)),
        f"the key {shorten(one_line(key), 100)!r}{below} is unknown",
        f"did you mean {near[0]!r}?" if near else f"the keys are {_listed(keys)}",
    )


def _listed(keys: Sequence[str]) -> str:
    *others, last = keys
    return f"{', '.join(others)} and {last}" if others else last


def _line_of(key: str, text: str) -> int | None:
    """Return the line of a top-level key, if a simple search finds it."""
    pattern = rf"""^[ \t]*\[{{0,2}}[ \t]*["']?{re.escape(key)}["']?[ \t]*[.=\]]"""
    match = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else None


def _kind_and_text(pattern: str) -> tuple[str, str]:
    """Split a pattern: `tool:delete_*` is for one kind, `acme:pdf` for all."""
    kind, colon, rest = pattern.partition(":")
    # Names are stored in composed Unicode form.
    return (kind, composed(rest)) if colon and kind in KINDS else ("", composed(pattern))
