"""What a watch observes."""

from collections.abc import Iterable

from satchel.files.file_reader import StampedPath
from satchel.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTargets:
    """The folders and files to watch; the watcher is rebuilt when the roots or links change."""

    roots: tuple[str, ...] = ()
    links: frozenset[tuple[str, str]] = frozenset()
    installed: tuple[StampedPath, ...] = ()
    """Folders of installed packages, with their stamps when they were read."""
    files: tuple[StampedPath, ...] = ()
    """Single paths, with their stamps when they were read; a change is an event with the path."""
    awaited: tuple[str, ...] = ()
    """Files that appear when a running installation ends."""
    settling: frozenset[str] = frozenset()
    """Paths that may have been half written when they were read."""
    unreadable: tuple[str, ...] = ()
    """Folders and files that could not be read; there may be no events below them."""


def all_targets(parts: Iterable[WatchTargets]) -> WatchTargets:
    """Return the targets of all parts."""
    parts = tuple(parts)
    return WatchTargets(
        roots=tuple(sorted({path for part in parts for path in part.roots})),
        links=frozenset().union(*(part.links for part in parts)),
        installed=tuple(item for part in parts for item in part.installed),
        files=tuple(item for part in parts for item in part.files),
        awaited=tuple(path for part in parts for path in part.awaited),
        settling=frozenset().union(*(part.settling for part in parts)),
        unreadable=tuple(sorted({path for part in parts for path in part.unreadable})),
    )
