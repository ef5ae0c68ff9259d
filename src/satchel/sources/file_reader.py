"""Reading one file or one folder of a stranger's, safely and no more often than needed."""

import hashlib
import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

# A file whose last change is younger than this may change again without a new time stamp.
RACY_SECONDS = 2.0


class UnreadableFileError(Exception):
    """A file cannot be read; the text says why, for a diagnostic."""


class Stamp(NamedTuple):
    """What `os.stat` says of the content of a file or folder; of one that is missing, zeros."""

    size: int = 0
    modified: int = 0
    changed: int = 0
    inode: int = 0
    device: int = 0

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """Take the stamp of what has this status."""
        return cls(
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
            status.st_dev,
        )

    @classmethod
    def at(cls, path: str) -> "Stamp":
        """Take the stamp of what is at a path."""
        try:
            return cls.of(os.stat(path))
        except OSError:
            return cls()

    def is_settled(self) -> bool:
        """Tell whether it is old enough, now, for an equal stamp to mean an equal content."""
        return time.time() - max(self.changed, self.modified) / 1e9 > RACY_SECONDS


StampedPath = tuple[str, Stamp]


def stamped(paths: Iterable[str]) -> tuple[StampedPath, ...]:
    """Return each path with its stamp, which changes when the file or folder does."""
    return tuple((path, Stamp.at(path)) for path in paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFile:
    """One file of a unit: its path inside the unit, and what it held when it was read."""

    name: str
    size: int
    digest: str
    stamp: Stamp
    settled: bool
    """Whether the file was settled when it was read; the stamp only ever saves us from reading."""
    data: bytes | None = None
    """The bytes, where the unit's kind needs them; skills keep none."""

    def is_unchanged(self, status: os.stat_result) -> bool:
        """Tell whether a file with this status must still hold what was read."""
        return self.settled and self.stamp == Stamp.of(status)


def digest_of(data: bytes) -> str:
    """Return a short digest that names some bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def is_inside(path: str, root: str) -> bool:
    """Tell whether a resolved path is `root`, itself resolved, or below it."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def is_utf8(name: str) -> bool:
    """Tell whether a file name is proper text; the others cannot be shown or sent."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_regular(path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """Read at most `limit` bytes and one more of a regular file, never blocking on a pipe.

    Raises `UnreadableFileError` for anything that is not a regular file or may not be read.
    """
    try:
        # O_NONBLOCK: opening a FIFO for reading would otherwise wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as problem:
        raise UnreadableFileError(reason_of(problem)) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFileError("it is not a regular file")
        # Not closed by the file: `open` itself raises on the descriptor of a folder.
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(limit + 1), status
    except OSError as problem:
        raise UnreadableFileError(reason_of(problem)) from None
    finally:
        os.close(descriptor)


def reason_of(problem: Exception) -> str:
    """Say what the system said, without the path that stands beside it anyway."""
    return getattr(problem, "strerror", None) or str(problem)
