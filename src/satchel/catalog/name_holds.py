"""Hold a newcomer that would take the name of a tool which others served before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from shlex import quote
from typing import TYPE_CHECKING

from satchel.catalog.catalog_entries import HOST, PluginEntry, Status, ToolEntry
from satchel.diagnostics import Where, make_diagnostic
from satchel.lazy_dataclass import dataclass
from satchel.names import SESSION_TOOLS, reads_like_session_tool

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution
    from satchel.diagnostics import Diagnostic

_UNKNOWN = {Status.FAILED, Status.REVOKED}
"""Status of plugins that may have the tool, but do not serve it now."""
_REMOTE = "mcp:"


def _no_owners(_kind: str, _name: str) -> tuple[str, ...]:
    return ()


def _no_names(_folder: str) -> tuple[str, ...]:
    return ()


def _nothing(_kind: str, _address: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRules:
    """Who owns a contested name."""

    owners: Callable[[str, str], tuple[str, ...]] = _no_owners
    """Takes a kind and a name; returns the keys of those that served it, the oldest first."""
    owned: Callable[[str], tuple[str, ...]] = _no_names
    """Takes the folder of a skill; returns the names that it served."""
    is_chosen: Callable[[str, str], bool] = _nothing
    """Takes a kind and an address; returns whether the user named it, to serve it."""
    unfinished: tuple[PluginContribution, ...] = ()
    """The plugins that are still being imported or written, with the tools that they declare."""
    units: Mapping[str, str] = field(default_factory=dict)
    """How the record calls an MCP server, by its name in the catalog."""
    servers: Mapping[str, Callable[[str], bool]] = field(default_factory=dict)
    """The units of the MCP servers that are declared, each with whether it keeps a name."""

    def unit(self, entry: ToolEntry | PluginEntry) -> str:
        """Return how the record of names calls who serves something."""
        key = owner_key(entry)
        return self.units.get(key, key)


def hold_newcomers(
    entries: Iterable[ToolEntry], plugins: Sequence[PluginEntry], rules: NameRules
) -> list[ToolEntry]:
    """Return the tools; those that would take a name from its owner are held."""
    entries = list(entries)
    by_name: dict[str, list[ToolEntry]] = {}
    for entry in entries:
        by_name.setdefault(entry.name, []).append(entry)
    absent = {rules.unit(plugin) for plugin in plugins if may_return(plugin)}
    absent |= {plugin.unit for plugin in rules.unfinished}
    held: dict[int, Diagnostic] = {}
    for name, rivals in by_name.items():
        served = [entry for entry in rivals if entry.is_served and entry.source != HOST]
        if reads_like_session_tool(name):
            held |= {id(entry): _replaces_own(entry) for entry in served}
        elif len(rivals) > 1 or ((absent or rules.servers) and served):
            # A server that does not offer a tool now may do so again.
            servers = {unit for unit, keeps in rules.servers.items() if keeps(name)}
            held |= _held_by_owner(name, served, absent | servers, rules)
    if not held:
        return entries
    return [
        _hold(entry, held[id(entry)])
        if id(entry) in held and not rules.is_chosen("tool", entry.address)
        else entry
        for entry in entries
    ]


def may_return(plugin: PluginEntry) -> bool:
    """Return whether it may have a tool that it does not serve now.

    The user took back the trust in an untrusted one, so it keeps no name.
    """
    is_taken_back = plugin.state is Status.REVOKED and plugin.contribution.is_untrusted
    return plugin.state in _UNKNOWN and not is_taken_back


def owner_key(entry: ToolEntry | PluginEntry) -> str:
    """Return who serves something: a unit, or an MCP server by its name in the catalog."""
    name = entry.source if isinstance(entry, ToolEntry) else entry.name
    return name if name.startswith(_REMOTE) else entry.unit


def _is_remote(entry: ToolEntry) -> bool:
    return entry.source.startswith(_REMOTE)


def _held_by_owner(
    name: str, served: list[ToolEntry], absent: set[str], rules: NameRules
) -> dict[int, Diagnostic]:
    by_unit = {rules.unit(entry): entry for entry in served}
    owner = next((unit for unit in rules.owners("tool", name) if unit in {*by_unit, *absent}), None)
    if owner is None:
        return _held_by_unfinished(name, served, rules)
    first = by_unit.get(owner)
    return {
        id(entry): _name_taken(entry, first)
        for entry in served
        if not _is_remote(entry)  # names of remote tools are unique, and pinned
        if first is None or (entry is not first and _order(entry) < _order(first))
    }


def _held_by_unfinished(
    name: str, served: list[ToolEntry], rules: NameRules
) -> dict[int, Diagnostic]:
    """Hold tools that come after one of a plugin that is not ready, if the name has no owner."""
    units = {entry.unit for entry in served}
    return {
        id(entry): _name_awaited(entry, plugin)
        for plugin in rules.unfinished
        if plugin.unit not in units and any(tool.name == name for tool in plugin.tools)
        for entry in served
        if not _is_remote(entry) and (plugin.scope, plugin.rank) < (entry.scope, entry.rank)
    }


def _order(entry: ToolEntry) -> tuple[object, ...]:
    return (entry.state is Status.STALE, entry.scope, entry.rank)


def _hold(entry: ToolEntry, problem: Diagnostic) -> ToolEntry:
    kept = (item for item in entry.diagnostics if item.code != "tool-replaces-own")
    return replace(entry, state=Status.HELD, tool=None, contract=None, diagnostics=(*kept, problem))


def _replaces_own(entry: ToolEntry) -> Diagnostic:
    has_name = "has the name of" if entry.name in SESSION_TOOLS else "reads like"
    return make_diagnostic(
        "tool-name-held",
        Where(entry.path),
        f"tool {entry.name!r} of {entry.source!r} {has_name} a built-in tool of the session, "
        "which stays",
        f"satchel enable {quote(entry.address)}; or rename it",
    )


def _name_taken(entry: ToolEntry, owner: ToolEntry | None) -> Diagnostic:
    other = f"{owner.source!r} ({owner.path})" if owner else "a plugin or server not usable now"
    return make_diagnostic(
        "tool-name-held",
        Where(entry.path),
        f"tool {entry.name!r} of {entry.source!r} is new, and {other} served this name before",
        f"satchel enable {quote(entry.address)}, to serve the new one; or rename it",
    )


def _name_awaited(entry: ToolEntry, first: PluginContribution) -> Diagnostic:
    return make_diagnostic(
        "tool-name-held",
        Where(entry.path),
        f"tool {entry.name!r} of {entry.source!r} waits: {first.name!r} ({first.path}) declares "
        "this name, comes first, and is still being imported",
        f"satchel enable {quote(entry.address)}, to serve it in any case; or rename it",
    )
