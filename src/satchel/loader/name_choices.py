"""Who owns a contested name: the record of served names, and the choices of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
        servers=_servers_here(config, now) if config.connects_servers else {},
    )


def _servers_here(config: LoaderConfig, now: ScanCache) -> dict[str, Callable[[str], bool]]:
    """Return the servers that keep their names, each with which tools are enabled."""
    connected = {offer.source: offer.config.wants for offer in config.servers}
    return {f"mcp:{name}": _every_tool for name in now.left_out} | connected


def _every_tool(_name: str) -> bool:
    return True


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
    catalog: Catalog, servers: Iterable[ServerOffer], skills: Iterable[str] | None = None
) -> Iterable[tuple[str, str, str]]:
    """Yield the kind, name and owner of every name that is served, but for those of the host.

    Of the skills, those of some names, or all.
    """
    for skill in catalog.skills_named(skills):
        if skill.is_served and skill.source != HOST:
            yield "skill", skill.name, skill.unit
    for plugin in catalog.plugins.values():
        yield "plugin", plugin.name, plugin.unit
    settled = set()
    for offer in servers:
        yield "server", offer.config.name, offer.config.place
        if offer.is_settled:
            settled.add(offer.source)
    units = {plugin.unit for plugin in catalog.plugins.values()}
    for tool in catalog.tools.values():
        if (key := owner_key(tool)) in units or tool.source.startswith("mcp:"):
            yield "tool", tool.name, key
        if key in settled:
            yield "server tool", tool.name, key


def server_names(
    offers: Iterable[ServerOffer], left_out: Iterable[str], owners: NameOwners
) -> Mapping[str, str]:
    """Return which MCP server has a name: of those that are declared, the first to serve it."""
    units = {f"mcp:{name}": name for name in left_out}
    names = set[str]()
    for offer in offers:
        units[offer.source] = offer.config.name
        names.update(offer.fitted_names)
    names.update(name for unit in units for name in owners.names_of("server tool", unit))
    firsts = {
        name: next((units[unit] for unit in owners.of("server tool", name) if unit in units), "")
        for name in names
    }
    return {name: server for name, server in firsts.items() if server}


def with_owned_names(
    offers: Iterable[ServerOffer],
    left_out: Iterable[str],
    plugins: Iterable[PluginContribution],
    owners: NameOwners,
) -> tuple[ServerOffer, ...]:
    """Return what servers offer, with the names that they served before anybody else here."""
    offers = tuple(offers)
    here = {item.unit for item in plugins if not _has_no_names(item)}
    here |= {f"mcp:{name}" for name in left_out} | {offer.source for offer in offers}

    def owned(unit: str) -> frozenset[str]:
        firsts = (
            (name, next(other for other in owners.of("tool", name) if other in here))
            for name in owners.names_of("tool", unit)
        )
        return frozenset(name for name, first in firsts if first == unit)

    return tuple(replace(offer, owned=owned(offer.source)) for offer in offers)


def _has_no_names(item: PluginContribution) -> bool:
    return item.state is Status.DISABLED or _is_data_only(item)
