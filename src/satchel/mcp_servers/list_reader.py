"""Read the lists of a server page by page, within the limits for untrusted servers.

An invalid tool, prompt, resource or skill is rejected with a diagnostic; the others are kept.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
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

_REJECTED = "dev.satchel/rejected"
"""The `_meta` key, set here, of a page: the name and the fault of each item that was rejected."""

_METHODS: Mapping[str, str] = MappingProxyType(
    {
        "tools": "tools/list",
        "prompts": "prompts/list",
        "resources": "resources/list",
        "resourceTemplates": "resources/templates/list",
    }
)
"""Keys of the lists that the SDK validates -> the requests for them."""

_SKILLS = "skill://"
_MAX_PAGES = 1_000
_LONGEST_TTL = 86_400_000
"""Milliseconds; the lists are read again after a day, if the server names a longer time."""
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
        count_limit: Bound,
        size_limit: Bound,
    ) -> None:
        self.kind, self._where, self._check = kind, where, check
        self._count_limit, self._size_limit = count_limit, size_limit
        self._count = self._size = self._rejected = 0
        self.limit = ""
        """The limit that was reached, or `""`."""
        self.cursor_fault = ""
        """Why the last page did not lead to the next one, or `""`."""
        self._diagnostics: list[Diagnostic] = []
        self.valid: dict[str, Any] = {}
        self.ttl: float | None = None
        """Seconds until the list should be read again, if the server says so."""
        self.meta: Mapping[str, Any] = NOTHING
        """The `_meta` of the last page."""
        self.is_cancelled = False

    def add(self, page: Any, key: str) -> bool:
        """Add the items of a page. Return whether there is room for more."""
        ttl = page.ttl_ms
        if isinstance(ttl, int | float) and ttl > 0:
            seconds = min(ttl, _LONGEST_TTL) / 1000
            self.ttl = min(seconds, self.ttl or seconds)
        self.meta = page.meta or NOTHING
        for item in getattr(page, key):
            if not self._count_item():
                return False
            self._add(item)
        for name, fault in self.meta.get(_REJECTED, ()):
            if not self._count_item():
                return False
            self._reject(name, fault)
        return True

    def _count_item(self) -> bool:
        """Count a further item. Return whether it is within the limits."""
        most, setting = self._count_limit
        if self._count >= most:
            self.limit = f"{most} {self.kind}s (limit {setting})"
        self._count += 1
        return not (self.limit or self.is_cancelled)

    def _add(self, item: Any) -> None:
        try:
            name, value, size = self._check(item)
        except DefinitionError as problem:
            self._reject(_name_of(item), problem.message)
            return
        if name in self.valid:
            self._reject(name, "it is in the list twice; the first one counts")
            return
        self._size += size
        largest, setting = self._size_limit
        if self._size > largest:
            self.limit = f"{largest / MIB:g} MiB of {self.kind}s (limit {setting})"
            return
        self.valid[name] = value

    def _reject(self, name: str, fault: str) -> None:
        self._rejected += 1
        if self._rejected <= _MAX_DIAGNOSTICS:
            self._diagnostics.append(invalid_item(self.kind, self._where, name, fault))

    @property
    def values(self) -> tuple[Any, ...]:
        """Return the valid items, by name."""
        return tuple(self.valid[name] for name in sorted(self.valid))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return what was rejected, which limit was reached, and why items may be missing."""
        diagnostics, where = list(dict.fromkeys(self._diagnostics)), self._where
        messages = []
        if (further := self._rejected - _MAX_DIAGNOSTICS) > 0:
            messages.append(f"{further:,} more of its {self.kind}s are left out")
        if self.cursor_fault:
            messages.append(f"its list of {self.kind}s may be incomplete: {self.cursor_fault}")
        code = f"mcp-{self.kind}-invalid"
        diagnostics += (make_diagnostic(code, where, message, REPORT) for message in messages)
        if self.limit:
            diagnostics.append(
                make_diagnostic(
                    f"mcp-too-many-{self.kind}s",
                    where,
                    f"it lists more than {self.limit}; the rest is left out",
                    f"let the server list fewer {self.kind}s, or raise the limit",
                )
            )
        return tuple(diagnostics)


