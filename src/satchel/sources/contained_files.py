"""Files inside one folder, and no way out of it: not by `..`, not by links, not by a swapped link.

A path is resolved first, links and all, and must then lie inside. It is opened folder by folder
without following any link, so one that was put there in between is refused. Where the system
cannot open relative to a folder (Windows), only the resolving protects. Hard links cannot be told
from files. Error texts hold the path as the model wrote it, never one of the host.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import PureWindowsPath

from satchel.errors import ToolError
from satchel.sources.file_reader import is_inside, is_utf8
from satchel.text import shorten

if sys.platform != "win32":
    import fcntl

_CAN_WALK = os.open in os.supports_dir_fd
# Resolving looks at every part of a path, so it must not be a megabyte of them.
_LONGEST_PATH = 4096

# Names, because some systems lack some of them; see `_flags`.
_FOLDER = ("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW")
# O_NONBLOCK: opening a FIFO for reading would otherwise wait for a writer.
_READ = ("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_NOFOLLOW", "O_BINARY")
_CREATE = ("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_BINARY")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainedFile:
    """One path inside the base folder, and the open folder that holds it."""

    written: str
    """The path as the model wrote it, quoted."""
    name: str
    """The last part of the path; all of it where `folder` is `None`."""
    folder: int | None
    path: str
    """All of the path, resolved; it is the host's, so no text may hold it."""

    def lock(self) -> None:
        """Wait until no other call changes a file in the same folder; closing it unlocks."""
        # Not every file system has locks, and without them only parallel calls are at risk.
        with suppress(OSError):
            if sys.platform != "win32" and self.folder is not None:
                fcntl.flock(self.folder, fcntl.LOCK_EX)

    def read(self, limit: int) -> bytes:
        """Return what the file holds. Raises `ToolError` for more than `limit` bytes."""
        descriptor = os.open(self.name, _flags(_READ), dir_fd=self.folder)
        try:
            self._demand_regular(os.fstat(descriptor))
            # Not closed by the file: `open` itself raises on the descriptor of a folder.
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(limit + 1)
        finally:
            os.close(descriptor)
        if len(data) > limit:
            raise ToolError(f"{self.written} is too large: more than {limit} bytes.")
        return data

    def write(self, data: bytes) -> None:
        """Replace the file by one that holds `data`, all at once; it keeps its permissions."""
        mode = self._mode()
        beside = os.path.join(os.path.dirname(self.name), f".satchel-{os.urandom(8).hex()}.tmp")
        descriptor = os.open(beside, _flags(_CREATE), 0o666, dir_fd=self.folder)
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

    def look(self) -> os.stat_result:
        """Return what the system says of the file. Raises `ToolError` if it is no regular one."""
        status = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        self._demand_regular(status)
        return status

    def _mode(self) -> int | None:
        """Return the permissions of the file that is to be replaced, if there is one."""
        try:
            status = self.look()
        except FileNotFoundError:
            return None
        # Replacing asks only for rights on the folder; whoever made the file read-only meant it.
        if not status.st_mode & _ANY_WRITE:
            raise ToolError(f"{self.written} is read-only; write to another file.")
        return status.st_mode & 0o777

    def _demand_regular(self, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "")
        if not stat.S_ISREG(status.st_mode):
            raise ToolError(f"{self.written} {_NOT_REGULAR}")


@contextmanager
def open_contained(
    base: str | os.PathLike[str],
    path: str,
    *,
    start: str = "",
    noun: str = "the working folder",
    make_folders: bool = False,
) -> Iterator[ContainedFile]:
    """Open the way to a file inside `base`; the file itself need not exist.

    The path is relative to `start`, a folder in `base`, which error texts call by `noun`. Raises
    `ToolError` for a path that leads out of `base`, and for what the system refuses meanwhile.
    """
    written = repr(shorten(path, 200))
    try:
        root = os.path.realpath(os.path.expanduser(base))
        parts = _parts(root, start, path, written, noun)
        whole = os.path.join(root, *parts)
        if not _CAN_WALK:
            if make_folders:
                os.makedirs(os.path.dirname(whole), exist_ok=True)
            yield ContainedFile(written=written, name=whole, folder=None, path=whole)
            return
        folder = _walk(_root(root, noun), parts[:-1], make_folders)
        try:
            yield ContainedFile(written=written, name=parts[-1], folder=folder, path=whole)
        finally:
            os.close(folder)
    except OSError as problem:
        reason = _REASONS.get(problem.errno or 0, f"cannot be used: {problem.strerror}.")
        raise ToolError(f"{written} {reason}") from None


def is_path(text: str) -> bool:
    """Tell whether a text can be a path at all."""
    return 0 < len(text) <= _LONGEST_PATH and "\0" not in text and is_utf8(text)


def _parts(root: str, start: str, path: str, written: str, noun: str) -> Sequence[str]:
    """Return the parts of a path below the resolved base folder, all links in it resolved."""
    if not is_path(path):
        raise ToolError(f"{written} is no path; write one such as notes/plan.md.")
    found = os.path.realpath(os.path.join(root, start, path))
    # Nobody expands ~ here, and a drive is one that only another system has.
    if path.startswith("~") or PureWindowsPath(path).drive or not is_inside(found, root):
        raise ToolError(f"{written} is not inside {noun}; use a path relative to it.")
    if found == root:
        raise ToolError(f"{written} {_REASONS[errno.EISDIR]}")
    return os.path.relpath(found, root).split(os.sep)


def _root(root: str, noun: str) -> int:
    try:
        return os.open(root, _flags(_FOLDER))
    except OSError:
        who = noun[:1].upper() + noun[1:]
        raise ToolError(f"{who} cannot be opened; tell the user.") from None


def _walk(folder: int, names: Sequence[str], make_folders: bool) -> int:
    """Go down from an open folder without following a link, and return the last one, open."""
    for name in names:
        try:
            if make_folders:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
            below = os.open(name, _flags(_FOLDER), dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    return folder


def _flags(names: Sequence[str]) -> int:
    """Return flags for `os.open`; those that the system does not know are left out."""
    flags = 0
    for name in names:
        flags |= getattr(os, name, 0)
    return flags
