"""Copy a skill or plugin out of its source, with the content of what its links lead to.

Beside its source a copy is complete: a link to the licence of the repository, or to a module that
several skills share, would lead nowhere. What links lead to outside of the source is never copied.
"""

import os
import re
from collections.abc import Collection, Iterable

from satchel.errors import SatchelError
from satchel.files.file_reader import is_inside, is_utf8, reason_of
from satchel.files.secret_files import is_secret_file
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB
from satchel.setup.folder_placement import copy_file, read_errors
from satchel.sources.folder_reader import is_environment, is_skipped

MOST_FILES = 50_000
MOST_BYTES = 512 * MIB
_DEEPEST = 20
"""Levels of folders that are copied; deeper ones are never read as parts of a skill."""
_HIDDEN = re.compile(r"[/(]\.\w")
"""A hidden file of the source: it may be the user's own, so it is named first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A folder of the source and its copy."""

    folder: str
    copy: str
    depth: int = 0
    above: tuple[str, ...] = ()
    """The folders whose links led here."""


class CopyLimitError(SatchelError):
    """The copies out of one source have too many files or bytes: no other would fit."""


class CopyBudget:
    """The files and bytes that all copies out of one source may have."""

    def __init__(self) -> None:
        self.left = MOST_FILES, MOST_BYTES

    def spend(self, *, files: int = 0, size: int = 0) -> None:
        """Count files or bytes. Raises `CopyLimitError` if these are too many."""
        self.left = self.left[0] - files, self.left[1] - size
        if min(self.left) < 0:
            limit = f"more than {MOST_FILES} files or {MOST_BYTES // MIB} MiB"
            message = f"with it, {limit} would be copied, also what links lead to"
            raise CopyLimitError(message, fix="add less of the source with --only")


class SourceCopy:
    """Copies a folder to the new folder `copy`; all of it comes from inside `within`."""

    def __init__(self, folder: str, copy: str, within: str, budget: CopyBudget) -> None:
        self._first = _Part(folder=os.path.realpath(folder), copy=copy)
        self._within, self._budget = os.path.realpath(within), budget
        self.left_out: dict[str, list[str]] = {}
        """What the copy does not have, by the reason."""
        self.from_elsewhere: list[str] = []
        """What links of the folder brought from outside of it, with its path in the source."""

    def write(self, only: Collection[str] = ()) -> None:
        """Copy the folder, or `only` these paths of it, and note what is left out.

        Folders such as `.git` are left out without a word. Raises `SatchelError`, a
        `CopyLimitError` if this and the copies before it are too large.
        """
        if not is_inside(self._first.folder, self._within):
            raise SatchelError("leads out of the source", where=self._first.folder)
        names = [os.path.normpath(os.path.join(self._first.folder, path)) for path in only]
        parts = [self._first]
        try:
            while parts:
                part = parts.pop()
                parts += self._write_folder(part, () if part.above else names)
        except SatchelError as problem:
            where = problem.where or self._first.folder
            raise type(problem)(problem.message, where=where, fix=problem.fix) from None
        except OSError as problem:
            message = f"cannot be copied: {reason_of(problem)}"
            raise SatchelError(message, where=self._first.folder) from None
        self.from_elsewhere.sort(key=lambda text: (not _HIDDEN.search(text), text))

    def _write_folder(self, part: _Part, names: Collection[str]) -> Iterable[_Part]:
        """Copy the files of a folder, and yield the folders in it."""
        with read_errors(part.folder), os.scandir(part.folder) as opened:
            entries = sorted(opened, key=lambda entry: entry.name)
        if part.depth and is_environment(entries):
            self._leave_out(part.copy, "a virtual environment of Python")
            return
        os.mkdir(part.copy)
        for entry in entries:
            if not is_skipped(entry.name) and _is_wanted(entry.path, names):
                self._budget.spend(files=1)
                yield from self._write_entry(entry, part)

    def _write_entry(self, entry: os.DirEntry[str], part: _Part) -> Iterable[_Part]:
        """Copy a file, or yield a folder."""
        path, copy, above = entry.path, os.path.join(part.copy, entry.name), part.above
        if entry.is_symlink():
            path, above = os.path.realpath(path), (*above, part.folder)
        is_folder = os.path.isdir(path)
        reason = self._reason(path, above) if above else ""
        if not is_utf8(entry.name):
            reason = "its name is not UTF-8"
        elif is_folder and part.depth == _DEEPEST:
            reason = f"more than {_DEEPEST} folders deep"
        if reason:
            self._leave_out(copy, reason)
            return
        if entry.is_symlink() and not is_inside(path, self._first.folder):
            source = os.path.relpath(path, self._within)
            self.from_elsewhere.append(f"{self._name(copy)} ({source})")
        if is_folder:
            yield _Part(folder=path, copy=copy, depth=part.depth + 1, above=above)
        else:
            self._write_file(path, copy)

    def _leave_out(self, copy: str, reason: str) -> None:
        self.left_out.setdefault(reason, []).append(self._name(copy))

    def _name(self, copy: str) -> str:
        return os.path.relpath(copy, self._first.copy)

    def _reason(self, path: str, above: Collection[str]) -> str:
        """Return why what a link leads to, or is behind it, is not copied; `""` if it is."""
        if not is_inside(path, self._within):
            return "leads out of the source"
        if os.path.islink(path) or any(is_inside(folder, path) for folder in above):
            return "leads in a circle"
        if not os.path.exists(path):
            return "leads to nothing"
        inside = os.path.relpath(path, self._within)
        if is_secret_file(inside):
            return "such files usually hold secrets"
        # Kubernetes' folders with names such as `..data` are only reached through links.
        names = (name for name in inside.split(os.sep) if not name.startswith(".."))
        return "never copied, such as .git" if any(map(is_skipped, names)) else ""

    def _write_file(self, path: str, copy: str) -> None:
        with read_errors(path):
            self._budget.spend(size=os.stat(path).st_size)
        if not os.path.isfile(path):
            raise SatchelError("is not a regular file", where=path, fix="remove it")
        copy_file(path, copy)


def _is_wanted(path: str, names: Collection[str]) -> bool:
    return not names or any(is_inside(name, path) or is_inside(path, name) for name in names)
