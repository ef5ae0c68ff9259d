"""Detect replaced watched folders, and map event paths to their aliases."""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Self

from satchel.files.file_reader import real_path


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


class PathAliases:
    """Maps paths to their other names: the system reports a folder by only one of its paths."""

    def __init__(self, roots: tuple[str, ...], links: frozenset[tuple[str, str]]) -> None:
        """Roots may be links, or below links; `links` are paths and their real targets."""
        targets = [*((root, real_path(root)) for root in roots), *links]
        self._is_linked = any(path != target for path, target in targets)
        self._at: dict[str, list[str]] = {}
        self._below: dict[str, list[str]] = {}
        for path, target in targets:
            self._at.setdefault(target, []).append(path)
            for folder in _folders_above(target):
                self._below.setdefault(folder, []).append(path)
        # The system does not report when a link on the way to the target of another one changes.
        self._passing = [(path, target) for path, target in links if _passes_links(path, target)]

    def moved(self) -> frozenset[str]:
        """Return the links that lead elsewhere because a link on their way changed; each once."""
        moved = [item for item in self._passing if _id_of(item[0]) != _id_of(item[1])]
        self._passing = [item for item in self._passing if item not in moved]
        return frozenset(path for path, _ in moved)

    def of(self, paths: frozenset[str] | None) -> frozenset[str] | None:
        """Return the paths together with their other names below the roots."""
        if paths is None or not self._is_linked:
            return paths
        return paths.union(*(self._names(path) for path in paths))

    def _names(self, path: str) -> Iterator[str]:
        above, name = os.path.split(path)
        real = os.path.join(real_path(above), name)
        for folder in (real, *_folders_above(real)):
            for alias in self._at.get(folder, ()):
                yield alias + real.removeprefix(folder.rstrip(os.sep))
        yield from self._below.get(real, ())


def _folders_above(path: str) -> Iterator[str]:
    while (above := os.path.dirname(path)) != path:
        yield above
        path = above


def _passes_links(path: str, target: str) -> bool:
    """Return whether a link reaches its real target through other links."""
    try:
        text = os.readlink(path)
    except OSError:
        return False
    return os.path.normpath(os.path.join(real_path(os.path.dirname(path)), text)) != target


def readable_ones(paths: tuple[str, ...]) -> tuple[bool, ...]:
    """Return for each path whether it can be read now."""
    return tuple(os.access(path, os.R_OK) for path in paths)
