"""Read all files of one skill or plugin folder; links that leave the root are refused."""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from operator import attrgetter
from shlex import quote

from satchel.diagnostics import Diagnostic, Severity, Where, make_diagnostic
from satchel.lazy_dataclass import dataclass
from satchel.sources.file_reader import (
    Stamp,
    UnitFile,
    UnreadableFileError,
    digest_of,
    is_inside,
    is_utf8,
    read_regular,
    real_path,
    reason_of,
)
from satchel.sources.search_roots import SearchRoot
from satchel.sources.secret_files import is_secret_file, leads_to_secret

_SKIPPED_FOLDERS = frozenset({".git", "node_modules", ".venv", "__pycache__"})
_ENVIRONMENT_MARK = "pyvenv.cfg"
_REPOSITORY_MARKS = frozenset({".git", ".hg", ".jj"})

# Deeper folders are not read; a real skill has two or three levels.
_MAX_DEPTH = 24

_NAME = attrgetter("name")


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderContent:
    """The files of one skill or plugin folder, sorted by name."""

    files: tuple[UnitFile, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    links: frozenset[tuple[str, str]] = frozenset()
    """The links among them, with their targets, which may change as well."""
    folders: tuple[tuple[str, Stamp], ...] = ()
    """The folder itself, `""`, and those in it; none unless equal stamps mean equal content."""

    @property
    def digest(self) -> str:
        """Return a digest of all names and contents."""
        if len(self.files) == 1:
            return f"{self.files[0].version}-{self.files[0].name}"
        lines = (f"{file.name}\0{file.version}\0" for file in self.files)
        return digest_of("".join(lines).encode("utf-8", "surrogatepass"))

    def is_unchanged_at(self, folder: str) -> bool:
        """Return whether the stamps of `folder` alone show that this is still its content."""
        if not self.folders:
            return False
        try:
            for name, stamp in self.folders:
                if Stamp.of(os.lstat(f"{folder}/{name}" if name else folder)) != stamp:
                    return False
            for file in self.files:
                if Stamp.of(os.lstat(f"{folder}/{file.name}")) != file.stamp:
                    return False
        except OSError:
            return False
        return True

    def is_younger_than(self, seconds: float) -> bool:
        """Return whether a file changed so recently that it may be half written."""
        youngest = max((file.stamp.changed for file in self.files), default=0) / 1e9
        return abs(time.time() - youngest) < seconds

    def get(self, name: str) -> UnitFile | None:
        """Return the file with that name, if it was read."""
        return next((file for file in self.files if file.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderReader:
    """Reads the files of one kind of folder.

    Links are followed while they stay inside `root`, a resolved folder. `wanted` selects files by
    their name inside the folder, and `keep` those whose bytes are kept. Other files are only
    listed if they are larger than `largest`, or if `lists_others`. Folders in `exclude` are
    skipped. `required` files are always read and kept, and do not count towards `most_files`.
    `hides_secrets` leaves out `.env` files, and links to them.
    """

    root: str
    most_files: int
    largest: int
    wanted: Callable[[str], bool] = lambda _name: True
    keep: Callable[[str], bool] = lambda _name: False
    lists_others: bool = False
    exclude: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    skips_repositories: bool = False
    """Whether folders below that are repositories of their own are skipped."""
    hides_secrets: bool = False

    def read(
        self,
        folder: str,
        before: FolderContent | None = None,
        resolved: str = "",
        listing: "Listing | None" = None,
        data: dict[str, bytes] | None = None,
    ) -> FolderContent:
        """Return the content of a folder; files unchanged since `before` are not read again.

        `resolved` is its path without links and `listing` what is in it, where that is known.
        The bytes of the kept files that are read go to `data`, if it is given.
        """
        cached = {file.name: file for file in before.files} if before else {}
        walk = _WalkState(cached=cached, data=data)
        files: list[UnitFile] = []
        files.extend(
            file
            for name in sorted(self.required)
            if (file := self._required(folder, name, walk)) is not None
        )
        most = len(files) + self.most_files
        above = (resolved or real_path(folder),)
        for name, path, is_link in self._walk(folder, "", above, walk, listing):
            if name in self.required:
                continue
            if len(files) == most:
                walk.diagnostics.append(_too_many(folder, self.most_files, "files"))
                break
            if (file := self._file(name, path, walk, is_link=is_link)) is not None:
                files.append(file)
        files.sort(key=_NAME)
        return walk.content(files)

    def _required(self, folder: str, name: str, walk: "_WalkState") -> UnitFile | None:
        """Read a file by its name; links must stay inside the root."""
        path, home, is_link = folder, real_path(folder), False
        for part in name.split("/"):
            path = os.path.join(path, part)
            if not part or is_skipped(part) or not os.path.lexists(path):
                return None
            if is_link := os.path.islink(path):
                target = real_path(path)
                walk.links.add((path, target))
                if not is_inside(target, self.root):
                    walk.diagnostics.append(link_outside(path))
                    return None
                if is_inside(home, target):
                    return None  # a loop, which `_walk` reports
        return self._file(name, path, walk, is_link=is_link)

    def _walk(
        self,
        folder: str,
        prefix: str,
        above: tuple[str, ...],
        walk: "_WalkState",
        listing: "Listing | None" = None,
    ) -> Iterator[tuple[str, str, bool]]:
        """Yield (name inside the folder, path, whether it is a link) of all files, by name."""
        if len(above) > _MAX_DEPTH:
            walk.diagnostics.append(too_deep(folder, _MAX_DEPTH))
            return
        # Links between a few folders can make millions of paths.
        if len(walk.folders) >= self.most_files:
            if not walk.is_cut:
                walk.diagnostics.append(_too_many(folder, self.most_files, "folders"))
            walk.is_cut = True
            return
        stamp, entries = listing or list_with_stamp(folder, walk.diagnostics)
        walk.folders.append((prefix[:-1], stamp))
        if prefix and self._is_other(folder, entries, walk):
            return
        for entry in entries:
            name = prefix + entry.name
            enters = is_folder(entry)
            if not self._belongs(entry, name, walk) or not (enters or self.wanted(name)):
                continue
            is_link = entry.is_symlink()
            if is_link:
                walk.links.add((entry.path, real_path(entry.path)))
            if not enters:
                yield name, entry.path, is_link
            elif (step := follow(entry, above, self.root, walk.diagnostics)) is not None:
                yield from self._walk(entry.path, name + "/", (*above, step), walk)

    def _is_other(
        self, folder: str, entries: Iterable[os.DirEntry[str]], walk: "_WalkState"
    ) -> bool:
        """Return whether a folder does not belong to the one that is read; say so if needed."""
        if self.skips_repositories and is_repository(entries):
            walk.diagnostics.append(in_repository(folder))
            return True
        return any(entry.name == _ENVIRONMENT_MARK for entry in entries)  # a virtual environment

    def _belongs(self, entry: os.DirEntry[str], name: str, walk: "_WalkState") -> bool:
        if is_skipped(entry.name) or name in self.exclude:
            return False
        if not is_utf8(entry.name):
            walk.diagnostics.append(not_utf8(entry))
            return False
        return not self._is_secret(entry, walk)

    def _is_secret(self, entry: os.DirEntry[str], walk: "_WalkState") -> bool:
        if not self.hides_secrets:
            return False
        secret = is_secret_file(entry.name) or (
            entry.is_symlink() and leads_to_secret(real_path(entry.path), self.root)
        )
        if secret:
            walk.diagnostics.append(_secret(entry.path))
            if entry.is_symlink():
                walk.links.add((entry.path, real_path(entry.path)))
        return secret

    def _file(self, name: str, path: str, walk: "_WalkState", *, is_link: bool) -> UnitFile | None:
        try:
            if is_link and not os.path.exists(path):
                walk.diagnostics.append(broken_link(path))
                return None
            if is_link and not is_inside(real_path(path), self.root):
                walk.diagnostics.append(link_outside(path))
                return None
            status = os.stat(path, follow_symlinks=is_link)
        except OSError as error:
            walk.report_unreadable(path, reason_of(error))
            return None
        if not stat.S_ISREG(status.st_mode):
            walk.diagnostics.append(
                make_diagnostic(
                    "source-special-file",
                    Where(path),
                    "is not a regular file; it is never read",
                    "remove it if nothing needs it there",
                )
            )
            return None
        before = walk.cached.get(name)
        if before is not None and before.is_unchanged(status):
            return before
        return self._read_file(name, path, status, walk)

    def _read_file(
        self, name: str, path: str, status: os.stat_result, walk: "_WalkState"
    ) -> UnitFile | None:
        kept = name in self.required or self.keep(name)
        data, digest, size = None, "", status.st_size
        if kept or not (self.lists_others or size > self.largest):
            try:
                data, status = read_regular(path, self.largest, self.root)
            except UnreadableFileError as error:
                walk.report_unreadable(path, str(error))
                return None
            digest, size = digest_of(data), len(data)
            if kept and walk.data is not None:
                walk.data[name] = data
        stamp = Stamp.of(status)
        return UnitFile(
            name=name,
            size=size,
            digest=digest,
            stamp=stamp,
            settled=stamp.is_settled(),
            data=data if kept and walk.data is None else None,
        )


UNREADABLE = frozenset({"source-unreadable", "source-link-broken"})
"""The codes of files and folders that exist and cannot be read."""


@dataclass(slots=True, kw_only=True)
class _WalkState:
    """The state of one walk over a folder."""

    cached: Mapping[str, UnitFile]
    data: dict[str, bytes] | None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    links: set[tuple[str, str]] = field(default_factory=set)
    folders: list[tuple[str, Stamp]] = field(default_factory=list)
    is_cut: bool = False

    def report_unreadable(self, path: str, reason: str) -> None:
        """Add the diagnostic of a file that cannot be read."""
        self.diagnostics.append(
            make_diagnostic("source-unreadable", Where(path), f"cannot be read: {reason}")
        )

    def content(self, files: list[UnitFile]) -> FolderContent:
        """Return what was found."""
        if self.links or self.diagnostics:
            diagnostics = tuple(dict.fromkeys(self.diagnostics))
            links = frozenset(self.links)
            return FolderContent(files=tuple(files), diagnostics=diagnostics, links=links)
        is_settled = all(file.settled for file in files) and all(
            stamp.is_settled() for _, stamp in self.folders
        )
        folders = tuple(self.folders) if is_settled else ()
        return FolderContent(files=tuple(files), folders=folders)


@dataclass(frozen=True, slots=True)
class NamedEntry:
    """An entry of a folder that is known by its name, so that the folder need not be listed."""

    name: str
    path: str

    def is_symlink(self) -> bool:
        """Return whether it is a link."""
        return os.path.islink(self.path)

    def is_dir(self) -> bool:
        """Return whether it is a folder or a link to one."""
        return os.path.isdir(self.path)


FolderEntry = os.DirEntry[str] | NamedEntry


def is_skipped(name: str) -> bool:
    """Return whether files and folders of this name are always skipped."""
    # Kubernetes switches mounted volumes atomically with folders such as `..data` and
    # `..2026_01_01`; the links beside them lead to the files.
    return name in _SKIPPED_FOLDERS or name.startswith("..")


def list_folder(folder: str, diagnostics: list[Diagnostic]) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, sorted by name; report a folder that cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=_NAME)
    except OSError as error:
        diagnostics.append(
            make_diagnostic(
                "source-unreadable", Where(folder), f"cannot be listed: {reason_of(error)}"
            )
        )
        return []


Listing = tuple[Stamp, Sequence[os.DirEntry[str]]]
"""The entries of a folder, with its stamp before they were listed."""


def list_with_stamp(folder: str, diagnostics: list[Diagnostic]) -> Listing:
    """Return the entries of a folder, as `list_folder` does, with its stamp."""
    # The stamp comes first: an entry that is added meanwhile will change it again.
    return Stamp.at(folder), list_folder(folder, diagnostics)


def is_folder(entry: FolderEntry) -> bool:
    """Return whether an entry is a folder or a link to one; a broken link is not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def follow(
    entry: FolderEntry, above: tuple[str, ...], root: str, diagnostics: list[Diagnostic]
) -> str | None:
    """Return the resolved path of a folder to enter; report one that must not be entered."""
    # A folder that is not a link can still be a loop, if a link led above it.
    linked = entry.is_symlink()
    target = real_path(entry.path) if linked else f"{above[-1].rstrip(os.sep)}{os.sep}{entry.name}"
    if linked and not is_inside(target, root):
        diagnostics.append(link_outside(entry.path))
        return None
    if target in above:
        diagnostics.append(
            make_diagnostic(
                "source-link-loop", Where(entry.path), "leads back to a folder above; not followed"
            )
        )
        return None
    return target


def is_repository(entries: Iterable[FolderEntry]) -> bool:
    """Return whether a folder with these entries is the top of a repository."""
    return any(entry.name in _REPOSITORY_MARKS for entry in entries)


def nested_repository(place: SearchRoot, path: str = "") -> str:
    """Return the repository inside a project that contains a search root, or `path`; or `""`.

    Links are resolved, so that none leads around a repository.
    """
    if not (place.is_of_project and place.within):
        return ""
    folder, path = real_path(place.within), real_path(path or place.path)
    for part in os.path.relpath(path, folder).split(os.sep):
        folder = os.path.join(folder, part)
        if part != "." and is_repository(list_folder(folder, [])):
            return folder
    return ""


def in_repository(folder: str) -> Diagnostic:
    """Return the diagnostic of a repository inside a project, which is not loaded."""
    return make_diagnostic(
        "source-nested-repository",
        Where(folder),
        "is a repository of its own; the trust in the project around it does not include it",
        f"look at it, then name it with --skills or --plugins {quote(folder)}",
    )


def link_outside(path: str) -> Diagnostic:
    """Return the diagnostic of a link that leaves the root."""
    return make_diagnostic(
        "source-link-outside",
        Where(path),
        f"is a link to {_target_of(path)}, outside the folder you named; it is not followed",
        "name its target as a folder of its own, or copy it in",
    )


def broken_link(path: str) -> Diagnostic:
    """Return the diagnostic of a link to nothing."""
    return make_diagnostic(
        "source-link-broken",
        Where(path),
        f"is a link to {_target_of(path)}, which does not exist",
        "correct the link, or remove it",
    )


def _target_of(path: str) -> str:
    """Return what a link says, in quotes; the place where it leads if it was replaced."""
    try:
        return repr(os.readlink(path))
    except OSError:
        return repr(real_path(path))


def missing(place: SearchRoot) -> Diagnostic:
    """Return the diagnostic of a search root that does not exist."""
    message = "is not a folder" if os.path.exists(place.path) else "does not exist"
    fix = "create it, or name another folder"
    item = make_diagnostic("source-missing", Where(place.path), message, fix)
    # The user or the host named it. A missing folder of a manifest is only a warning.
    return replace(item, severity=Severity.ERROR)


def too_deep(folder: str, depth: int, limit_name: str = "") -> Diagnostic:
    """Return the diagnostic of a folder that is too deep to be searched."""
    setting = f" (limit {limit_name})" if limit_name else ""
    return make_diagnostic(
        "source-too-deep",
        Where(folder),
        f"is more than {depth} levels deep{setting}; it is not searched",
        "move it up, or name it as a folder of its own",
    )


def _secret(path: str) -> Diagnostic:
    return make_diagnostic(
        "skill-file-secret",
        Where(path),
        "is left out of the skill: such files usually hold secrets",
        "move it out of the skill, or rename it if it holds none",
    )


def _too_many(folder: str, most: int, what: str) -> Diagnostic:
    return make_diagnostic(
        "source-too-many",
        Where(folder),
        f"has more than {most} {what} (limit files_per_skill); the rest is left out",
        "remove files, or raise the limit",
    )


def not_utf8(entry: FolderEntry) -> Diagnostic:
    """Return the diagnostic of a file or folder whose name is not UTF-8."""
    shown = os.fsencode(entry.name).decode("utf-8", "backslashreplace")
    return make_diagnostic(
        "source-name-not-utf8",
        Where(os.path.dirname(entry.path)),
        f"the name {shown!r} is not UTF-8; it is left out",
        "rename it",
    )
