"""Who owns a contested name: the record of served names, and the choices of the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING

from satchel.catalog.catalog_entries import HOST, Status
from satchel.catalog.name_holds import NameRules, owner_key
from satchel.diagnostics import Where, make_diagnostic

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import PluginContribution
    from satchel.configuration.selection import Selection
    from satchel.loader.loader_config import LoaderConfig
    from satchel.loader.scan_cache import ScanCache
    from satchel.mcp_servers.server_contributions import ServerOffer
    from satchel.trust.name_owners import NameOwners


def name_rules(config: LoaderConfig, selection: Selection, now: ScanCache) -> NameRules:
    """Return who owns the names of tools and skills. With a lock, that decides about skills."""
    owners, is_chosen = config.owners, partial(is_named, selection)
    if owners is None:
        return NameRules(is_chosen=is_chosen)

    def owners_of(kind: str, name: str) -> tuple[str, ...]:
        return () if kind == "skill" and config.lock is not None else owners.of(kind, name)

    def owned_by(folder: str) -> tuple[str, ...]:
        return () if config.lock is not None else owners.names_of("skill", folder)

    return NameRules(
        owners=owners_of,
        owned=owned_by,
        is_chosen=is_chosen,
        unfinished=now.imported.unfinished,
        left_out=frozenset(f"mcp:{it}" for it in now.left_out if config.connects_servers),
    )


def is_named(selection: Selection, kind: str, address: str) -> bool:
    """Return whether the user enabled a unit by its whole address, without a wildcard."""
    match = selection.verdict(kind, (address,))
    return match is not None and match.is_on and match.pattern in {address, f"{kind}:{address}"}


def held_newcomers(
    contributions: Iterable[PluginContribution], config: LoaderConfig, selection: Selection
) -> dict[int, PluginContribution]:
    """Return the plugins that would take the name of one that was served before, by their ids."""
    rivals: dict[str, list[PluginContribution]] = {}
    for item in contributions:
        if item.state is not Status.DISABLED:
            rivals.setdefault(item.name, []).append(item)
    held = {}
    for name, items in rivals.items():
        if len(items) == 1 or config.owners is None:
            continue
        by_unit = {item.unit: item for item in items if not _is_data_only(item)}
        owner = next((it for it in config.owners.of("plugin", name) if it in by_unit), None)
        if owner is None:
            continue
        first = by_unit[owner]
        for item in items:
            if (item.scope, item.rank) < (first.scope, first.rank) and not is_named(
                selection, "plugin", f"{item.source}:{item.name}"
            ):
                held[id(item)] = _hold(item, first)
    return held


def _is_data_only(item: PluginContribution) -> bool:
    """Return whether the user trusts only the data of its project, so it keeps no name."""
    return item.is_untrusted and item.state in {Status.HELD, Status.REVOKED}


def _hold(newcomer: PluginContribution, owner: PluginContribution) -> PluginContribution:
    address = f"{newcomer.source}:{newcomer.name}"
    problem = make_diagnostic(
        "plugin-name-held",
        Where(newcomer.path),
        f"plugin {newcomer.name!r} is new, and {owner.path} served this name before",
        f"satchel enable {quote(address)}, to serve the new one; or rename it",
    )
    return replace(newcomer, state=Status.HELD, tools=(), diagnostics=(problem,))


def served_names(
    catalog: Catalog, skills: Iterable[str] | None = None, *, with_servers: bool = True
) -> Iterable[tuple[str, str, str]]:
    """Yield the kind, name and owner of every name that is served, but for those of the host.

    Of the skills, those of some names, or all.
    """
    for skill in catalog.skills_named(skills):
        if skill.is_served and skill.source != HOST:
            yield "skill", skill.name, skill.unit
    for plugin in catalog.plugins.values():
        yield "plugin", plugin.name, plugin.unit
    units = {plugin.unit for plugin in catalog.plugins.values()}
    for tool in catalog.tools.values():
        is_remote = tool.source.startswith("mcp:")
        if (key := owner_key(tool)) in units or is_remote:
            if is_remote and not with_servers:
                continue
            yield "tool", tool.name, key


def server_names(
    offers: Iterable[ServerOffer], left_out: Iterable[str], owners: NameOwners | None
) -> Mapping[str, str]:
    """Return which MCP server has a name: of those that are declared, the first to serve it."""
    if owners is None:
        return {}
    units = {f"mcp:{name}": name for name in left_out}
    names = {name for unit in units for name in owners.names_of("tool", unit)}
    for offer in offers:
        units[offer.source] = offer.config.name
        names.update(offer.fitted_names)
    firsts = {
        name: next((units[unit] for unit in owners.of("tool", name) if unit in units), "")
        for name in names
    }
    return {name: server for name, server in firsts.items() if server}


def with_owned_names(
    offers: Iterable[ServerOffer], owners: NameOwners | None
) -> tuple[ServerOffer, ...]:
    """Return what servers offer, with the names that they served before anybody else here."""
    if owners is None:
        return tuple(offers)
    return tuple(
        replace(
            offer,
            owned=frozenset(
                name
                for name in offer.fitted_names
                if owners.of("tool", name)[:1] == (offer.source,)
            ),
        )
        for offer in offers
    )
