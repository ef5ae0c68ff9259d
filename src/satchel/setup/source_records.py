"""Where things came from: `sources.toml` of what was added, and `signers.toml` of packages."""

import os
import tomllib
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from satchel.errors import SatchelError
from satchel.files.atomic_write import file_lock, write_atomic
from satchel.files.file_reader import UnreadableFileError, is_inside, read_regular
from satchel.formats.source_text import masked_source
from satchel.formats.toml_tables import toml_table
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB
from satchel.setup.artefact_signatures import digest_of_file
from satchel.setup.source_addresses import SourceAddress, read_address
from satchel.setup.source_units import UnitKind
from satchel.sources.search_roots import home_path, own_plugins
from satchel.text import one_line, shorten

RECORD_FILE = "sources.toml"
_HEAD = "# Written by 'satchel add': where these skills and plugins came from.\n"
_FIELDS = ("name", "source", "version", "digest", "signer", "signed")
_SIGNERS_HEAD = "# Written by 'satchel install': who signed the packages that it installed.\n"
_SIGNER_FIELDS = ("path", "record", "source", "signer")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """One skill or plugin that was added."""

    kind: UnitKind
    name: str
    source: str
    """What was given to `satchel add`; a token that an older version recorded is masked."""
    version: str
    """The commit, or the digest of the archive; `""` for a folder."""
    digest: str
    """The digest of its folder when it was added."""
    signer: str = ""
    """Who signed the archive; `""` if it is not signed."""
    signed: str = ""
    """When, in ISO format and UTC."""

    @property
    def origin(self) -> dict[str, str]:
        """Return the source with the version, and the signer, as fields of a lock file."""
        signer = {"signer": self.signer} if self.signer else {}
        return {"from": f"{self.source} {self.version}".strip(), **signer}


class AddedFolder:
    """The folder that `satchel add` writes to: the user's, or that of a project."""

    def __init__(self, *, is_project: bool, project: str = ".") -> None:
        own = os.path.dirname(own_plugins())
        self.is_project, self._project = is_project, project
        self.path = os.path.abspath(os.path.join(project, ".satchel")) if is_project else own
        self.shown = "./.satchel" if is_project else "~/.satchel"
        self._file = os.path.join(self.path, RECORD_FILE)

    def require_own(self, target: str = "") -> None:
        """Raise `SatchelError` if a project's folder, or a target, leads out of the project."""
        here = os.path.realpath(self._project)
        for name in ("", "skills", "plugins", RECORD_FILE, target):
            path = os.path.join(self.path, name)
            if self.is_project and not is_inside(os.path.realpath(path), here):
                raise SatchelError("leads out of the project", where=path, fix="remove the link")

    def recorded(self, address: SourceAddress) -> str:
        """Return how a source is recorded: for the user the same place wherever it is read."""
        is_fixed = self.is_project or not address.is_path
        return address.text if is_fixed else home_path(address.location)

    def address_of(self, source: str) -> SourceAddress:
        """Return a recorded source. Raises `SatchelError` if it cannot be used."""
        address = read_address(source)
        is_relative = address.is_path and not os.path.isabs(os.path.expanduser(source))
        if is_relative and not self.is_project:
            message = "is relative, so it may be another folder now"
            raise SatchelError(message, where=source, fix="remove it, and add it again")
        return address

    def advice(self, command: str) -> str:
        """Return the advice to run a command of Satchel for this folder."""
        return f"run 'satchel {command}{' --project' if self.is_project else ''}'"

    def target(self, kind: UnitKind, name: str) -> str:
        """Return the folder of a skill or plugin."""
        return os.path.join(self.path, f"{kind}s", name)

    def records(self) -> tuple[SourceRecord, ...]:
        """Return what was added. Raises `SatchelError` if the record cannot be read."""
        try:
            data, _ = read_regular(self._file, 16 * MIB)
        except UnreadableFileError as problem:
            if not os.path.lexists(self._file):
                return ()
            raise SatchelError(f"cannot be read: {problem}", where=self._file) from None
        try:
            table = tomllib.loads(data.decode())
            return tuple(
                _record(kind, item) for kind in ("skill", "plugin") for item in table.get(kind, ())
            )
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as problem:
            reason = shorten(one_line(str(problem)), 200)
            raise SatchelError(
                f"is not a record of sources: {reason}",
                where=self._file,
                fix="restore or remove it",
            ) from None

    def keep(self, record: SourceRecord) -> None:
        """Add a record, in place of one of the same kind and name."""
        self._change(lambda records: [*_others(records, record.kind, record.name), record])

    def forget(self, kind: UnitKind, name: str) -> None:
        """Remove a record."""
        self._change(lambda records: list(_others(records, kind, name)))

    def _change(self, change: Callable[[Iterable[SourceRecord]], list[SourceRecord]]) -> None:
        with file_lock(self._file):
            records = sorted(change(self.records()), key=lambda it: (it.kind, it.name))
            tables = (
                toml_table(item.kind, {key: getattr(item, key) for key in _FIELDS})
                for item in records
            )
            write_atomic(self._file, "".join((_HEAD, *tables)).encode())


