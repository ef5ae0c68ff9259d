"""Choices: what a user switched on and off, in the `satchel.toml` of a user or of a project.

The file of the project is nearer than the user's own and decides first; inside one file a name
counts before a source or a glob, and of equals `enable` before `disable`; what no file mentions
stays as it is. A plugin that any file switches off stays off.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from shlex import quote
from typing import Any

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.names import BASIC_GROUP, composed, near_misses
from satchel.settings import KIB
from satchel.sources.configuration import ProjectLayer, config_folder
from satchel.sources.file_reader import (
    Stamp,
    StampedPath,
    UnreadableFileError,
    digest_of,
    read_regular,
)
from satchel.sources.search_roots import Precedence, RootKind, search_root
from satchel.text import one_line, shorten

CHOICES_FILE = "satchel.toml"
CHOICES_LIMIT = 256 * KIB
"""Largest file that is read, in bytes."""
KEYS = ("enable", "disable")
CONFIG = "config"
"""The key of a project's file below which the values of plugins stand."""
MCP = "mcp"
"""The key below which the MCP servers of a user stand."""
KINDS = ("skill", "tool", "group", "plugin")
_GLOB = re.compile(r"[*?\[]")
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class SelectionPatterns:
    """The patterns of one key: a name, an address, a source or a glob, of one kind or of all."""

    written: tuple[str, ...] = ()
    _exact: Mapping[tuple[str, str], str] = field(init=False, compare=False, repr=False)
    _globs: tuple[tuple[str, re.Pattern[str], str], ...] = field(
        init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        parts = [(*_kind_and_text(pattern), pattern) for pattern in self.written]
        # Compiled here: `fnmatchcase` remembers only so many.
        globs = tuple(
            (kind, re.compile(translate(text)), written)
            for kind, text, written in parts
            if _GLOB.search(text)
        )
        object.__setattr__(self, "_exact", {(kind, text): written for kind, text, written in parts})
        object.__setattr__(self, "_globs", globs)

    def match(self, kind: str, texts: Iterable[str]) -> str | None:
        """Return the pattern that matches one of the texts that something answers to."""
        texts = tuple(texts)
        return self.naming(kind, texts) or self.covering(kind, texts)

    def naming(self, kind: str, texts: Iterable[str]) -> str | None:
        """Return the pattern that is one of these texts."""
        for named in ("", kind):
            for text in texts:
                if (written := self._exact.get((named, text))) is not None:
                    return written
        return None

    def covering(self, kind: str, texts: Sequence[str]) -> str | None:
        """Return the glob that one of these texts fits."""
        for named, glob, written in self._globs:
            if named in {"", kind} and any(map(glob.match, texts)):
                return written
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionFile:
    """One file as it was read, or as it last could be."""

    path: str
    scope: Precedence
    stamp: Stamp = field(default_factory=Stamp)
    enable: SelectionPatterns = field(default_factory=SelectionPatterns)
    disable: SelectionPatterns = field(default_factory=SelectionPatterns)
    config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, hash=False)
    """Values for plugins' configuration, by plugin; only a project has them here."""
    servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, hash=False)
    """MCP servers by name, as they are written."""
    diagnostics: tuple[Diagnostic, ...] = ()
    digest: str = ""
    """Names the bytes that were read, good or broken; `""` if there are none."""

    @property
    def chooses(self) -> bool:
        """Tell whether it switches anything on or off."""
        return bool(self.enable.written or self.disable.written)

    @property
    def is_unreadable(self) -> bool:
        """Tell whether there is a file that cannot be read, so that older choices go on."""
        return any(item.code == "choices-unreadable" for item in self.diagnostics)

    def verdict(self, kind: str, texts: tuple[str, ...]) -> "SelectionMatch | None":
        """Return what the file says of a thing: what names it counts before what covers it."""
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
        """Return what the command line needs to be told to write this file."""
        return " --project" if self.scope is Precedence.PROJECT else ""


@dataclass(frozen=True, slots=True)
class SelectionMatch:
    """What a file says of a thing, and the words with which it does."""

    is_on: bool
    file: SelectionFile
    pattern: str


