"""Detect replaced watched folders, and map event paths to their aliases."""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Self

from satchel.files.file_reader import is_inside, real_path


class RootIdentity:
    """Detects whether a root was replaced since the watch began.

    A root that is deleted and recreated, renamed, or switched by a link sends no more events and
    no error. The folder is kept open meanwhile, so that its inode cannot be reused.
    """

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = roots
        self._descriptors: list[int] = []
        self._ids: dict[str, tuple[int, int] | None] = {}

    def __enter__(self) -> Self:
        flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
        for root in self._roots:
            # The folder may be missing, and some systems cannot open folders.
            with suppress(OSError):
                self._descriptors.append(os.open(root, flags))
            self._ids[root] = _id_of(root)
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)

    def holds(self) -> bool:
        """Return whether every root is still the same folder."""
        return all(_id_of(root) == mark for root, mark in self._ids.items())


def _id_of(root: str) -> tuple[int, int] | None:
    try:
        status = os.stat(root)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class RootAliases:
    """Maps paths between roots that are the same folder: the system reports only one of them."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._real = {root: real_path(root) for root in roots}
        self._linked = any(root != real for root, real in self._real.items())

    def of(self, paths: frozenset[str] | None) -> frozenset[str] | None:
        """Return the paths together with their other names below the roots."""
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
    """Return for each path whether it can be read now."""
    return tuple(os.access(path, os.R_OK) for path in paths)
