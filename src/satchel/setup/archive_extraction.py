"""Extract untrusted archives: nothing is written outside the folder, and no partial result stays.

tarfile and zipfile write the files. Each member is checked first, so they never see links, devices,
dangerous names or too many bytes.
"""

import os
import re
import stat
from typing import IO, Any

from satchel.errors import SatchelError
from satchel.files.file_reader import is_inside, is_utf8, reason_of
from satchel.settings import MIB
from satchel.setup.folder_placement import climbs_out, hidden_beside, removed, replace_folder
from satchel.setup.source_addresses import ARCHIVE_ENDING
from satchel.text import one_line, shorten

MOST_FILES = 100_000
MOST_BYTES = 16 * 1024 * MIB
_NOWHERE = f"{os.devnull}/out"
_CHUNK = MIB
_MOST_PARTS = 100
# The size of a name or another record between the files of a tar.
_LARGEST_RECORD = 16 * MIB
_END_OF_TAR = b"\0" * 512
_LONGEST_LINK = 4096
_DRIVE = re.compile(r"[A-Za-z]:")
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")


def extract_archive(
    archive: str,
    target: str,
    *,
    most_files: int = MOST_FILES,
    most_bytes: int = MOST_BYTES,
    with_links: bool = False,
) -> None:
    """Extract an archive; its files replace the folder `target` after everything succeeded.

    Symbolic links are refused. With `with_links` they are extracted, but those that lead out lead
    nowhere then. Raises `SatchelError`; the target is then unchanged.
    """
    if is_inside(os.path.realpath(archive), os.path.realpath(target)):
        message = "is in the folder that the extraction would replace"
        raise SatchelError(message, where=archive, fix="give to= another folder")
    staged = hidden_beside(target)
    try:
        os.makedirs(staged)
        with open(archive, "rb") as file:
            extract = _unzip if file.read(4) in _ZIP_STARTS else _untar
            file.seek(0)
            members = ExtractedMembers(staged, most_files, most_bytes, with_links=with_links)
            extract(file, members)
        members.write_links()
        replace_folder(staged, target)
    except SatchelError as problem:
        raise SatchelError(problem.message, where=archive, fix=problem.fix) from None
    except Exception as problem:
        # The libraries do not document what they raise for a broken archive.
        reason = shorten(one_line(reason_of(problem)), 200) or type(problem).__name__
        raise SatchelError(f"cannot extract: {reason}", where=archive) from None
    finally:
        removed(staged)


def _unzip(file: IO[bytes], members: "ExtractedMembers") -> None:
    import zipfile  # lazy: most plugins extract no archives

    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            is_plain = info.is_dir() or stat.S_IFMT(mode) in {0, stat.S_IFREG}
            _checked(info.orig_filename)  # `filename` is cut at a NUL
            if stat.S_ISLNK(mode) and info.file_size <= _LONGEST_LINK:
                members.add_link(info.filename, os.fsdecode(archive.read(info)))
                continue
            path = members.add(info.filename, info.file_size, info.is_dir(), is_plain)
            archive.extract(info, members.root)  # reads at most `file_size` bytes
            if not info.is_dir() and os.path.getsize(path) != info.file_size:
                raise _refused(info.filename, "is truncated")
            keep_executable(path, info.is_dir(), mode)


def _untar(file: IO[bytes], members: "ExtractedMembers") -> None:
    import tarfile  # lazy: most plugins extract no archives

    # Python 3.11.0 to 3.11.3 have no filter; the check of members is at least as strict.
    has_filter = hasattr(tarfile, "data_filter")
    options: dict[str, Any] = {"filter": "data"} if has_filter else {}
    # For many small files, the records of names may be about as large as the files.
    bounded: Any = _LimitedFile(_decompressed(file), 2 * members.most_bytes + _LARGEST_RECORD)
    with tarfile.open(fileobj=bounded, mode="r:", errorlevel=2) as archive:
        for info in archive:
            if info.issym():
                members.add_link(info.name, info.linkname)
                continue
            is_plain = info.isdir() or info.isreg()
            path = members.add(info.name, info.size, info.isdir(), is_plain)
            if info.isdir():
                os.makedirs(path, exist_ok=True)
            else:
                archive.extract(info, members.root, set_attrs=False, **options)
            keep_executable(path, info.isdir(), info.mode)
    bounded.require_end()


def stem_of(archive: str) -> str:
    """Return the name of an archive without its ending."""
    name = os.path.basename(archive)
    return ARCHIVE_ENDING.sub("", name) or name


