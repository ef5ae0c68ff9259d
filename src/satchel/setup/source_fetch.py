"""Bring the content of a source into a folder of its own, to look at before it is used."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from satchel.errors import SatchelError
from satchel.formats.marketplace_manifest import ListedPlugin
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB
from satchel.setup.archive_extraction import extract_archive
from satchel.setup.artefact_signatures import (
    BUNDLES,
    Signer,
    digest_of_file,
    signatures_beside,
    signers_of,
)
from satchel.setup.downloads import AbsentFileError, Download
from satchel.setup.git_fetch import MOST_BYTES, MOST_FILES, fetch_commit
from satchel.setup.source_addresses import SourceAddress, read_address

Progress = Callable[[int, int | None], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedSource:
    """The content of a source in a folder that is removed later."""

    address: SourceAddress
    folder: str
    version: str = ""
    """The commit, or the digest of the archive; `""` for a folder."""
    signers: tuple[Signer, ...] = ()
    """Who signed the archive."""
    notes: tuple[str, ...] = ()
    """What was left out."""

    def with_source_path(self, problem: SatchelError) -> SatchelError:
        """Return an error whose path is that in the source, not that of the copy."""
        is_copy = self.address.kind != "folder"
        return _with_path_replaced(problem, f"{self.folder}{os.sep}", "") if is_copy else problem

    @property
    def content_folder(self) -> str:
        """Return the folder to look in: archives often have one folder around everything."""
        if self.address.kind != "archive":
            return os.path.join(self.folder, *self.address.subdirectory.split("/")).rstrip(os.sep)
        entries = [entry for entry in os.scandir(self.folder) if not entry.name.startswith(".")]
        is_wrapped = len(entries) == 1 and entries[0].is_dir(follow_symlinks=False)
        return entries[0].path if is_wrapped else self.folder


@contextmanager
def fetched(address: SourceAddress, progress: Progress) -> Iterator[FetchedSource]:
    """Yield the content of a source; nothing of it is run.

    Signatures beside an archive are verified first. Raises `SatchelError`.
    """
    if address.kind == "folder":
        yield FetchedSource(address=address, folder=address.location)
        return
    with tempfile.TemporaryDirectory(prefix="satchel-add-") as above:
        folder = os.path.join(above, "content", address.name)
        os.mkdir(os.path.dirname(folder))
        if address.kind == "git":
            commit, notes = fetch_commit(address, folder)
            address = address.pinned(commit)
            yield FetchedSource(address=address, folder=folder, version=commit, notes=notes)
            return
        # A copy, so that what is verified is what is extracted.
        archive = os.path.join(above, "archive", os.path.basename(address.location))
        os.mkdir(os.path.dirname(archive))
        if address.location.startswith("https://"):
            _download(address, archive, progress)
        else:
            _copy(address.location, archive)
        try:
            sha256 = digest_of_file(archive)
            signers = signers_of(archive, sha256)
            extract_archive(
                archive, folder, most_files=MOST_FILES, most_bytes=MOST_BYTES, with_links=True
            )
        except SatchelError as problem:
            raise _with_path_replaced(problem, archive, address.location) from None
        version = f"sha256:{sha256}"
        yield FetchedSource(address=address, folder=folder, version=version, signers=signers)


def _download(address: SourceAddress, archive: str, progress: Progress) -> None:
    """Download an archive, and the bundles of sigstore beside it."""
    Download(
        url=address.location, target=archive, progress=progress, sha256=address.sha256,
        most_bytes=MOST_BYTES,
    ).run()  # fmt: skip
    for ending in BUNDLES:
        url, target = address.location + ending, archive + ending
        with suppress(AbsentFileError):
            Download(url=url, target=target, progress=lambda *_: None, most_bytes=4 * MIB).run()


def _copy(location: str, archive: str) -> None:
    for path in (location, *signatures_beside(location)):
        try:
            shutil.copyfile(path, archive + path.removeprefix(location))
        except OSError as problem:
            raise SatchelError(f"cannot be read: {problem.strerror}", where=path) from None


def _with_path_replaced(problem: SatchelError, path: str, shown: str) -> SatchelError:
    """Return an error that names the path of the user's source instead of its copy."""
    parts = (problem.message, problem.where, problem.fix)
    message, where, fix = (part.replace(path, shown) for part in parts)
    return SatchelError(message, where=where, fix=fix)


_FETCHED = frozenset({"github", "url", "git-subdir"})


def address_of_entry(entry: ListedPlugin, *, is_local: bool = True) -> SourceAddress:
    """Return where a plugin is that a marketplace lists elsewhere.

    Only a marketplace that `is_local` may name what is on this machine. Raises `SatchelError`.
    """
    source = json.loads(entry.text).get("source")
    text = source if isinstance(source, str) else _address_text(source)
    if not text:
        kind = source.get("source") if isinstance(source, dict) else None
        message = f"the marketplace does not say where {entry.name!r} is"
        if isinstance(kind, str) and kind not in _FETCHED:
            message = f"{entry.name!r} is at {kind!r}, from where Satchel takes no plugins"
        raise SatchelError(message, fix="get its folder, and install that")
    address = read_address(text)
    if address.is_local and not is_local:
        message = f"{entry.name!r} is at {text}, but only a local marketplace may name what is here"
        raise SatchelError(message, fix="if you want it, add that address yourself")
    return address


def _address_text(source: Any) -> str:
    """Return the address that an object of a marketplace means, `""` if it means none."""
    if not isinstance(source, dict):
        return ""
    fields = {key: value for key, value in source.items() if isinstance(value, str)}
    rev = fields.get("sha") or fields.get("ref")
    at = f"@{rev}" if rev else ""
    if "repo" in fields:
        path = f"/{fields['path'].strip('/')}" if fields.get("path") else ""
        return f"github:{fields['repo']}{path}{at}"
    if "url" not in fields:
        return ""
    below = f"#subdirectory={fields['path']}" if fields.get("path") else ""
    return f"git+{fields['url'].removeprefix('git+')}{at}{below}"
