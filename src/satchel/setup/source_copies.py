"""Copy a skill or plugin out of its source, with the content of what its links lead to.

Beside its source a copy is complete: a link to the licence of the repository, or to a module that
several skills share, would lead nowhere. What links lead to outside of the source is never copied.
"""

import os
from collections.abc import Collection, Iterable

from satchel.errors import SatchelError
from satchel.files.file_reader import is_inside, reason_of
from satchel.files.secret_files import leads_to_secret
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB
from satchel.setup.folder_placement import copy_file, read_errors
from satchel.sources.folder_reader import is_skipped

MOST_FILES = 50_000
MOST_BYTES = 512 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A folder of the source and its copy."""

    folder: str
    copy: str
    above: tuple[str, ...] = ()
    """The folders whose links led here."""


class SourceCopy:
    """Copies a folder to the new folder `copy`; all of it comes from inside `within`."""

    def __init__(self, folder: str, copy: str, within: str) -> None:
        self._first = _Part(folder=os.path.realpath(folder), copy=copy)
        self._within = os.path.realpath(within)
        self._files, self._bytes = MOST_FILES, MOST_BYTES
        self._left_out: list[str] = []

    def write(self, only: Collection[str] = ()) -> tuple[str, ...]:
        """Copy the folder, or `only` these paths of it, and return the links that were left out.

        Folders such as `.git` are left out, too. Raises `SatchelError`.
        """
        names = [os.path.normpath(os.path.join(self._first.folder, path)) for path in only]
        parts = [self._first]
        try:
            while parts:
                part = parts.pop()
                parts += self._write_folder(part, () if part.above else names)
        except OSError as problem:
            message = f"cannot be copied: {reason_of(problem)}"
            raise SatchelError(message, where=self._first.folder) from None
        return tuple(self._left_out)

    def _write_folder(self, part: _Part, names: Collection[str]) -> Iterable[_Part]:
        """Copy the files of a folder, and yield the folders in it."""
        self._count(0)
        os.mkdir(part.copy)
        with read_errors(part.folder), os.scandir(part.folder) as entries:
            in_order = sorted(entries, key=lambda entry: entry.name)
        for entry in in_order:
            if is_skipped(entry.name) or not _is_wanted(entry.path, names):
                continue
            copy, path, above = os.path.join(part.copy, entry.name), entry.path, part.above
            if entry.is_symlink():
                path, above = os.path.realpath(path), (*above, part.folder)
                if not self._may_copy(path, above):
                    self._left_out.append(os.path.relpath(copy, self._first.copy))
                    continue
            if os.path.isdir(path):
                yield _Part(folder=path, copy=copy, above=above)
            else:
                self._write_file(path, copy)

    def _may_copy(self, path: str, above: Collection[str]) -> bool:
        """Return whether a link to a path is replaced by what is there."""
        inside = os.path.relpath(path, self._within).split(os.sep)
        # Kubernetes' folders with names such as `..data` are only reached through links.
        is_internal = any(is_skipped(name) and not name.startswith("..") for name in inside)
        is_loop = any(is_inside(folder, path) for folder in above)
        is_content = os.path.exists(path) and is_inside(path, self._within)
        return is_content and not (is_internal or is_loop or leads_to_secret(path, self._within))

    def _write_file(self, path: str, copy: str) -> None:
        with read_errors(path):
            self._count(os.stat(path).st_size)
        if not os.path.isfile(path):
            raise SatchelError("is not a regular file", where=path, fix="remove it")
        copy_file(path, copy)

    def _count(self, size: int) -> None:
        self._files -= 1
        self._bytes -= size
        if min(self._files, self._bytes) < 0:
            limit = f"{MOST_FILES} files or {MOST_BYTES // MIB} MiB with what its links lead to"
            raise SatchelError(f"has more than {limit}", where=self._first.folder)


def _is_wanted(path: str, names: Collection[str]) -> bool:
    return not names or any(is_inside(name, path) or is_inside(path, name) for name in names)