def keep_signer(info: str, source: str, signer: str) -> None:
    """Record who signed the package of a `.dist-info` folder; `""` if it is unsigned."""
    file = _signers_file()
    with file_lock(file):
        items = [item for item in _signer_records() if item["path"] != info]
        if signer:
            record = digest_of_file(os.path.join(info, "RECORD"))
            items.append({"path": info, "record": record, "source": source, "signer": signer})
        elif items == _signer_records():
            return
        tables = (toml_table("package", it) for it in sorted(items, key=lambda it: it["path"]))
        write_atomic(file, "".join((_SIGNERS_HEAD, *tables)).encode())


def _package_origins() -> dict[str, dict[str, str]]:
    """Return where signed packages came from, by their `.dist-info` folder, for a lock file.

    A package that was installed again since then, with other content, is left out.
    """
    signers: dict[str, dict[str, str]] = {}
    for item in _signer_records():
        with suppress(SatchelError):
            if digest_of_file(os.path.join(item["path"], "RECORD")) == item["record"]:
                signers[item["path"]] = {"from": item["source"], "signer": item["signer"]}
    return signers


def _signers_file() -> str:
    return os.path.join(os.path.dirname(own_plugins()), "signers.toml")


def _signer_records() -> list[dict[str, str]]:
    """Return what is recorded; a record that cannot be read names no signer."""
    try:
        data, _ = read_regular(_signers_file(), 16 * MIB)
        items = tomllib.loads(data.decode())["package"]
        return [{key: str(item[key]) for key in _SIGNER_FIELDS} for item in items]
    except (UnreadableFileError, ValueError, KeyError, TypeError, RecursionError):
        return []


def origins() -> dict[str, dict[str, str]]:
    """Return where folders and signed packages came from, by path, for a lock file."""
    origins = _package_origins()
    for folder in (AddedFolder(is_project=False), AddedFolder(is_project=True)):
        try:
            records = folder.records()
        except SatchelError:
            continue
        origins |= {folder.target(item.kind, item.name): item.origin for item in records}
    return origins


def _others(records: Iterable[SourceRecord], kind: str, name: str) -> Iterable[SourceRecord]:
    return (item for item in records if (item.kind, item.name) != (kind, name))


def _record(kind: UnitKind, item: Any) -> SourceRecord:
    values = {"signer": "", "signed": "", **item}
    values = {key: values[key] for key in _FIELDS}
    if not all(isinstance(value, str) for value in values.values()):
        raise ValueError(f"a {kind} is not a table of strings")
    # A name from the file becomes a path.
    if (
        not values["name"]
        or {"/", "\\", "\0"} & {*values["name"]}
        or values["name"].startswith(".")
    ):
        raise ValueError(f"a {kind} has an invalid name")
    values["source"] = masked_source(values["source"])
    return SourceRecord(kind=kind, **values)
