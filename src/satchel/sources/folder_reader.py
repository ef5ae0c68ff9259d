"""Read all files of one skill or plugin folder; links that leave the root are refused."""

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from operator import attrgetter

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.file_reader import (
    Stamp,
    UnitFile,
    UnreadableFileError,
    digest_of,
    is_inside,
    is_utf8,
    real_path,
    reason_of,
    stamp_fields,
)
from satchel.files.open_folder import OpenFolder, Place, following, inside, joined
from satchel.files.secret_files import is_secret_file, leads_to_secret
from satchel.lazy_dataclass import dataclass, fast_constructor
from satchel.sources.folder_diagnostics import (
    LET_READ,
    in_repository,
    link_loop,
    link_outside,
    not_utf8,
    special_file,
    too_deep,
    too_many_files,
    unfollowed,
    unlistable,
)
from satchel.sources.search_roots import SearchRoot

_SKIPPED_FOLDERS = frozenset({".git", "node_modules", ".venv", "__pycache__"})
_ENVIRONMENT_MARK = "pyvenv.cfg"
_REPOSITORY_MARKS = frozenset({".git", ".hg", ".jj"})

# Deeper folders are not read; a real skill has two or three levels.
_MAX_DEPTH = 24

# Changes that follow each other within so many seconds may be one save of a slow editor.
_ONE_SAVE = 1.0

_NAME = attrgetter("name")
_SETTLED = attrgetter("settled")

