"""Replace or remove a folder atomically, one process at a time.

While this runs, the old and new folders have hidden names next to the target, which scans of
plugins skip. The names tell a later process how to repair an interrupted change.
"""

import os
import re
import signal
import stat
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from satchel.errors import SatchelError
from satchel.files.atomic_write import file_lock
from satchel.files.file_reader import is_inside, reason_of
from satchel.settings import MIB
from satchel.sources.folder_reader import is_skipped

_NEW, _OLD, _GONE = "new", "old", "gone"
_HIDDEN = re.compile(rf"\.(.+)\.({_NEW}|{_OLD}|{_GONE})-[0-9a-f]{{12}}", re.DOTALL)


@contextmanager
def placed(staged: str, target: str) -> Iterator[None]:
    """Replace `target` with `staged` while the block runs, and after it unless the block raises.

    Then the old content is restored, and `staged` removed. Both paths must be on the same disk.
    Raises `SatchelError`.
    """
    backup = hidden_beside(target, _OLD)
    identity: tuple[int, int] | None = None
    try:
        try:
            if os.path.lexists(target):
                os.rename(target, backup)
            identity = _identity(staged)
            os.rename(staged, target)
        except OSError as problem:
            raise _cannot_change(target, problem) from None
        yield
    except BaseException:
        was_placed = not os.path.lexists(staged)
        # This error counts; `repair_placement` repairs what cannot be restored now.
        with suppress(SatchelError, OSError):
            _restore(backup, target, identity)
        with suppress(SatchelError):
            # If it never took the place, the backup may be the only copy of the old version.
            removed(backup if was_placed else staged)
        raise
    with suppress(SatchelError):  # a hidden leftover does no harm
        removed(backup)


def replace_folder(staged: str, target: str) -> None:
    """Replace `target` with `staged`, or leave it as it is and raise `SatchelError`."""
    with placed(staged, target):
        pass


def _restore(backup: str, target: str, placed_identity: tuple[int, int] | None) -> None:
    discarded = hidden_beside(target, _GONE)
    # Another process may have replaced the target: then leave it and the backup alone.
    if placed_identity and _identity(target) == placed_identity:
        os.rename(target, discarded)
    if os.path.lexists(backup) and not os.path.lexists(target):
        os.rename(backup, target)
    removed(discarded)


def repair_placement(target: str) -> list[str]:
    """Repair what a killed process left at a target, and return messages about it.

    The caller must hold the lock of the target. Raises `SatchelError`.
    """
    folder, name = os.path.split(target)
    leftovers: dict[str, list[str]] = {_OLD: [], _NEW: [], _GONE: []}
    messages = []
    try:
        for path in (os.path.join(folder, entry) for entry in os.listdir(folder)):
            match = _HIDDEN.fullmatch(os.path.basename(path))
            if match and match[1] == name:
                leftovers[match[2]].append(path)
        for backup in leftovers[_OLD]:
            removed(target)
            os.rename(backup, target)
            messages = [f"a change of {name} was interrupted; the old version was restored"]
    except FileNotFoundError:
        return messages
    except OSError as problem:
        raise _cannot_change(target, problem) from None
    for path in (*leftovers[_NEW], *leftovers[_GONE]):
        removed(path)
        messages = messages or [f"a change of {name} was interrupted; its files were removed"]
    return messages


def hidden_beside(path: str, kind: str = _NEW) -> str:
    """Return an unused path in the same folder, with a hidden name."""
    folder, name = os.path.split(path)
    if match := _HIDDEN.fullmatch(name):
        name = match[1]
    return os.path.join(folder, f".{name}.{kind}-{os.urandom(6).hex()}")