def invalid_item(kind: str, where: Where, name: str, fault: str) -> Diagnostic:
    """Return the diagnostic for a tool, prompt, resource or skill that cannot be used."""
    name = shorten(one_line(name), 100)
    item = f"{kind} {name!r}" if name else f"a {kind} without a name"
    message = f"{item} is left out: {shorten(one_line(fault), 300)}"
    return make_diagnostic(f"mcp-{kind}-invalid", where, message, REPORT)


async def read_list(
    fetch: Callable[..., Awaitable[Any]],
    key: str,
    items: ListedItems,
    seconds: float,
    *,
    may_lack: bool = False,
) -> str:
    """Read the pages of a list. Return the message if it was not read to its end, else `""`.

    `key` names the attribute of a page with the items. With `may_lack`, a server need not know the
    request. Raises an error if the connection is broken.
    """
    from mcp import MCPError
    from mcp_types import METHOD_NOT_FOUND

    cursor, cursors, failure = None, set[str](), ""
    try:
        # One limit for all pages: the server's tools are published only after them.
        async with asyncio.timeout(seconds):
            for _ in range(_MAX_PAGES):
                page = await fetch(cursor=cursor)
                # In a thread: this is the event loop of all servers, and a page may be long.
                has_room = await in_thread(partial(items.add, page, key))
                cursor = page.next_cursor
                items.cursor_fault = _cursor_fault(cursor, cursors)
                if not has_room or cursor is None or items.cursor_fault:
                    break
                cursors.add(cursor)
            else:
                items.limit = f"{_MAX_PAGES:,} pages of {items.kind}s"
    except TimeoutError:
        failure = f"the list was not complete within {seconds:g} s (limit mcp_connect)"
    except MCPError as problem:
        if is_connection_closed(problem) or is_expired(problem):
            raise
        if not may_lack or cursors or problem.code != METHOD_NOT_FOUND:
            failure = f"the server answered {shorten(one_line(problem.message), 300)!r}"
    except ValueError:  # pydantic's ValidationError, too
        failure = f"its response is not a list of {items.kind}s"
    finally:
        items.is_cancelled = True
    return f"cannot list its {items.kind}s: {failure}" if failure else ""


def _cursor_fault(cursor: Any, earlier: Collection[str]) -> str:
    """Return why a cursor does not lead to a further page, or `""`."""
    if not isinstance(cursor, str | None):
        return "a cursor is not a string"
    return "the server repeated a cursor" if cursor in earlier else ""


def reject_invalid_items(result: dict[str, Any], version: str, most: int) -> None:
    """Take the invalid items out of a received result, if it is a page of a list.

    Otherwise the SDK rejects the whole page for one invalid item. `version` is that of the
    protocol. Items after the first `most` are taken out, too, and the files of skills: they are
    listed as skills, and count as these.
    """
    if isinstance(meta := result.get("_meta"), dict):
        meta.pop(_REJECTED, None)  # a server must not say what we rejected
    for key, method in _METHODS.items():
        if isinstance(items := result.get(key), list):
            items = [item for item in items if not _is_of_skill(item)]
            result[key] = items = items[: most + 1]  # one extra, so that the limit is reported
            faults = _faults(result, key, method, version)
            rejected = [(_name_of(items[at]), fault) for at, fault in faults.items()]
            result["_meta"] = {**(meta if isinstance(meta, dict) else {}), _REJECTED: rejected}
            result[key] = [item for at, item in enumerate(items) if at not in faults]


def _is_of_skill(item: Any) -> bool:
    uris = (item.get("uri"), item.get("uriTemplate")) if isinstance(item, dict) else ()
    return any(isinstance(uri, str) and uri.lower().startswith(_SKILLS) for uri in uris)


def _faults(result: dict[str, Any], key: str, method: str, version: str) -> dict[int, str]:
    """Return the indices of the invalid items of a page, each with its first fault."""
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
                    field_name = ".".join(map(str, path))
                    fault = f"{field_name}: {error['msg']}" if path else "it is not an object"
                    faults.setdefault(at, fault)
    return faults


def _name_of(item: Any) -> str:
    """Return the name of an item, or its address; `""` if it has neither."""
    read = item.get if isinstance(item, dict) else partial(_attribute, item)
    texts = (read(key) for key in ("name", "uri"))
    return next((text for text in texts if isinstance(text, str)), "")


def _attribute(item: Any, name: str) -> Any:
    return getattr(item, name, None)
