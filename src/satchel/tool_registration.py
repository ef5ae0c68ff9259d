"""Register a tool of the application: create it, resolve its name, contribute it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, Unpack

from satchel.catalog.catalog_entries import HOST, ToolContribution
from satchel.errors import ConflictError, DefinitionError

if TYPE_CHECKING:
    from satchel.tools import Tool, ToolOptions

OnConflict = Literal["raise", "override", "skip", "rename"]
"""What happens if the application already added a tool of that name."""


def make_tool(tool: Tool | Callable[..., Any], **options: Unpack[ToolOptions]) -> Tool:
    """Return a tool for a function. Raises `DefinitionError`, also for options of a `Tool`."""
    from satchel.tools import FunctionTool, Tool, as_tool  # lazy: needed only with tools

    if not isinstance(tool, Tool):
        return FunctionTool(tool, **{**_described(tool), **_given(options)})
    if names := [name for name, value in options.items() if value is not None]:
        raise DefinitionError(
            f"tool {tool.name!r} is already a Tool", fix=f"set {', '.join(names)} in its class"
        )
    return as_tool(tool)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _described(fn: Any) -> dict[str, Any]:
    """Return the options of an object that describes itself, as clients of MCP return them."""
    name, schema = getattr(fn, "name", None), getattr(fn, "json_schema", None)
    if not (isinstance(name, str) and isinstance(schema, Mapping)):
        return {}
    function = schema.get("function", schema)  # with the envelope of OpenAI, or without
    parameters = function.get("parameters", function)
    description = getattr(fn, "description", None)
    return _given({"name": name, "description": description, "parameters": parameters})


def with_unique_name(
    tool: Tool, own: Iterable[ToolContribution], served: Iterable[str], on_conflict: OnConflict
) -> Tool:
    """Return the tool, renamed if `on_conflict` says so. Raises `ConflictError`."""
    if on_conflict not in {"raise", "override", "skip", "rename"}:
        raise DefinitionError(
            f"on_conflict must be raise, override, skip or rename, not {on_conflict!r}"
        )
    own_names = {contribution.name for contribution in own}
    if on_conflict == "raise" and tool.name in own_names:
        raise ConflictError(
            f"the host already added a tool {tool.name!r}",
            fix="remove it first, or pass name= or on_conflict=",
        )
    if on_conflict == "rename":
        return _renamed(tool, own_names.union(served))
    return tool


def registered(own: Iterable[ToolContribution], name: str) -> Tool | None:
    """Return the application's tool of that name, or `None`."""
    return next((contribution.tool for contribution in own if contribution.name == name), None)


def host_contribution(tool: Tool, groups: tuple[str, ...], version: str) -> ToolContribution:
    """Return the contribution of a tool that the application added."""
    return ToolContribution(
        name=tool.name,
        description=tool.description,
        path=HOST,
        version=version,
        groups=groups,
        tool=tool,
    )


def _renamed(tool: Tool, taken: set[str]) -> Tool:
    """Return a tool under the first free name."""
    name, number = tool.name, 1
    while name in taken:
        number += 1
        suffix = f"_{number}"
        name = tool.name[: 64 - len(suffix)] + suffix
    if name == tool.name:
        return tool
    renamed = copy(tool)
    try:
        renamed.name = name
    except AttributeError as problem:
        raise DefinitionError(
            f"tool {tool.name!r} cannot be renamed: its class computes the name",
            fix="use another name in its class",
        ) from problem
    return renamed
