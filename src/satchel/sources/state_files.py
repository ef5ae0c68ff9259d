"""Where we keep what we have to remember, beside what the user configures."""

import os
from collections.abc import Callable
from contextlib import suppress

from satchel.settings import MIB
from satchel.sources.atomic_write import file_lock, write_atomic
from satchel.sources.file_reader import Stamp, StampedPath, UnreadableFileError, read_regular

FOLDER_VARIABLE = "SATCHEL_STATE_DIR"
_LARGEST = 64 * MIB

_DATA_VARIABLE = "SATCHEL_DATA_DIR"


def state_folder(given: str = "") -> str:
    """Return the folder of what is remembered, which `SATCHEL_STATE_DIR` moves."""
    named = given or os.environ.get(FOLDER_VARIABLE, "")
    if not named:
        # Lazy: most hosts have nothing that must be remembered.
        from platformdirs import user_state_dir

        named = user_state_dir("satchel", appauthor=False)
    return os.path.abspath(os.path.expanduser(named))


def data_folder(plugin: str) -> str:
    """Return the folder in which a plugin may keep things, whether it exists or not."""
    base = os.environ.get(_DATA_VARIABLE, "")
    if not base:
        # Lazy: most plugins keep nothing.
        from platformdirs import user_data_dir

        base = user_data_dir("satchel", appauthor=False)
    return os.path.join(os.path.abspath(os.path.expanduser(base)), "plugins", plugin)


def make_folder(path: str) -> None:
    """Make a folder for its owner alone, if it is not there."""
    with suppress(OSError):  # whoever writes there will say so
        os.makedirs(path, mode=0o700, exist_ok=True)


def without_links(path: str) -> str:
    """Return a path as it is once all links are followed."""
    return os.path.realpath(path)


def environment() -> dict[str, str]:
    """Return the environment of this process."""
    return dict(os.environ)


class StateFile:
    """One file in which something is remembered, for its owner alone to read."""

    def __init__(self, folder: str, *names: str) -> None:
        self.path = os.path.join(folder, *names)

    @property
    def stamp(self) -> StampedPath:
        """Return what differs whenever the file does."""
        return self.path, Stamp.at(self.path)

    def read(self) -> bytes | None:
        """Return what is remembered, `None` if nothing is. Raises `UnreadableFileError`."""
        if not os.path.lexists(self.path):
            return None
        data, _ = read_regular(self.path, _LARGEST)
        if len(data) > _LARGEST:
            raise UnreadableFileError(f"it is larger than {_LARGEST} bytes")
        return data

    def change(self, changed: Callable[[bytes | None], bytes]) -> None:
        """Remember what becomes of what is remembered, at one stroke; nobody else may meanwhile.

        Raises `UnreadableFileError` and `SatchelError`.
        """
        with file_lock(self.path, private=True):
            before = self.read()
            data = changed(before)
            if data != before:
                write_atomic(self.path, data, private=True)
