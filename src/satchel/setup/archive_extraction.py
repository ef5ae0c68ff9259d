"""Taking archives of strangers apart: nothing leaves the folder, and nothing half is left.

Files come first and links last, and nothing is made through a link. Sizes are counted as they
come out, because what an archive says of itself may be a lie.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from satchel.errors import SatchelError
from satchel.settings import MIB
from satchel.setup.folder_placement import Placement, climbs_out, hidden_beside, removed
from satchel.sources.file_reader import is_inside, is_utf8, reason_of
from satchel.text import one_line, shorten

MOST_FILES = 100_000
MOST_BYTES = 16 * 1024 * MIB
_CHUNK = MIB
_LONGEST_LINK = 4096
_MOST_PARTS = 100
# The names and records that stand between the files of a tar.
_LARGEST_RECORD = 16 * MIB
_END_OF_TAR = b"\0" * 512
_DRIVE = re.compile(r"[A-Za-z]:")
_ENDINGS = re.compile(r"\.(?:zip|tar(?:\.(?:gz|bz2|xz))?|tgz|tbz2?|txz)$", re.IGNORECASE)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """One thing in an archive; `kind` is folder, file, symlink, hardlink or special."""

    name: str
    kind: str
    mode: int = 0
    size: int = 0
    link: str = ""
    held: Any = None
    """What the archive's own library calls it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """One archive to take apart into the folder `target`, which it replaces when all went well."""

    archive: str
    target: str
    most_files: int = MOST_FILES
    most_bytes: int = MOST_BYTES

    def run(self) -> None:
        """Take it apart. Raises `SatchelError`, and has then changed nothing."""
        if is_inside(os.path.realpath(self.archive), os.path.realpath(self.target)):
            fault = "lies where it would be extracted, which replaces what is there"
            raise SatchelError(fault, where=self.archive, fix="give to= another folder")
        beside = hidden_beside(self.target)
        try:
            os.makedirs(beside)
            self._take_apart(beside)
            with Placement(beside, self.target) as placing:
                placing.keep()
        except SatchelError as problem:
            raise SatchelError(problem.message, where=self.archive, fix=problem.fix) from None
        except Exception as problem:
            # What a broken archive makes the libraries raise is listed nowhere.
            told = shorten(one_line(reason_of(problem)), 200) or type(problem).__name__
            raise SatchelError(f"cannot be extracted: {told}", where=self.archive) from None
        finally:
            removed(beside)

    def _take_apart(self, root: str) -> None:
        links: list[tuple[str, _Member]] = []
        left = self.most_bytes
        with open(self.archive, "rb") as file, _opened(file, self.most_bytes) as archive:
            for number, member in enumerate(archive.members(), 1):
                if number > self.most_files:
                    raise SatchelError(f"holds more than {self.most_files} files (most_files)")
                name = _checked(member.name)
                path = os.path.join(root, *name)
                match member.kind:
                    case "folder":
                        os.makedirs(path, exist_ok=True)
                    case "file":
                        os.makedirs(os.path.dirname(path), exist_ok=True)
                        with archive.reading(member) as data:
                            left -= self._write(path, data, member, left)
                    case "hardlink":
                        os.makedirs(os.path.dirname(path), exist_ok=True)
                        # No link has been made yet, so this is a file of the archive.
                        source = os.path.join(root, *_checked(member.link))
                        os.link(source, path, follow_symlinks=False)
                    case "symlink":
                        text = archive.link_of(member)
                        links.append((path, _linked(name, text)))
                    case _:
                        raise _refused(member.name, "is neither a file, a folder nor a link")
        _make_links(root, links)

    def _write(self, path: str, data: IO[bytes], member: _Member, left: int) -> int:
        """Write a file, and return how large it is."""
        mode = 0o777 if member.mode & stat.S_IXUSR else 0o666
        try:
            descriptor = os.open(path, _CREATE, mode)
        except FileExistsError:
            raise _refused(member.name, "is in it twice") from None
        written = 0
        with open(descriptor, "wb") as file:
            while chunk := data.read(_CHUNK):
                written += len(chunk)
                if written > left:
                    raise SatchelError(f"holds more than {self.most_bytes} bytes (most_bytes)")
                file.write(chunk)
        if written != member.size:
            raise _refused(member.name, "is cut off")
        return written


def stem_of(archive: str) -> str:
    """Return the name of an archive without its ending."""
    name = os.path.basename(archive)
    return _ENDINGS.sub("", name) or name


def _checked(name: str) -> list[str]:
    """Return the parts of a name that stays inside; none for the folder itself."""
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if "\\" in name or "\0" in name or not is_utf8(name):
        raise _refused(name, "has a name that not every system reads alike")
    if name.startswith("/") or _DRIVE.match(name) or ".." in parts:
        raise _refused(name, "leads out of the folder")
    if len(parts) > _MOST_PARTS:
        raise _refused(name, f"lies more than {_MOST_PARTS} folders deep")
    return parts


def _linked(name: list[str], text: str) -> _Member:
    """Return a link that stays inside as far as its text tells."""
    shown = "/".join(name)
    if not name or not text or "\\" in text or "\0" in text or not is_utf8(text):
        raise _refused(shown, "is a link that not every system reads alike")
    if climbs_out(text, len(name) - 1) or _DRIVE.match(text):
        raise _refused(shown, "is a link that leads out of the folder")
    return _Member(name=shown, kind="symlink", link=text)


