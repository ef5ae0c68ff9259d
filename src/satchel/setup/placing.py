"""Putting a folder into its place at one stroke, and taking it out again.

What is under way has a hidden name beside its place, which no scan of plugins looks into.
"""

import os
import stat
from contextlib import suppress
from types import TracebackType
from typing import Self

from satchel.errors import SatchelError
from satchel.sources.files import is_inside, reason_of
from satchel.sources.folders import is_skipped


class Placing:
    """Something new that takes a place while the block runs, and keeps it if it is told to.

    Unless `keep` was called, what stood there before is back at the end. Both are on one disk.
    Raises `SatchelError`.
    """

    def __init__(self, staged: str, target: str) -> None:
        self._staged, self._target = staged, target
        self._aside = ""
        self._is_kept = False

    def __enter__(self) -> Self:
        try:
            if os.path.lexists(self._target):
                aside = hidden_beside(self._target)
                os.rename(self._target, aside)
                self._aside = aside
            os.rename(self._staged, self._target)
        except OSError as problem:
            self._put_back()
            raise _unwritten(self._target, problem) from None
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
        if self._is_kept:
            with suppress(SatchelError):  # it is hidden, and nobody needs it any more
                removed(self._aside)
            return
        removed(self._target)
        self._put_back()

    def _put_back(self) -> None:
        if self._aside:
            os.rename(self._aside, self._target)


def hidden_beside(path: str) -> str:
    """Return a path that nobody has, in the same folder, with a name that is hidden."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{os.urandom(6).hex()}")


def removed(path: str) -> bool:
    """Remove a folder, a file or a link, and tell whether it was there.

    A folder gets a hidden name first, so that nobody sees half of it. Raises `SatchelError`.
    """
    if not path or not os.path.lexists(path):
        return False
    # Lazy: it brings compression.
    import shutil

    try:
        if os.path.islink(path) or not os.path.isdir(path):
            os.unlink(path)
        else:
            hidden = hidden_beside(path)
            os.rename(path, hidden)
            shutil.rmtree(hidden)
    except OSError as problem:
        raise _unwritten(path, problem) from None
    return True


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
        _copy(root, staged, root, 0)
    except BaseException as problem:
        removed(staged)
        if isinstance(problem, OSError):
            raise _unwritten(problem.filename or source, problem) from None
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


def _copy(folder: str, copy: str, root: str, depth: int) -> None:
    import shutil

    os.mkdir(copy)
    with os.scandir(folder) as entries:
        for entry in entries:
            there = os.path.join(copy, entry.name)
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
                _copy(entry.path, there, root, depth + 1)
            elif entry.is_file():
                shutil.copyfile(entry.path, there)
                os.chmod(there, stat.S_IMODE(entry.stat().st_mode) & 0o777 | stat.S_IWUSR)
            else:
                raise SatchelError("is no regular file", where=entry.path, fix="remove it")


def _unwritten(path: str, problem: OSError) -> SatchelError:
    return SatchelError(f"cannot be changed: {reason_of(problem)}", where=path)
