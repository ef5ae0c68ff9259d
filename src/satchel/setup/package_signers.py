"""The record of who signed installed packages: `signers.toml` in the user's folder."""

import os
import tomllib
from contextlib import suppress

from satchel.errors import SatchelError
from satchel.files.atomic_write import file_lock, write_atomic
from satchel.files.file_reader import UnreadableFileError, read_regular
from satchel.formats.toml_tables import toml_table
from satchel.settings import MIB
from satchel.setup.artefact_signatures import digest_of_file
from satchel.sources.search_roots import own_plugins

_HEAD = "# Written by 'satchel install': who signed the packages that it installed.\n"
_FIELDS = ("path", "record", "source", "signer")


def keep_signer(info: str, source: str, signer: str) -> None:
    """Record who signed the package of a `.dist-info` folder; `""` if it is unsigned."""
    file = _file()
    with file_lock(file):
        items = [item for item in _records() if item["path"] != info]
        if signer:
            record = digest_of_file(os.path.join(info, "RECORD"))
            items.append({"path": info, "record": record, "source": source, "signer": signer})
        elif items == _records():
            return
        tables = (toml_table("package", it) for it in sorted(items, key=lambda it: it["path"]))
        write_atomic(file, "".join((_HEAD, *tables)).encode())


def package_origins() -> dict[str, dict[str, str]]:
    """Return where signed packages came from, by their `.dist-info` folder, for a lock file.

    A package that was installed again since then, with other content, is left out.
    """
    signers: dict[str, dict[str, str]] = {}
    for item in _records():
        with suppress(SatchelError):
            if digest_of_file(os.path.join(item["path"], "RECORD")) == item["record"]:
                signers[item["path"]] = {"from": item["source"], "signer": item["signer"]}
    return signers


def _file() -> str:
    return os.path.join(os.path.dirname(own_plugins()), "signers.toml")


def _records() -> list[dict[str, str]]:
    """Return what is recorded; a record that cannot be read names no signer."""
    try:
        data, _ = read_regular(_file(), 16 * MIB)
        items = tomllib.loads(data.decode())["package"]
        return [{key: str(item[key]) for key in _FIELDS} for item in items]
    except (UnreadableFileError, ValueError, KeyError, TypeError, RecursionError):
        return []
