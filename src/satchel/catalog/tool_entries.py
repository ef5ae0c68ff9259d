"""The entries of tools, with the groups that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from satchel.catalog.catalog_entries import HOST, PluginEntry, Status, ToolEntry
from satchel.diagnostics import Where, make_diagnostic
from satchel.names import BASIC_GROUP, SESSION_TOOLS, sentence_of

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import PluginContribution, ToolContribution
    from satchel.diagnostics import Diagnostic


def tool_entries(plugins: Iterable[PluginEntry], previous: Catalog) -> Iterable[ToolEntry]:
    """Yield the entries of all tools of served plugins, and of those that cannot be used."""
    before = {id(entry.contribution): entry for entry in previous.all_tools}
    for plugin in plugins:
        group_lists = _groups_by_tool(plugin.contribution)
        if plugin.is_served:
            for position, tool in enumerate(plugin.contribution.tools):
                groups = _groups_of(tool, plugin.contribution, group_lists.get(tool.name, ()))
                yield _tool_entry(plugin, tool, position, groups, before.get(id(tool)))
        unusable = plugin.contribution.unusable if plugin.state is not Status.SHADOWED else ()
        for position, tool in enumerate(unusable, len(plugin.contribution.tools)):
            groups = _groups_of(tool, plugin.contribution, group_lists.get(tool.name, ()))
            yield _tool_entry(plugin, tool, position, groups, before.get(id(tool)))


def state_of_part(plugin: PluginEntry) -> Status:
    """Return the status of the tools and groups of a served plugin.

    A degraded plugin serves only its valid parts, so these are `ok`.
    """
    return Status.OK if plugin.state is Status.DEGRADED else plugin.state


def _tool_entry(
    plugin: PluginEntry,
    tool: ToolContribution,
    position: int,
    groups: tuple[str, ...],
    old: ToolEntry | None,
) -> ToolEntry:
    rank = (*plugin.rank, position)
    state = state_of_part(plugin) if tool.state is Status.OK else tool.state
    origin = (plugin.name, plugin.unit, rank, state, groups)
    if old is not None and origin == (old.source, old.unit, old.rank, old.state, old.groups):
        return old
    return ToolEntry(
        name=tool.name,
        description=tool.description,
        source=plugin.name,
        scope=plugin.scope,
        path=tool.path,
        unit=plugin.unit,
        rank=rank,
        state=state,
        groups=groups,
        contribution=tool,
        version=tool.version,
        tool=tool.tool,
        contract=tool.contract,
        diagnostics=(
            *((_undescribed(tool),) if tool.description == sentence_of(tool.name) else ()),
            *tool.diagnostics,
            *((_replaces_builtin(plugin, tool),) if tool.name in SESSION_TOOLS else ()),
        ),
    )


def _undescribed(tool: ToolContribution) -> Diagnostic:
    return make_diagnostic(
        "tool-undescribed",
        Where(tool.path),
        f"the description of tool {tool.name!r} says no more than its name",
        "Write a docstring that says what the tool does and when to use it.",
    )


def _replaces_builtin(plugin: PluginEntry, tool: ToolContribution) -> Diagnostic:
    return make_diagnostic(
        "tool-replaces-own",
        Where(tool.path),
        f"tool {tool.name!r} of {plugin.name!r} replaces the session's built-in tool",
        "rename it unless that is intended",
    )


def _groups_by_tool(owner: PluginContribution) -> Mapping[str, list[str]]:
    """Map each tool to the groups that list it."""
    groups: dict[str, list[str]] = {}
    for group in owner.groups:
        for name in group.tools:
            groups.setdefault(name, []).append(group.name)
    return groups


def _groups_of(
    tool: ToolContribution, owner: PluginContribution, listing: Iterable[str]
) -> tuple[str, ...]:
    """Return the groups that a tool names, then those that list it.

    A tool without either is in its owner's first group; a tool of the host is in `basic`.
    """
    if groups := tuple(dict.fromkeys((*tool.groups, *listing))):
        return groups
    return (owner.groups[0].name if owner.groups and owner.source != HOST else BASIC_GROUP,)
