"""Remember who owns a name, so that a new folder cannot take it by sorting earlier.

The record lists, for each name of a skill, plugin or tool that was served, the units that served
it, the oldest first. A unit is a folder, an entry point, or an MCP server, as `mcp:` with the place
where it is declared. Names of the host are not in it: they come first in any case.

A name of the kind `server` is that of an MCP server, and its unit is that place. Names of the kind
`server tool` are those that servers got when all servers before them were connected: they decide
between servers, so that a faster one gains nothing.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from satchel.errors import SatchelError
from satchel.files.file_reader import UnreadableFileError, UnusableFileError
from satchel.files.state_files import StateFile, state_folder
from satchel.settings import MIB

_MOST_UNITS = 64
"""Units of one name. Of more, the oldest and the newest stay: many projects share a name."""
_MOST_NAMES = 20_000
"""Names of one kind."""
_MOST_STARTS = 32
_MOST_BYTES = 32 * MIB
"""Less than a state file may have, so that many long paths cannot make the record unreadable."""
_START_OF_OWNERS = b'"owners"'

Owners = dict[tuple[str, str], tuple[str, ...]]
"""The units by kind and name."""


class NameOwners:
    """The record of one state folder. It is read when a name is contested, or first served.

    It begins with the digests of all names that a start served: for the same names it is not parsed
    again.
    """

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._known: Owners | None = None
        self._at_start: Owners = {}
        """The record as it was when this process first read it."""
        self._indexed: Owners | None = None
        """The record that `_by_unit` was made of."""
        self._by_unit: dict[str, Mapping[str, tuple[str, ...]]] = {}
        self._recorded: set[tuple[str, str, str]] = set()
        self._has_warned = False
        self._lock = threading.Lock()

    def of(self, kind: str, name: str) -> tuple[str, ...]:
        """Return the units that served a name, the oldest first."""
        return self._read().get((kind, name), ())

    def before_start(self, kind: str, name: str) -> tuple[str, ...]:
        """Return the units that served a name before this process did."""
        self._read()
        return self._at_start.get((kind, name), ())

    def names_of(self, kind: str, unit: str) -> tuple[str, ...]:
        """Return the names that a unit served."""
        return self.by_unit(kind).get(unit, ())

    def by_unit(self, kind: str) -> Mapping[str, tuple[str, ...]]:
        """Return the names of a kind that each unit served."""
        record = self._read()
        if self._indexed is not record:
            self._by_unit = {}
        if kind not in self._by_unit:
            names: dict[str, list[str]] = {}
            for (served, name), units in record.items():
                for unit in units if served == kind else ():
                    names.setdefault(unit, []).append(name)
            self._by_unit[kind] = {unit: tuple(items) for unit, items in names.items()}
            self._indexed = record
        return self._by_unit[kind]

    def record(self, served: Iterable[tuple[str, str, str]]) -> None:
        """Add the `(kind, name, unit)` of what is served now; an error is logged once."""
        new = [item for item in served if item not in self._recorded]
        is_start = not self._recorded and self._known is None
        digest = _digest(new) if is_start else ""
        if not new or (digest and self._has_start(digest)):
            self._recorded.update(new)
            return
        owners = self._read()
        self._recorded.update(new)
        new = [item for item in new if item[2] not in owners.get(item[:2], ())]
        if not (new or digest):
            return

        def add(data: bytes | None) -> bytes:
            self._known = _merged(_parsed(data), new)
            content = _written(self._known, data, digest)
            if len(content) > _MOST_BYTES:
                raise SatchelError(f"the record is full: it has at most {_MOST_BYTES} bytes")
            return content

        with self._lock:
            try:
                self._file.change(add)
            except (SatchelError, UnreadableFileError, OSError) as problem:
                # In this process the names stay protected.
                self._known = _merged(owners, new)
                if new:
                    _warn(
                        "the owners of names cannot be recorded in %s: %s", self._file.path, problem
                    )

    def _has_start(self, digest: str) -> bool:
        """Return whether the names of a start are recorded, without parsing the record."""
        try:
            head = (self._file.read() or b"").partition(_START_OF_OWNERS)[0]
        except (UnreadableFileError, OSError):
            return False  # the next read reports it
        return digest.encode() in head

    @property
    def _file(self) -> StateFile:
        return StateFile(state_folder(self._folder), "names", "owners.json")

    def _read(self) -> Owners:
        with self._lock:
            if self._known is None:
                try:
                    self._known = self._at_start = _parsed(self._file.read())
                except (UnreadableFileError, OSError) as problem:
                    if not self._has_warned:
                        is_broken = isinstance(problem, UnusableFileError)
                        fix = "remove %s to start again" if is_broken else "%s is read again later"
                        message = f"the owners of names cannot be read: %s; {fix}"
                        _warn(message, problem, self._file.path)
                    self._has_warned = True
                    return {}  # not kept: it may be readable later
            return self._known


def _warn(message: str, *values: object) -> None:
    import logging  # lazy: a warning is rare

    logging.getLogger("satchel").warning(message, *values)


def _merged(owners: Mapping[tuple[str, str], tuple[str, ...]], new: Iterable[Any]) -> Owners:
    merged, counts = dict(owners), Counter(kind for kind, _ in owners)
    for kind, name, unit in new:
        before = merged.get((kind, name), ())
        if unit not in before and (before or counts[kind] < _MOST_NAMES):
            units, half = (*before, unit), _MOST_UNITS // 2
            # The oldest stays: it may never be pushed out.
            merged[kind, name] = (*units[:half], *units[half:][-half:])
            counts[kind] += not before
    return merged


def _parsed(data: bytes | None) -> Owners:
    if data is None:
        return {}
    import json  # lazy: an empty record needs none

    try:
        return {
            (str(kind), str(name)): tuple(map(str, units))
            for kind, names in json.loads(data)["owners"].items()
            for name, units in names.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnusableFileError("it is not a valid record") from None


def _digest(served: list[tuple[str, str, str]]) -> str:
    text = "\n".join(map("\0".join, served))
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _written(owners: Owners, before: bytes | None, digest: str) -> bytes:
    import json  # lazy: as above

    starts = json.loads(before or b"{}").get("starts")
    starts = starts if isinstance(starts, list) else []
    if digest:
        starts = [digest, *starts][:_MOST_STARTS]
    kinds: dict[str, dict[str, list[str]]] = {}
    for (kind, name), units in sorted(owners.items()):
        kinds.setdefault(kind, {})[name] = list(units)
    return json.dumps({"version": 1, "starts": starts, "owners": kinds}).encode()
