"""Putting a folder into its place at one stroke, and taking it out again.

What is under way has a hidden name beside its place, which no scan of plugins looks into. The
name says what it is, so that whoever finds it later knows what to do with it.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from satchel.errors import SatchelError
from satchel.settings import MIB
from satchel.sources.file_reader import is_inside, reason_of
from satchel.sources.folder_reader import is_skipped

_NEW, _OLD, _GONE = "new", "old", "gone"
_HIDDEN = re.compile(rf"\.(.+)\.({_NEW}|{_OLD}|{_GONE})-[0-9a-f]{{12}}", re.DOTALL)


class Placement:
    """Something new that takes a place while the block runs, and keeps it if it is told to.

    Unless `keep` was called, what stood there before is back at the end. Both are on one disk.
    Raises `SatchelError`.
    """

    def __init__(self, staged: str, target: str) -> None:
        self._staged, self._target = staged, target
        self._aside = hidden_beside(target, _OLD)
        self._ours: tuple[int, int] | None = None
        self._is_kept = False

    def __enter__(self) -> Self:
        try:
            if os.path.lexists(self._target):
                os.rename(self._target, self._aside)
            self._ours = _identity(self._staged)
            os.rename(self._staged, self._target)
        except BaseException as problem:
            self._undo()
            if isinstance(problem, OSError):
                raise _unwritten(self._target, problem) from None
            raise
        return self

    def keep(self) -> None:
        """Let the new one stay."""
        self._is_kept = True

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _problem: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if not self._is_kept:
            self._undo()
        with suppress(SatchelError):  # it is hidden, and nobody needs it any more
            removed(self._aside)

    def _undo(self) -> None:
        gone = hidden_beside(self._target, _GONE)
        try:
            # What somebody else put there meanwhile is not ours to take away.
            if self._ours and _identity(self._target) == self._ours:
                os.rename(self._target, gone)
            if os.path.lexists(self._aside) and not os.path.lexists(self._target):
                os.rename(self._aside, self._target)
        except OSError as problem:
            raise _unwritten(self._target, problem) from None
        with suppress(SatchelError):
            removed(gone)


def repair_placement(target: str) -> list[str]:
    """Put in order what a change of this place left that was killed, and say what was done.

    Only for whoever knows that no change is under way. Raises `SatchelError`.
    """
    folder, name = os.path.split(target)
    left: dict[str, list[str]] = {_OLD: [], _NEW: [], _GONE: []}
    told = []
    try:
        for path in (os.path.join(folder, entry) for entry in os.listdir(folder)):
            found = _HIDDEN.fullmatch(os.path.basename(path))
            if found and found[1] == name:
                left[found[2]].append(path)
        for old in left[_OLD]:
            removed(target)
            os.rename(old, target)
            told = [f"a change of {name} was broken off; what was there before it is back"]
    except FileNotFoundError:
        return told
    except OSError as problem:
        raise _unwritten(target, problem) from None
    for path in (*left[_NEW], *left[_GONE]):
        removed(path)
        told = told or [f"a change of {name} was broken off; what it left is removed"]
    return told


def hidden_beside(path: str, what: str = _NEW) -> str:
    """Return a path that nobody has, in the same folder, with a name that is hidden."""
    folder, name = os.path.split(path)
    if found := _HIDDEN.fullmatch(name):
        name = found[1]
    return os.path.join(folder, f".{name}.{what}-{os.urandom(6).hex()}")


def removed(path: str) -> bool:
    """Remove a folder, a file or a link, and tell whether it was there.

    A folder gets a hidden name first, so that nobody sees half of it. Raises `SatchelError`.
    """
    if not path or not os.path.lexists(path):
        return False
    try:
        if os.path.islink(path) or not os.path.isdir(path):
            os.unlink(path)
        else:
            hidden = hidden_beside(path, _GONE)
            os.rename(path, hidden)
            _remove_folder(hidden)
    except OSError as problem:
        raise _unwritten(path, problem) from None
    return True


def _remove_folder(folder: str) -> None:
    """Remove a folder; those in it come up to it first, so that none is too deep."""
    folders = [folder]
    _let_change(folder)
    for here in folders:  # it grows meanwhile
        for entry in _entries(here):
            if entry.is_dir(follow_symlinks=False):
                _let_change(entry.path)
                up = os.path.join(folder, os.urandom(12).hex())
                os.rename(entry.path, up)
                folders.append(up)
            else:
                os.unlink(entry.path)
    for here in reversed(folders):
        os.rmdir(here)


def _let_change(folder: str) -> None:
    """Take back what owners forbid themselves, as tools do with folders that they fetched."""
    with suppress(OSError):  # whoever does not own it may be allowed to all the same
        os.chmod(folder, stat.S_IRWXU)


def staged_link(source: str, target: str) -> str:
    """Make a link beside `target` that leads to a folder, and return its path."""
    staged = hidden_beside(target)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.path.realpath(source), staged)
    except OSError as problem:
        raise _unwritten(target, problem) from None
    return staged


def staged_copy(source: str, target: str) -> str:
    """Copy a folder beside `target`, and return the path of the copy.

    What belongs to tools is left out. Raises `SatchelError` for links that leave the folder.
    """
    root = os.path.realpath(source)
    if is_inside(os.path.realpath(os.path.dirname(target)), root):
        raise SatchelError("holds the folder that plugins are installed into", where=source)
    staged = hidden_beside(target)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _copy(root, staged)
    except BaseException as problem:
        removed(staged)
        if isinstance(problem, OSError):
            raise _unwritten(target, problem) from None
        raise
    return staged


def climbs_out(text: str, depth: int) -> bool:
    """Tell whether a link's text leads out of a folder that lies `depth` folders above it.

    What it leads through is not looked at: another link on the way may still lead out.
    """
    for part in text.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return text.startswith("/")


def _copy(root: str, copy: str) -> None:
    waiting = [(root, copy, 0)]
    while waiting:
        folder, made, depth = waiting.pop()
        os.mkdir(made)
        with _reading(folder):
            entries = _entries(folder)
        for entry in entries:
            there = os.path.join(made, entry.name)
            if is_skipped(entry.name):
                continue
            if entry.is_symlink():
                text = os.readlink(entry.path)
                # By its text, too: what leaves and comes back would lead to the original.
                if climbs_out(text, depth) or not is_inside(os.path.realpath(entry.path), root):
                    fault = "is a link that leaves the plugin's folder"
                    raise SatchelError(fault, where=entry.path, fix="copy its target in")
                os.symlink(text, there)
            elif entry.is_dir():
                waiting.append((entry.path, there, depth + 1))
            elif entry.is_file():
                _copy_file(entry.path, there)
            else:
                raise SatchelError("is no regular file", where=entry.path, fix="remove it")


def _copy_file(path: str, there: str) -> None:
    with _reading(path):
        file = open(path, "rb")  # noqa: SIM115 - closed below; only this is a fault of the source
    with file, open(there, "xb") as copy:
        while chunk := file.read(MIB):
            copy.write(chunk)
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    os.chmod(there, mode & 0o777 | stat.S_IWUSR)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def _identity(path: str) -> tuple[int, int] | None:
    """Name what has a path now, whoever gave it to it; `None` if nothing has."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise SatchelError(f"cannot be read: {reason_of(problem)}", where=path) from None


def _unwritten(path: str, problem: OSError) -> SatchelError:
    return SatchelError(f"cannot be changed: {reason_of(problem)}", where=path)
