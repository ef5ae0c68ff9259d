"""A cache on disk: what reading each skill gave, so that a warm start reads only what changed.

It is one SQLite file. What it holds of a file counts only while the file has the same device,
inode, size and times; the scan compares them. A file that was younger than two seconds is read
again. If anything is wrong with the cache, the files are read instead. It can be deleted anytime.
"""

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Any
from urllib.parse import quote

from satchel.diagnostics import Diagnostic, Severity, Where
from satchel.formats import SkillManifest
from satchel.formats.frozen_values import to_plain
from satchel.settings import MIB, Limits
from satchel.sources.file_reader import Stamp, UnitFile, digest_of
from satchel.sources.folder_reader import FolderContent
from satchel.sources.search_roots import SearchRoot
from satchel.sources.skill_scan import SkillFinding, SkillScan
from satchel.sources.state_files import make_folder

_FORMAT = 4
"""Raise it when reading gives other results; then all older rows are useless."""
_LARGEST = 1024 * MIB
"""A larger file is started again: rows of roots that are gone stay in it."""
_WAIT = 0.2
"""Seconds to wait for another process."""
_TABLE = """create table if not exists skills (
    root text, key text, settings text, data text, body blob, primary key (root, key)
) without rowid"""
_MANIFEST = ("name", "description", "license", "compatibility", "allowed_tools", "metadata")
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_ERRORS = (sqlite3.Error, OSError, ValueError, KeyError, TypeError)


def load_scan(path: str, root: SearchRoot, limits: Limits) -> SkillScan | None:
    """Return what an earlier process read in a root; `None` if the cache has nothing."""
    query = "select key, data, body from skills where root = ? and settings = ?"
    try:
        if not _is_private(path):
            return None
        with closing(
            sqlite3.connect(f"file:{quote(path)}?mode=ro", timeout=_WAIT, uri=True)
        ) as database:
            rows = database.execute(query, (root.path, _settings(root, limits))).fetchall()
        # One text, because each call of `loads` takes as long as what it reads.
        values = json.loads(f"[{','.join([data for _, data, _ in rows])}]")
        findings = {
            key: _finding(root, key, value, body)
            for (key, _, body), value in zip(rows, values, strict=True)
        }
    except _ERRORS:
        return None
    return SkillScan(place=root, findings=findings, is_cached=True) if findings else None


def save_scan(path: str, scan: SkillScan, before: SkillScan | None, limits: Limits) -> None:
    """Write what is new or gone since `before`."""
    root, settings = scan.place, _settings(scan.place, limits)
    known: Mapping[str, SkillFinding] = before.findings if before else {}
    new = [
        (root.path, key, settings, json.dumps(_plain(found)), _body(found))
        for key, found in scan.findings.items()
        if found is not known.get(key) and found.manifest is not None
    ]
    gone = [(root.path, key) for key in known if key not in scan.findings]
    if new or gone:
        try:
            make_folder(os.path.dirname(path))
            if os.path.exists(path) and (not _is_private(path) or os.path.getsize(path) > _LARGEST):
                _remove(path)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(path, timeout=_WAIT)) as database, database:
                database.execute(_TABLE)
                database.executemany("delete from skills where root = ? and key = ?", gone)
                database.executemany("insert or replace into skills values (?, ?, ?, ?, ?)", new)
        except sqlite3.Error as problem:
            if getattr(problem, "sqlite_errorcode", None) not in _BUSY:
                _remove(path)
        except _ERRORS:
            pass


def _remove(path: str) -> None:
    """Remove a file that is no use, with its journal; the next start begins another one."""
    for name in (path, f"{path}-journal"):
        with suppress(OSError):
            os.remove(name)


def _is_private(path: str) -> bool:
    """Return whether only the user can write the file: its text goes to the model."""
    if not hasattr(os, "getuid"):
        return True
    status = os.stat(path)
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _settings(root: SearchRoot, limits: Limits) -> str:
    """Return a digest of all that the results depend on, besides the files."""
    # Lazy: reading the metadata takes a while.
    from importlib.metadata import version

    of_root = (root.policy, root.within, root.follows_links_out, root.scripts)
    parts = (_FORMAT, version("satchel"), limits, *of_root)
    return digest_of(repr(parts).encode())


def _plain(found: SkillFinding) -> dict[str, Any]:
    """Return a finding as plain data, without the body."""
    manifest = found.manifest
    assert manifest is not None
    fields = to_plain(manifest.fields)
    values = {name: to_plain(getattr(manifest, name)) for name in _MANIFEST}
    return {
        "target": found.target,
        "files": [(f.name, f.size, f.digest, f.stamp, f.settled) for f in found.files],
        "links": sorted(found.folder.links),
        "folders": found.folder.folders,
        "problems": [item.as_dict() for item in found.folder.diagnostics],
        "diagnostics": [item.as_dict() for item in found.diagnostics],
        "fields": fields,
        # Most values are those of the fields, and reading them twice takes time.
        "manifest": {name: it for name, it in values.items() if it != fields.get(name)},
    }


def _body(found: SkillFinding) -> bytes:
    return found.manifest.body.encode("utf-8", "surrogatepass") if found.manifest else b""


def _finding(root: SearchRoot, key: str, data: dict[str, Any], body: bytes) -> SkillFinding:
    # Lists, because generators take longer for the few items of each skill.
    files = [
        UnitFile(name=name, size=size, digest=digest, stamp=Stamp(*stamp), settled=settled)
        for name, size, digest, stamp, settled in data["files"]
    ]
    links = frozenset([(path, target) for path, target in data["links"]])
    folders = tuple([(name, Stamp(*stamp)) for name, stamp in data["folders"]])
    fields, other = data["fields"], data["manifest"]
    values = {name: fields.get(name) for name in _MANIFEST} | other
    values["allowed_tools"] = tuple(values["allowed_tools"])
    return SkillFinding(
        place=root,
        key=key,
        folder=FolderContent(
            files=tuple(files),
            diagnostics=_diagnostics(data["problems"]),
            links=links,
            folders=folders,
        ),
        manifest=SkillManifest(body=body, fields=fields, **values),
        diagnostics=_diagnostics(data["diagnostics"]),
        target=data["target"],
    )


def _diagnostics(items: Sequence[dict[str, Any]]) -> tuple[Diagnostic, ...]:
    if not items:
        return ()
    return tuple(
        Diagnostic(
            severity=Severity(item["severity"]),
            code=item["code"],
            where=Where(item["path"], item["line"], item["column"]),
            message=item["message"],
            fix=item["fix"],
        )
        for item in items
    )
