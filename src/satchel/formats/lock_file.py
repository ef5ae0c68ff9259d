"""A lock file: what was loaded when it was reviewed, as TOML that is read in reviews."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from satchel.errors import SatchelError
from satchel.formats.source_text import masked_source
from satchel.formats.toml_tables import toml_table
from satchel.lazy_dataclass import dataclass
from satchel.text import one_line, shorten

LOCK_FILE = "satchel.lock"
_VERSION = 1
_TOO_NEW = "was written by a newer version of Satchel"
_PLACES: Mapping[str, str] = MappingProxyType(
    {
        "skill": "path",
        "plugin": "path",
        "server": "declared",
        "tool": "server",
        "prompt": "server",
        "resource": "server",
        "group": "plugin",
    }
)
"""The kinds in the order of the file, each with the field that says where such a thing is."""
SERVER_OFFERS = frozenset({"tool", "prompt", "resource"})
"""The kinds that are known only of a connected server."""
_ORIGIN = frozenset({"from", "signer"})
_INFORMATION = _ORIGIN | {"reached"}
"""Fields for the reader of the file; a difference does not change what is served."""
_HEAD = (
    "# Written by 'satchel lock': what may be served. Review changes here as you review code.\n"
    f"version = {_VERSION}\n"
)
_SHOWN = 200
_DIGEST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LockEntry:
    """One thing that is locked. Place and name distinguish it from others of its kind."""

    kind: str
    place: str
    """Where it is; never an absolute path, so that the file is the same on every machine."""
    name: str
    values: Mapping[str, str]
    """What must be equal, such as its digest."""
    problem: str = field(default="", compare=False)
    """Why it has no digest."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what identifies it."""
        return self.kind, self.place, self.name

    @property
    def served(self) -> dict[str, str]:
        """Return the values without those that only inform the reader."""
        return {key: text for key, text in self.values.items() if key not in _INFORMATION}

    @property
    def origin(self) -> dict[str, str]:
        """Return its source and its signer, as far as they are known."""
        return {key: text for key, text in self.values.items() if key in _ORIGIN}

    def __str__(self) -> str:
        return f"{self.kind} {_shown(self.name)} ({_PLACES[self.kind]} {_shown(self.place)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockDifference:
    """An entry that is new, gone or changed."""

    before: LockEntry | None = None
    now: LockEntry | None = None

    @property
    def verb(self) -> str:
        """Return `added`, `removed` or `changed`."""
        if self.before is None:
            return "added"
        return "removed" if self.now is None else "changed"

    @property
    def entry(self) -> LockEntry:
        """Return the entry that exists now, else the locked one."""
        entry = self.now or self.before
        assert entry is not None
        return entry

    @property
    def is_loss(self) -> bool:
        """Return whether the entry is gone, or its configuration, as for want of trust."""
        if self.before is None:
            return False
        return self.now is None or "config" in self.before.values.keys() - self.now.values.keys()

    def __str__(self) -> str:
        return f"{self.verb} {self.entry}{''.join(self._changes())}"

    def _changes(self) -> Iterator[str]:
        if self.before is None or self.now is None:
            return
        before, now = self.before.values, self.now.values
        for index, key in enumerate(sorted(before.keys() | now.keys())):
            if before.get(key) != now.get(key):
                old, new = _shown(before.get(key, "")), _shown(now.get(key, ""))
                yield f"{';' if index else ':'} {key} {old or 'nothing'} -> {new or 'nothing'}"


