"""Read untrusted files safely, and detect by their stamps whether they changed."""

import hashlib
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from operator import attrgetter
from typing import NamedTuple

from satchel.lazy_dataclass import dataclass

# A file that changed more recently than this may change again without a new time stamp.
RACY_SECONDS = 2.0
_MOST_TRIES = 100
_CHUNK = 64 * 1024


class UnreadableFileError(Exception):
    """A file cannot be read; the message is the reason, for a diagnostic."""


class UnusableFileError(UnreadableFileError):
    """A file can be read, but its content must not be used; reading it again does not help."""


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
        return _new_tuple(cls, stamp_fields(status))

    @classmethod
    def saved(cls, values: list[int]) -> "Stamp":
        """Return a stamp that was saved as a list."""
        return _new_tuple(cls, values)

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


_new_tuple = tuple.__new__
stamp_fields = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_dev")
"""Return the fields of a stamp as a plain tuple, which is equal to the stamp."""


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
    """The digest of its bytes; `""` if it was only listed."""
    stamp: Stamp
    settled: bool
    """Whether an equal stamp later means equal content; otherwise the file is read again."""
    data: bytes | None = field(default=None, compare=False, repr=False)
    """The bytes, if they are kept; records are compared by the digest instead."""

    @property
    def version(self) -> str:
        """Return what changes with the content: the digest, or size and time of a listed file."""
        return self.digest or f"{self.size}-{self.stamp.modified}"

    def is_unchanged(self, status: os.stat_result) -> bool:
        """Return whether a file with this status certainly has the same content."""
        return self.settled and self.stamp == Stamp.of(status)


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of some bytes; a lock file has it, too."""
    # Processors compute this one much faster than others.
    return hashlib.sha256(data).hexdigest()


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
    # A link that may not be read, as in `/proc`, leads nowhere: nothing opens through it.
    above, name = os.path.split(path)
    return os.path.join(real_path(above), name)


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
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_regular(path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """Return at most `limit + 1` bytes of a regular file, and its status; never blocks on a pipe.

    Links are followed. Raises `UnreadableFileError` for anything else, and for a file that cannot
    be read.
    """
    try:
        # O_NONBLOCK: opening a FIFO for reading would otherwise wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise UnreadableFileError(reason_of(error)) from None
    return read_open_file(descriptor, limit)


def read_open_file(descriptor: int, limit: int) -> tuple[bytes, os.stat_result]:
    """Read an open file as `read_regular` does, and close it."""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFileError("it is not a regular file")
        return _read_up_to(descriptor, limit + 1, status.st_size), status
    except OSError as error:
        raise UnreadableFileError(reason_of(error)) from None
    finally:
        os.close(descriptor)


def read_or_none(path: str, limit: int) -> bytes | None:
    """Return what `read_regular` reads, `None` if the file cannot be read."""
    try:
        return read_regular(path, limit)[0]
    except UnreadableFileError:
        return None


def _read_up_to(descriptor: int, most: int, expected: int) -> bytes:
    """Return at most `most` bytes, in one piece if the file has its `expected` size."""
    # A buffer of `most` bytes would be allocated in full, which takes longer than the reading.
    # Files of the kernel have no size.
    step = min(expected or _CHUNK, most - 1) + 1
    data = os.read(descriptor, step)
    if len(data) == expected:
        return data  # A file that grows at this moment gets a new stamp.
    while len(data) < most and (chunk := os.read(descriptor, min(_CHUNK, most - len(data)))):
        data += chunk
    return data


def reason_of(error: Exception) -> str:
    """Return the system's reason, without the path, which diagnostics show anyway."""
    return getattr(error, "strerror", None) or str(error)
