"""Reading one file or one folder of a stranger's, safely and no more often than needed."""

import hashlib
import os
import stat
import time
from dataclasses import dataclass

# A file whose last change is younger than this may change again without a new time stamp.
RACY_SECONDS = 2.0


class UnreadableFileError(Exception):
    """A file cannot be read; the text says why, for a diagnostic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What `os.stat` says of a file's content; it only ever saves us from reading."""

    size: int
    modified: int
    changed: int
    inode: int
    device: int
    settled: bool
    """Whether the file was old enough, when it was read, for an equal stamp to mean equal bytes."""

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """Take the stamp of a file that is about to be read."""
        age = time.time() - max(status.st_ctime, status.st_mtime)
        return cls(
            size=status.st_size,
            modified=status.st_mtime_ns,
            changed=status.st_ctime_ns,
            inode=status.st_ino,
            device=status.st_dev,
            settled=age > RACY_SECONDS,
        )

    def vouches_for(self, status: os.stat_result) -> bool:
        """Tell whether a file with this status must still hold what was read under this stamp."""
        return self.settled and (
            self.size,
            self.modified,
            self.changed,
            self.inode,
            self.device,
        ) == (
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
            status.st_dev,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFile:
    """One file of a unit: its path inside the unit, and what it held when it was read."""

    name: str
    size: int
    digest: str
    stamp: Stamp
    data: bytes | None = None
    """The bytes, where the unit's kind needs them; skills keep none."""


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