@dataclass(frozen=True, slots=True)
class Selection:
    """The files that count, the nearest first."""

    files: tuple[SelectionFile, ...] = ()

    @property
    def chooses(self) -> bool:
        """Tell whether they switch anything on or off; mostly they do not."""
        return any(file.chooses for file in self.files)

    @property
    def stamps(self) -> tuple[StampedPath, ...]:
        """Return what `stamped` returns of the files while nothing changed."""
        return tuple((file.path, file.stamp) for file in self.files)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return what is wrong with the files."""
        return tuple(item for file in self.files for item in file.diagnostics)

    def layer(self, plugin: str) -> ProjectLayer:
        """Return what a project says of a plugin's configuration."""
        for file in self.files:
            if values := file.config.get(plugin):
                return ProjectLayer(file.path, values)
        return ProjectLayer()

    @property
    def servers(self) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """Return the MCP servers by name, each with its file; the nearest file counts."""
        return {
            name: (file.path, table)
            for file in reversed(self.files)
            for name, table in file.servers.items()
        }

    def verdict(self, kind: str, texts: Iterable[str]) -> SelectionMatch | None:
        """Return what the nearest file that mentions a thing says, `None` if none does.

        `texts` are the names that the thing answers to: its name, its addresses, its source.
        """
        texts = tuple(texts)
        found = [verdict for file in self.files if (verdict := file.verdict(kind, texts))]
        if kind == "plugin":
            # Whoever wrote a project must not have code run that its user switched off.
            found.sort(key=lambda verdict: verdict.is_on)
        return next(iter(found), None)

    def disabled(self, kind: str, name: str, texts: Iterable[str] = ()) -> Diagnostic | None:
        """Report that something is switched off, if it is; `texts` are its names beside `name`."""
        verdict = self.verdict(kind, (name, *texts))
        if verdict is None or verdict.is_on or (kind, name) == ("group", BASIC_GROUP):
            return None
        return make_diagnostic(
            "disabled",
            Where(verdict.file.path),
            f"{kind} {name!r} is switched off by disable = [{verdict.pattern!r}]",
            f"satchel enable {quote(name)}{verdict.file.option}",
        )


def selection_path(folder: str = "") -> str:
    """Return the user's own file, whether it exists or not."""
    return os.path.join(folder or config_folder(), CHOICES_FILE)


def project_selection_path(project: str | os.PathLike[str]) -> str:
    """Return the file of a project, wherever the current folder goes later.

    Raises `DefinitionError` for an empty path, which would quietly mean the current folder.
    """
    if not os.fspath(project).strip():
        raise DefinitionError("the project has an empty path", fix="use '.' for this one")
    return os.path.join(
        search_root(project, RootKind.SKILLS, Precedence.PROJECT).path, CHOICES_FILE
    )


def read_selection(
    user: str, project: str = "", before: Selection | None = None, patience: float = 0.0
) -> Selection:
    """Read the user's file and, where one is named, the project's.

    While a file is broken, its last good reading in `before` goes on. A file that became empty or
    broken less than `patience` seconds ago may be half written, and counts as unchanged.
    """
    known = {file.path: file for file in before.files} if before else {}
    scopes = {project: Precedence.PROJECT, user: Precedence.USER}
    if not project or os.path.realpath(project) == os.path.realpath(user):
        scopes = {user: Precedence.USER}
    return Selection(
        tuple(_read(path, scope, known.get(path), patience) for path, scope in scopes.items())
    )


def parse_selection(path: str, scope: Precedence, data: bytes) -> SelectionFile:
    """Take the content of a file apart; what is wrong with it is in its diagnostics."""
    return _parsed(SelectionFile(path=path, scope=scope), None, data)


def _read(
    path: str, scope: Precedence, before: SelectionFile | None, patience: float
) -> SelectionFile:
    # Stamped first: what changes while it is read is read again.
    stamp = Stamp.at(path)
    empty = SelectionFile(path=path, scope=scope, stamp=stamp)
    if not os.path.lexists(path):
        return empty
    try:
        data, status = read_regular(path, CHOICES_LIMIT)
    except UnreadableFileError as error:
        return _broken(empty, before, str(error))
    if before is not None and before.digest == digest_of(data):
        return replace(before, stamp=stamp)
    found = _parsed(replace(empty, digest=digest_of(data)), before, data)
    is_young = abs(time.time() - status.st_mtime) < patience
    if before is not None and is_young and (found.is_unreadable or not data):
        # With its old stamp, so that the next heartbeat looks again.
        return before
    return found