def removed(path: str) -> bool:
    """Remove a folder, a file or a link, and return whether it existed.

    A folder is hidden first, so that a partly removed one is never seen. Raises `SatchelError`.
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
        raise _cannot_change(path, problem) from None
    return True


def _remove_folder(folder: str) -> None:
    """Remove a folder of any depth: nested folders are moved up first, so no path is too long."""
    folders = [folder]
    _make_writable(folder)
    for current in folders:  # the list grows during the loop
        for entry in _entries(current):
            if entry.is_dir(follow_symlinks=False):
                _make_writable(entry.path)
                moved = os.path.join(folder, os.urandom(12).hex())
                os.rename(entry.path, moved)
                folders.append(moved)
            else:
                os.unlink(entry.path)
    for current in reversed(folders):
        os.rmdir(current)


def _make_writable(folder: str) -> None:
    # Tools such as git and Go create read-only folders.
    with suppress(OSError):  # removing may work even if we are not the owner
        os.chmod(folder, stat.S_IRWXU)


def staged_link(source: str, target: str) -> str:
    """Create a link to a folder next to `target`, and return the path of the link."""
    staged = hidden_beside(target)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.path.realpath(source), staged)
    except OSError as problem:
        raise _cannot_change(target, problem) from None
    return staged


def staged_copy(
    source: str,
    target: str,
    files: Mapping[str, str] | None = None,
    only: Collection[str] = (),
) -> str:
    """Copy a folder, or `only` these paths of it, next to `target`; return the path of the copy.

    Folders such as `.git` are left out. `files` are written into the copy, by their path inside
    it. Raises `SatchelError` for links that leave the folder.
    """
    root = os.path.realpath(source)
    require_outside(target, root)
    staged = hidden_beside(target)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _copy(root, staged, [os.path.normpath(os.path.join(root, path)) for path in only] or [root])
        write_files(staged, files or {})
    except BaseException as problem:
        removed(staged)
        if isinstance(problem, OSError):
            raise _cannot_change(target, problem) from None
        raise
    return staged


def write_files(folder: str, files: Mapping[str, str]) -> None:
    """Write files, given by their paths inside a folder, in the place of what is there."""
    for name, text in files.items():
        path = os.path.join(folder, *name.split("/"))
        removed(path)  # it may be a link to another file
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)


def require_outside(target: str, source: str) -> None:
    """Raise `SatchelError` if a copy of a folder would be placed inside that folder."""
    if is_inside(os.path.realpath(os.path.dirname(target)), os.path.realpath(source)):
        raise SatchelError("contains the folder of installed plugins", where=source)


def climbs_out(text: str, depth: int) -> bool:
    """Return whether the text of a link leaves the folder that is `depth` levels above the link.

    Only the text is checked: another link in its path may still leave the folder.
    """
    for part in text.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return text.startswith("/")


def _copy(root: str, copy: str, names: Collection[str]) -> None:
    folders = [(root, copy, 0)]
    while folders:
        folder, folder_copy, depth = folders.pop()
        os.mkdir(folder_copy)
        with read_errors(folder):
            entries = _entries(folder)
        for entry in entries:
            target = os.path.join(folder_copy, entry.name)
            leads_there = any(is_inside(path, entry.path) for path in names)
            is_wanted = leads_there or any(is_inside(entry.path, path) for path in names)
            if is_skipped(entry.name) or not is_wanted:
                continue
            if entry.is_symlink():
                text = os.readlink(entry.path)
                # Check the text, too: a link that leaves and returns would point to the original.
                if climbs_out(text, depth) or not is_inside(os.path.realpath(entry.path), root):
                    message = "is a link that leaves the folder"
                    fix = "replace the link with a copy of its target"
                    raise SatchelError(message, where=entry.path, fix=fix)
                os.symlink(text, target)
            elif entry.is_dir():
                folders.append((entry.path, target, depth + 1))
            elif entry.is_file():
                copy_file(entry.path, target)
            else:
                raise SatchelError("is not a regular file", where=entry.path, fix="remove it")


def copy_file(path: str, target: str) -> None:
    """Copy a file to a new path, with its permissions. Raises `SatchelError` if unreadable."""
    with read_errors(path):
        file = open(path, "rb")  # noqa: SIM115 - closed below; later errors are not read errors
    with file, open(target, "xb") as copy:
        while chunk := file.read(MIB):
            copy.write(chunk)
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    os.chmod(target, mode & 0o777 | stat.S_IWUSR)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def _identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode at a path, or `None` if nothing is there."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def read_errors(path: str) -> Iterator[None]:
    """Raise `SatchelError` with a path in the place of an `OSError`."""
    try:
        yield
    except OSError as problem:
        raise SatchelError(f"cannot read: {reason_of(problem)}", where=path) from None


def _cannot_change(path: str, problem: OSError) -> SatchelError:
    return SatchelError(f"cannot change: {reason_of(problem)}", where=path)


_BUSY = "another process installs or removes something here"


@contextmanager
def exclusive_change(target: str, report: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock of the folder around `target`. Raises `SatchelError` if it is taken.

    Repairs what a killed process left, and passes a message about it to `report`. SIGTERM and
    SIGHUP interrupt the block.
    """
    # `file_lock` locks the folder around a path, and the last name does not count. Not `target`
    # itself: that may be a link to somewhere else.
    in_folder = os.path.join(os.path.dirname(target), "any")
    with ending_in_order(), file_lock(in_folder, busy=_BUSY):
        for line in repair_placement(target):
            report(line)
        yield


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP interrupt the block like Ctrl-C, so that it can undo its changes.

    Only the first signal interrupts; a second one would interrupt the undo. Signals that the
    program handles or ignores are left alone. Outside the main thread this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_ending = False

    def interrupt(_number: int, _frame: Any) -> None:
        nonlocal is_ending
        if not is_ending:
            is_ending = True
            raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    default = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    try:
        for number in default:
            signal.signal(number, interrupt)
        yield
    finally:
        for number in default:
            signal.signal(number, signal.SIG_DFL)
