"""Read the `satchel.toml` of the user and of a project, and the `.mcp.json` beside it."""

import math
import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from satchel.configuration.projects import SERVERS_FILE
from satchel.configuration.selection import (
    DECISIVE,
    Selection,
    SelectionFile,
    SelectionPatterns,
)
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.file_reader import (
    Stamp,
    UnreadableFileError,
    digest_of,
    read_regular,
)
from satchel.files.open_folder import read_inside
from satchel.names import near_misses
from satchel.settings import KIB, Limits
from satchel.sources.search_roots import Precedence
from satchel.text import one_line, shorten

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
_OF_CODE = frozenset(SOURCE_KEYS[1:])
_LISTS = MappingProxyType({SKILLS: (FIRST,), SOURCES: SOURCE_KEYS})
"""The tables whose values are lists of texts, with their keys."""
MCP = "mcp"
"""The key of the table with MCP servers."""
_TOML_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_selection(
    user: str, project: str = "", before: Selection | None = None, patience: float = 0.0
) -> Selection:
    """Read the user's file and, if given, the project's, with the `.mcp.json` beside it.

    While a file is broken, its last good values in `before` are used; without any, the keys that
    are valid. A file that became empty or broken less than `patience` seconds ago may be half
    written, and counts as unchanged.
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
    if _is_absent(path):
        return empty
    good = before if before and not before.unread else None
    is_projects = scope is Precedence.PROJECT
    root = os.path.realpath(os.path.dirname(path)) if is_projects else ""
    has_servers = os.path.basename(path) == SERVERS_FILE
    parse, broken = (_parsed_servers, _broken_servers) if has_servers else (_parsed, _broken)
    try:
        read = partial(read_inside, root=root) if root else read_regular
        data, status = read(path, SELECTION_LIMIT)
    except UnreadableFileError as error:
        return broken(empty, good, str(error))
    if before is not None and before.digest == digest_of(data):
        return replace(before, stamp=stamp)
    parsed = parse(replace(empty, digest=digest_of(data)), good, data)
    is_recent = abs(time.time() - status.st_mtime) < patience
    if before is not None and is_recent and (parsed.is_unreadable or not data):
        # With its old stamp, so that it is read again at the next heartbeat.
        return before
    return parsed


def _is_absent(path: str) -> bool:
    """Return whether there is certainly no file, not even one that cannot be reached now."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        folder = os.path.dirname(path)  # it may be a link that leads to nothing now
        return os.path.isdir(folder) or not os.path.lexists(folder)
    except ValueError:
        return True
    except OSError:
        pass
    return False


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
    faults = {key: fault for key in keys if (fault := _fault(key, table))}
    errors = []
    for key, fault in faults.items():
        reason, line = f"{key!r} {fault}", _line_of(key, text)
        if before:
            return _broken(empty, before, reason, line)
        errors.append(_unreadable(empty, reason, _rest(faults), line))
        table.pop(key, None)
    enable, disable = (SelectionPatterns(tuple(table.get(key, ()))) for key in KEYS)
    unknown = [_unknown(empty.path, key, text, keys) for key in table if key not in keys]
    tables = {**_LISTS, WORKER: _worker_keys()} if WORKER in keys and WORKER in table else _LISTS
    sources = dict(table.get(SOURCES, {}))
    for key in _OF_CODE & sources.keys() if empty.scope is Precedence.PROJECT else ():
        del sources[key]
        unknown.append(_for_code(empty.path, key, text))
    for name, own_keys in tables.items():
        below = (key for key in table.get(name, {}) if key not in own_keys)
        unknown += [_unknown(empty.path, key, text, own_keys, name) for key in below]
    config = table.get(CONFIG, {}) if CONFIG in keys else {}
    return replace(
        empty,
        enable=enable,
        disable=disable,
        config=config,
        servers=table.get(MCP, {}),
        first_skills=tuple(table.get(SKILLS, {}).get(FIRST, ())),
        sources=sources,
        worker=table.get(WORKER, {}) if WORKER in keys else {},
        limits={name: table[name] for name in _LIMITS if name in keys and name in table},
        diagnostics=(*errors, *unknown),
        unread=frozenset(faults),
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
        problem = reading.diagnostics[0]
        return _broken_servers(empty, before, problem.message, problem.where.line)
    servers = {server.name: server.plain_table for server in reading.value}
    return replace(empty, servers=servers, diagnostics=reading.diagnostics)


def _broken_servers(
    empty: SelectionFile, before: SelectionFile | None, reason: str, line: int | None = None
) -> SelectionFile:
    """Return the file with its last good servers and a diagnostic."""
    last_good = replace(before, stamp=empty.stamp, digest=empty.digest) if before else empty
    fix = 'write {"mcpServers": {"NAME": {...}}}'
    where = Where(empty.path, line)
    problem = make_diagnostic("mcp-invalid", where, f"cannot be read: {reason}", fix)
    return replace(last_good, diagnostics=(problem,))


def _fault(key: str, table: Mapping[str, Any]) -> str:
    """Return what is wrong with the value of a key, or `""`."""
    if key in _LISTS:
        return _lists_fault(key, table.get(key, {}))
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


def _worker_keys() -> tuple[str, ...]:
    from satchel.formats.worker_table import WorkerTable  # lazy: few users have workers

    return tuple(str(field.alias) for field in WorkerTable.model_fields.values())


def _lists_fault(table: str, value: object) -> str:
    """Return what is wrong with a table of lists, or `""`; unknown keys are only reported."""
    if not isinstance(value, dict):
        return "is not a table"
    fields = _LISTS[table]
    for key in fields:
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
    last_good = before or replace(empty, unread=DECISIVE)
    values = (
        last_good.config,
        last_good.servers,
        last_good.first_skills,
        last_good.limits,
        last_good.sources,
    )
    has_values = last_good.chooses or any(values)
    kept = "; its last good version stays in use" if has_values else _rest(last_good.unread)
    error = _unreadable(empty, reason, kept, line, column)
    return replace(last_good, stamp=empty.stamp, digest=empty.digest, diagnostics=(error,))


def _rest(unread: Collection[str]) -> str:
    """Return what is used while these keys cannot be read."""
    if DECISIVE.isdisjoint(unread):
        return "; its other keys count" if unread else ""
    return "; until then no code runs that it may disable"


def _unreadable(
    file: SelectionFile, reason: str, kept: str, line: int | None, column: int | None = None
) -> Diagnostic:
    return make_diagnostic(
        "choices-unreadable",
        Where(file.path, line, column),
        f"the settings cannot be read: {reason}{kept}",
        'correct it; it may say enable = ["NAME"] and disable = ["NAME"], '
        'first = ["NAME"] below [skills], skills = ["FOLDER"] below [sources], '
        "and KEY = VALUE below [mcp.SERVER]"
        + (" and [config.PLUGIN]" if file.scope is Precedence.PROJECT else ""),
    )


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


def _for_code(path: str, key: str, text: str) -> Diagnostic:
    return make_diagnostic(
        "choices-unknown",
        Where(path, _line_of(key, text)),
        f"{key!r} below [{SOURCES}] is ignored in a project: plugins are code",
        "name them in your own satchel.toml, or put them into the project's plugins, and trust it",
    )


def _listed(keys: Sequence[str]) -> str:
    *others, last = keys
    return f"{', '.join(others)} and {last}" if others else last


def _line_of(key: str, text: str) -> int | None:
    """Return the line of a top-level key, if a simple search finds it."""
    pattern = rf"""^[ \t]*\[{{0,2}}[ \t]*["']?{re.escape(key)}["']?[ \t]*[.=\]]"""
    match = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else None
