"""The documents of a catalog: what its tools and skills are found by."""

from collections.abc import Iterator, Mapping
from typing import Any

from satchel.catalog import Catalog, SkillEntry, ToolEntry
from satchel.names import BASIC_GROUP
from satchel.search.search_index import SearchDocument
from satchel.search.search_terms import name_terms
from satchel.tools import Tool

_KEYWORDS = ("keywords", "tags")


def documents_of(catalog: Catalog) -> Iterator[SearchDocument]:
    """Yield a document for every tool and every skill that is served."""
    for tool in catalog.tools.values():
        more = " ".join((*_of_groups(tool, catalog), *_of_parameters(tool.tool)))
        yield SearchDocument(kind="tool", name=tool.name, description=tool.description, more=more)
    for skill in catalog.skills.values():
        more = " ".join((*_of_groups(skill, catalog), *_of_metadata(skill)))
        yield SearchDocument(
            kind="skill", name=skill.name, description=skill.description, more=more
        )


def _of_groups(entry: ToolEntry | SkillEntry, catalog: Catalog) -> Iterator[str]:
    for name in entry.groups:
        if name == BASIC_GROUP:  # which says nothing of its tools
            continue
        yield from name_terms(name)
        if group := catalog.groups.get(name):
            yield group.description


def _of_parameters(tool: Tool | None) -> list[str]:
    """Return what a tool says of its parameters; of one whose class fails at that, nothing."""
    if tool is None:
        return []
    try:
        properties = tool.parameters.get("properties", {})
        return [text for name, said in properties.items() for text in _of_property(name, said)]
    except Exception:  # a stranger's class may raise anything, and its schema may be anything
        return []


def _of_property(name: str, said: Any) -> Iterator[str]:
    yield from name_terms(name)
    if isinstance(said, Mapping) and isinstance(said.get("description"), str):
        yield said["description"]


def _of_metadata(skill: SkillEntry) -> Iterator[str]:
    """Yield the keywords of a skill; many authors write them beside `metadata`, not below it."""
    if skill.manifest is None:
        return
    for fields in (skill.manifest.metadata, skill.manifest.fields):
        for key in _KEYWORDS:
            value = fields.get(key)
            for text in value if isinstance(value, tuple) else (value,):
                if isinstance(text, str):
                    yield text
