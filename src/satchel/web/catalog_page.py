"""The page of the catalog: what is loaded, from where, and why something is not served."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_changes import entry_kind
from satchel.catalog.catalog_entries import Entry, PluginEntry, Status
from satchel.reports.serializer import KINDS, entries_of, entry_json
from satchel.reports.short_texts import state_of, status_label, worst_first
from satchel.search.search_index import SearchHit
from satchel.web.page_rendering import Page
from satchel.web.workbench import Workbench

_PER_PAGE = 100
_MOST_PER_PAGE = 2_000
_MOST_HITS = 500
_FIRST = frozenset({Status.FAILED, Status.REVOKED, Status.STALE, Status.DEGRADED, Status.HELD})
_LAST = frozenset({Status.DISABLED, Status.SHADOWED})


def catalog(workbench: Workbench, request: Request) -> Page:
    """Return the entries that match a text and the filters, the best match first."""
    query = request.query_params
    words, kind, state = query.get("q", "").strip(), query.get("kind", ""), query.get("state", "")
    start = _number(query.get("start"), 0)
    limit = min(_number(query.get("limit"), _PER_PAGE), _MOST_PER_PAGE)
    snapshot = workbench.catalog
    hits = workbench.search_now(words, limit=_MOST_HITS) if words else []
    matching = _matching(workbench, snapshot, words, hits or ())
    kinds = Counter(map(entry_kind, matching))
    if kind in KINDS:
        matching = [entry for entry in matching if entry_kind(entry) == kind]
    states = Counter(state_of(entry) for entry in matching)
    if state:
        matching = [entry for entry in matching if state_of(entry) == state]
    listed = matching[start : start + limit]
    end = start + len(listed)
    record = {
        "generation": snapshot.generation,
        "query": words,
        "is_indexing": hits is None,
        "kind": kind,
        "state": state,
        "total": len(matching),
        "kinds": {name: kinds[name] for name in KINDS},
        "states": dict(sorted(states.items())),
        "items": [catalog_row(entry) for entry in listed],
        "start": start,
        "next": end if end < len(matching) else None,
    }
    is_part = query.get("part") == "rows"
    template = "catalog_rows.html" if is_part else "catalog.html"
    return Page(template=template, title="Catalog", record=record, extra={})


def catalog_row(entry: Entry) -> dict[str, Any]:
    """Return the JSON of `list`, with what a row shows beside it."""
    kind = entry_kind(entry)
    worst = next(iter(worst_first(entry.diagnostics)), None)
    return {
        **entry_json(kind, entry),
        "kind": kind,
        "status": status_label(entry),
        "is_server": isinstance(entry, PluginEntry) and entry.is_server,
        "address": entry.address,
        "is_served": entry.is_served,
        "reason": worst.message if worst else "",
        "severity": str(worst.severity) if worst else "",
    }


def _matching(
    workbench: Workbench, snapshot: Catalog, words: str, hits: Iterable[SearchHit]
) -> list[Entry]:
    """Return the entries that match: first those of the search index, then those by name.

    Without a text, what is broken or waits comes first.
    """
    entries, names = workbench.derived("entries", lambda: _in_order(snapshot))
    if not words:
        return list(entries)
    tables = {"tool": snapshot.tools, "skill": snapshot.skills}
    of_hits = [tables[hit.kind].get(hit.name) for hit in hits]
    ranked: dict[int, Entry] = {id(entry): entry for entry in of_hits if entry is not None}
    # Then those that the index does not have, or did not find, by a part of their name.
    folded = words.casefold()
    others = (entry for entry, name in zip(entries, names, strict=True) if folded in name)
    return [*ranked.values(), *(entry for entry in others if id(entry) not in ranked)]


def _in_order(snapshot: Catalog) -> tuple[list[Entry], list[str]]:
    entries = [entry for kind in reversed(KINDS) for entry in entries_of(snapshot, kind)]
    entries.sort(key=lambda entry: (entry.state in _LAST) - (entry.state in _FIRST))
    return entries, [entry.name.casefold() for entry in entries]


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else default  # noqa: PLR2004
