"""Who owns a contested name: the record of served names, and the choices of the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    from satchel.loader.pass_provider import Candidate
    from satchel.loader.scan_cache import ScanCache
    from satchel.mcp_servers.server_contributions import ServerOffer
    from satchel.trust.name_owners import NameOwners


_UNSURE = {Status.FAILED, Status.REVOKED, Status.SETTLING}
"""States of plugins whose tools are not known now."""


def name_rules(config: LoaderConfig, selection: Selection, now: ScanCache) -> NameRules:
    """Return who owns the names of tools and skills. With a lock, that decides about skills."""
    owners = config.owners
    rules = NameRules(is_chosen=partial(is_named, selection), unfinished=now.imported.unfinished)
    if owners is None:
        return rules
    here = _servers_here(config.servers, now.left_out, selection) if config.connects_servers else {}

    def owners_of(kind: str, name: str) -> tuple[str, ...]:
        return () if kind == "skill" and config.lock is not None else owners.of(kind, name)

    def owned_by(folder: str) -> tuple[str, ...]:
        return () if config.lock is not None else owners.names_of("skill", folder)

    units = {offer.source: offer.unit for offer in config.servers}
    return replace(rules, owners=owners_of, owned=owned_by, units=units, servers=here)


def _servers_here(
    offers: Iterable[ServerOffer], left_out: Mapping[str, str], selection: Selection
) -> dict[str, Callable[[str], bool]]:
    """Return the units of the servers that are declared, each with whether it keeps a name."""

    def keeps(offer: ServerOffer, name: str) -> bool:
        return offer.config.keeps(name) and selection.allows_tool(offer.source, name)

    servers: dict[str, Callable[[str], bool]]
    servers = {f"mcp:{place}": _is_kept for place in left_out.values()}
    servers.update((offer.unit, partial(keeps, offer)) for offer in offers)
    return servers


def _is_kept(_name: str) -> bool:
    return True


def is_named(selection: Selection, kind: str, address: str) -> bool:
    """Return whether the user enabled a unit by its whole address, without a wildcard."""
    match = selection.verdict(kind, (address,))
    return match is not None and match.is_on and match.pattern in {address, f"{kind}:{address}"}


def held_newcomers(
    candidates: Sequence[Candidate], config: LoaderConfig, selection: Selection
) -> dict[int, PluginContribution]:
    """Return the plugins that would take the name of one that was served before, by their ids.

    Only those with code are held. A plugin that is broken keeps its name, which may not be
    readable now.
    """
    contributions = (it.contribution for it in candidates)
    present = [it for it in contributions if it.state is not Status.DISABLED]
    with_code = {id(it.contribution) for it in candidates if it.load}
    keepers = {it.unit: it for it in present if not _is_data_only(it)}
    is_any_unsure = any(it.state in _UNSURE for it in keepers.values())
    numbers = Counter(it.name for it in present)
    held = {}
    for item in present:
        is_contested = is_any_unsure or numbers[item.name] > 1
        if config.owners is None or id(item) not in with_code or not is_contested:
            continue
        units = (keepers[it] for it in config.owners.of("plugin", item.name) if it in keepers)
        is_first = (it for it in units if it.name == item.name or it.state in _UNSURE)
        first = next(is_first, item)
        address = f"{item.source}:{item.name}"
        is_before = (item.scope, item.rank) < (first.scope, first.rank)
        if is_before and not is_named(selection, "plugin", address):
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
    offers = {offer.source: offer for offer in servers if not offer.config.is_copy}
    for offer in offers.values():
        yield "server", offer.config.name, offer.config.place
    units = {plugin.unit for plugin in catalog.plugins.values()}
    for tool in catalog.tools.values():
        server = offers.get(tool.source)
        if server is not None:
            yield "tool", tool.name, server.unit
            if server.is_settled:
                yield "server tool", tool.name, server.unit
        elif (key := owner_key(tool)) in units:
            yield "tool", tool.name, key


def enabled_tools(item: PluginContribution, selection: Selection) -> frozenset[str]:
    """Return the names of the tools of a plugin that are not disabled."""
    if item.state is Status.DISABLED:
        return frozenset()
    names = (tool.name for tool in item.tools)
    return frozenset(name for name in names if selection.allows_tool(item.name, name))


def server_names(
    offers: Iterable[ServerOffer],
    left_out: Mapping[str, str],
    owners: NameOwners,
    selection: Selection,
) -> Mapping[str, str]:
    """Return which MCP server has a name: of those that are declared, the first to serve it."""
    offers = tuple(offers)
    keeps = _servers_here(offers, left_out, selection)
    servers = {f"mcp:{place}": name for name, place in left_out.items()}
    servers |= {offer.unit: offer.config.name for offer in offers}
    firsts = {}
    for name in {name for unit in keeps for name in owners.names_of("tool", unit)}:
        units = owners.of("server tool", name)
        if not units:
            # Servers before it never answered. It keeps the name if no other server ever had it.
            earlier = owners.before_start("tool", name)
            remote = [unit for unit in earlier if unit.startswith("mcp:")]
            units = tuple(remote) if len(remote) == 1 else ()
        first = next((unit for unit in units if unit in keeps and keeps[unit](name)), None)
        if first is not None:
            firsts[name] = servers[first]
    return firsts


def with_owned_names(
    offers: Iterable[ServerOffer],
    left_out: Mapping[str, str],
    plugins: Iterable[PluginContribution],
    owners: NameOwners,
    selection: Selection,
) -> tuple[ServerOffer, ...]:
    """Return what servers offer, with the names that they served before anybody else here."""
    offers = tuple(offers)
    servers = _servers_here(offers, left_out, selection)
    serving = {
        item.unit: None if item.state in _UNSURE else enabled_tools(item, selection)
        for item in plugins
        if not (item.state is Status.DISABLED or _is_data_only(item))
    }

    def has(unit: str, name: str) -> bool:
        tools = serving.get(unit, ())
        is_kept = unit in servers and servers[unit](name)
        return is_kept or tools is None or name in tools

    def owned(unit: str) -> frozenset[str]:
        firsts = (
            (name, next((it for it in owners.of("tool", name) if has(it, name)), ""))
            for name in owners.names_of("tool", unit)
        )
        return frozenset(name for name, first in firsts if first == unit)

    return tuple(replace(offer, owned=owned(offer.unit)) for offer in offers)
