"""Open files inside one folder, and never outside: not by `..`, links, or links swapped meanwhile.

A path is resolved first, with all links, and must then be inside. It is opened folder by folder
without following links, so a link that appears in between is refused. Where the system cannot
open relative to a folder (Windows), only the first step protects. Hard links cannot be
distinguished from files. Error messages show the path as the model wrote it, never the host's.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import PureWindowsPath

from satchel.errors import ToolError
from satchel.files.file_reader import is_inside, is_utf8, real_path
from satchel.files.open_folder import BINARY, FOLDER, HAS_HANDLES, NO_LINK, READ
from satchel.lazy_dataclass import dataclass
from satchel.text import shorten

if sys.platform != "win32":
    import fcntl

# The cost of resolving grows with the number of parts.
_LONGEST_PATH = 4096

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | BINARY

_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH

_NOT_REGULAR = "is not a regular file; use another path."
_REASONS = {
    errno.ENOENT: "does not exist; check the path.",
    errno.ENOTDIR: "leads through something that is not a folder; use another path.",
    errno.ELOOP: "is a link that cannot be followed; use another path.",
    errno.EISDIR: "is a folder; name a file in it.",
    errno.EACCES: "may not be opened; use another path.",
    errno.ENAMETOOLONG: "is too long; use a shorter path.",
    errno.ENXIO: _NOT_REGULAR,
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """A folder that paths must stay inside."""

    folder: str
    is_resolved: bool = False
    """Whether it was resolved before, so that no link may have replaced it."""

    def root(self) -> str:
        """Return the folder without links."""
        return self.folder if self.is_resolved else real_path(os.path.expanduser(self.folder))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainedFile:
    """One path inside the base folder, and a descriptor of the folder that it is in."""

    quoted: str
    """The path as the model wrote it, quoted."""
    name: str
    """The last part of the path; the whole path if `folder` is `None`."""
    folder: int | None
    path: str
    """The whole resolved path on the host; it must not appear in messages."""

    def lock(self) -> None:
        """Lock the folder against other calls that change files in it, until it is closed."""
        # Some file systems have no locks; then only parallel calls are unprotected.
        with suppress(OSError):
            if sys.platform != "win32" and self.folder is not None:
                fcntl.flock(self.folder, fcntl.LOCK_EX)

    def read(self, limit: int) -> bytes:
        """Return the content of the file. Raises `ToolError` for more than `limit` bytes."""
        descriptor = os.open(self.name, READ, dir_fd=self.folder)
        try:
            self._demand_regular(os.fstat(descriptor))
            # Closed below, not by the file object: `open` raises for the descriptor of a folder.
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(limit + 1)
        finally:
            os.close(descriptor)
        if len(data) > limit:
            raise ToolError(f"{self.quoted} is too large: more than {limit} bytes.")
        return data

    def write(self, data: bytes) -> None:
        """Replace the content of the file atomically; it keeps its permissions."""
        mode = self._mode()
        beside = os.path.join(os.path.dirname(self.name), f".satchel-{os.urandom(8).hex()}.tmp")
        descriptor = os.open(beside, _CREATE, 0o666, dir_fd=self.folder)
        try:
            with open(descriptor, "wb") as file:
                if mode is not None and sys.platform != "win32":
                    os.fchmod(descriptor, mode)
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            os.replace(beside, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside, dir_fd=self.folder)
            raise

    def stat(self) -> os.stat_result:
        """Return the status of the file. Raises `ToolError` if it is not a regular file."""
        status = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        self._demand_regular(status)
        return status

    def _mode(self) -> int | None:
        """Return the permissions of the existing file, if there is one."""
        try:
            status = self.stat()
        except FileNotFoundError:
            return None
        # Replacing needs rights only on the folder, but a read-only file is read-only on purpose.
        if not status.st_mode & _ANY_WRITE:
            raise ToolError(f"{self.quoted} is read-only; write to another file.")
        return status.st_mode & 0o777

    def _demand_regular(self, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "")
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(f"{self.quoted} {_NOT_REGULAR}")


@contextmanager
def open_contained(
    base: str | os.PathLike[str] | Bounds,
    path: str,
    *,
    start: str = "",
    noun: str = "the working folder",
    make_folders: bool = False,
) -> Iterator[ContainedFile]:
    """Yield a file inside `base`, which need not exist yet.

    The path is relative to `start`, a folder in `base`; error messages call it `noun`. Raises
    `ToolError` for a path that leaves `base`, and for every `OSError` inside the block.
    """
    quoted = repr(shorten(path, 200))
    try:
        root = (base if isinstance(base, Bounds) else Bounds(os.fspath(base))).root()
        parts = _parts(root, start, path, quoted, noun)
        whole = os.path.join(root, *parts)
        if not HAS_HANDLES:
            if make_folders:
                os.makedirs(os.path.dirname(whole), exist_ok=True)
            yield ContainedFile(quoted=quoted, name=whole, folder=None, path=whole)
            return
        folder = _walk(_root(root, noun), parts[:-1], make_folders)
        try:
            yield ContainedFile(quoted=quoted, name=parts[-1], folder=folder, path=whole)
        finally:
            os.close(folder)
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"cannot be used: {error.strerror}.")
        raise ToolError(f"{quoted} {reason}") from None


def is_path(text: str) -> bool:
    """Return whether a text can be a path at all."""
    return 0 < len(text) <= _LONGEST_PATH and "\0" not in text and is_utf8(text)


def _parts(root: str, start: str, path: str, quoted: str, noun: str) -> Sequence[str]:
    """Return the parts of the resolved path, relative to the resolved base folder `root`."""
    if not is_path(path):
        raise ToolError(f"{quoted} is not a path; write one such as notes/plan.md.")
    resolved = real_path(os.path.join(root, start, path))
    # `~` is not expanded, and drives are refused on every system.
    if path.startswith("~") or PureWindowsPath(path).drive or not is_inside(resolved, root):
        raise ToolError(f"{quoted} is not inside {noun}; use a path relative to it.")
    if resolved == root:
        raise ToolError(f"{quoted} {_REASONS[errno.EISDIR]}")
    return os.path.relpath(resolved, root).split(os.sep)


def _root(root: str, noun: str) -> int:
    try:
        return os.open(root, FOLDER)
    except OSError:
        subject = noun[:1].upper() + noun[1:]
        raise ToolError(f"{subject} cannot be opened; tell the user.") from None


def _walk(folder: int, names: Sequence[str], make_folders: bool) -> int:
    """Open folder after folder without following links; return the last descriptor."""
    for name in names:
        try:
            if make_folders:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
            below = os.open(name, FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder
