"""Read the lists of a server page by page, within the limits for untrusted servers.

An invalid tool, prompt, resource or skill is left out with a diagnostic; the others are kept.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.mcp_servers.connection_errors import is_connection_closed, is_expired
from satchel.settings import MIB
from satchel.text import one_line, shorten
from satchel.tools.callables import in_thread
from satchel.tools.empty_mapping import NOTHING

_INVALID = "dev.satchel/invalid"
"""The `_meta` key of a received page with the name and the fault of each item that was dropped."""

_METHODS: Mapping[str, str] = MappingProxyType(
    {
        "tools": "tools/list",
        "prompts": "prompts/list",
        "resources": "resources/list",
        "resourceTemplates": "resources/templates/list",
    }
)
"""Keys of the lists that the SDK validates -> the requests for them."""

_MAX_PAGES = 1_000
_MAX_DIAGNOSTICS = 20
"""Diagnostics about invalid items of one list."""

REPORT = "report it to the maintainer of the server"

Bound = tuple[int, str]
"""A limit and its name."""


class ListedItems:
    """The valid items of a list, and diagnostics about the others.

    `check` returns the name of a received item, the item as it is used, and its size. It raises
    `DefinitionError` for an invalid one.
    """

    def __init__(
        self,
        kind: str,
        where: Where,
        check: Callable[[Any], tuple[str, Any, int]],
        *,
        most: Bound,
        largest: Bound,
    ) -> None:
        self.kind, self._where, self._check = kind, where, check
        self._most, self._largest = most, largest
        self._count = self._size = self._invalid = 0
        self._limit = ""
        """The limit that was reached, or `""`."""
        self._diagnostics: list[Diagnostic] = []
        self.valid: dict[str, Any] = {}
        self.ttl: float | None = None
        """Seconds until the list should be read again, if the server says so."""
        self.meta: Mapping[str, Any] = NOTHING
        """The `_meta` of the last page."""
        self.is_cancelled = False

    def add(self, page: Any, key: str) -> bool:
        """Add the items of a page. Return whether there is room for more."""
        if page.ttl_ms:
            self.ttl = min(page.ttl_ms / 1000, self.ttl or page.ttl_ms / 1000)
        self.meta = page.meta or NOTHING
        for item in getattr(page, key):
            if not self._has_room():
                return False
            self._add(item)
        for name, why in self.meta.get(_INVALID, ()):
            if not self._has_room():
                return False
            self._leave_out(name, why)
        return True

    def _has_room(self) -> bool:
        """Count a further item. Return whether it is within the limits."""
        most, name = self._most
        if self._count >= most:
            self._limit = f"{most} {self.kind}s (limit {name})"
        self._count += 1
        return not (self._limit or self.is_cancelled)

    def _add(self, item: Any) -> None:
        try:
            name, value, size = self._check(item)
        except DefinitionError as problem:
            self._leave_out(_name_of(item), problem.message)
            return
        if name in self.valid:
            self._leave_out(name, f"the list has an earlier {self.kind} of that name")
            return
        self._size += size
        if self._size > self._largest[0]:
            self._limit = f"{self._largest[0] / MIB:g} MiB of them (limit {self._largest[1]})"
            return
        self.valid[name] = value

    def _leave_out(self, name: str, why: str) -> None:
        self._invalid += 1
        if self._invalid <= _MAX_DIAGNOSTICS:
            self._diagnostics.append(invalid_item(self.kind, self._where, name, why))

    @property
    def values(self) -> tuple[Any, ...]:
        """Return the valid items, by name."""
        return tuple(self.valid[name] for name in sorted(self.valid))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return what was left out, and why."""
        diagnostics, where = list(dict.fromkeys(self._diagnostics)), self._where
        if (further := self._invalid - _MAX_DIAGNOSTICS) > 0:
            message = f"{further:,} more of its {self.kind}s are left out"
            diagnostics.append(make_diagnostic(f"mcp-{self.kind}-invalid", where, message, REPORT))
        if self._limit:
            diagnostics.append(
                make_diagnostic(
                    f"mcp-too-many-{self.kind}s",
                    where,
                    f"it lists more than {self._limit}; the rest is left out",
                    f"raise the limit, or {REPORT}",
                )
            )
        return tuple(diagnostics)


