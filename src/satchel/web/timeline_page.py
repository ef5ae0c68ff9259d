"""The page of the timeline: changes and calls, with their duration and cause."""

from datetime import datetime
from typing import Any

from starlette.requests import Request

from satchel.web.page_rendering import Page
from satchel.web.timeline import TimelineEntry
from satchel.web.workbench import Workbench

_MOST_SHOWN = 200


def timeline(workbench: Workbench, request: Request) -> Page:
    """Return the newest changes and calls that match the filters."""
    kind = request.query_params.get("kind", "")
    words = request.query_params.get("q", "").strip()
    entries = [entry for entry in workbench.timeline if _matches(entry, kind, words.casefold())]
    listed = [entry.as_dict() for entry in entries[:_MOST_SHOWN]]
    record: dict[str, Any] = {
        "kind": kind,
        "query": words,
        "total": len(entries),
        "entries": listed,
    }
    longest = max((entry.seconds or 0.0 for entry in entries[:_MOST_SHOWN]), default=0.0)
    extra = {
        "longest": longest,
        "clock": lambda at: datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S"),
    }
    return Page(template="timeline.html", title="Timeline", record=record, extra=extra)


def _matches(entry: TimelineEntry, kind: str, words: str) -> bool:
    texts = (entry.name, entry.what, entry.event, entry.cause, entry.message)
    return kind in {"", entry.kind} and (not words or any(words in it.casefold() for it in texts))
