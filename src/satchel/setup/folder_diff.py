"""Compare two folders for a person: what an update would change."""

import difflib
import os
from collections.abc import Iterator

from satchel.settings import MIB
from satchel.sources.file_reader import UnreadableFileError, read_regular
from satchel.sources.tree_digest import read_digests

_LARGEST = MIB


def folder_diff(before: str, after: str) -> Iterator[str]:
    """Yield the lines of a unified diff; what is no text is only named."""
    old, new = read_digests(before), read_digests(after)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield from _file_diff(name, _text(before, name, old), _text(after, name, new))


def _file_diff(name: str, old: list[str] | None, new: list[str] | None) -> Iterator[str]:
    if old is None or new is None:
        yield f"changed {name}: not text, or too long to show"
        return
    if old == new:
        yield f"changed {name}: only in its line ends"
        return
    yield from difflib.unified_diff(old, new, f"before/{name}", f"after/{name}", lineterm="", n=2)


def _text(folder: str, name: str, digests: dict[str, str]) -> list[str] | None:
    """Return the lines of a file, none if it does not exist, and `None` if it cannot be shown."""
    if name not in digests:
        return []
    try:
        data, _ = read_regular(os.path.join(folder, *name.split("/")), _LARGEST)
        text = data.decode()
    except (UnreadableFileError, UnicodeDecodeError):
        return None
    return None if len(data) > _LARGEST or "\0" in text else text.splitlines()
