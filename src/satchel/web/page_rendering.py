"""Render a record as a page or as JSON. Everything in a page is escaped, also what hides."""

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from satchel.lazy_dataclass import dataclass
from satchel.reports.short_texts import count, short_path
from satchel.text import spell_hidden, unified_lines

MOST_SHOWN = 20_000
"""Characters of one text in a page; the JSON has all of it."""
_MOST_OF_WHOLE = 1_000_000
"""Characters of a text that is worth reading to its end, such as a prompt."""

_KINDS = {"+": "added", "-": "removed", "@": "place"}
_HEADER_LINES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page: its template, and the record that is also its JSON."""

    template: str
    title: str
    record: Mapping[str, Any]
    extra: Mapping[str, Any]
    """What only the page shows."""
    status: int = 200


def shown(text: str, most: int = MOST_SHOWN) -> str:
    """Return a text with its invisible characters spelled out, and its rest cut off."""
    text = text.encode("utf-8", "replace").decode()
    if (left_out := len(text) - most) > 0:
        text = f"{text[:most]}… ({left_out:,} more characters)"
    return spell_hidden(text)


def spelled_out(value: Any) -> Any:
    """Return JSON with the invisible characters of its texts spelled out."""
    match value:
        case str():
            return spell_hidden(value)
        case dict():
            return {spelled_out(key): spelled_out(item) for key, item in value.items()}
        case list() | tuple():
            return [spelled_out(item) for item in value]
    return value


def _finalize(value: Any) -> Any:
    """Return what a page shows of a value; nothing that a template prints misses this."""
    if isinstance(value, Markup):
        return value
    return "" if value is None else shown(str(value))


def _place(path: str) -> str:
    """Return a path as it is shown; of an installed package, from its environment on."""
    before, folder, rest = path.rpartition("site-packages/")
    return f"{folder}{rest}" if before else short_path(path)


def page_url(kind: str, name: str) -> str:
    """Return the address of the page of a skill or tool."""
    return f"/{kind}s/{quote(name, safe='')}"


class PageRenderer:
    """Renders pages; `shared` returns what every page shows beside its record."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=PackageLoader("satchel.web"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "pretty": partial(json.dumps, indent=2, ensure_ascii=False, default=str),
            "whole": lambda text: Markup.escape(shown(text, _MOST_OF_WHOLE)),
            # For an attribute: complete, and escaped.
            "compact": lambda value: Markup.escape(json.dumps(value, default=str)),
            "short_path": _place,
        }
        self._environment.globals |= {"count": count, "page_url": page_url}
        for name in self._environment.list_templates():
            self._environment.get_template(name)  # now, so that the first page is fast

    def html(self, page: Page, shared: Mapping[str, Any]) -> Response:
        """Return a page as HTML."""
        template = self._environment.get_template(page.template)
        text = template.render({**page.record, **page.extra, **shared, "page": page})
        return HTMLResponse(text, page.status)


def json_response(value: Any, status: int = 200) -> Response:
    """Return a value as JSON, in the form that the commands print."""
    text = json.dumps(value, indent=2, default=str) + "\n"
    return Response(text, status, media_type="application/json")


def diff_lines(before: str, now: str) -> list[dict[str, Any]]:
    """Return each line of a unified diff with its kind; nothing for equal texts."""
    return _with_kinds([*unified_lines(before, now, ("before", "now"))][_HEADER_LINES:])


def lines_of_diff(diff: str) -> list[dict[str, Any]]:
    """Return the lines of a unified diff, each with its kind, without the header."""
    return _with_kinds(diff.splitlines()[_HEADER_LINES:])


def _with_kinds(lines: Iterable[str]) -> list[dict[str, Any]]:
    return [{"kind": _KINDS.get(line[:1], "same"), "text": line} for line in lines]
