"""The page of a skill: rendered and to edit, with its files, and whether it would be found."""

import asyncio
import os
import posixpath
from codecs import BOM_UTF8
from collections.abc import Mapping
from itertools import chain
from typing import Any
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.requests import Request

from satchel.catalog.catalog_entries import SkillEntry
from satchel.diagnostics import Where, strictly
from satchel.errors import ConflictError, NotFoundError, SatchelError, ToolError
from satchel.files.atomic_write import write_atomic
from satchel.files.file_reader import digest_of
from satchel.formats.skill_manifest import read_skill
from satchel.names import near_misses
from satchel.reports.serializer import shown
from satchel.reports.short_texts import status_label
from satchel.search.search_terms import normalize_text, query_terms
from satchel.settings import Limits
from satchel.sources.skill_files import LocalSkillReader, file_text, locate_skill_file
from satchel.sources.skill_findings import SKILL_FILE
from satchel.web.page_rendering import Page
from satchel.web.page_rendering import shown as shown_text
from satchel.web.page_routes import name_in, text_of
from satchel.web.problems_page import editor_link
from satchel.web.workbench import Workbench

_LONGEST_RENDERED = 100_000
_MOST_RANKED = 10
_MOST_HITS = 2_000


def skill(workbench: Workbench, request: Request) -> Page:
    """Return a skill with its text, its files, and its rank for a request of a user."""
    entry = workbench.catalog.skill(name_in(request))
    words, file_name = (
        request.query_params.get("q", "").strip(),
        request.query_params.get("file", ""),
    )
    text, digest, problem = _text_on_disk(entry)
    record = {
        **shown("skill", entry),
        "status": status_label(entry),
        "text": text,
        "digest": digest,
        "problem": problem,
        "is_editable": bool(entry.folder) and not problem,
        "lint": _lint(text, entry)[0] if text else [],
        "query": words,
        "search": _search(workbench, entry, words) if words else None,
        "file": _file(entry, file_name) if file_name else None,
    }
    body = str(record["body"])
    extra = {
        "rendered": rendered(body[:_LONGEST_RENDERED], entry),
        "address": entry.address,
        "editor": editor_link(workbench.options.editor, Where(_skill_file(entry))),
        # Whole and unchanged, because it is edited; escaped all the same.
        "text_raw": Markup.escape(text),
    }
    return Page(template="skill.html", title=entry.name, record=record, extra=extra)


