"""Open folders: what is in them is opened by its name there, and never through a link.

So nothing is resolved by its path twice, and a link that appears meanwhile leads nowhere. The
target of a link is read and followed in the same way, step by step. Where the system cannot open
relative to a folder (Windows), paths are used, and links are looked for before each step.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, Self

from satchel.files.file_reader import UnreadableFileError, is_inside, read_open_file, reason_of

HAS_HANDLES = os.open in os.supports_dir_fd
_MOST_LINKS = 40
_MAY_BE_LINK = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})
"""The errors of opening a link as a folder, without following it."""

# Some systems lack some flags.
NO_LINK, BINARY = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_BINARY", 0)
FOLDER = os.O_RDONLY | NO_LINK | getattr(os, "O_DIRECTORY", 0)
# O_NONBLOCK: opening a FIFO for reading would otherwise wait for a writer.
READ = NO_LINK | BINARY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
# Folders above may be entered by users who may not list them.
_PASSED = FOLDER | getattr(os, "O_PATH", 0)


def joined(folder: str, name: str) -> str:
    """Return the path of an entry of a folder."""
    return f"{folder}{name}" if folder.endswith(os.sep) else f"{folder}{os.sep}{name}"


class OpenFolder:
    """A folder that stays open, whatever replaces it or a folder above; its path has no links."""

    __slots__ = ("above", "handle", "path", "status")

    def __init__(self, path: str, handle: int | None, above: "OpenFolder | None" = None) -> None:
        self.path, self.handle, self.above = path, handle, above
        self.status = os.lstat(path) if handle is None else os.fstat(handle)
        """Its status when it was opened: an entry that is added later changes it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.handle is not None:
            os.close(self.handle)

    def enter(self, name: str, how: int = FOLDER) -> "OpenFolder":
        """Open a folder in this one. Raises `OSError`, also for a link."""
        path = joined(self.path, name)
        if self.handle is not None:
            return OpenFolder(path, os.open(name, how, dir_fd=self.handle), self)
        below = OpenFolder(path, None, self)
        if self.target_of(name) is not None or not stat.S_ISDIR(below.status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return below

    def reopened(self) -> "OpenFolder":
        """Open the same folder again, so that it can be listed. Raises `OSError`."""
        handle = self.handle
        again = handle if handle is None else os.open(".", FOLDER, dir_fd=handle)
        return OpenFolder(self.path, again, self.above)

    def entries(self) -> list[os.DirEntry[str]]:
        """Return its entries in any order. Raises `OSError`."""
        with os.scandir(self.path if self.handle is None else self.handle) as entries:
            return list(entries)

    def stat(self, name: str) -> os.stat_result:
        """Return the status of an entry, also of a link itself. Raises `OSError`."""
        return os.stat(self._at(name), dir_fd=self.handle, follow_symlinks=False)

    def read(self, name: str, limit: int) -> tuple[bytes, os.stat_result]:
        """Return at most `limit + 1` bytes of a regular file, and its status.

        Raises `UnreadableFileError`, also for a link.
        """
        is_link = self.handle is None and self.target_of(name) is not None
        try:
            descriptor = -1 if is_link else os.open(self._at(name), READ, dir_fd=self.handle)
        except (OSError, ValueError) as error:
            is_link = getattr(error, "errno", None) == errno.ELOOP
            if not is_link:
                raise UnreadableFileError(reason_of(error)) from None
        if is_link:
            raise UnreadableFileError("a link has just replaced it")
        return read_open_file(descriptor, limit)

    def target_of(self, name: str) -> str | None:
        """Return what a link says, `None` if it is not one or does not exist."""
        try:
            return os.readlink(self._at(name), dir_fd=self.handle)
        except OSError:
            return None

    def _at(self, name: str) -> str:
        return joined(self.path, name) if self.handle is None else name


class Place(NamedTuple):
    """Where a path leads: a folder, or the file with a name in a folder."""

    folder: OpenFolder
    file: str = ""

    @property
    def path(self) -> str:
        """Return its path without links."""
        return joined(self.folder.path, self.file) if self.file else self.folder.path


@contextmanager
def following(path: str, start: OpenFolder | None = None) -> Iterator[Place]:
    """Yield where a path leads, link by link; it is absolute or begins in the folder `start`.

    Raises `OSError` if it leads nowhere.
    """
    with ExitStack() as opened:
        yield _follow(path, start, opened)


@contextmanager
def inside(path: str, root: str) -> Iterator[Place]:
    """Yield where an absolute path leads, which must be inside the resolved folder `root`.

    Raises `UnreadableFileError`.
    """
    with ExitStack() as opened:
        try:
            place = _follow(path, None, opened)
        except (OSError, ValueError) as error:
            raise UnreadableFileError(reason_of(error)) from None
        if not is_inside(place.path, root):
            raise UnreadableFileError("a link that leaves the folder replaced it")
        yield place


def read_inside(path: str, limit: int, root: str) -> tuple[bytes, os.stat_result]:
    """Read a regular file as `read_regular` does; it must be inside the resolved folder `root`."""
    with inside(path, root) as place:
        if not place.file:
            raise UnreadableFileError("it is not a regular file")
        return place.folder.read(place.file, limit)


def _follow(path: str, start: OpenFolder | None, opened: ExitStack) -> Place:
    names: list[str] = []
    folder = start or _top(path, opened)
    for _ in range(_MOST_LINKS):
        if os.path.isabs(path):
            folder = _top(path, opened)
        path = os.path.splitdrive(path)[1]
        names += reversed([name for name in path.split(os.sep) if name not in {"", "."}])
        while names:
            name = names.pop()
            try:
                if name == "..":
                    folder = folder.above or folder
                else:
                    folder = opened.enter_context(folder.enter(name, _PASSED))
            except OSError as error:
                target = folder.target_of(name) if error.errno in _MAY_BE_LINK else None
                if target is None and (names or error.errno != errno.ENOTDIR):
                    raise
                if target is None:
                    return Place(folder, name)
                path = target
                break
        else:
            return Place(opened.enter_context(folder.reopened()))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _top(path: str, opened: ExitStack) -> OpenFolder:
    """Return the open top of the file system, or of the drive that a path names."""
    top = os.path.splitdrive(path)[0] + os.sep
    return opened.enter_context(OpenFolder(top, os.open(top, _PASSED) if HAS_HANDLES else None))
