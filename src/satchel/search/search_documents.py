"""The searchable text of the tools and skills of a catalog."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import SkillEntry, ToolEntry
from satchel.errors import SatchelError
from satchel.formats.skill_manifest import SkillManifest, read_skill
from satchel.names import BASIC_GROUP
from satchel.search.search_index import SearchDocument
from satchel.search.search_terms import (
    name_terms,
    normalize_text,
    query_terms,
    without_stop_words,
)
from satchel.settings import Limits
from satchel.sources.skill_findings import SKILL_FILE
from satchel.tools import Tool

_LONGEST_BODY = 3_000
"""How many characters of the instructions are searched; more finds hardly more."""
_LONGEST_READ = 4 * _LONGEST_BODY
_MOST_INNER = 50
_SHORTEST_STEM = 3
_CODE_BLOCK = re.compile(r"(?ms)^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)")
_KEYWORDS = ("keywords", "tags")


def documents_of(catalog: Catalog) -> Iterator[SearchDocument]:
    """Yield a document for each served tool and skill."""
    for tool in catalog.tools.values():
        secondary = " ".join((*_group_texts(tool, catalog), *_parameter_texts(tool.tool)))
        yield SearchDocument(
            kind="tool", name=tool.name, description=tool.description, more=secondary
        )
    for skill in catalog.skills.values():
        secondary = " ".join((*_group_texts(skill, catalog), *_keywords(skill)))
        yield SearchDocument(
            kind="skill",
            name=skill.name,
            description=skill.description,
            more=secondary,
            version=skill.version,
            body=partial(_body, skill),
        )


def _body(skill: SkillEntry) -> str:
    """Return the start of the instructions without code, and what the skills inside it are for."""
    if skill.manifest is None:
        return ""
    prose = _CODE_BLOCK.sub(" ", skill.manifest.body[:_LONGEST_READ])[:_LONGEST_BODY]
    inner = (f"{item.name} {item.description}" for item in _inner_skills(skill))
    return "\n".join((*inner, prose))


def matching_inner_skills(skill: SkillEntry, query: str) -> list[str]:
    """Return the names of the skills inside a skill that are why a query finds it."""
    terms = set(query_terms(query)) - _words_of(skill)
    return [
        item.name
        for item in _inner_skills(skill)
        if any(_is_alike(word, term) for word in _words_of(item) for term in terms)
    ]


def _is_alike(word: str, term: str) -> bool:
    """Return whether one begins with the other: the index finds stems."""
    return word.startswith(term) or (len(word) >= _SHORTEST_STEM and term.startswith(word))


def _words_of(skill: SkillEntry | SkillManifest) -> set[str]:
    text = " ".join((*name_terms(skill.name), skill.description))
    return set(without_stop_words(normalize_text(text)).split())


def _inner_skills(skill: SkillEntry) -> Iterator[SkillManifest]:
    """Yield the skills in folders of a skill: they are not served."""
    if skill.access.is_fetched:
        return
    inner = (file.name for file in skill.files if file.name.endswith(f"/{SKILL_FILE}"))
    for name in islice(inner, _MOST_INNER):
        limits = Limits()
        with suppress(SatchelError):
            reading = read_skill(
                skill.reader.read(name, limits).data, name.split("/")[-2], name, limits
            )
            if reading.value is not None:
                yield reading.value


def _group_texts(entry: ToolEntry | SkillEntry, catalog: Catalog) -> Iterator[str]:
    for name in entry.groups:
        if name == BASIC_GROUP:  # its name says nothing about its tools
            continue
        yield from name_terms(name)
        if group := catalog.groups.get(name):
            yield group.description


def _parameter_texts(tool: Tool | None) -> list[str]:
    if tool is None:
        return []
    try:
        properties = tool.parameters.get("properties", {})
        return [
            text for name, schema in properties.items() for text in _property_texts(name, schema)
        ]
    except Exception:  # the tool's class may raise anything, and its schema may be anything
        return []


def _property_texts(name: str, schema: Any) -> Iterator[str]:
    yield from name_terms(name)
    if isinstance(schema, Mapping) and isinstance(schema.get("description"), str):
        yield schema["description"]


def _keywords(skill: SkillEntry) -> Iterator[str]:
    """Yield the keywords of a skill, from `metadata` or, as many authors write, beside it."""
    if skill.manifest is None:
        return
    for fields in (skill.manifest.metadata, skill.manifest.fields):
        for key in _KEYWORDS:
            value = fields.get(key)
            for text in value if isinstance(value, tuple) else (value,):
                if isinstance(text, str):
                    yield text
