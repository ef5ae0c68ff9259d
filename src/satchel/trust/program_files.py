"""Read the files of a folder that a program in it could run, with their digests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

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

_LARGEST_PROGRAM = 64 * MIB
_MOST_PROGRAM_FILES = 20_000
_SKIPPED = frozenset((".git", "__pycache__"))
_SYSTEM_FOLDERS = ("/proc", "/dev")
_MOST_LINKS = 40
_LARGEST_TEXT = MIB
"""Texts up to this size are shown, others by their digest."""


@dataclass(frozen=True, slots=True)
class CodeFile:
    """The digest of a file or definition, and its text if that was asked for."""

    digest: str
    text: str = ""
    """`""` also for a file that is no text, or too long."""


class CodeProblem(NamedTuple):
    """Why code cannot be compared completely, and so is not used."""

    text: str
    fix: str = "take files out of the folder, or name it with --plugins or in your own satchel.toml"


def runnable_files(
    folder: str,
    base: str,
    declared: str,
    *,
    only_scripts: bool = False,
    with_text: bool = False,
    with_compiled: bool = False,
    with_skill_texts: bool = False,
) -> tuple[dict[str, CodeFile], CodeProblem | None]:
    """Return all files of a folder that could run, and why they cannot be compared.

    Skips `.git`, unless `with_skill_texts` Markdown of skills, and, unless `with_compiled`, files
    that Python can compile again. What `declared` names is never skipped. A link is compared by the
    path that it contains, and one to a skipped folder also by all files there.
    """
    with_compiled = with_compiled or "__pycache__" in declared
    root, project, files = real_path(folder), real_path(base), dict[str, CodeFile]()
    # Folders inside a skill, and whether that skill has scripts.
    has_scripts: dict[str, bool] = {}
    try:
        for above, folders, names in os.walk(root, onerror=_fail):
            folders[:] = sorted(name for name in folders if name != ".git" or name in declared)
            if "SKILL.md" in names or os.path.dirname(above) in has_scripts:
                skill_has = has_scripts.get(os.path.dirname(above), False)
                has_scripts[above] = skill_has or "scripts" in folders
            links = [name for name in folders if os.path.islink(os.path.join(above, name))]
            for name in sorted((*names, *links)):
                path = os.path.join(above, name)
                key = os.path.relpath(path, root).replace(os.sep, "/")
                is_text = above in has_scripts and name.endswith(".md") and name not in declared
                is_skipped = is_text and not with_skill_texts
                is_cached = not with_compiled and is_replaceable(path)
                is_used = is_skill_code(key) or has_scripts.get(above)
                if is_skipped or is_cached or (only_scripts and not is_used):
                    continue
                for file in (path, *(_files_behind(path, root) if name in links else ())):
                    if len(files) >= _MOST_PROGRAM_FILES:
                        problem = f"{folder} has more than {_MOST_PROGRAM_FILES} files"
                        return files, CodeProblem(problem)
                    key = os.path.relpath(file, root).replace(os.sep, "/")
                    files[key] = _program(file, root, project, with_text=with_text)
    except (UnreadableFileError, RecursionError) as error:
        return files, CodeProblem(str(error) or f"{folder} is too deep")
    return files, None


def _files_behind(link: str, root: str) -> Iterator[str]:
    """Yield the files in the folder that a link leads to, if it is one that is skipped."""
    target = real_path(link)
    is_skipped = not _SKIPPED.isdisjoint(os.path.relpath(target, root).split(os.sep))
    if is_skipped and is_inside(target, root):
        for above, _, names in os.walk(target, onerror=_fail, followlinks=True):
            yield from (os.path.join(above, name) for name in names)


def _fail(error: OSError) -> None:
    raise UnreadableFileError(f"{error.filename} cannot be listed: {reason_of(error)}")


def _program(path: str, root: str, project: str, *, with_text: bool) -> CodeFile:
    """Read a file or link. Raises `UnreadableFileError` unless it is compared completely."""
    if os.path.islink(path):
        text, target = f"link to {os.readlink(path)}", real_path(path)
        require_one_target(path, root)
        if is_inside(target, project) and not is_inside(target, root):
            raise UnreadableFileError(f"{path} is a link that leads out of the plugin")
        if is_inside(target, root) and os.path.isfile(target):
            text += f" with digest {digest_of(_read_bytes(target, root))}"
        # No file has this digest, whatever its content is.
        return CodeFile(f"link:{digest_of(os.fsencode(text))}", text)
    stamp = Stamp.at(path)
    if stamp.is_settled() and not with_text:
        return CodeFile(_cached_digest(path, root, stamp))
    data = _read_bytes(path, root)
    text = text_of(os.path.relpath(path, root), data) if with_text else ""
    return CodeFile(digest_of(data), text)


def require_one_target(link: str, root: str) -> None:
    """Raise `UnreadableFileError` for a link that may lead elsewhere for another program.

    Such as one through `/proc`, or one that returns into `root` through a link outside of it.
    """
    folder, name = os.path.split(link)
    place, names, left, is_outside = folder, [name], _MOST_LINKS, False
    while names:
        # Its folder has no links, so `..` may be resolved in the text.
        place = os.path.normpath(os.path.join(place, names.pop()))
        if any(is_inside(place, system) for system in _SYSTEM_FOLDERS):
            raise UnreadableFileError(f"{link} is a link to what another program has open")
        if not os.path.islink(place):
            continue
        is_outside, left = is_outside or not is_inside(place, root), left - 1
        drive, target = os.path.splitdrive(os.readlink(place))
        place = drive + os.sep if os.path.isabs(target) else os.path.dirname(place)
        names += reversed([name for name in target.split(os.sep) if name])
        if not left:
            raise UnreadableFileError(f"{link} is a link that leads to too many others")
    if is_outside and is_inside(place, root):
        raise UnreadableFileError(f"{link} is a link that leaves the folder and returns")


@lru_cache(_MOST_PROGRAM_FILES)
def _cached_digest(path: str, root: str, _stamp: Stamp) -> str:
    return digest_of(_read_bytes(path, root))


def _read_bytes(path: str, root: str) -> bytes:
    try:
        data, _ = read_inside(path, _LARGEST_PROGRAM, root)
    except UnreadableFileError as error:
        raise UnreadableFileError(f"{path} cannot be read: {error}") from None
    if len(data) > _LARGEST_PROGRAM:
        raise UnreadableFileError(f"{path} is larger than {_LARGEST_PROGRAM // MIB} MiB")
    return data


def read_code_file(path: str, root: str) -> CodeFile | None:
    """Return a file with its text, `None` if it cannot be read or is too large."""
    try:
        data = _read_bytes(path, root)
    except UnreadableFileError:
        return None
    return CodeFile(digest_of(data), text_of(os.path.relpath(path, root), data))


def is_skill_code(name: str) -> bool:
    """Return whether a file of a skill counts as its code, by its name."""
    return "/scripts/" in f"/{name}"


def text_of(name: str, data: bytes) -> str:
    """Return a text, with bytes that are not UTF-8 as escapes; `""` if it is no text or long.

    The values in a `.env` file are never shown or recorded, so it has only its digest.
    """
    if len(data) > _LARGEST_TEXT or b"\0" in data or is_secret_file(name):
        return ""
    return data.decode("utf-8", "backslashreplace")
