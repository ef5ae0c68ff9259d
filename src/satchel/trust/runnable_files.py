"""Find and read the files that programs in a folder could run, and what links there lead to.

Trust, the lock and scripts of skills all compare these. Each file counts once, by its path without
links, and each link by its text.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple
from unicodedata import normalize

from satchel.files.compiled_cache import is_replaceable
from satchel.files.file_reader import (
    Stamp,
    UnreadableFileError,
    digest_of,
    is_inside,
    real_path,
    reason_of,
)
from satchel.files.open_folder import read_inside
from satchel.files.secret_files import is_secret_file
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB
from satchel.sources.skill_findings import SKILL_FILE

_MOST_FILES = 100_000
_MOST_BYTES = 8 * 1024 * MIB
_CHUNK = MIB
_LARGEST_TEXT = MIB
"""Texts up to this size are shown, others by their digest."""
_SKIPPED = frozenset((".git", "__pycache__"))
_SYSTEM_FOLDERS = ("/proc", "/dev")
_MOST_LINKS = 40
_MOST_STEPS = 500_000
"""Parts of the paths of all links together; a part of a long path counts more."""
_TOGETHER = 5
"""How many times the files and steps of one unit all units of a project may have."""
_LONG_PATH = 100
_GIT = re.compile(r"(?<![\w.-])(-\w+)?\.git(?![\w.-])")
"""The name in a declaration, also behind short options."""


@dataclass(frozen=True, slots=True)
class CodeFile:
    """The digest of a file or definition, and its text if that was asked for."""

    digest: str
    text: str = ""
    """`""` also for a file that is no text, or too long."""


class CodeProblem(NamedTuple):
    """Why code cannot be compared completely, and so is not used."""

    text: str
    fix: str = "take files out of the folder, or name it in an option or in your own satchel.toml"


def runnable_files(
    folder: str,
    bounds: str,
    *,
    declared: str = "",
    with_compiled: bool = False,
    with_skill_texts: bool = False,
    is_skill: bool = True,
    reader: CodeReader | None = None,
) -> tuple[dict[str, CodeFile], CodeProblem | None]:
    """Return the files of a folder that could run, and why they cannot be compared completely.

    Left out are `.git`, compiled files that Python makes again, unless `with_compiled`, and, unless
    `with_skill_texts`, Markdown of skills outside of their `scripts`. A skill is the folder itself,
    if `is_skill`, or a folder with a SKILL.md below one called `skills`. What `declared` names is
    never left out, and no Markdown behind a link that is not named as Markdown. Links are followed
    inside `bounds`; names of files outside of the folder begin with `..`. Of other links only the
    text counts.
    """
    walk, files = _Walk(folder, bounds, reader or CodeReader()), dict[str, CodeFile]()
    walk.is_skill = is_skill
    walk.declared = _folded(declared)
    walk.with_compiled = with_compiled or "__pycache__" in declared
    walk.with_skill_texts = with_skill_texts
    try:
        for name, path in walk.paths():
            if name not in files:
                files[name] = walk.reader.read(name, path, walk.bounds)
            walk.require_few(len(files))
    except UnreadableFileError as error:
        return files, CodeProblem(str(error))
    return files, None


def link_digest(text: str) -> str:
    """Return the digest of a link that contains a path, which no file has."""
    return f"link:{digest_of(os.fsencode(f'link to {text}'))}"


def changed_meanwhile(
    folder: str, served: Mapping[str, str], digests: Mapping[str, str]
) -> CodeProblem | None:
    """Return the problem of a file that was also read by another name, with another digest."""
    root = real_path(folder)
    for name, digest in served.items():
        path = real_path(os.path.join(folder, *name.split("/")))
        if digests.get(_name(path, root)) != digest:
            return CodeProblem(f"{name} changes while it is read", "try again")
    return None


def is_skill_code(name: str) -> bool:
    """Return whether a file of a skill counts as its code, by its name."""
    return "/scripts/" in f"/{name}"


class CodeReader:
    """Reads the files of several units: each once, and all together within limits."""

    def __init__(self, *, with_text: bool = False) -> None:
        self.with_text = with_text
        self._files: dict[tuple[str, Stamp], CodeFile] = {}
        self._bytes = self._steps = self._visits = 0

    def read(self, name: str, path: str, bounds: str) -> CodeFile:
        """Read a file, or the text of a link. Raises `UnreadableFileError`."""
        self._visits += 1
        if self._visits > _TOGETHER * _MOST_FILES:
            raise UnreadableFileError("all that may run of the project has too many files")
        try:
            if os.path.islink(path):
                text = os.readlink(path)
                return CodeFile(link_digest(text), f"link to {text}" if self.with_text else "")
            stamp = Stamp.at(path)
            at = path, stamp
            if at not in self._files:
                self._files[at] = self._read(path, stamp, bounds)
            return self._files[at]
        except OSError as error:
            reason = reason_of(error)
        except UnreadableFileError as error:
            reason = str(error)
        raise UnreadableFileError(f"{name} cannot be read: {reason}")

    def _read(self, path: str, stamp: Stamp, bounds: str) -> CodeFile:
        if self._bytes + stamp.size > _MOST_BYTES:
            raise UnreadableFileError(f"all together have more than {_MOST_BYTES // MIB} MiB")
        self._bytes += stamp.size
        if self.with_text:
            return read_code_file(path, bounds)
        return CodeFile(_cached_digest(path, stamp) if stamp.is_settled() else file_digest(path))

    def count_steps(self, steps: int) -> None:
        """Count those of one unit. Raises `UnreadableFileError` if all together are too many."""
        self._steps += steps
        if self._steps > _TOGETHER * _MOST_STEPS:
            raise UnreadableFileError("all links of the project lead through too many folders")


class _Place(NamedTuple):
    """A folder to list, and what of it counts."""

    path: str
    is_whole: bool = False
    """Whether all in it counts: a link leads into `.git` or `__pycache__`."""
    has_texts: bool | None = None
    """Whether Markdown is text of a skill; `False` in its `scripts` and behind a link."""


class _Walk:
    """The files of one folder."""

    declared = ""
    with_compiled = with_skill_texts = is_skill = False

    def __init__(self, folder: str, bounds: str, reader: CodeReader) -> None:
        self.root, self.bounds, self.reader = real_path(folder), real_path(bounds), reader
        self.waiting, self.folders = [_Place(self.root)], set[str]()
        self.steps = 0

    def paths(self) -> Iterator[tuple[str, str]]:
        """Yield the names of all files and links, with their paths; some come twice."""
        seen = set[_Place]()
        while self.waiting:
            place = self.waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            self.folders.add(place.path)
            self.require_few(0)
            yield from ((_name(path, self.root), path) for path in self.entries(place))

    def require_few(self, number: int) -> None:
        """Raise `UnreadableFileError` if so many files, with the folders, are too many."""
        if number + len(self.folders) > _MOST_FILES:
            raise UnreadableFileError(f"it has more than {_MOST_FILES} files and folders")

    def entries(self, place: _Place) -> Iterator[str]:
        """Yield the files and links in a folder; folders, also behind links, wait."""
        try:
            with os.scandir(place.path) as opened:
                entries = sorted(opened, key=attrgetter("name"))
        except OSError as error:
            shown = _name(place.path, self.root) if place.path != self.root else "its folder"
            raise UnreadableFileError(f"{shown} cannot be listed: {reason_of(error)}") from None
        if place.has_texts is None and self.may_be_skill(place.path):
            is_skill = any(entry.name == SKILL_FILE for entry in entries)
            place = place._replace(has_texts=is_skill or None)
        for entry in entries:
            if entry.is_symlink():
                yield entry.path
                yield from self.behind(entry.path, is_text=self.is_text(entry, place))
            elif self.is_left_out(entry, place):
                continue
            elif not entry.is_dir():
                yield entry.path
            else:
                has_texts = place.has_texts and entry.name != "scripts"
                self.waiting.append(_Place(entry.path, place.is_whole, has_texts))

    def count_steps(self, steps: int) -> None:
        """Count parts of the paths of links. Raises `UnreadableFileError` if there are too many."""
        self.steps += steps
        self.reader.count_steps(steps)
        if self.steps > _MOST_STEPS:
            raise UnreadableFileError("its links lead through too many folders")

    def may_be_skill(self, path: str) -> bool:
        """Return whether a folder is where skills are, so that a SKILL.md makes it one."""
        above = os.path.dirname(os.path.relpath(path, self.root))
        return "skills" in above.split(os.sep) or (self.is_skill and path == self.root)

    def is_left_out(self, entry: os.DirEntry[str], place: _Place) -> bool:
        """Return whether a file or folder does not count."""
        if place.is_whole:
            return False
        if entry.name == ".git":
            return not _GIT.search(self.declared)
        if self.is_text(entry, place) or _is_socket(entry):
            return True
        return not self.with_compiled and is_replaceable(entry.path)

    def is_text(self, entry: os.DirEntry[str], place: _Place) -> bool:
        """Return whether a file is text of a skill, which does not count, by its name."""
        if not place.has_texts or self.with_skill_texts or not entry.name.endswith(".md"):
            return False
        return entry.is_file() and _folded(entry.name) not in self.declared

    def behind(self, link: str, *, is_text: bool) -> Iterator[str]:
        """Yield the file that a link leads to; a folder waits."""
        target = _target_of(link, _name(link, self.root), self.bounds, self.count_steps)
        if not (is_inside(target, self.bounds) and os.path.exists(target)):
            return
        parts = os.path.relpath(target, self.bounds).split(os.sep)
        is_whole = not _SKIPPED.isdisjoint(parts)
        if os.path.isdir(target):
            self.waiting.append(_Place(target, is_whole, has_texts=False))
            return
        is_text = is_text and target.endswith(".md") and not is_whole
        if is_text or stat.S_ISSOCK(os.stat(target).st_mode):
            return
        yield target
        if is_whole:
            self.waiting.append(_Place(os.path.dirname(target), is_whole, has_texts=False))


def _is_socket(entry: os.DirEntry[str]) -> bool:
    """Return whether it is a socket, which cannot be opened as a file."""
    is_other = not (entry.is_file() or entry.is_dir())
    return is_other and stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)


def _name(path: str, root: str) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")


def _folded(text: str) -> str:
    """Return a text so that names are equal that are one file on some systems."""
    return normalize("NFC", text).casefold()


def _target_of(link: str, name: str, bounds: str, count_steps: Callable[[int], object]) -> str:
    """Return the resolved path that a link leads to, and count each step on the way.

    Raises `UnreadableFileError` if it may lead elsewhere for another program: through `/proc`, or
    back into `bounds` through a link outside of it.
    """
    place, entry = os.path.split(link)
    names, left, is_outside = [entry], _MOST_LINKS, False
    while names:
        count_steps(1 + len(place) // _LONG_PATH)
        # Its folder has no links, so `..` may be resolved in the text.
        entry = names.pop()
        place = os.path.dirname(place) if entry == os.pardir else os.path.join(place, entry)
        if place in _SYSTEM_FOLDERS:
            raise UnreadableFileError(f"{name} is a link to what another program has open")
        if not os.path.islink(place):
            continue
        is_outside, left = is_outside or not is_inside(place, bounds), left - 1
        drive, target = os.path.splitdrive(os.readlink(place))
        place = drive + os.sep if os.path.isabs(target) else os.path.dirname(place)
        names += reversed([part for part in target.split(os.sep) if part not in {"", os.curdir}])
        if not left:
            raise UnreadableFileError(f"{name} is a link that leads to too many others")
    if is_outside and is_inside(place, bounds):
        raise UnreadableFileError(f"{name} is a link that leaves the folder and returns")
    return place


def file_digest(path: str) -> str:
    """Return the digest of a regular file of any size. Raises `UnreadableFileError`."""
    digest = hashlib.sha256()
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # Opening a FIFO would wait for a writer.
            raise UnreadableFileError("it is not a regular file")
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as problem:
        raise UnreadableFileError(reason_of(problem)) from None
    return digest.hexdigest()


@lru_cache(_MOST_FILES)
def _cached_digest(path: str, _stamp: Stamp) -> str:
    return file_digest(path)


def read_code_file(path: str, root: str) -> CodeFile:
    """Return a file inside the resolved folder `root`, with its text unless it is long.

    Raises `UnreadableFileError`.
    """
    target = real_path(path)
    if Stamp.at(target).size > _LARGEST_TEXT:
        return CodeFile(file_digest(target))
    data, _ = read_inside(target, _LARGEST_TEXT, root)
    return CodeFile(digest_of(data), text_of(os.path.relpath(target, root), data))


def text_of(name: str, data: bytes) -> str:
    """Return a text, with bytes that are not UTF-8 as escapes; `""` if it is no text or long.

    The values in a `.env` file are never shown or recorded, so it has only its digest.
    """
    if len(data) > _LARGEST_TEXT or b"\0" in data or is_secret_file(name):
        return ""
    return data.decode("utf-8", "backslashreplace")