Entries = Sequence[os.DirEntry[str]]
"""The entries of a folder, sorted by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderContent:
    """The files of one skill or plugin folder, sorted by name."""

    files: tuple[UnitFile, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    links: frozenset[tuple[str, str]] = frozenset()
    """The links among them, with their targets, which may change as well."""
    folders: tuple[tuple[str, Stamp], ...] = ()
    """The folder itself, `""`, and those in it; none unless equal stamps mean equal content."""
    has_shrunk: bool = field(default=False, compare=False)
    """Whether a file lost a quarter or more in one save, so that the rest may still come."""

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
                if stamp_fields(os.lstat(f"{folder}/{name}" if name else folder)) != stamp:
                    return False
            for file in self.files:
                if stamp_fields(os.lstat(f"{folder}/{file.name}")) != file.stamp:
                    return False
        except OSError:
            return False
        return True

    @property
    def changed_at(self) -> float:
        """When a file changed last, in seconds since the epoch."""
        return max((file.stamp.changed for file in self.files), default=0) / 1e9

    def is_younger_than(self, seconds: float) -> bool:
        """Return whether a file changed so recently that it may be half written."""
        return abs(time.time() - self.changed_at) < seconds

    def get(self, name: str) -> UnitFile | None:
        """Return the file with that name, if it was read."""
        for file in self.files:  # Faster than `next`, which matters for thousands of skills.
            if file.name == name:
                return file
        return None


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
        path: str,
        before: FolderContent | None = None,
        folder: OpenFolder | None = None,
        entries: Entries | None = None,
        data: dict[str, bytes] | None = None,
    ) -> FolderContent:
        """Return the content of a folder; files unchanged since `before` are not read again.

        It is opened by its path, or is `folder` with these `entries`. The bytes of the kept files
        that are read go to `data`, if it is given.
        """
        walk = _WalkState(path, before, data)
        if folder is not None:
            self._read(folder, walk, entries)
        else:
            try:
                with inside(path, self.root) as place:
                    self._read(place.folder, walk)
            except UnreadableFileError as error:
                walk.diagnostics.append(unlistable(path, str(error)))
        content = walk.content()
        if before is not None and _has_shrunk(before, content):
            content = replace(content, has_shrunk=True)
        return content

    def read_only_file(self, name: str, folder: OpenFolder) -> tuple[FolderContent, bytes] | None:
        """Return what `read` does for a folder with one regular file, and the bytes of that file.

        It must be a file that `keep` accepts. Returns `None` if it cannot be read so quickly.
        """
        try:
            data, status = folder.read(name, self.largest)
        except UnreadableFileError:
            return None
        stamp, of_folder = Stamp.of(status), Stamp.of(folder.status)
        is_settled = stamp.is_settled()
        file = fast_constructor(UnitFile)(
            name=name, size=len(data), digest=digest_of(data), stamp=stamp, settled=is_settled
        )
        folders = (("", of_folder),) if is_settled and of_folder.is_settled() else ()
        return fast_constructor(FolderContent)(files=(file,), folders=folders), data

    def _read(self, folder: OpenFolder, walk: "_WalkState", entries: Entries | None = None) -> None:
        for name in sorted(self.required):
            self._required(folder, name, walk)
        walk.most = len(walk.files) + self.most_files
        visit = _Visit(folder=folder, path=walk.path, prefix="", above=(folder.path,))
        self._walk(visit, walk, entries)

    def _required(self, folder: OpenFolder, name: str, walk: "_WalkState") -> None:
        """Read a file by its name; links must stay inside the root."""
        place: Place | None = Place(folder)
        path = walk.path
        with ExitStack() as opened:
            for part in name.split("/"):
                if place is None or place.file or not part or is_skipped(part):
                    return
                path = joined(path, part)
                try:
                    mode = place.folder.stat(part).st_mode
                    if stat.S_ISDIR(mode):
                        place = Place(opened.enter_context(place.folder.enter(part)))
                        continue
                except OSError:
                    return
                if stat.S_ISLNK(mode):
                    place = opened.enter_context(self._linked(place.folder, part, path, walk))
                    if place is not None and is_inside(folder.path, place.path):
                        return  # a loop, which `_walk` reports
                else:
                    place = Place(place.folder, part)
            if place is not None:
                self._file(name, place, walk)

    def _walk(self, visit: "_Visit", walk: "_WalkState", entries: Entries | None = None) -> None:
        """Read the files of a folder and those below, by name."""
        if len(visit.above) > _MAX_DEPTH:
            walk.diagnostics.append(too_deep(visit.path, _MAX_DEPTH))
            return
        # Links between a few folders can make millions of paths.
        if len(walk.folders) >= self.most_files:
            if not walk.is_cut:
                walk.diagnostics.append(too_many_files(visit.path, self.most_files, "folders"))
            walk.is_cut = True
            return
        if entries is None:
            entries = list_open(visit.folder, visit.path, walk.diagnostics)
        walk.folders.append((visit.prefix[:-1], Stamp.of(visit.folder.status)))
        if visit.prefix and self._is_other(visit.path, entries, walk):
            return
        for entry in entries:
            name = visit.prefix + entry.name
            is_regular = entry.is_file(follow_symlinks=False)
            is_entered = not is_regular and is_folder(entry)
            is_wanted = is_entered or self.wanted(name)
            if not (is_wanted and self._belongs(entry, visit.path, name, walk)):
                continue
            if is_entered or entry.is_symlink():
                self._entry(entry, visit, walk)
            else:
                place = Place(visit.folder, entry.name)
                self._count(name, place, walk, is_regular=is_regular)
            if walk.is_full:
                return

    def _entry(self, entry: os.DirEntry[str], visit: "_Visit", walk: "_WalkState") -> None:
        """Read where a link leads, or a folder below."""
        path = joined(visit.path, entry.name)
        if entry.is_symlink():
            with self._linked(visit.folder, entry.name, path, walk) as place:
                if place is not None and place.file:
                    self._count(visit.prefix + entry.name, place, walk)
                elif place is not None:
                    self._enter(place.folder, path, visit, walk)
                else:
                    # Folders that link to each other multiply a link that leads nowhere.
                    walk.most -= self._has_place(walk)
            return
        try:
            folder = visit.folder.enter(entry.name)
        except OSError as error:
            walk.diagnostics.append(unlistable(path, reason_of(error)))
            return
        with folder:
            self._enter(folder, path, visit, walk)

    def _enter(self, folder: OpenFolder, path: str, visit: "_Visit", walk: "_WalkState") -> None:
        # A folder that is not a link can still be a loop, if a link led above it.
        if folder.path in visit.above:
            walk.diagnostics.append(link_loop(path))
            return
        prefix = f"{visit.prefix}{os.path.basename(path)}/"
        above = (*visit.above, folder.path)
        self._walk(_Visit(folder=folder, path=path, prefix=prefix, above=above), walk)

    def _count(
        self, name: str, place: Place, walk: "_WalkState", *, is_regular: bool = False
    ) -> None:
        """Read a file, unless there are too many."""
        if name in self.required:
            return
        if self._has_place(walk):
            self._file(name, place, walk, is_regular=is_regular)

    def _has_place(self, walk: "_WalkState") -> bool:
        """Return whether one more file may be read; report it once if not."""
        walk.is_full = len(walk.files) >= walk.most
        if walk.is_full:
            walk.diagnostics.append(too_many_files(walk.path, self.most_files, "files"))
        return not walk.is_full

    def _is_other(self, path: str, entries: Entries, walk: "_WalkState") -> bool:
        """Return whether a folder does not belong to the one that is read; say so if needed."""
        if self.skips_repositories and is_repository(entries):
            walk.diagnostics.append(in_repository(path))
            return True
        return is_environment(entries)

    def _belongs(self, entry: os.DirEntry[str], path: str, name: str, walk: "_WalkState") -> bool:
        if is_skipped(entry.name) or name in self.exclude:
            return False
        if not is_utf8(entry.name):
            walk.diagnostics.append(not_utf8(path, entry.name))
            return False
        if self.hides_secrets and is_secret_file(entry.name):
            walk.report_secret(joined(path, entry.name), is_link=entry.is_symlink())
            return False
        return True

    @contextmanager
    def _linked(
        self, folder: OpenFolder, name: str, path: str, walk: "_WalkState"
    ) -> Iterator[Place | None]:
        """Yield where a link leads, `None` if that is not read."""
        walk.links.add((path, real_path(joined(folder.path, name))))
        with linked(folder, name, path, self.root, walk.diagnostics) as place:
            is_secret = place and self.hides_secrets and leads_to_secret(place.path, self.root)
            if is_secret:
                walk.report_secret(path, is_link=True)
            yield None if is_secret else place

    def _file(
        self, name: str, place: Place, walk: "_WalkState", *, is_regular: bool = False
    ) -> None:
        before, status = walk.cached.get(name), None
        is_kept = name in self.required or self.keep(name)
        if before is not None or not (is_regular and is_kept):  # one look less
            try:
                status = place.folder.stat(place.file or ".")
            except OSError as error:
                walk.report_unreadable(name, reason_of(error))
                return
            if not stat.S_ISREG(status.st_mode):
                walk.diagnostics.append(special_file(walk.shown(name)))
                return
            if before is not None and before.is_unchanged(status):
                walk.files.append(before)
                return
        data = None
        if status is None or is_kept or not (self.lists_others or status.st_size > self.largest):
            try:
                data, status = place.folder.read(place.file, self.largest)
            except UnreadableFileError as error:
                walk.report_unreadable(name, str(error))
                return
        if is_kept and data is not None and walk.data is not None:
            walk.data[name] = data
        stamp = Stamp.of(status)
        walk.files.append(
            UnitFile(
                name=name,
                size=status.st_size if data is None else len(data),
                digest="" if data is None else digest_of(data),
                stamp=stamp,
                settled=stamp.is_settled(),
                data=data if is_kept and walk.data is None else None,
            )
        )


def _has_shrunk(before: FolderContent, now: FolderContent) -> bool:
    if before.has_shrunk and abs(now.changed_at - before.changed_at) < _ONE_SAVE:
        return True  # the next piece of one save
    sizes = {file.name: file.size for file in now.files}
    return any(sizes.get(file.name, file.size) < 0.75 * file.size for file in before.files)


UNREADABLE = frozenset({"source-unreadable", "source-link-broken"})
"""The codes of files and folders that exist and cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    folder: OpenFolder
    path: str
    """Its path as it is shown."""
    prefix: str
    """What the names of its files begin with."""
    above: tuple[str, ...]
    """The resolved paths of the folders on the way, with its own."""


