"""A cache on disk: what reading each skill gave, so that a warm start reads only what changed.

It is one SQLite file. What it holds of a file counts only while the file has the same device,
inode, size and times; the scan compares them. A file that was younger than two seconds is read
again. If anything is wrong with the cache, the files are read instead. It can be deleted anytime.
"""

import json
import os
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from typing import Any
from urllib.parse import quote

from satchel.diagnostics import Diagnostic, Severity, Where
from satchel.files.file_reader import Stamp, UnitFile, digest_of
from satchel.files.state_files import make_folder
from satchel.formats.packed_text import Compressed, packed
from satchel.formats.skill_manifest import SkillManifest
from satchel.lazy_dataclass import fast_constructor
from satchel.settings import MIB, Limits
from satchel.sources.folder_reader import FolderContent
from satchel.sources.search_roots import SearchRoot
from satchel.sources.skill_findings import SkillFinding, SkillScan

_FORMAT = 9
"""Raise it when reading gives other results; then all older rows are useless."""
_LARGEST = 1024 * MIB
"""A larger file is started again: rows of roots that are gone stay in it."""
_WAIT = 0.2
"""Seconds to wait for another process."""
_PAGE = "pragma page_size = 65536"
"""Most rows fit into a page; with many small pages, reading takes three times as long."""
_TABLE = """create table if not exists skills (
    root text, key text, settings text, data blob, rest blob, body blob, checksum integer,
    primary key (root, key)
) without rowid"""
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_ERRORS = (sqlite3.Error, OSError, ValueError, KeyError, TypeError, AttributeError)


def load_scan(path: str, root: SearchRoot, limits: Limits) -> SkillScan | None:
    """Return what an earlier process read in a root; `None` if the cache has nothing."""
    query = "select key, data, rest, body, checksum from skills where root = ? and settings = ?"
    try:
        if not _is_private(path):
            return None
        with closing(
            sqlite3.connect(f"file:{quote(path)}?mode=ro", timeout=_WAIT, uri=True)
        ) as database:
            rows = database.execute(query, (root.path, _settings(root, limits))).fetchall()
        if any(checksum != _checksum(*parts) for *parts, checksum in rows):
            return None
        # One text, because each call of `loads` takes as long as what it reads.
        values = json.loads(b"[%s]" % b",".join([row[1] for row in rows]))
        findings = {
            key: _finding(root, key, value, rest, body)
            for (key, _, rest, body, _), value in zip(rows, values, strict=True)
        }
    except _ERRORS:
        return None
    return SkillScan(root=root, findings=findings, is_cached=True) if findings else None


def save_scan(path: str, scan: SkillScan, before: SkillScan | None, limits: Limits) -> None:
    """Write what is new or gone since `before`."""
    root, settings = scan.root, _settings(scan.root, limits)
    earlier: Mapping[str, SkillFinding] = before.findings if before else {}
    new = [
        finding
        for key, finding in scan.findings.items()
        if finding is not earlier.get(key) and finding.manifest is not None
    ]
    gone = [(root.path, key) for key in earlier if key not in scan.findings]
    if new or gone:
        rows = ((root.path, finding.key, settings, *_row(finding)) for finding in new)
        try:
            make_folder(os.path.dirname(path))
            if os.path.exists(path) and (not _is_private(path) or os.path.getsize(path) > _LARGEST):
                _remove(path)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            with closing(sqlite3.connect(path, timeout=_WAIT)) as database, database:
                database.execute(_PAGE)  # counts only for a new file
                database.execute(_TABLE)
                if before is None:
                    # Also what no skill has: one damaged row would make all others useless.
                    database.execute("delete from skills where root = ?", (root.path,))
                database.executemany("delete from skills where root = ? and key = ?", gone)
                database.executemany(
                    "insert or replace into skills values (?, ?, ?, ?, ?, ?, ?)", rows
                )
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
    of_root = (root.policy, root.within, root.follows_links_out, root.scripts)
    parts = (_FORMAT, _version(), limits, *of_root)
    return digest_of(repr(parts).encode())


@cache
def _version() -> str:
    # Lazy: reading the metadata takes a while. Each plugin with skills asks.
    from importlib.metadata import version

    return version("satchel")


def _row(finding: SkillFinding) -> tuple[bytes, bytes, bytes, int]:
    """Return a finding as data, the rest of its manifest, its body, and a checksum."""
    manifest = finding.manifest
    assert manifest is not None
    data = (
        (manifest.name, manifest.description, manifest.is_for_model),
        [(file.name, file.size, file.digest, file.stamp, file.settled) for file in finding.files],
        finding.folder.folders,
        finding.target,
        sorted(finding.folder.links),
        [item.as_dict() for item in finding.folder.diagnostics],
        [item.as_dict() for item in finding.diagnostics],
    )
    parts = json.dumps(data).encode(), manifest.rest, packed(manifest, "body")
    return *parts, _checksum(finding.key, *parts)


def _checksum(key: str, data: bytes, rest: bytes, body: bytes) -> int:
    """Return what shows damage to any part of a row."""
    return zlib.crc32(body, zlib.crc32(rest, zlib.crc32(data, zlib.crc32(key.encode()))))


def _finding(root: SearchRoot, key: str, data: list[Any], rest: bytes, body: bytes) -> SkillFinding:
    texts, files, folders, target, links, in_folder, own = data
    # Lists, because generators take longer for the few items of each skill.
    new_file = fast_constructor(UnitFile)
    folder = FolderContent(
        files=tuple(
            [
                new_file(
                    name=name, size=size, digest=digest, stamp=Stamp.saved(stamp), settled=settled
                )
                for name, size, digest, stamp, settled in files
            ]
        ),
        diagnostics=_diagnostics(in_folder) if in_folder else (),
        links=frozenset([(path, target) for path, target in links]) if links else frozenset(),
        folders=tuple([(name, Stamp.saved(stamp)) for name, stamp in folders]),
    )
    name, description, is_for_model = texts
    manifest = SkillManifest.restored(
        name, description, rest, Compressed(body), is_for_model=is_for_model
    )
    return fast_constructor(SkillFinding)(
        root=root,
        key=key,
        folder=folder,
        manifest=manifest,
        diagnostics=_diagnostics(own) if own else (),
        target=target,
    )


def _diagnostics(items: Sequence[dict[str, Any]]) -> tuple[Diagnostic, ...]:
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
