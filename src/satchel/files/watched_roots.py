"""Detect replaced folders that are watched, and map event paths to their aliases."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Self

from satchel.files.file_reader import Stamp, is_inside, real_path, stamped

# Linux follows at most 40 links in one path.
_MOST_LINKS = 40
_SHARE = 0.003
"""The most of one core that comparing the targets of links may take."""


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


class LinkTargets:
    """Detects links that lead to another folder than before, though they are the same.

    The system reports what happens in a target, but not that a folder above it, or a link on the
    way to it, is replaced.
    """

    def __init__(self, roots: tuple[str, ...], links: frozenset[tuple[str, str]]) -> None:
        links_by_folder: dict[str, list[str]] = {}
        for path, target in links:
            for folder in {os.path.dirname(target), *_folders_on_the_way(path)}:
                links_by_folder.setdefault(folder, []).append(path)
        real_roots = [real_path(root) for root in roots]
        self._links = {
            folder: paths
            for folder, paths in links_by_folder.items()
            if not _is_inside_any(real_path(folder), real_roots)
        }
        self._folders = stamped(self._links)
        self._targets = dict(_targets(self._links.values()))
        self._next = 0.0

    def moved(self) -> frozenset[str]:
        """Return the links whose targets were replaced, came or went.

        With very many links it compares them only every second or so, and else returns none.
        """
        if time.monotonic() < self._next:
            return frozenset()
        start = time.thread_time()
        moved = self._moved()
        self._next = time.monotonic() + (time.thread_time() - start) / _SHARE
        return moved

    def _moved(self) -> frozenset[str]:
        # Replacing a target changes the stamp of a folder above it, so only links below changed
        # folders are compared.
        changed = (
            self._links[folder]
            for (folder, stamp), before in zip(stamped(self._links), self._folders, strict=True)
            if before[1] != stamp or not stamp.is_settled()
        )
        return frozenset(
            path for path, target in _targets(changed) if target != self._targets[path]
        )


def _is_inside_any(path: str, roots: Iterable[str]) -> bool:
    return any(is_inside(path, root) for root in roots)


def _targets(links: Iterable[list[str]]) -> Iterator[tuple[str, tuple[int, int, int]]]:
    for path in {path for paths in links for path in paths}:
        target = Stamp.at(path)
        # The time, too: a new folder may get the number of a removed one.
        yield path, (target.device, target.inode, target.changed)


def _folders_on_the_way(link: str) -> Iterator[str]:
    """Yield the folder of each target along a chain of links."""
    for _ in range(_MOST_LINKS):
        try:
            text = os.readlink(link)
        except OSError:
            return
        link = os.path.join(os.path.dirname(link), text.rstrip(os.sep))
        yield os.path.dirname(link)


def readable_ones(paths: tuple[str, ...]) -> tuple[bool, ...]:
    """Return for each path whether it can be read now."""
    return tuple(os.access(path, os.R_OK) for path in paths)