def _make_links(root: str, links: list[tuple[str, _Member]]) -> None:
    real = os.path.realpath(root)
    for path, member in links:
        above = os.path.join(real, *member.name.split("/")[:-1])
        # By the disk, which knows whether two spellings are one name.
        if os.path.realpath(above) != above:
            raise _refused(member.name, "lies below a link")
        os.makedirs(above, exist_ok=True)
        try:
            os.symlink(member.link, path)
        except FileExistsError:
            raise _refused(member.name, "is in it twice") from None
    # Only now: a link may lead through others, in whatever order they stand.
    for path, member in links:
        if not is_inside(os.path.realpath(path), real):
            raise _refused(member.name, "is a link that leads out of the folder")


def _refused(name: str, fault: str) -> SatchelError:
    return SatchelError(f"{shorten(one_line(name), 200)!r} {fault}; nothing was extracted")


@contextmanager
def _opened(file: IO[bytes], most_bytes: int) -> Iterator["_Zip | _Tar"]:
    # Lazy: compression is slow to import, and most plugins bring no archives.
    import bz2
    import gzip
    import lzma
    import tarfile
    import zipfile

    head = file.read(6)
    file.seek(0)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        with zipfile.ZipFile(file) as zipped:
            yield _Zip(zipped)
        return
    plain: Any = file
    if head.startswith(b"\x1f\x8b"):
        plain = gzip.GzipFile(fileobj=file)
    elif head.startswith(b"BZh"):
        plain = bz2.BZ2File(file)
    elif head.startswith(b"\xfd7zXZ\0"):
        plain = lzma.LZMAFile(file)  # noqa: SIM115 - the file itself is closed by its owner
    # Records of names may be about as large again as small files are.
    bounded: Any = _LimitedFile(plain, 2 * most_bytes + _LARGEST_RECORD)
    with tarfile.open(fileobj=bounded, mode="r:", errorlevel=2) as tar:
        yield _Tar(tar, bounded)


class _LimitedFile:
    """A file of which only so much is read, and no record that would fill the memory."""

    def __init__(self, file: Any, left: int) -> None:
        self._file, self._left = file, left
        self._last = b""

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        if not 0 <= size <= _LARGEST_RECORD:
            raise SatchelError("has a record that is too large; nothing was extracted")
        data: bytes = self._file.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise SatchelError("holds more bytes than are allowed (most_bytes)")
        self._last = data
        return data

    def require_end(self) -> None:
        """Read what is left, of which packers keep checksums. Raises `SatchelError`.

        `tarfile` takes any block that it cannot read for the end; only one of zeros is it.
        """
        if self._last != _END_OF_TAR:
            raise SatchelError("is damaged or cut off; nothing was extracted")
        while data := self.read(_CHUNK):
            if data.strip(b"\0"):
                raise SatchelError("is damaged in the middle; nothing was extracted")

    def seek(self, at: int, whence: int = 0) -> int:
        """Go on elsewhere."""
        now: int = self._file.tell()
        # Going forward in what is compressed is reading, too.
        self._left -= max(at - now, 0) if whence == 0 else 0
        if self._left < 0:
            raise SatchelError("holds more bytes than are allowed (most_bytes)")
        there: int = self._file.seek(at, whence)
        return there

    def tell(self) -> int:
        """Say how far it was read."""
        at: int = self._file.tell()
        return at


@dataclass(frozen=True, slots=True)
class _Zip:
    """A zip archive."""

    archive: Any

    def members(self) -> Iterator[_Member]:
        """Yield what it holds."""
        for info in self.archive.infolist():
            mode = info.external_attr >> 16
            kind = _ZIP_KINDS.get(stat.S_IFMT(mode), "special")
            if kind == "file" and info.is_dir():
                kind = "folder"
            # `filename` is cut at a NUL, and turned where the system has another separator.
            yield _Member(
                name=info.orig_filename, kind=kind, mode=mode, size=info.file_size, held=info
            )

    def reading(self, member: _Member) -> Any:
        """Open a file."""
        return self.archive.open(member.held)

    def link_of(self, member: _Member) -> str:
        """Return where a link leads."""
        with self.archive.open(member.held) as file:
            text = file.read(_LONGEST_LINK + 1)
        if len(text) > _LONGEST_LINK:
            raise _refused(member.name, "is a link whose text is too long")
        decoded: str = text.decode("utf-8", "surrogateescape")
        return decoded


_ZIP_KINDS = {0: "file", stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "symlink"}


@dataclass(frozen=True, slots=True)
class _Tar:
    """A tar archive."""

    archive: Any
    file: _LimitedFile

    def members(self) -> Iterator[_Member]:
        """Yield what it holds."""
        for info in self.archive:
            tests = {
                "folder": info.isdir(),
                "file": info.isreg(),
                "symlink": info.issym(),
                "hardlink": info.islnk(),
            }
            kind = next((kind for kind, holds in tests.items() if holds), "special")
            yield _Member(
                name=info.name,
                kind=kind,
                mode=info.mode,
                size=info.size,
                link=info.linkname,
                held=info,
            )
        self.file.require_end()

    def reading(self, member: _Member) -> Any:
        """Open a file."""
        return self.archive.extractfile(member.held)

    def link_of(self, member: _Member) -> str:
        """Return where a link leads."""
        return member.link
