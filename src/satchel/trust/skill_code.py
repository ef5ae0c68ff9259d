"""Read all files that scripts of a skill may run: its whole folder, whatever of it is served."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from functools import lru_cache

from satchel.files.compiled_cache import is_replaceable
from satchel.files.file_reader import (
    Stamp,
    UnreadableFileError,
    digest_of,
    is_inside,
    real_path,
    reason_of,
)
from satchel.files.secret_files import leads_to_secret
from satchel.trust.program_files import (
    CodeFile,
    CodeProblem,
    read_code_file,
    require_one_target,
)

_MOST_FILES = 20_000
_CHUNK = 1024 * 1024
_FIX = "take files out of the folder, or give the skill from a folder of your own"


def read_skill_code(
    folder: str, bounds: str, *, with_text: bool = False
) -> tuple[Mapping[str, CodeFile], CodeProblem | None]:
    """Return all files of a skill by name, and why they cannot be compared completely.

    Only `.git` and files that Python compiles again are skipped. Links are followed inside the
    resolved `bounds`; their own text counts under a name that ends with a slash. Of other links
    only the text counts.
    """
    root = real_path(folder)
    walk = _Walk(root, bounds, with_text=with_text)
    try:
        walk.enter(root, "", (root,))
    except UnreadableFileError as error:
        return walk.files, CodeProblem(str(error), _FIX)
    except RecursionError:
        return walk.files, CodeProblem("its folders are too deep", _FIX)
    return walk.files, None


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


class _Walk:
    """The files of a skill that were read until now."""

    def __init__(self, root: str, bounds: str, *, with_text: bool) -> None:
        self.root, self.bounds, self.with_text = root, bounds, with_text
        self.files: dict[str, CodeFile] = {}
        self.folders = 0

    def enter(self, folder: str, prefix: str, above: tuple[str, ...]) -> None:
        """Read what is below a resolved folder; `above` are the folders on the way, with it."""
        self.folders += 1
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            shown = prefix or "its folder"
            raise UnreadableFileError(f"{shown} cannot be listed: {reason_of(error)}") from None
        for name in names:
            if self.folders + len(self.files) > _MOST_FILES:
                raise UnreadableFileError(f"it has more than {_MOST_FILES} files and folders")
            path, key = os.path.join(folder, name), prefix + name
            if name == ".git":
                continue
            if not os.path.islink(path):
                self._entry(path, key, above)
            elif self._is_followed(path, target := real_path(path), key, above):
                self._entry(target, key, above)

    def _is_followed(self, path: str, target: str, key: str, above: tuple[str, ...]) -> bool:
        """Add a link by its text, and return whether it is followed."""
        try:
            text = f"link to {os.readlink(path)}"
        except OSError as error:
            raise UnreadableFileError(f"{key} cannot be read: {reason_of(error)}") from None
        require_one_target(path, self.bounds)
        is_followed = (
            is_inside(target, self.bounds) and target not in above and os.path.exists(target)
        )
        # No file has this digest, whatever its content is.
        digest = f"link:{digest_of(os.fsencode(text))}"
        self.files[f"{key}/" if is_followed else key] = CodeFile(
            digest, text if self.with_text else ""
        )
        return is_followed

    def _entry(self, path: str, key: str, above: tuple[str, ...]) -> None:
        if os.path.isdir(path):
            if path not in above:  # A link led above it.
                self.enter(path, f"{key}/", (*above, path))
        # By the name that Python finds it by: behind a link it may be run as it is.
        elif not is_replaceable(os.path.join(self.root, key)):
            self.files[key] = self._file(path, key)

    def _file(self, path: str, key: str) -> CodeFile:
        is_shown = self.with_text and not leads_to_secret(path, self.bounds)
        if is_shown and (file := read_code_file(path, self.bounds)):
            return file
        try:
            stamp = Stamp.at(path)
            digest = _cached_digest(path, stamp) if stamp.is_settled() else file_digest(path)
        except UnreadableFileError as error:
            raise UnreadableFileError(f"{key} cannot be read: {error}") from None
        return CodeFile(digest)
