"""Serving one file of a skill: its bytes, as they are now, and what kind of file they make.

The target of a link is served if it lies inside the folder that the user named, by the rules of
`satchel.sources.contained_files`. Error messages go to a model and contain no path of the host.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Protocol

from satchel.errors import ToolError
from satchel.settings import MIB, Limits
from satchel.sources.contained_files import ContainedFile, is_path, open_contained
from satchel.sources.file_reader import digest_of
from satchel.sources.folder_reader import is_skipped
from satchel.text import shorten
from satchel.tools.callables import in_thread

TEXT_LIMIT = MIB
"""Bytes of the largest file that is served as text."""

_IMAGES = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
}
_WEBP = "image/webp"

_OFFICE = "application/vnd.openxmlformats-officedocument"
# What skills often hold, and Python's own table lacks or names by its version.
_SUFFIXES = {
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".docx": f"{_OFFICE}.wordprocessingml.document",
    ".pptx": f"{_OFFICE}.presentationml.presentation",
    ".xlsx": f"{_OFFICE}.spreadsheetml.sheet",
}


@dataclass(frozen=True, slots=True)
class ServedFile:
    """One file of a skill as it was read just now."""

    name: str
    """Its path inside the skill, with `/`."""
    data: bytes
    digest: str
    """Names the bytes, as the digest of a `UnitFile` does."""


class SkillReader(Protocol):
    """Reads the files of one skill, wherever they are."""

    @property
    def server(self) -> str:
        """Return the name of the remote server that has them, `""` if they are on this machine."""

    def read(self, name: str, limits: Limits) -> ServedFile:
        """Read a file, however long that takes. Raises `ToolError`."""

    async def fetch(self, name: str, limits: Limits) -> ServedFile:
        """Read a file while the event loop goes on; cancelling this ends it. Raises `ToolError`."""


@dataclass(frozen=True, slots=True)
class LocalSkillReader:
    """The files of the skill in `folder`, which lies in `root`, the folder the user named."""

    root: str
    folder: str

    @property
    def server(self) -> str:
        """Return `""`."""
        return ""

    def read(self, name: str, limits: Limits) -> ServedFile:
        """Read a file. Raises `ToolError` as `serve` does."""
        return read_skill_file(self.root, self.folder, name, limits)

    async def fetch(self, name: str, limits: Limits) -> ServedFile:
        """Read a file in a thread. Raises `ToolError` as `serve` does."""
        file: ServedFile = await in_thread(lambda: self.read(name, limits))
        return file


def read_skill_file(root: str, folder: str, name: str, limits: Limits) -> ServedFile:
    """Read one file of the skill in `folder`, which lies in `root`, the folder the user named.

    Raises `ToolError` for a name that leads out, and for what is no file or a too large one.
    """
    with _opened(root, folder, name) as file:
        data = file.read(limits.resource)
    return ServedFile(str(PurePosixPath(name)), data, digest_of(data))


def locate_skill_file(root: str, folder: str, name: str) -> str:
    """Return the resolved path of such a file, for what can be used only by its path.

    Raises `ToolError` as `serve` does; that nobody swaps the file later cannot be promised.
    """
    with _opened(root, folder, name) as file:
        file.stat()
        return file.path


def file_text(file: ServedFile, limit: int = TEXT_LIMIT) -> str | None:
    """Return a file as text, without its byte order mark; `None` if it is none, or too long."""
    return _text(file.data) if len(file.data) <= limit else None


def media_type_of(name: str, data: bytes) -> str:
    """Return the media type of a file: that of an image by its bytes, others by the suffix."""
    for kind, starts in _IMAGES.items():
        if data.startswith(starts):
            return kind
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _WEBP
    # What only calls itself an image would make a provider refuse the whole conversation.
    named = _by_suffix(name)
    if named and named not in {*_IMAGES, _WEBP}:
        return named
    return "application/octet-stream" if _text(data) is None else "text/plain"


@contextmanager
def _opened(root: str, folder: str, name: str) -> Iterator[ContainedFile]:
    if not is_file_name(name):
        raise ToolError(
            f"{shorten(name, 200)!r} is no file of the skill; "
            "use a path inside its folder, such as references/guide.md."
        )
    with open_contained(root, name, start=folder, noun="the skill's folder") as file:
        yield file


def is_file_name(name: str) -> bool:
    """Tell whether a name can be that of a file of a skill, on whichever system."""
    if not is_path(name) or PureWindowsPath(name).anchor:
        return False
    return not any(is_skipped(part) for part in PureWindowsPath(name).parts)


def _text(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _by_suffix(name: str) -> str | None:
    suffix = os.path.splitext(name)[1].lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    # Not `guess_type` of the module, which reads what a machine adds to the table.
    from mimetypes import MimeTypes

    # Only the suffix, because a whole name is taken for a URL.
    kind, encoding = MimeTypes().guess_type(f"x{suffix}", strict=False)
    return None if encoding else kind
