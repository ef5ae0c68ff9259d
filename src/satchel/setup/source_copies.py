"""Copy a skill or plugin out of its source, with the content of what its links lead to.

Beside its source a copy is complete: a link to the licence of the repository, or to a module that
several skills share, would lead nowhere. What links lead to outside of the source is never copied.
"""

import os
from collections.abc import Collection, Iterable

from satchel.errors import SatchelError
from satchel.files.file_reader import is_inside, is_utf8, reason_of
from satchel.files.secret_files import leads_to_secret
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB
from satchel.setup.folder_placement import copy_file, read_errors
from satchel.sources.folder_reader import is_environment, is_skipped

MOST_FILES = 50_000
MOST_BYTES = 512 * MIB
_DEEPEST = 20
"""Levels of folders that are copied; deeper ones are never read as parts of a skill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A folder of the source and its copy."""

    folder: str
    copy: str
    depth: int = 0
    above: tuple[str, ...] = ()
    """The folders whose links led here."""


class CopyBudget:
    """The files and bytes that all copies out of one source may have."""

    def __init__(self) -> None:
        self.left = MOST_FILES, MOST_BYTES

    def spend(self, *, files: int = 0, size: int = 0) -> None:
        """Count files or bytes. Raises `SatchelError` if these are too many."""
        self.left = self.left[0] - files, self.left[1] - size
        if min(self.left) < 0:
            limit = f"{MOST_FILES} files or {MOST_BYTES // MIB} MiB with what links lead to"
            raise SatchelError(f"has more than {limit}", fix="add less of it with --only")


class SourceCopy:
    """Copies a folder to the new folder `copy`; all of it comes from inside `within`."""

    def __init__(self, folder: str, copy: str, within: str, budget: CopyBudget) -> None:
        self._first = _Part(folder=os.path.realpath(folder), copy=copy)
        self._within, self._budget = os.path.realpath(within), budget
        self.left_out: list[str] = []
        self.from_elsewhere: list[str] = []
        """What links of the folder brought from outside of it, with its path in the source."""

    def write(self, only: Collection[str] = ()) -> None:
        """Copy the folder, or `only` these paths of it, and note what is left out.

        Folders such as `.git` are left out without a word. Raises `SatchelError`.
        """
        if not is_inside(self._first.folder, self._within):
            raise SatchelError("leads out of the source", where=self._first.folder)
        names = [os.path.normpath(os.path.join(self._first.folder, path)) for path in only]
        parts, left = [self._first], self._budget.left
        try:
            while parts:
                part = parts.pop()
                parts += self._write_folder(part, () if part.above else names)
        except SatchelError as problem:
            self._budget.left = left  # the caller removes what was copied
            where = problem.where or self._first.folder
            raise SatchelError(problem.message, where=where, fix=problem.fix) from None
        except OSError as problem:
            message = f"cannot be copied: {reason_of(problem)}"
            raise SatchelError(message, where=self._first.folder) from None
        self.left_out.sort()
        self.from_elsewhere.sort()

    def _write_folder(self, part: _Part, names: Collection[str]) -> Iterable[_Part]:
        """Copy the files of a folder, and yield the folders in it."""
        with read_errors(part.folder), os.scandir(part.folder) as opened:
            entries = sorted(opened, key=lambda entry: entry.name)
        if part.depth and is_environment(entries):
            self._leave_out(part.copy)
            return
        os.mkdir(part.copy)
        for entry in entries:
            if is_skipped(entry.name) or not _is_wanted(entry.path, names):
                continue
            self._budget.spend(files=1)
            path, copy, above = entry.path, os.path.join(part.copy, entry.name), part.above
            if entry.is_symlink():
                path, above = os.path.realpath(path), (*above, part.folder)
            is_folder = os.path.isdir(path)
            is_read = is_utf8(entry.name) and not (is_folder and part.depth == _DEEPEST)
            if not is_read or (above and not self._may_copy(path, above)):
                self._leave_out(copy)
                continue
            if entry.is_symlink() and not is_inside(path, self._first.folder):
                source = os.path.relpath(path, self._within)
                self.from_elsewhere.append(f"{self._name(copy)} ({source})")
            if is_folder:
                yield _Part(folder=path, copy=copy, depth=part.depth + 1, above=above)
            else:
                self._write_file(path, copy)

    def _leave_out(self, copy: str) -> None:
        self.left_out.append(self._name(copy))

    def _name(self, copy: str) -> str:
        return os.path.relpath(copy, self._first.copy)

    def _may_copy(self, path: str, above: Collection[str]) -> bool:
        """Return whether what a link leads to, or is behind it, is copied."""
        inside = os.path.relpath(path, self._within).split(os.sep)
        # Kubernetes' folders with names such as `..data` are only reached through links.
        is_internal = any(is_skipped(name) and not name.startswith("..") for name in inside)
        is_loop = any(is_inside(folder, path) for folder in above)
        is_content = os.path.exists(path) and is_inside(path, self._within)
        return is_content and not (is_internal or is_loop or leads_to_secret(path, self._within))

    def _write_file(self, path: str, copy: str) -> None:
        with read_errors(path):
            self._budget.spend(size=os.stat(path).st_size)
        if not os.path.isfile(path):
            raise SatchelError("is not a regular file", where=path, fix="remove it")
        copy_file(path, copy)


def _is_wanted(path: str, names: Collection[str]) -> bool:
    return not names or any(is_inside(name, path) or is_inside(path, name) for name in names)
