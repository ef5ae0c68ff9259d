"""Write files of the user atomically, with locks."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from satchel.errors import SatchelError

_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700
_held: ContextVar[frozenset[str]] = ContextVar("held", default=frozenset())
"""The folders whose locks the running code has."""


@contextmanager
def file_lock(path: str, *, private: bool = False, busy: str = "") -> Iterator[None]:
    """Hold the lock of a file. Raises `SatchelError`.

    The folder is locked, so no lock file is left behind. A missing folder is created. If the lock
    is taken, wait, or raise the error `busy`. Without `busy`, the lock is reentrant.
    """
    folder = os.path.dirname(os.path.realpath(path))
    if folder in _held.get() and not busy:
        yield
        return
    try:
        _make_folder(folder, private=private)
    except OSError as error:
        raise _unwritten(folder, error) from None
    try:
        # Lazy: some systems have no `fcntl`.
        from fcntl import LOCK_EX, LOCK_NB, flock

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        try:
            flock(descriptor, LOCK_EX | LOCK_NB if busy else LOCK_EX)
        except BlockingIOError:
            fix = "wait until it ends, then try again"
            raise SatchelError(busy, where=folder, fix=fix) from None
        except OSError:
            pass  # a file system without locks
        token = _held.set(_held.get() | {folder})
        try:
            yield
        finally:
            _held.reset(token)
    finally:
        os.close(descriptor)


def require_no_link_out(path: str) -> None:
    """Raise `SatchelError` for a project's file that is a link to somewhere else."""
    if os.path.dirname(os.path.realpath(path)) != os.path.realpath(os.path.dirname(path) or "."):
        raise SatchelError("is a link that leaves the project; nothing was written", where=path)


def write_atomic(path: str, data: bytes, *, private: bool = False) -> None:
    """Replace a file atomically; links and the file's mode are kept. Raises `SatchelError`.

    A `private` file, and a folder created for it, can be read only by the owner.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    beside = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
    try:
        _make_folder(folder, private=private)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        descriptor = os.open(beside, flags, _PRIVATE_FILE if private else 0o666)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                if os.path.exists(target) and not private and hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), os.stat(target).st_mode & 0o7777)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise
    except OSError as error:
        raise _unwritten(path, error) from None


def _make_folder(folder: str, *, private: bool) -> None:
    os.makedirs(folder, mode=_PRIVATE_FOLDER if private else 0o777, exist_ok=True)


def _unwritten(path: str, error: OSError) -> SatchelError:
    return SatchelError(f"cannot be written: {error.strerror or error}", where=path)