class Lock:
    """What is locked: skills, plugins, servers with what they offer, and the notes of groups."""

    def __init__(self, entries: Iterable[LockEntry], connected: Iterable[str] = ()) -> None:
        self.connected = frozenset(connected)
        """The places of what connected servers offer."""
        self.entries: Mapping[tuple[str, str, str], LockEntry] = {
            entry.key: entry for entry in entries
        }

    @property
    def text(self) -> str:
        """Return the content of the lock file; the same things give the same text."""
        entries = sorted(self.entries.values(), key=lambda it: _rank(it.key))
        return "".join((_HEAD, *map(_table, entries)))

    def differences(self, now: "Lock") -> tuple[LockDifference, ...]:
        """Return how `now` differs in what is served, in the order of the file."""
        keys = sorted(self.entries.keys() | now.entries.keys(), key=_rank)
        pairs = ((self.entries.get(key), now.entries.get(key)) for key in keys)
        return tuple(
            LockDifference(before=before, now=after)
            for before, after in pairs
            if before is None or after is None or before.served != after.served
        )

    def changed_origins(self, now: "Lock") -> tuple[LockDifference, ...]:
        """Return what `now` serves unchanged, but with another source or signer or without one."""
        pairs = ((entry, now.entries.get(key)) for key, entry in self.entries.items())
        return tuple(
            LockDifference(before=before, now=after)
            for before, after in pairs
            if after
            and before.served == after.served
            and not before.origin.items() <= after.values.items()
        )


def with_origins_of(before: Lock, now: Lock) -> Lock:
    """Return `now`; what did not change keeps where it came from, if only `before` knows that."""
    unknown = (entry for entry in now.entries.values() if "from" not in entry.values)
    old = ((before.entries.get(entry.key), entry) for entry in unknown)
    kept = [replace(entry, values=it.values) for it, entry in old if it and _knows(it, entry)]
    return Lock([*now.entries.values(), *kept], now.connected)


def _knows(before: LockEntry, now: LockEntry) -> bool:
    return "from" in before.values and before.served == now.served


def read_lock(data: bytes, path: str) -> Lock:
    """Read a lock file. Raises `SatchelError` that says what is wrong and how to replace it."""
    try:
        table = tomllib.loads(data.decode("utf-8-sig"))
        return Lock(_entries(table))
    except (ValueError, RecursionError) as problem:  # also `UnicodeDecodeError`, `TOMLDecodeError`
        reason, fix = shorten(one_line(str(problem)), 200), "update Satchel"
        if reason != _TOO_NEW:
            reason = f"is not a lock file: {reason}"
            fix = "restore it, or delete it, review what is loaded, and run 'satchel lock'"
        raise SatchelError(reason, where=path, fix=fix) from None


def _entries(table: Mapping[str, Any]) -> Iterator[LockEntry]:
    version = table.get("version")
    if version != _VERSION:
        is_newer = isinstance(version, int) and version > _VERSION
        raise ValueError(_TOO_NEW if is_newer else "it has no version")
    if unknown := table.keys() - {"version", *_PLACES}:
        raise ValueError(f"it has an unknown part {min(unknown)!r}")
    seen: set[tuple[str, str, str]] = set()
    for kind, place in _PLACES.items():
        items = table.get(kind, [])
        if not isinstance(items, list):
            raise ValueError(f"{kind!r} is not a list of tables")  # noqa: TRY004 - a broken file
        for item in items:
            entry = _entry(kind, place, item)
            if entry.key in seen:
                raise ValueError(f"{entry} is in it twice")
            seen.add(entry.key)
            yield entry


def _entry(kind: str, place: str, item: Any) -> LockEntry:
    if not isinstance(item, dict) or not all(isinstance(value, str) for value in item.values()):
        raise ValueError(f"a {kind} is not a table of strings")
    if not {place, "name"} <= item.keys():
        raise ValueError(f"a {kind} has no {place} or no name")
    values = {key: value for key, value in item.items() if key not in {place, "name"}}
    if "from" in values:
        values["from"] = masked_source(values["from"])
    return LockEntry(kind=kind, place=item[place], name=item["name"], values=values)


def _table(entry: LockEntry) -> str:
    lines = {"name": entry.name, _PLACES[entry.kind]: entry.place}
    lines.update(sorted(entry.values.items()))
    return toml_table(entry.kind, lines)


def _rank(key: tuple[str, str, str]) -> tuple[int, str, str]:
    kind, place, name = key
    return list(_PLACES).index(kind), place, name


def _shown(text: str) -> str:
    return shorten(one_line(text), _DIGEST if text.startswith(("sha256:", "pbkdf2:")) else _SHOWN)
