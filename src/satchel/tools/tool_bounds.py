"""Bound the definition of a tool: a provider refuses a whole request because of one bad schema."""

import json
from typing import TYPE_CHECKING

from satchel.errors import DefinitionError
from satchel.settings import KIB, Limits
from satchel.tools.schema_validator import exceeded_limit

if TYPE_CHECKING:
    from satchel.tools.base_tool import Tool


def bounded_definition(tool: "Tool", limits: Limits) -> str:
    """Return the definition of a tool as JSON.

    Raises `DefinitionError` if it is too large or too deep, or cannot be sent as JSON.
    """
    for schema in (tool.parameters, tool.output or {}):
        # Before anything recursive reads it.
        limit = exceeded_limit(schema, limits.tool_schema_depth, limits.tool_definition)
        if limit == "levels":
            raise DefinitionError(
                f"a schema of tool {tool.name!r} is nested deeper than {limits.tool_schema_depth} "
                "levels (limit tool_schema_depth)",
                fix="make it flatter, or raise the limit",
            )
        if limit:
            raise _too_large(tool.name, limits)
    if len(tool.description) > limits.tool_definition:
        raise _too_large(tool.name, limits)
    try:
        # A number such as NaN passes: a provider or a server leaves out what it cannot send.
        text = json.dumps(tool.to_schema(), sort_keys=True, default=str)
        sent = json.dumps([tool.parameters, tool.output], default=str)
    except (ValueError, TypeError, RecursionError) as problem:
        raise DefinitionError(f"the schema of tool {tool.name!r} is not valid JSON") from problem
    if max(len(text), len(sent)) > limits.tool_definition:
        raise _too_large(tool.name, limits)
    return text


def _too_large(name: str, limits: Limits) -> DefinitionError:
    return DefinitionError(
        f"the definition of tool {name!r} takes more than {limits.tool_definition // KIB} KiB "
        "(limit tool_definition)",
        fix="shorten its description and its schema, or raise the limit",
    )