def rendered(markdown: str, entry: SkillEntry) -> Markup:
    """Return Markdown as HTML. HTML in it is text; pictures are left out, as nothing is loaded.

    Links to files of the skill lead to where this page shows them.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = parser.parse(shown_text(markdown, _LONGEST_RENDERED))
    names = {file.name for file in entry.files}
    for token in chain.from_iterable(token.children or () for token in tokens):
        name = posixpath.normpath(unquote(str(token.attrs.get("href", "")).partition("#")[0]))
        if name in names:
            token.attrs["href"] = f"?file={quote(name)}#file"
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 - the renderer escapes HTML


def _text_on_disk(entry: SkillEntry) -> tuple[str, str, str]:
    """Return the newest SKILL.md, its digest, and why it cannot be shown; also if it is broken."""
    if not entry.folder:
        return "", "", "" if entry.manifest else "it has no file here"
    try:
        file = entry.reader.read(SKILL_FILE, Limits())
    except ToolError as error:
        return "", "", error.message
    text = file_text(file)
    if text is None:
        return "", file.digest, "it is not UTF-8 text, or too long"
    # As a text field of a browser has it.
    return text.replace("\r\n", "\n"), file.digest, ""


def _file(entry: SkillEntry, name: str) -> dict[str, Any]:
    """Return a file of a skill as text. Raises `NotFoundError` for one that it does not list."""
    names = [file.name for file in entry.files]
    if name not in names:
        raise NotFoundError("file of the skill", name, near_misses(name, names))
    try:
        text = file_text(entry.reader.read(name, Limits()))
    except ToolError as error:
        return {"name": name, "text": None, "problem": error.message}
    return {"name": name, "text": text, "problem": "" if text is not None else "it is not text"}


# ---- would it be found? -------------------------------------------------------------------------


def _search(workbench: Workbench, entry: SkillEntry, words: str) -> dict[str, Any]:
    """Return the ranking for a request, and which terms of it find this skill."""
    hits = workbench.search(words, "skill", _MOST_HITS)
    names = [hit.name for hit in hits]
    rank = names.index(entry.name) + 1 if entry.is_served and entry.name in names else None
    body = entry.manifest.body if entry.manifest else ""
    parts = {"name": entry.name, "description": entry.description, "instructions": body}
    terms = []
    for term in query_terms(words):
        term_hits = workbench.search(term, "skill", _MOST_HITS)
        # As it is written; stems may find more.
        places = [part for part, text in parts.items() if term in text.casefold()]
        own = next((hit.score for hit in term_hits if hit.name == entry.name), None)
        if " " not in term and term not in normalize_text(words):
            continue  # a spelling that the search tries, such as all words in one
        terms.append(
            {
                "term": term,
                "score": own,
                "skills": len(term_hits),
                "where": places if own is not None else [],
            }
        )
    return {
        "rank": rank,
        "total": len(hits),
        "hits": [{"name": hit.name, "score": hit.score} for hit in hits[:_MOST_RANKED]],
        "terms": terms,
    }


# ---- editing ------------------------------------------------------------------------------------


async def lint(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Check a text as the SKILL.md of a skill, as strictly as `satchel validate`."""
    entry = workbench.catalog.skill(text_of(fields, "skill"))
    text = text_of(fields, "text")
    diagnostics, body = await asyncio.to_thread(_lint, text, entry)
    return {"diagnostics": diagnostics, "html": str(rendered(body[:_LONGEST_RENDERED], entry))}


def _skill_file(entry: SkillEntry) -> str:
    return os.path.join(entry.path, SKILL_FILE)


def _lint(text: str, entry: SkillEntry) -> tuple[list[dict[str, Any]], str]:
    """Return the diagnostics of a SKILL.md, and its body."""
    data = text.encode("utf-8", "surrogatepass")
    reading = read_skill(data, os.path.basename(entry.path), _skill_file(entry), Limits())
    diagnostics = [item.as_dict() for item in strictly(reading.diagnostics)]
    return diagnostics, reading.value.body if reading.value else ""


async def save(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Write the SKILL.md of a skill, unless the file changed since the page read it."""
    entry = workbench.catalog.skill(text_of(fields, "skill"))
    text, digest = text_of(fields, "text"), text_of(fields, "digest")
    return {"digest": await asyncio.to_thread(_save, entry, text, digest)}


def _save(entry: SkillEntry, text: str, digest: str) -> str:
    if not entry.folder:
        raise ConflictError(f"skill {entry.name!r} has no folder here, so it cannot be saved")
    _, now, problem = _text_on_disk(entry)
    if problem or now != digest:
        raise ConflictError(
            problem or "the file changed on disk since the page read it",
            fix="copy your text, and reload the page",
        )
    reader = entry.reader
    root = reader.root if isinstance(reader, LocalSkillReader) else entry.path
    try:
        before = reader.read(SKILL_FILE, Limits()).data
        path = locate_skill_file(root, entry.path, SKILL_FILE)
    except ToolError as error:
        raise SatchelError(error.message) from None
    # With the line ends and the byte order mark of the file before.
    if b"\r\n" in before:
        text = text.replace("\n", "\r\n")
    mark = BOM_UTF8 if before.startswith(BOM_UTF8) else b""
    data = mark + text.encode("utf-8", "surrogatepass")
    write_atomic(path, data)
    return digest_of(data)