class _WalkState:
    """What one reading of a folder has found; `is_cut` and `is_full` say what was left out."""

    def __init__(
        self, path: str, before: FolderContent | None, data: dict[str, bytes] | None
    ) -> None:
        self.path, self.data = path, data
        self.cached = {file.name: file for file in before.files} if before else {}
        self.files: list[UnitFile] = []
        self.most = 0
        self.diagnostics: list[Diagnostic] = []
        self.links: set[tuple[str, str]] = set()
        self.folders: list[tuple[str, Stamp]] = []
        self.is_cut = self.is_full = False

    def shown(self, name: str) -> str:
        """Return the path of a file, as it is shown."""
        return joined(self.path, name.replace("/", os.sep))

    def report_unreadable(self, name: str, reason: str) -> None:
        """Add the diagnostic of a file that cannot be read."""
        where = Where(self.shown(name))
        self.diagnostics.append(
            make_diagnostic("source-unreadable", where, f"cannot be read: {reason}", LET_READ)
        )

    def report_secret(self, path: str, *, is_link: bool) -> None:
        """Add the diagnostic of a file that is left out."""
        self.diagnostics.append(
            make_diagnostic(
                "skill-file-secret",
                Where(path),
                "is left out of the skill: such files usually hold secrets",
                "move it out of the skill, or rename it if it holds none",
            )
        )
        if is_link:
            self.links.add((path, real_path(path)))

    def content(self) -> FolderContent:
        self.files.sort(key=_NAME)
        files = tuple(self.files)
        if self.links or self.diagnostics:
            diagnostics = tuple(dict.fromkeys(self.diagnostics))
            return FolderContent(files=files, diagnostics=diagnostics, links=frozenset(self.links))
        is_settled = all(map(_SETTLED, files)) and all(
            stamp.is_settled() for _, stamp in self.folders
        )
        return FolderContent(files=files, folders=tuple(self.folders) if is_settled else ())


