"""Read and write Satchel's own state, and locate its state and data folders."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

from satchel.errors import SatchelError
from satchel.files.atomic_write import file_lock, write_atomic
from satchel.files.file_reader import (
    Stamp,
    StampedPath,
    UnreadableFileError,
    UnusableFileError,
    read_regular,
    reason_of,
)
from satchel.settings import MIB

FOLDER_VARIABLE = "SATCHEL_STATE_DIR"
DATA_VARIABLE = "SATCHEL_DATA_DIR"
CACHE_VARIABLE = "SATCHEL_CACHE_DIR"
_LARGEST = 64 * MIB
_XDG = {
    "config": ("XDG_CONFIG_HOME", "~/.config"),
    "data": ("XDG_DATA_HOME", "~/.local/share"),
    "state": ("XDG_STATE_HOME", "~/.local/state"),
    "cache": ("XDG_CACHE_HOME", "~/.cache"),
}


def state_folder(folder: str = "") -> str:
    """Return the folder of the state files; `SATCHEL_STATE_DIR` changes it."""
    return user_folder("state", folder or os.environ.get(FOLDER_VARIABLE, ""))


def data_folder(plugin: str) -> str:
    """Return the data folder of a plugin, which may not exist."""
    base = user_folder("data", os.environ.get(DATA_VARIABLE, ""))
    return os.path.join(base, "plugins", plugin)


def cache_path(file: str) -> str:
    """Return the path of a file in the user's cache; `SATCHEL_CACHE_DIR` changes the folder."""
    return os.path.join(user_folder("cache", os.environ.get(CACHE_VARIABLE, "")), file)


def user_folder(kind: str, folder: str) -> str:
    """Return the absolute path of `folder`, or of the user's folder of this kind."""
    if not folder and sys.platform == "linux":
        # The usual case of platformdirs, which takes long to import.
        variable, usual = _XDG[kind]
        base = os.environ.get(variable, "")
        folder = os.path.join(base if os.path.isabs(base) else usual, "satchel")
    if not folder:
        import platformdirs

        folder = getattr(platformdirs, f"user_{kind}_dir")("satchel", appauthor=False)
    return os.path.abspath(os.path.expanduser(folder))


def is_file(path: str) -> bool:
    """Return whether there is a file."""
    return os.path.isfile(path)


def exists(path: str) -> bool:
    """Return whether there is a file, a folder or a link."""
    return os.path.lexists(path)


def names_in(folder: str) -> list[str]:
    """Return the sorted names in a folder; none if it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def make_folder(path: str) -> None:
    """Create a folder that only its owner can read, if it does not exist."""
    with suppress(OSError):  # a later write reports the error
        os.makedirs(path, mode=0o700, exist_ok=True)


def without_links(path: str) -> str:
    """Return a path with all links resolved."""
    return os.path.realpath(path)


def environment() -> Mapping[str, str]:
    """Return the environment of this process; it is not copied."""
    return os.environ


class StateFile:
    """One state file, which only its owner can read."""

    def __init__(self, folder: str, *names: str) -> None:
        self.path = os.path.join(folder, *names)

    @property
    def stamp(self) -> StampedPath:
        """Return the path with its stamp, which changes when the file does."""
        return self.path, Stamp.at(self.path)

    def read(self) -> bytes | None:
        """Return the content, `None` if there is no file. Raises `UnreadableFileError`."""
        try:
            os.lstat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            # A record that the system hides for a moment is not a missing one.
            raise UnreadableFileError(reason_of(error)) from None
        data, _ = read_regular(self.path, _LARGEST)
        if len(data) > _LARGEST:
            raise UnusableFileError(f"it is larger than {_LARGEST} bytes")
        return data

    def change(self, update: Callable[[bytes | None], bytes]) -> None:
        """Replace the content by `update(content)`, atomically and under a lock.

        Raises `UnreadableFileError` and `SatchelError`.
        """
        with file_lock(self.path, private=True):
            before = self.read()
            data = update(before)
            if data != before:
                write_atomic(self.path, data, private=True)

    def delete(self) -> bool:
        """Remove the file. Return whether there was one. Raises `SatchelError`."""
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            return False
        except OSError as error:
            message = f"cannot be removed: {error.strerror or error}"
            raise SatchelError(message, where=self.path) from None
        return True
