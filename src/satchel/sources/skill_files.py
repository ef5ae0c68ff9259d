"""Read the files of a skill, and detect their media types.

The target of a link is read if it is inside the search root, by the rules of
`satchel.files.contained_files`. Error messages go to a model and contain no path of the host.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import PurePosixPath, PureWindowsPath
from types import MappingProxyType
from typing import Any, Protocol

from satchel.errors import ToolError
from satchel.files.contained_files import Bounds, ContainedFile, is_path, open_contained
from satchel.files.file_reader import digest_of, real_path
from satchel.files.secret_files import is_secret_file, leads_to_secret
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB, Limits
from satchel.sources.folder_reader import is_skipped
from satchel.sources.search_roots import ScriptRule
from satchel.text import shorten
from satchel.tools.callables import in_thread

TEXT_LIMIT = MIB
"""Size of the largest file that is served as text, in bytes."""

_IMAGES = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
}
_WEBP = "image/webp"

_OFFICE = "application/vnd.openxmlformats-officedocument"
# Common in skills, and missing in Python's table or different between its versions.
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
    """One file of a skill as it was read."""

    name: str
    """Its path inside the skill, with `/`."""
    data: bytes
    digest: str
    """The digest of the bytes, as in `UnitFile`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillAccess:
    """What can be done with a skill and its files; it says all that depends on their place."""

    has_folder: bool = False
    """Whether `SkillEntry.path` is a folder on this machine."""
    is_runnable: bool = False
    """Whether its scripts may be run; they need the folder."""
    is_compared: bool = False
    """Whether a script may be run only with the content that it had when the skill was read."""
    is_fetched: bool = False
    """Whether its instructions are not in its manifest, but fetched when it is loaded."""
    fills_arguments: bool = False
    """Whether its source puts the user's arguments into the text; its reader has `filled`."""
    origin: str = ""
    """Where it comes from, for the model and the user, if that is not a folder."""
    own_name: str = ""
    """Its name in its SKILL.md, if another one is used here."""
    front_matter: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """Its front matter, if it is known without SKILL.md."""
    has_digests: bool = False
    """Whether the digests of its files are those that MCP uses, so no file is read for them."""


IN_FOLDER = SkillAccess(has_folder=True, is_runnable=True)
"""The access to a skill in a folder."""


IN_PROJECT: Mapping[ScriptRule, SkillAccess] = MappingProxyType(
    {
        ScriptRule.RUN: IN_FOLDER,
        ScriptRule.COMPARE: SkillAccess(has_folder=True, is_runnable=True, is_compared=True),
        ScriptRule.NEVER: SkillAccess(has_folder=True),
    }
)
"""The access to a skill in a folder, by the rule for its scripts."""


class SkillReader(Protocol):
    """Reads the files of one skill, wherever they are."""

    @property
    def access(self) -> SkillAccess:
        """Return what can be done with the skill."""

    def read(self, name: str, limits: Limits) -> ServedFile:
        """Return a file; blocks. Raises `ToolError`."""

    async def fetch(self, name: str, limits: Limits) -> ServedFile:
        """Return a file without blocking the event loop. Raises `ToolError`."""


class BlockingSkillReader:
    """The `fetch` of a reader whose `read` blocks."""

    __slots__ = ()

    async def fetch(self: SkillReader, name: str, limits: Limits) -> ServedFile:
        """Return a file, read in a thread. Raises `ToolError`."""
        file: ServedFile = await in_thread(lambda: self.read(name, limits))
        return file


@dataclass(frozen=True, slots=True)
class LocalSkillReader(BlockingSkillReader):
    """Reads the files of the skill in `folder`, which is inside the search root `root`."""

    root: str | Bounds
    folder: str

    @property
    def access(self) -> SkillAccess:
        """Return `IN_FOLDER`."""
        return IN_FOLDER

    def read(self, name: str, limits: Limits) -> ServedFile:
        """Return a file. Raises `ToolError` as `read_skill_file` does."""
        return read_skill_file(self.root, self.folder, name, limits)


def read_skill_file(root: str | Bounds, folder: str, name: str, limits: Limits) -> ServedFile:
    """Return one file of the skill in `folder`, which is inside the search root `root`.

    Raises `ToolError` for a path that leaves the root, and for a missing or too large file.
    """
    with _opened(root, folder, name) as file:
        data = file.read(limits.resource)
    return ServedFile(str(PurePosixPath(name)), data, digest_of(data))


def locate_skill_file(root: str | Bounds, folder: str, name: str) -> str:
    """Return the resolved path of a file of a skill, for uses that need a path.

    Raises `ToolError` as `read_skill_file` does. The file may be swapped before it is used.
    """
    with _opened(root, folder, name) as file:
        file.stat()
        return file.path


def file_text(file: ServedFile, limit: int = TEXT_LIMIT) -> str | None:
    """Return a file as text, without byte order mark; `None` if it is not text, or too long."""
    return _text(file.data) if len(file.data) <= limit else None


def media_type_of(name: str, data: bytes) -> str:
    """Return the media type of a file: of images by content, of other files by suffix."""
    for kind, starts in _IMAGES.items():
        if data.startswith(starts):
            return kind
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _WEBP
    # Providers refuse a whole conversation because of an invalid image, so a suffix is not enough.
    by_suffix = _by_suffix(name)
    if by_suffix and by_suffix not in {*_IMAGES, _WEBP}:
        return by_suffix
    return "application/octet-stream" if _text(data) is None else "text/plain"


@contextmanager
def _opened(root: str | Bounds, folder: str, name: str) -> Iterator[ContainedFile]:
    if not is_file_name(name):
        raise ToolError(
            f"{shorten(name, 200)!r} is not a file of the skill; "
            "use a path inside its folder, such as references/guide.md."
        )
    with open_contained(root, name, start=folder, noun="the skill's folder") as file:
        # A link may lead to such a file; the path here has no links.
        if leads_to_secret(file.path, root.root() if isinstance(root, Bounds) else real_path(root)):
            raise ToolError(f"{shorten(name, 200)!r} may not be read; continue without it.")
        yield file


def is_file_name(name: str) -> bool:
    """Return whether a name can be the path of a file in a skill, on every system."""
    if not is_path(name) or PureWindowsPath(name).anchor:
        return False
    parts = PureWindowsPath(name).parts
    return not is_secret_file(name) and not any(map(is_skipped, parts))


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
    # Not the module's `guess_type`, whose table depends on the machine.
    from mimetypes import MimeTypes

    # Only the suffix, because a whole name is parsed as a URL.
    kind, encoding = MimeTypes().guess_type(f"x{suffix}", strict=False)
    return None if encoding else kind
