"""The user's record of which projects are trusted, one file for each project.

A record is found by the real path of the project's folder, and holds its device. It names the
code that the user saw by its digest, and keeps the text, to show later what changed. A record that
cannot be read, or that others can write, counts as no trust.
"""

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from shlex import quote
from typing import Any

from satchel.configuration.projects import TrustLevel
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import SatchelError
from satchel.files.file_reader import (
    Stamp,
    StampedPath,
    UnreadableFileError,
    UnusableFileError,
    digest_of,
    is_inside,
    real_path,
)
from satchel.files.state_files import StateFile, state_folder
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB
from satchel.text import one_line
from satchel.trust.code_units import CodeUnit
from satchel.trust.runnable_files import CodeFile

_FOLDER, _VERSION = "trust", 1
_OTHERS_MAY_WRITE = 0o022
_MOST_TEXT = 4 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustRecord:
    """What the user trusted, and when it is trusted as code, the code that was shown."""

    path: str
    """The real path of the project."""
    device: int
    level: TrustLevel
    variables: tuple[str, ...] = ()
    units: Mapping[str, CodeUnit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustReading:
    """The result of looking for a record."""

    record: TrustRecord | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    stamp: StampedPath


class TrustStore:
    """The records of one user."""

    def __init__(self, folder: str = "") -> None:
        self._base = state_folder(folder)

    def stamp(self, project: str) -> StampedPath:
        """Return the path of a project's record with its stamp."""
        return self._file(real_path(project)).stamp

    def read(self, project: str) -> TrustReading:
        """Return the record of a project's folder; a problem means that there is none."""
        path = real_path(project)
        file = self._file(path)
        stamp = file.stamp
        try:
            _require_private(file.path, path)
            record = _parsed(file.read())
        except UnreadableFileError as problem:
            if not isinstance(problem, UnusableFileError):
                stamp = file.path, Stamp()  # it is read again although it stays the same
            return TrustReading(diagnostics=(_unreadable(file.path, path, problem),), stamp=stamp)
        is_same = record is not None and (record.path, record.device) == (path, _device(path))
        return TrustReading(record=record if is_same else None, stamp=stamp)

    def write(self, record: TrustRecord) -> None:
        """Replace the record of a project, also an unreadable one. Raises `SatchelError`."""
        file = self._file(record.path)
        try:
            _require_private(file.path, record.path)
        except UnreadableFileError:
            file.delete()  # Others could have written it. The new one is private.
        self._change(record.path, lambda _before: record)
        if self.read(record.path).diagnostics:
            folder = os.path.dirname(file.path)
            mode = f"{stat.S_IMODE(os.lstat(folder).st_mode):04o}"
            message = f"no record in this folder is used: its mode is {mode}, {_MUST_BE_PRIVATE}"
            raise SatchelError(message, where=folder, fix=f"chmod 700 {quote(folder)}")

    def update(self, project: str, change: Callable[[TrustRecord], TrustRecord]) -> None:
        """Change the record of a project if there is one. Raises `SatchelError`."""
        record = self.read(project).record
        if record is not None:
            self._change(record.path, lambda before: change(before or record))

    def revoke(self, project: str) -> bool:
        """Remove the record of a project; return whether there was one. Raises `SatchelError`."""
        return self._file(real_path(project)).delete()

    def uses(self, record: TrustRecord) -> bool:
        """Return whether a record is of the folder that is at its path now."""
        return self.read(record.path).record == record

    def all(self) -> Iterator[TrustRecord | Diagnostic]:
        """Yield the records of all projects, sorted, and a diagnostic for each unreadable one."""
        folder = os.path.join(self._base, _FOLDER)
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
        except OSError:
            names = []
        by_path: list[tuple[str, TrustRecord | Diagnostic]] = []
        for name in names:
            file, project = StateFile(self._base, _FOLDER, name), "a project"
            try:
                if (record := _parsed(file.read())) is not None:
                    project = record.path
                    _require_private(file.path, project)
                    by_path.append((project, record))
            except UnreadableFileError as problem:
                by_path.append((file.path, _unreadable(file.path, project, problem)))
        yield from (item for _, item in sorted(by_path, key=lambda pair: pair[0]))

    def _change(self, path: str, change: Callable[[TrustRecord | None], TrustRecord]) -> None:
        def changed(data: bytes | None) -> bytes:
            try:
                before = _parsed(data)
            except UnusableFileError:
                before = None
            return _written(change(before))

        file = self._file(path)
        if is_inside(real_path(file.path), path):
            raise SatchelError(_WITHIN, where=file.path, fix=_ELSEWHERE)
        try:
            file.change(changed)
        except UnreadableFileError as problem:
            raise SatchelError(f"cannot be read: {problem}", where=file.path) from None

    def _file(self, path: str) -> StateFile:
        return StateFile(self._base, _FOLDER, f"{digest_of(os.fsencode(path))}.json")


_MUST_BE_PRIVATE = "and it must be your own, no link, and writable only by you"
_WITHIN = "the record is inside the project, which could then trust itself"
_ELSEWHERE = "set SATCHEL_STATE_DIR to a folder outside of the project"


def new_record(
    project: str,
    level: TrustLevel,
    units: Mapping[str, CodeUnit],
    variables: tuple[str, ...],
) -> TrustRecord:
    """Return a record of what a user decided about a folder."""
    path = real_path(project)
    record = TrustRecord(path=path, device=_device(path), level=level)
    if level is not TrustLevel.CODE:
        return record
    return replace(record, units=_bounded(units), variables=tuple(sorted({*variables})))


def _bounded(units: Mapping[str, CodeUnit]) -> dict[str, CodeUnit]:
    """Leave out texts beyond a total size; a change of such a file is shown as its whole text."""
    left, bounded = _MOST_TEXT, {}
    for key, unit in units.items():
        files = {}
        for name, file in unit.files.items():
            is_kept = len(file.text) <= left
            left -= len(file.text) if is_kept else 0
            files[name] = file if is_kept else replace(file, text="")
        bounded[key] = CodeUnit(key, files)
    return bounded


def _device(path: str) -> int:
    return Stamp.at(path).device


def _require_private(file: str, project: str) -> None:
    """Raise `UnreadableFileError` for a record that another user could have written."""
    folder = os.path.dirname(file)
    try:
        statuses = os.lstat(file), os.lstat(folder)
    except OSError:
        return  # missing; other errors are found when it is read
    if is_inside(real_path(file), project):
        raise UnusableFileError(_WITHIN)
    if any(map(stat.S_ISLNK, (status.st_mode for status in statuses))):
        raise UnusableFileError("it is a link, or in a folder that is a link")
    if os.name == "posix" and any(
        status.st_uid != os.geteuid() or status.st_mode & _OTHERS_MAY_WRITE for status in statuses
    ):
        raise UnusableFileError("others than you can write it")


def _parsed(data: bytes | None) -> TrustRecord | None:
    if data is None:
        return None
    try:
        value = json.loads(data)
        if value["version"] != _VERSION:
            raise UnusableFileError(f"its version {value['version']!r} is unknown")
        return TrustRecord(
            path=_text(value["path"]),
            device=int(value["device"]),
            level=TrustLevel(value["level"]),
            variables=tuple(map(_text, value["variables"])),
            units={
                _text(key): CodeUnit(
                    key=key,
                    files={
                        _text(name): CodeFile(_text(file["digest"]), _text(file["text"]))
                        for name, file in files.items()
                    },
                )
                for key, files in value["units"].items()
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnusableFileError("it is not a valid record") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _written(record: TrustRecord) -> bytes:
    value = {
        "version": _VERSION,
        "path": record.path,
        "device": record.device,
        "level": record.level.value,
        "variables": list(record.variables),
        "units": {
            key: {
                name: {"digest": file.digest, "text": file.text}
                for name, file in sorted(unit.files.items())
            }
            for key, unit in sorted(record.units.items())
        },
    }
    return json.dumps(value, indent=1).encode()


def _unreadable(file: str, project: str, problem: Exception) -> Diagnostic:
    is_broken = isinstance(problem, UnusableFileError)
    return make_diagnostic(
        "trust-unreadable",
        Where(file),
        f"the record of trust in {one_line(project)} is not used: {problem}",
        "delete it, and run 'satchel trust' again"
        if is_broken
        else "try again later; if it stays, make the file readable",
    )
