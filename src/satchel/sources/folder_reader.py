"""Reading the files of one unit together: what belongs to it, and which links are followed."""

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.sources.file_reader import (
    Stamp,
    UnitFile,
    UnreadableFileError,
    digest_of,
    is_inside,
    is_utf8,
    read_regular,
    reason_of,
)
from satchel.sources.search_roots import SearchRoot

_SKIPPED_FOLDERS = frozenset({".git", "node_modules", ".venv", "__pycache__"})
_MARK_OF_ENVIRONMENT = "pyvenv.cfg"

# Deeper folders inside one unit are not read; a real skill has two or three levels.
_UNIT_DEPTH = 24


@dataclass(frozen=True, slots=True)
class FolderContent:
    """The files of one unit as they were read together, in the order of their names."""

    files: tuple[UnitFile, ...]
    diagnostics: tuple[Diagnostic, ...]
    links: frozenset[tuple[str, str]] = frozenset()
    """The links among them, with their targets: a change elsewhere may be a change here."""

    @property
    def digest(self) -> str:
        """Name the content: equal digests mean equal files under equal names."""
        lines = (f"{file.name}\0{file.digest}\0" for file in self.files)
        return digest_of("".join(lines).encode("utf-8", "surrogatepass"))

    def is_younger_than(self, seconds: float) -> bool:
        """Tell whether a file changed so lately that somebody may still be writing it."""
        youngest = max((file.stamp.changed for file in self.files), default=0) / 1e9
        return abs(time.time() - youngest) < seconds

    def get(self, name: str) -> UnitFile | None:
        """Return the file of that name, if it was read."""
        return next((file for file in self.files if file.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderReader:
    """How the files of one kind of unit are listed and read.

    `root` is the resolved folder that the user named: links are followed while they stay
    inside it. `wanted` chooses files by their name inside the unit; `keep` says of which
    the bytes are kept. Files larger than `largest` are not read: their stamp stands in. `apart`
    are folders inside the unit that do not belong to it. The `named` files are read and kept
    whatever the others are, and are not counted.
    """

    root: str
    most_files: int
    largest: int
    wanted: Callable[[str], bool] = lambda _name: True
    keep: Callable[[str], bool] = lambda _name: False
    apart: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()

    def read(self, folder: str, before: FolderContent | None = None) -> FolderContent:
        """Read a unit; files that `before` vouches for are taken from it unread."""
        seen = _Seen()
        known = {file.name: file for file in before.files} if before else {}
        named = [self._named(folder, name, known, seen) for name in sorted(self.named)]
        files: list[UnitFile] = []
        for name, path in self._walk(folder, "", (os.path.realpath(folder),), seen):
            if name in self.named:
                continue
            if len(files) == self.most_files:
                seen.problems.append(_too_many(folder, self.most_files, "files"))
                break
            if (file := self._file(name, path, known, seen.problems)) is not None:
                files.append(file)
        return FolderContent(
            tuple(sorted((*filter(None, named), *files), key=lambda file: file.name)),
            tuple(dict.fromkeys(seen.problems)),
            frozenset(seen.links),
        )

    def _named(
        self, folder: str, name: str, known: Mapping[str, UnitFile], seen: "_Seen"
    ) -> UnitFile | None:
        """Read a file by its name, through links that stay inside."""
        path, home = folder, os.path.realpath(folder)
        for part in name.split("/"):
            path = os.path.join(path, part)
            if not part or is_skipped(part) or not os.path.lexists(path):
                return None
            if not os.path.islink(path):
                continue
            target = os.path.realpath(path)
            seen.links.add((path, target))
            if not is_inside(target, self.root):
                seen.problems.append(link_outside(path))
                return None
            if is_inside(home, target):
                return None  # a loop, which the walk tells of
        return self._file(name, path, known, seen.problems)

    def _walk(
        self, folder: str, prefix: str, above: tuple[str, ...], seen: "_Seen"
    ) -> Iterator[tuple[str, str]]:
        """Yield (name inside the unit, path) of what is not a folder, in order of names."""
        if len(above) > _UNIT_DEPTH:
            seen.problems.append(too_deep(folder, _UNIT_DEPTH))
            return
        # Links between a few folders make millions of paths, with or without files in them.
        seen.folders += 1
        if seen.folders > self.most_files:
            if seen.folders == self.most_files + 1:
                seen.problems.append(_too_many(folder, self.most_files, "folders"))
            return
        entries = list_folder(folder, seen.problems)
        if prefix and any(entry.name == _MARK_OF_ENVIRONMENT for entry in entries):
            return  # an environment of Python's, whatever its name
        for entry in entries:
            name = prefix + entry.name
            folder_there = is_folder(entry)
            if not self._belongs(entry, name, seen) or not (folder_there or self.wanted(name)):
                continue
            if entry.is_symlink():
                seen.links.add((entry.path, os.path.realpath(entry.path)))
            if not folder_there:
                yield name, entry.path
            elif (step := follow(entry, above, self.root, seen.problems)) is not None:
                yield from self._walk(entry.path, name + "/", (*above, step), seen)

    def _belongs(self, entry: os.DirEntry[str], name: str, seen: "_Seen") -> bool:
        if is_skipped(entry.name) or name in self.apart:
            return False
        if not is_utf8(entry.name):
            seen.problems.append(not_utf8(entry))
            return False
        return True

    def _file(
        self,
        name: str,
        path: str,
        known: Mapping[str, UnitFile],
        problems: list[Diagnostic],
    ) -> UnitFile | None:
        try:
            status = os.stat(path)
            if os.path.islink(path) and not is_inside(os.path.realpath(path), self.root):
                problems.append(link_outside(path))
                return None
        except OSError as problem:
            problems.append(
                make_diagnostic(
                    "source-unreadable", Where(path), f"cannot be read: {reason_of(problem)}"
                )
            )
            return None
        if not stat.S_ISREG(status.st_mode):
            problems.append(
                make_diagnostic(
                    "source-special-file",
                    Where(path),
                    "is no regular file; it is never read",
                    "remove it if nothing needs it there",
                )
            )
            return None
        before = known.get(name)
        if before is not None and before.is_unchanged(status):
            return before
        return self._read_file(name, path, status, problems)

    def _read_file(
        self, name: str, path: str, status: os.stat_result, problems: list[Diagnostic]
    ) -> UnitFile | None:
        kept = name in self.named or self.keep(name)
        if status.st_size > self.largest and not kept:
            stamp = Stamp.of(status)
            digest = f"{stamp.size}-{stamp.modified}"
            return UnitFile(
                name=name,
                size=status.st_size,
                digest=digest,
                stamp=stamp,
                settled=stamp.is_settled(),
            )
        try:
            data, status = read_regular(path, self.largest)
        except UnreadableFileError as problem:
            problems.append(
                make_diagnostic("source-unreadable", Where(path), f"cannot be read: {problem}")
            )
            return None
        stamp = Stamp.of(status)
        kept_data = data if kept else None
        return UnitFile(
            name=name,
            size=len(data),
            digest=digest_of(data),
            stamp=stamp,
            settled=stamp.is_settled(),
            data=kept_data,
        )


@dataclass(slots=True)
class _Seen:
    """What one walk over a unit met besides its files; it lives as long as the walk."""

    problems: list[Diagnostic] = field(default_factory=list)
    links: set[tuple[str, str]] = field(default_factory=set)
    folders: int = 0


def is_skipped(name: str) -> bool:
    """Tell whether a file or folder of this name is never looked at."""
    # `..data` and `..2026_01_01` are how mounted configuration is switched atomically; the
    # links beside them are what a person means.
    return name in _SKIPPED_FOLDERS or name.startswith("..")


def list_folder(folder: str, problems: list[Diagnostic]) -> list[os.DirEntry[str]]:
    """List a folder in the order of names; one that cannot be read is empty, and reported."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as problem:
        problems.append(
            make_diagnostic(
                "source-unreadable", Where(folder), f"cannot be listed: {reason_of(problem)}"
            )
        )
        return []


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Tell whether an entry is a folder or a link to one; a link that leads nowhere is not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def follow(
    entry: os.DirEntry[str], above: tuple[str, ...], root: str, problems: list[Diagnostic]
) -> str | None:
    """Return the resolved path of a folder to go into; `None` for one not to be entered."""
    # A folder that is no link is on its own way back when a link led above it.
    linked = entry.is_symlink()
    target = os.path.realpath(entry.path) if linked else os.path.join(above[-1], entry.name)
    if linked and not is_inside(target, root):
        problems.append(link_outside(entry.path))
        return None
    if target in above:
        problems.append(
            make_diagnostic(
                "source-link-loop", Where(entry.path), "leads back to a folder above; not followed"
            )
        )
        return None
    return target


def link_outside(path: str) -> Diagnostic:
    """Report a link that leads out of what the user named."""
    return make_diagnostic(
        "source-link-outside",
        Where(path),
        "is a link that leaves the folder you named; it is not followed",
        "name its target as a folder of its own, or copy it in",
    )


def missing(place: SearchRoot) -> Diagnostic:
    """Report a place that was named and is not there."""
    what = "is not a folder" if os.path.exists(place.path) else "does not exist"
    return make_diagnostic(
        "source-missing", Where(place.path), what, "create it, or name another folder"
    )


def too_deep(folder: str, depth: int, limit_name: str = "") -> Diagnostic:
    """Report folders that lie too deep to be looked into."""
    named = f" (limit {limit_name})" if limit_name else ""
    return make_diagnostic(
        "source-too-deep",
        Where(folder),
        f"lies more than {depth} levels deep{named}; it is not looked into",
        "move it up, or name it as a folder of its own",
    )


def _too_many(folder: str, most: int, what: str) -> Diagnostic:
    return make_diagnostic(
        "source-too-many",
        Where(folder),
        f"has more than {most} {what} (limit files_per_skill); the rest is left out",
        "remove files, or raise the limit",
    )


def not_utf8(entry: os.DirEntry[str]) -> Diagnostic:
    """Report a file or folder whose name is not text."""
    shown = os.fsencode(entry.name).decode("utf-8", "backslashreplace")
    return make_diagnostic(
        "source-name-not-utf8",
        Where(os.path.dirname(entry.path)),
        f"the name {shown!r} is not UTF-8; it is left out",
        "rename it",
    )