class ExtractedMembers:
    """Checks the members of one archive before each is written below `root`."""

    def __init__(
        self, root: str, most_files: int, most_bytes: int, *, with_links: bool = False
    ) -> None:
        self.root, self.most_bytes = root, most_bytes
        self._most_files, self._with_links = most_files, with_links
        self._files = self._bytes = 0
        self._links: list[tuple[str, str]] = []

    def add(self, name: str, size: int, is_folder: bool, is_plain: bool) -> str:
        """Return the path of the next member. Raises `SatchelError` if it may not be written."""
        self._files += 1
        self._bytes += size
        if self._files > self._most_files:
            raise SatchelError(f"contains more than {self._most_files} files (most_files)")
        if self._bytes > self.most_bytes:
            raise SatchelError(f"contains more than {self.most_bytes} bytes (most_bytes)")
        path = os.path.join(self.root, *_checked(name))
        if not is_plain:
            also = "" if self._with_links else "; links are not extracted"
            raise _refused(name, f"is neither a file nor a folder{also}")
        # Ask the disk: it knows whether two spellings are the same name.
        if not is_folder and os.path.lexists(path):
            raise _refused(name, "is in the archive twice")
        return path

    def add_link(self, name: str, text: str) -> None:
        """Note the next member, a symbolic link, to be written at the end."""
        path = self.add(name, 0, is_folder=False, is_plain=self._with_links)
        is_possible = 0 < len(os.fsencode(text)) <= _LONGEST_LINK and "\0" not in text
        if climbs_out(text, len(_checked(name)) - 1) or not is_possible:
            text = _NOWHERE  # for the reader to name
        # Now, while there is no link yet through which it could lead out.
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._links.append((path, text))

    def write_links(self) -> None:
        """Write the links after all folders exist, so that nothing is written through a link."""
        for path, text in self._links:
            try:
                os.symlink(text, path)
            except FileExistsError:
                raise _refused(os.path.relpath(path, self.root), "is in it twice") from None


def _checked(name: str) -> list[str]:
    """Return the parts of a member's name. Raises `SatchelError` if it leaves the folder."""
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if "\\" in name or "\0" in name or not is_utf8(name):
        raise _refused(name, "has a name that systems read differently")
    if any(letter < " " or letter == "\x7f" for letter in name):
        raise _refused(name, "has a control character in its name")
    if name.startswith("/") or _DRIVE.match(name) or ".." in parts:
        raise _refused(name, "is outside the folder")
    if len(parts) > _MOST_PARTS:
        raise _refused(name, f"is more than {_MOST_PARTS} folders deep")
    return parts


def keep_executable(path: str, is_folder: bool, mode: int) -> None:
    """Let all run a file that they can read, if its owner may run it."""
    if not is_folder and mode & stat.S_IXUSR:
        default = stat.S_IMODE(os.stat(path).st_mode)
        os.chmod(path, default | (default & 0o444) >> 2)  # executable for all who can read it


def _refused(name: str, fault: str) -> SatchelError:
    return SatchelError(f"{shorten(one_line(name), 200)!r} {fault}; nothing was extracted")


def _decompressed(file: IO[bytes]) -> Any:
    # Not the streams of tarfile: they do not verify checksums.
    import bz2
    import gzip
    import lzma

    head = file.read(6)
    file.seek(0)
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if head.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if head.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMAFile(file)
    return file


class _LimitedFile:
    """A file with a limit for the bytes that are read, and for the size of one read."""

    def __init__(self, file: Any, left: int) -> None:
        self._file, self._left = file, left
        self._last = b""

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LARGEST_RECORD:
            raise SatchelError("contains a record that is too large; nothing was extracted")
        self._last = self._file.read(size)
        self._spend(len(self._last))
        return self._last

    def seek(self, at: int) -> None:
        """Go to a position; in a compressed file, going forward counts as reading."""
        self._spend(max(at - self.tell(), 0))
        self._file.seek(at)

    def tell(self) -> int:
        at: int = self._file.tell()
        return at

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise SatchelError("contains more bytes than allowed (most_bytes)")

    def require_end(self) -> None:
        """Read the rest, so that checksums are verified. Raises `SatchelError` for damage.

        `tarfile` stops at any block that it cannot read; the real end is a block of zeros.
        """
        if self._last != _END_OF_TAR:
            raise SatchelError("is damaged or truncated; nothing was extracted")
        while data := self.read(_CHUNK):
            if data.strip(b"\0"):
                raise SatchelError("is damaged in the middle; nothing was extracted")