def invalid_item(kind: str, where: Where, name: str, why: str) -> Diagnostic:
    """Return the diagnostic for a tool, prompt, resource or skill that cannot be used."""
    return make_diagnostic(
        f"mcp-{kind}-invalid",
        where,
        f"{kind} {shorten(one_line(name), 100)!r} is left out: {shorten(one_line(why), 300)}",
        REPORT,
    )


async def read_list(
    fetch: Callable[..., Awaitable[Any]], key: str, items: ListedItems, seconds: float
) -> str:
    """Read the pages of a list. Return the message if it was not read to its end, else `""`.

    `key` names the attribute of a page with the items. Raises an error if the connection is broken.
    """
    from mcp import MCPError

    cursor, cursors, why = None, set[str](), ""
    try:
        # One limit for all pages: the server's tools are published only after them.
        async with asyncio.timeout(seconds):
            for _ in range(_MAX_PAGES):
                page = await fetch(cursor=cursor)
                # In a thread: this is the event loop of all servers, and a page may be long.
                has_room = await in_thread(partial(items.add, page, key))
                cursor = page.next_cursor
                if not has_room or cursor is None or cursor in cursors:
                    break
                cursors.add(cursor)
    except TimeoutError:
        why = f"it did not list them within {seconds:g} s (limit mcp_connect)"
    except MCPError as problem:
        if is_connection_closed(problem) or is_expired(problem):
            raise
        why = f"it refused: {shorten(one_line(problem.message), 300)}"
    except ValueError:  # pydantic's ValidationError, too
        why = f"its response is not a list of {items.kind}s"
    finally:
        items.is_cancelled = True
    return f"cannot list its {items.kind}s: {why}" if why else ""


def drop_invalid_items(result: dict[str, Any], version: str, most: int) -> None:
    """Drop the invalid items of a received result, if it is a page of a list.

    Otherwise the SDK rejects the whole page for one invalid item. `version` is that of the
    protocol. Items after the first `most` are dropped, too.
    """
    for key, method in _METHODS.items():
        if isinstance(items := result.get(key), list):
            del items[most + 1 :]  # one extra, so that the limit is reported
            faults = _faults(result, key, method, version)
            meta = result.get("_meta")
            meta = meta if isinstance(meta, dict) else {}
            dropped = [(_name_of(items[at]), why) for at, why in faults.items()]
            result["_meta"] = {**meta, _INVALID: dropped}
            result[key] = [item for at, item in enumerate(items) if at not in faults]


def _faults(result: dict[str, Any], key: str, method: str, version: str) -> dict[int, str]:
    from mcp_types.methods import SERVER_RESULTS
    from pydantic import ValidationError

    page_type: Any = SERVER_RESULTS.get((method, version))
    faults: dict[int, str] = {}
    try:
        if page_type is not None:
            page_type.model_validate(result, by_name=False)
    except ValidationError as problem:
        for error in problem.errors(include_url=False, include_context=False, include_input=False):
            match error["loc"]:
                case (str(field), int(at), *path) if field == key:
                    why = ": ".join((".".join(map(str, path)) or "it", error["msg"]))
                    faults.setdefault(at, why)
    return faults


def _name_of(item: Any) -> str:
    """Return the name of an item, or its address."""
    read = item.get if isinstance(item, dict) else partial(_attribute, item)
    texts = (read(key) for key in ("name", "uri"))
    return next((text for text in texts if isinstance(text, str)), "without a name")


def _attribute(item: Any, name: str) -> Any:
    return getattr(item, name, None)