def is_skipped(name: str) -> bool:
    """Return whether files and folders of this name are always skipped."""
    # Kubernetes switches mounted volumes atomically with folders such as `..data` and
    # `..2026_01_01`; the links beside them lead to the files.
    return name in _SKIPPED_FOLDERS or name.startswith("..")


def is_environment(entries: Entries) -> bool:
    """Return whether a folder with these entries is a virtual environment."""
    return any(entry.name == _ENVIRONMENT_MARK for entry in entries)


def list_folder(folder: str, diagnostics: list[Diagnostic]) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, sorted by name; report a folder that cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=_NAME)
    except OSError as error:
        diagnostics.append(unlistable(folder, reason_of(error)))
        return []


def list_open(folder: OpenFolder, path: str, diagnostics: list[Diagnostic]) -> Entries:
    """Return the entries of an open folder as `list_folder` does; `path` is shown."""
    try:
        return sorted(folder.entries(), key=_NAME)
    except OSError as error:
        diagnostics.append(unlistable(path, reason_of(error)))
        return []


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder or a link to one; a broken link is not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


@contextmanager
def linked(
    folder: OpenFolder, name: str, path: str, root: str, diagnostics: list[Diagnostic]
) -> Iterator[Place | None]:
    """Yield where a link in an open folder leads, and report it if it leaves the resolved `root`.

    `path` is the link's path as it is shown.
    """
    with ExitStack() as opened:
        place = None
        try:
            place = opened.enter_context(following(name, folder))
        except OSError as error:
            diagnostics.append(unfollowed(path, error))
        if place is not None and not is_inside(place.path, root):
            diagnostics.append(link_outside(path))
            place = None
        yield place


def is_repository(entries: Entries) -> bool:
    """Return whether a folder with these entries is the top of a repository."""
    return any(entry.name in _REPOSITORY_MARKS for entry in entries)


def nested_repository(root: SearchRoot, path: str = "") -> str:
    """Return the repository inside a project that contains a search root, or `path`; or `""`.

    Links are resolved, so that none leads around a repository.
    """
    if not root.project:
        return ""
    folder, path = root.project, real_path(path or root.path)
    for part in os.path.relpath(path, folder).split(os.sep):
        folder = os.path.join(folder, part)
        if part != "." and is_repository(list_folder(folder, [])):
            return folder
    return ""
