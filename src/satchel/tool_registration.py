"""What becomes of a tool that the host registers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Literal, TypedDict

from satchel.catalog import HOST, ToolContribution
from satchel.errors import ConflictError, DefinitionError
from satchel.tools import FunctionTool, Tool, as_tool

OnConflict = Literal["raise", "override", "skip", "rename"]
"""What happens when the host already added a tool of that name."""


class FunctionOptions(TypedDict, total=False):
    """What can be said of a function that becomes a tool; see `FunctionTool`."""

    description: str | None
    state: Iterable[str] | None
    timeout: float | None
    idempotent: bool | None
    remember: str | None
    blocking: bool | None
    background: bool | None
    annotations: Mapping[str, Any] | None
    examples: Sequence[Mapping[str, Any]] | None
    parameters: Mapping[str, Any] | None
    postprocess: Callable[..., Any] | None
    include_long_description: bool
    include_var_positional: bool
    include_var_keyword: bool


def make_tool(tool: Tool | Callable[..., Any], **options: Any) -> Tool:
    """Make a tool of a function. Raises `DefinitionError`, also for options of an object."""
    if not isinstance(tool, Tool):
        return FunctionTool(tool, **options)
    if given := [name for name, value in options.items() if value is not None]:
        raise DefinitionError(
            f"tool {tool.name!r} is an object already", fix=f"give {', '.join(given)} to its class"
        )
    return as_tool(tool)


def settled(
    made: Tool, own: Iterable[ToolContribution], served: Iterable[str], on_conflict: OnConflict
) -> Tool:
    """Return the tool under the name it gets. Raises `ConflictError`."""
    if on_conflict not in {"raise", "override", "skip", "rename"}:
        raise DefinitionError(
            f"on_conflict is raise, override, skip or rename, not {on_conflict!r}"
        )
    mine = {supply.name for supply in own}
    if on_conflict == "raise" and made.name in mine:
        raise ConflictError(
            f"the host already added a tool {made.name!r}",
            fix="remove it first, give name=, or say on_conflict=",
        )
    if on_conflict == "rename":
        return _renamed(made, mine.union(served))
    return made


def registered(own: Iterable[ToolContribution], name: str) -> Tool | None:
    """Return the host's tool of that name."""
    return next((supply.tool for supply in own if supply.name == name), None)


def supply_of(made: Tool, groups: tuple[str, ...], version: str) -> ToolContribution:
    """Return a tool of the host's own as a part of the catalog."""
    return ToolContribution(
        name=made.name,
        description=made.description,
        path=HOST,
        version=version,
        groups=groups,
        tool=made,
    )


def _renamed(made: Tool, taken: set[str]) -> Tool:
    """Return a tool under the first name that is free."""
    name, number = made.name, 1
    while name in taken:
        number += 1
        ending = f"_{number}"
        name = made.name[: 64 - len(ending)] + ending
    if name == made.name:
        return made
    renamed = copy(made)
    try:
        renamed.name = name
    except AttributeError as problem:
        raise DefinitionError(
            f"tool {made.name!r} cannot be renamed: its class computes the name",
            fix="give its class another name",
        ) from problem
    return renamed
