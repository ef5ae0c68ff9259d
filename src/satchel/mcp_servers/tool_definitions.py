"""Tool definitions of a server, checked against the limits for untrusted servers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any

from satchel.diagnostics import Diagnostic
from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.schema_bounds import BoundedValidator, require_bounded
from satchel.settings import KIB, Limits
from satchel.text import has_hidden, visible
from satchel.tools.dialects import shown
from satchel.tools.dialects.schema_walk import references
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.schema_validator import SchemaValidator

if TYPE_CHECKING:
    from satchel.mcp_servers.listed_skills import ListedSkill, SkillFile
    from satchel.mcp_servers.server_offers import OfferedPrompt, OfferedResource

DEEPEST = 128
"""Nesting that is read of a schema, whatever the limit: JSON parsers stop soon after."""

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """One tool as its server defines it."""

    name: str
    """Its name at the server; the model may see another name."""
    description: str = ""
    parameters: Mapping[str, Any] = field(default=NOTHING, hash=False)
    output: Mapping[str, Any] | None = field(default=None, hash=False)
    annotations: Mapping[str, Any] | None = field(default=None, hash=False)
    mcp_fields: Mapping[str, Any] = field(default=NOTHING, hash=False)
    """The other fields, for MCP clients; no model sees them, so they are not pinned."""

    @cached_property
    def digest(self) -> str:
        """A digest of the whole definition."""
        fields = json.dumps(dict(self.mcp_fields), sort_keys=True) if self.mcp_fields else ""
        return blake2b((self.text + fields).encode(), digest_size=16).hexdigest()

    @cached_property
    def text(self) -> str:
        """What is pinned of the definition, as deterministic, indented JSON."""
        pinned = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
            "output": None if self.output is None else dict(self.output),
            "annotations": None if self.annotations is None else dict(self.annotations),
        }
        return json.dumps(pinned, indent=1, sort_keys=True, ensure_ascii=True)

    @cached_property
    def promise(self) -> BoundedValidator:
        """The validator of its results."""
        return BoundedValidator(self.output or {}, self.name)


def definition_of(text: str) -> ToolDefinition | None:
    """Return the definition whose `text` this is, or `None`; it is not checked."""
    try:
        value = json.loads(text)
        return ToolDefinition(
            name=str(value["name"]),
            description=str(value["description"]),
            parameters=dict(value["parameters"]),
            output=None if value["output"] is None else dict(value["output"]),
            annotations=None if value["annotations"] is None else dict(value["annotations"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSnapshot:
    """What a server offers at one moment, or last offered before an outage."""

    tools: tuple[ToolDefinition, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    ttl: float | None = None
    """Seconds until it should be read again, if the server says so."""
    about: Mapping[str, Any] = field(default=NOTHING, hash=False)
    """What the process of a plugin sends about the plugin."""
    skills: tuple[ListedSkill, ...] = ()
    prompts: tuple[OfferedPrompt, ...] = ()
    resources: tuple[OfferedResource, ...] = ()
    completes: bool = False
    """Whether it completes the arguments of its prompts and resources."""
    instructions: str = ""
    """How the server says that its tools are used."""
    pinned: tuple[ToolDefinition, ...] = ()
    """Its tools and its instructions, if it has some."""
    version: str = ""
    drifted_files: tuple[tuple[SkillFile, Diagnostic], ...] = ()
    """Files of its skills that differ from what it lists."""
    outage: Diagnostic | None = None
    """Why the server is unavailable, or `None` while it is up."""

    @property
    def is_up(self) -> bool:
        """Return whether its tools can be called."""
        return self.outage is None

    @property
    def to_pin(self) -> tuple[ToolDefinition, ...]:
        """Return what is pinned."""
        return self.pinned or self.tools


def joined(*lists: ServerSnapshot) -> ServerSnapshot:
    """Merge the snapshots with one list each; the shortest `ttl` wins."""
    return ServerSnapshot(
        tools=tuple(chain.from_iterable(part.tools for part in lists)),
        diagnostics=tuple(chain.from_iterable(part.diagnostics for part in lists)),
        ttl=min((part.ttl for part in lists if part.ttl is not None), default=None),
        skills=tuple(chain.from_iterable(part.skills for part in lists)),
        prompts=tuple(chain.from_iterable(part.prompts for part in lists)),
        resources=tuple(chain.from_iterable(part.resources for part in lists)),
        completes=any(part.completes for part in lists),
    )


def check_definition(received: ToolDefinition, limits: Limits) -> ToolDefinition:
    """Return a definition without invisible characters. Raises `DefinitionError`."""
    for schema in (received.parameters, received.output, received.annotations):
        _require_json(schema, limits)
    definition = replace(
        received,
        description=visible(received.description),
        parameters=shown(received.parameters),
        output=None if received.output is None else shown(received.output),
        annotations=None if received.annotations is None else _visible(received.annotations),
    )
    if len(definition.text) > limits.mcp_schema:
        raise DefinitionError(
            f"its definition takes more than {limits.mcp_schema // KIB} KiB (limit mcp_schema)"
        )
    for part, schema in (("parameters", definition.parameters), ("output", definition.output)):
        if _has_hidden(schema):
            raise DefinitionError(f"the schema of its {part} contains invisible characters")
        for reference in references(schema):
            if not reference.startswith("#"):
                raise DefinitionError(
                    f"the schema of its {part} refers to another document, which is not fetched"
                )
    for schema in (definition.parameters, definition.output):
        if schema is not None:
            require_bounded(schema)
            SchemaValidator(schema, definition.name)  # compiling is the check
    return definition


def _require_json(schema: Any, limits: Limits) -> None:
    """Raise `DefinitionError` for a schema that is nested too deep, or is not JSON."""
    todo = [(schema, 0)]
    while todo:  # no recursion: hostile schemas nest deeper than Python's stack
        item, depth = todo.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise DefinitionError(
                f"one of its schemas has the number {item}, which is not valid JSON"
            )
        if depth > (deepest := min(limits.mcp_schema_depth, DEEPEST)):
            raise DefinitionError(
                f"one of its schemas is nested deeper than {deepest} levels "
                "(limit mcp_schema_depth)"
            )
        if isinstance(item, Mapping | list):
            children = item.values() if isinstance(item, Mapping) else item
            todo += [(child, depth + 1) for child in children]


def _has_hidden(schema: Any) -> bool:
    # In keys and constants they cannot be removed. Control characters are visible in JSON.
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
