"""Tools as a server defines them, within the limits that are held against strangers."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

from satchel.diagnostics import Diagnostic
from satchel.errors import DefinitionError
from satchel.mcp_servers.listed_skills import ListedSkill, SkillListing
from satchel.mcp_servers.schema_bounds import BoundedValidator, require_bounded
from satchel.settings import KIB, Limits
from satchel.text import has_hidden, visible
from satchel.tools.dialects import shown
from satchel.tools.dialects.schema_walk import references
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.schema_validator import SchemaValidator

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """One tool as its server defines it."""

    name: str
    """What the server calls it; a model may see another name."""
    description: str = ""
    parameters: Mapping[str, Any] = field(default=NOTHING, hash=False)
    output: Mapping[str, Any] | None = field(default=None, hash=False)
    annotations: Mapping[str, Any] | None = field(default=None, hash=False)

    @cached_property
    def digest(self) -> str:
        """Names all that the server says of the tool."""
        return blake2b(self.text.encode(), digest_size=16).hexdigest()

    @cached_property
    def text(self) -> str:
        """All that the server says of the tool, line by line, the same each time."""
        return json.dumps(self.as_dict(), indent=1, sort_keys=True, ensure_ascii=True)

    @cached_property
    def promise(self) -> BoundedValidator:
        """What judges its results."""
        return BoundedValidator(self.output or {}, self.name)

    def as_dict(self) -> dict[str, Any]:
        """Return all that the server says of the tool, as JSON."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
            "output": None if self.output is None else dict(self.output),
            "annotations": None if self.annotations is None else dict(self.annotations),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    """All that a server offers at one time."""

    tools: tuple[ToolDefinition, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    fresh: float | None = None
    """Seconds for which it holds, if the server says so."""
    about: Mapping[str, Any] = field(default=NOTHING, hash=False)
    """What the process of a plugin tells of it beside that."""
    skills: tuple[ListedSkill, ...] = ()


def with_skills(listing: ToolList, found: SkillListing) -> ToolList:
    """Return a listing with the skills that the server lists; it holds while both hold."""
    times = [time for time in (listing.fresh, found.fresh) if time is not None]
    return replace(
        listing,
        diagnostics=(*listing.diagnostics, *found.diagnostics),
        fresh=min(times, default=None),
        skills=found.skills,
    )


def check_definition(raw: ToolDefinition, limits: Limits) -> ToolDefinition:
    """Return a tool as it can be shown. Raises `DefinitionError` for one that cannot be used."""
    for schema in (raw.parameters, raw.output, raw.annotations):
        _require_json(schema, limits)
    found = replace(
        raw,
        description=visible(raw.description),
        parameters=shown(raw.parameters),
        output=None if raw.output is None else shown(raw.output),
        annotations=None if raw.annotations is None else _visible(raw.annotations),
    )
    if len(found.text) > limits.mcp_schema:
        raise DefinitionError(
            f"its definition takes more than {limits.mcp_schema // KIB} KiB (limit mcp_schema)"
        )
    for what, schema in (("parameters", found.parameters), ("output", found.output)):
        if _has_hidden(schema):
            raise DefinitionError(f"the schema of its {what} has invisible letters")
        for reference in references(schema):
            if not reference.startswith("#"):
                raise DefinitionError(
                    f"the schema of its {what} refers to another document, and none is fetched"
                )
    for schema in (found.parameters, found.output):
        if schema is not None:
            require_bounded(schema)
            SchemaValidator(schema, found.name)  # compiling is the check
    return found


def _require_json(schema: Any, limits: Limits) -> None:
    """Raise `DefinitionError` for a schema that is nested too deep, or that no JSON can say."""
    todo = [(schema, 0)]
    while todo:  # not by recursion: strangers nest deeper than Python calls
        item, depth = todo.pop()
        if isinstance(item, float) and item - item != 0:  # NaN, or without end
            raise DefinitionError(f"a schema of it has the number {item}, which no JSON has")
        if depth > limits.mcp_schema_depth:
            raise DefinitionError(
                f"a schema of it is nested deeper than {limits.mcp_schema_depth} levels "
                "(limit mcp_schema_depth)"
            )
        inside = item.values() if isinstance(item, Mapping) else item
        if isinstance(item, Mapping | list):
            todo += [(inner, depth + 1) for inner in inside]


def _has_hidden(schema: Any) -> bool:
    """Tell whether a schema has letters that nobody sees and that cannot be left out of it.

    Control characters are no such: in JSON they are seen.
    """
    todo = [schema]
    while todo:
        item = todo.pop()
        if isinstance(item, Mapping):
            todo += [*item, *item.values()]
        elif isinstance(item, list):
            todo += item
        elif isinstance(item, str) and has_hidden(_CONTROLS.sub("", item)):
            return True
    return False


def _visible(annotations: Mapping[str, Any]) -> dict[str, Any]:
    return {
        visible(key): visible(value) if isinstance(value, str) else value
        for key, value in annotations.items()
    }
