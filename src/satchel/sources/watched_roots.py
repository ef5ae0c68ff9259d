"""The folders that are watched: whether they are still the same, and by which names."""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Self

from satchel.sources.file_reader import is_inside


class RootIdentity:
    """Knows whether each root is still the folder it was when the watches were set.

    A root that is deleted and made again, renamed, or switched by a link sends no more events,
    and no error either. The folder is held open meanwhile, so that its inode cannot be reused.
    """

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = roots
        self._held: list[int] = []
        self._marks: dict[str, tuple[int, int] | None] = {}

    def __enter__(self) -> Self:
        flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0)
        for root in self._roots:
            # A folder may be missing, and some systems open none: then the mark alone must do.
            with suppress(OSError):
                self._held.append(os.open(root, flags))
            self._marks[root] = _mark(root)
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._held:
            os.close(descriptor)

    def holds(self) -> bool:
        """Tell whether every root is what it was."""
        return all(_mark(root) == mark for root, mark in self._marks.items())


def _mark(root: str) -> tuple[int, int] | None:
    try:
        status = os.stat(root)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class RootAliases:
    """Knows which roots are one folder by several paths: the system reports only one of them."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._real = {root: os.path.realpath(root) for root in roots}
        self._linked = any(root != real for root, real in self._real.items())

    def of(self, paths: frozenset[str] | None) -> frozenset[str] | None:
        """Add to each path its other names below the roots."""
        if paths is None or not self._linked:
            return paths
        return paths.union(*(self._names(path) for path in paths))

    def _names(self, path: str) -> Iterator[str]:
        for root, real in self._real.items():
            if is_inside(path, root) or is_inside(path, real):
                below = path.removeprefix(root if is_inside(path, root) else real)
                for other, target in self._real.items():
                    if is_inside(real + below, target):
                        yield other + (real + below).removeprefix(target)


def readable_ones(paths: tuple[str, ...]) -> tuple[bool, ...]:
    """Tell of each path whether it may be read now."""
    return tuple(os.access(path, os.R_OK) for path in paths)
