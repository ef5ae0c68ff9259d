"""Read untrusted files safely, and detect by their stamps whether they changed."""

import hashlib
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from typing import NamedTuple

from satchel.lazy_dataclass import dataclass

# A file that changed more recently than this may change again without a new time stamp.
RACY_SECONDS = 2.0
_MOST_TRIES = 100
_CHUNK = 64 * 1024


class UnreadableFileError(Exception):
    """A file cannot be read; the message is the reason, for a diagnostic."""


class Stamp(NamedTuple):
    """The fields of `os.stat` that change with the content of a file or folder.

    All are zero if the file is missing.
    """

    size: int = 0
    modified: int = 0
    changed: int = 0
    inode: int = 0
    device: int = 0

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """Return the stamp of a file with this status."""
        return cls(
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
            status.st_dev,
        )

    @classmethod
    def at(cls, path: str) -> "Stamp":
        """Return the stamp of the file at a path."""
        try:
            return cls.of(os.stat(path))
        except OSError:
            return cls()

    def is_settled(self) -> bool:
        """Return whether it is old enough, now, for an equal stamp to mean equal content."""
        return time.time() - max(self.changed, self.modified) / 1e9 > RACY_SECONDS


StampedPath = tuple[str, Stamp]


def stamped(paths: Iterable[str]) -> tuple[StampedPath, ...]:
    """Return each path with its stamp, which changes when the file or folder does."""
    return tuple((path, Stamp.at(path)) for path in paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFile:
    """One file of a skill or plugin: its path inside the folder, and its content when read."""

    name: str
    size: int
    digest: str
    stamp: Stamp
    settled: bool
    """Whether an equal stamp later means equal content; otherwise the file is read again."""
    data: bytes | None = field(default=None, compare=False, repr=False)
    """The bytes, if they are kept; records are compared by the digest instead."""

    def is_unchanged(self, status: os.stat_result) -> bool:
        """Return whether a file with this status certainly has the same content."""
        return self.settled and self.stamp == Stamp.of(status)


def digest_of(data: bytes) -> str:
    """Return a short digest of some bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def is_inside(path: str, root: str) -> bool:
    """Return whether a path is `root` or below it; both must be resolved."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def touches(changed: Iterable[str], path: str) -> bool:
    """Return whether one of the changed paths is inside `path` or contains it."""
    return any(is_inside(item, path) or is_inside(path, item) for item in changed)


def real_path(path: str) -> str:
    """Return a path without links, as `os.path.realpath`, also while links are replaced."""
    for _ in range(_MOST_TRIES):
        with suppress(OSError):  # a link was replaced between `lstat` and `readlink`
            return os.path.realpath(path)
    return os.path.realpath(path)


def may_be_folder(path: str) -> bool:
    """Return whether a path is a folder, or may be one that cannot be looked at now."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def is_utf8(name: str) -> bool:
    """Return whether a file name is valid text; others cannot be shown or sent."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_regular(path: str, limit: int, root: str = "") -> tuple[bytes, os.stat_result]:
    """Return at most `limit + 1` bytes of a regular file, and its status; never blocks on a pipe.

    The open file must be inside the resolved folder `root`, if it is given, also when a link
    replaces the file or a folder above it at this moment. Raises `UnreadableFileError` for
    anything else, and for a file that cannot be read.
    """
    try:
        # O_NONBLOCK: opening a FIFO for reading would otherwise wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise UnreadableFileError(reason_of(error)) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFileError("it is not a regular file")
        if root and not is_inside(_path_of(descriptor, path, status), root):
            raise UnreadableFileError("a link that leaves the folder replaced it")
        return _read_up_to(descriptor, limit + 1, status.st_size), status
    except OSError as error:
        raise UnreadableFileError(reason_of(error)) from None
    finally:
        os.close(descriptor)


def _read_up_to(descriptor: int, most: int, expected: int) -> bytes:
    """Return at most `most` bytes, in one piece if the file has its `expected` size."""
    # A buffer of `most` bytes would be allocated in full, which takes longer than the reading.
    # Files of the kernel have no size.
    step = min(expected or _CHUNK, most - 1) + 1
    data = os.read(descriptor, step)
    if len(data) == expected:
        return data  # A file that grows at this moment gets a new stamp.
    while len(data) < most and (more := os.read(descriptor, min(_CHUNK, most - len(data)))):
        data += more
    return data


def _path_of(descriptor: int, path: str, status: os.stat_result) -> str:
    """Return where an open file is now, without links; `""` if that is not certain."""
    with suppress(OSError):
        return os.readlink(f"/proc/self/fd/{descriptor}")
    # Systems without `/proc`: resolved again, the path must still lead to the open file. Links
    # that are swapped twice in between can deceive this.
    resolved = real_path(path)
    with suppress(OSError):
        if os.path.samestat(os.lstat(resolved), status):
            return resolved
    return ""


def reason_of(error: Exception) -> str:
    """Return the system's reason, without the path, which diagnostics show anyway."""
    return getattr(error, "strerror", None) or str(error)
