"""Notice that the file system with a search root is gone: what it had is not meant to go."""

import os

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.sources.file_reader import Stamp


def device_of(path: str) -> int:
    """Return the device of a folder, or of the nearest one above that exists; 0 if unknown."""
    while not (device := Stamp.at(path).device) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return device


def lost_mount(path: str, device: int) -> Diagnostic | None:
    """Report a root that was on `device`, if it is empty or missing now, on another one.

    A root that is deleted leaves a folder above on its device, unless it was a mount itself.
    """
    if not device or device_of(path) == device:
        return None
    try:
        if os.listdir(path):
            return None  # Something else is there now, so it is meant.
    except FileNotFoundError:
        pass
    except OSError:
        return None  # The scan reports it, and keeps what was there.
    return make_diagnostic(
        "source-unmounted",
        Where(path),
        "is no longer mounted; what it had is still served",
        "mount it again; to remove what it had, put a file in its place, or start again",
    )