def _parsed(empty: SelectionFile, before: SelectionFile | None, data: bytes) -> SelectionFile:
    if len(data) > CHOICES_LIMIT:
        return _broken(empty, before, f"it is larger than {CHOICES_LIMIT} bytes")
    # Lazy: most users switch nothing off.
    import tomllib

    try:
        text = data.decode("utf-8-sig")
        table = tomllib.loads(text)
    except UnicodeDecodeError:
        return _broken(empty, before, "it is not UTF-8")
    except tomllib.TOMLDecodeError as error:
        said, where = _PLACE.sub("", str(error)), _PLACE.search(str(error))
        line, column = where.groups() if where and where[1] else (text.count("\n") + 1, None)
        message = f"it is not TOML: {shorten(one_line(said), 200)}"
        return _broken(empty, before, message, int(line), int(column) if column else None)
    except RecursionError:
        return _broken(empty, before, "it is nested too deeply")
    known = (*KEYS, MCP) if empty.scope is not Precedence.PROJECT else (*KEYS, MCP, CONFIG)
    for key in known:
        if fault := _fault(key, table):
            return _broken(empty, before, f"{key!r} {fault}", _line_of(key, text))
    enable, disable = (SelectionPatterns(tuple(table.get(key, ()))) for key in KEYS)
    odd = tuple(_unknown(empty.path, key, text, known) for key in table if key not in known)
    config = table.get(CONFIG, {}) if CONFIG in known else {}
    return replace(
        empty,
        enable=enable,
        disable=disable,
        config=config,
        servers=table.get(MCP, {}),
        diagnostics=odd,
    )


def _fault(key: str, table: Mapping[str, Any]) -> str:
    """Say what is wrong with the value of a key, or `""`."""
    if key in KEYS:
        return "" if _is_list_of_texts(table.get(key, [])) else "is no list of texts"
    config = table.get(key, {})
    is_sound = isinstance(config, dict) and all(isinstance(v, dict) for v in config.values())
    owners = "plugins'" if key == CONFIG else "servers'"
    return "" if is_sound else f"is no table of the {owners} tables"


def _broken(
    empty: SelectionFile,
    before: SelectionFile | None,
    reason: str,
    line: int | None = None,
    column: int | None = None,
) -> SelectionFile:
    """Return a file that cannot be read, with the choices that it last was known to hold."""
    known = before or empty
    goes_on = (
        "; what it said before goes on"
        if known.enable.written or known.disable.written or known.config or known.servers
        else ""
    )
    error = make_diagnostic(
        "choices-unreadable",
        Where(empty.path, line, column),
        f"the choices cannot be read: {reason}{goes_on}",
        'write enable = ["NAME"] and disable = ["NAME"], and KEY = VALUE below [mcp.SERVER]'
        + (" and [config.PLUGIN]" if empty.scope is Precedence.PROJECT else "")
        + ", nothing else",
    )
    return replace(
        empty,
        enable=known.enable,
        disable=known.disable,
        config=known.config,
        servers=known.servers,
        diagnostics=(error,),
    )


def _unknown(path: str, key: str, text: str, known: Sequence[str]) -> Diagnostic:
    near = near_misses(key, known)
    return make_diagnostic(
        "choices-unknown",
        Where(path, _line_of(key, text)),
        f"nobody reads the key {shorten(one_line(key), 100)!r}",
        f"did you mean {near[0]!r}?"
        if near
        else f"the keys are {', '.join(known[:-1])} and {known[-1]}",
    )


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _line_of(key: str, text: str) -> int | None:
    """Return the line on which a key of the top level is given, if it is plainly seen."""
    line = rf"""^[ \t]*\[{{0,2}}[ \t]*["']?{re.escape(key)}["']?[ \t]*[.=\]]"""
    found = re.search(line, text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else None


def _kind_and_text(pattern: str) -> tuple[str, str]:
    """Take a pattern apart: `tool:delete_*` is of one kind, `acme:pdf` of all."""
    kind, colon, rest = pattern.partition(":")
    # Names are kept composed, however they are typed.
    return (kind, composed(rest)) if colon and kind in KINDS else ("", composed(pattern))
