"""Bring the content of a source into a folder of its own, to look at before it is used."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from satchel.errors import SatchelError
from satchel.formats import ListedPlugin
from satchel.lazy_dataclass import dataclass
from satchel.setup.archive_extraction import Extraction
from satchel.setup.downloads import Download
from satchel.setup.git_fetch import MOST_BYTES, MOST_FILES, fetch_commit
from satchel.setup.source_addresses import SourceAddress, read_address
from satchel.sources.file_reader import digest_of

Progress = Callable[[int, int | None], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedSource:
    """The content of a source in a folder that is removed later."""

    address: SourceAddress
    folder: str
    version: str = ""
    """The commit, or the digest of the archive; `""` for a folder."""
    notes: tuple[str, ...] = field(default=())
    """What was left out."""

    @property
    def top(self) -> str:
        """Return the folder to look in: archives often have one folder around everything."""
        if self.address.kind != "archive":
            return self.folder
        entries = [entry for entry in os.scandir(self.folder) if not entry.name.startswith(".")]
        is_wrapped = len(entries) == 1 and entries[0].is_dir(follow_symlinks=False)
        return entries[0].path if is_wrapped else self.folder


@contextmanager
def fetched(address: SourceAddress, progress: Progress) -> Iterator[FetchedSource]:
    """Yield the content of a source; nothing of it is run. Raises `SatchelError`."""
    if address.kind == "folder":
        yield FetchedSource(address=address, folder=address.location)
        return
    with tempfile.TemporaryDirectory(prefix="satchel-add-") as above:
        folder = os.path.join(above, address.name)
        if address.kind == "git":
            commit, notes = fetch_commit(address, folder)
            yield FetchedSource(address=address, folder=folder, version=commit, notes=notes)
            return
        archive = address.location
        if archive.startswith("https://"):
            archive = os.path.join(above, "download", os.path.basename(archive))
            os.mkdir(os.path.dirname(archive))
            Download(
                url=address.location, target=archive, progress=progress, sha256=address.sha256,
                most_bytes=MOST_BYTES,
            ).run()  # fmt: skip
        Extraction(
            archive=archive, target=folder, most_files=MOST_FILES, most_bytes=MOST_BYTES
        ).run()
        with open(archive, "rb") as file:
            version = f"sha256:{digest_of(file.read())}"
        yield FetchedSource(address=address, folder=folder, version=version)


def address_of_entry(entry: ListedPlugin) -> SourceAddress:
    """Return where a plugin is that a marketplace lists elsewhere. Raises `SatchelError`."""
    source = json.loads(entry.text).get("source")
    text = source if isinstance(source, str) else _address_text(source)
    if not text:
        raise SatchelError(f"the marketplace does not say where {entry.name!r} is")
    return read_address(text)


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
