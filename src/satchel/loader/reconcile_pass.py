"""One pass over all sources: scan, import, bind, then build the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import compress
from operator import is_, is_not
from typing import TYPE_CHECKING

from satchel.catalog import (
    HOST,
    PluginContribution,
    RankedSkill,
    Status,
    build,
    build_plugins,
    edit_skills,
    nothing_disabled,
)
from satchel.diagnostics import Where, make_diagnostic
from satchel.loader.config_binder import bind, with_last_good
from satchel.loader.contract_checks import contract_diagnostics
from satchel.loader.loader_config import ALL, unit_of
from satchel.loader.name_choices import name_rules
from satchel.loader.plugin_loader import disabled_contribution, import_plugins, is_enabled
from satchel.loader.scan_cache import PassInputs, Scan, ScanCache
from satchel.loader.trust_gate import open_gate
from satchel.loader.wanted_servers import declared_servers
from satchel.names import near_misses
from satchel.sources import (
    RootKind,
    installed_folders,
    normalized,
    scan_distributions,
    scan_packages,
    skills_of_plugin,
)

if TYPE_CHECKING:
    from satchel.catalog import (
        Catalog,
        PluginEntry,
    )
    from satchel.diagnostics import Diagnostic
    from satchel.loader.loader_config import LoaderConfig, ReconcileOptions
    from satchel.loader.scan_cache import Imported
    from satchel.mcp_servers import ServerContribution, ServerSkills
    from satchel.plugins import BoundPlugin
    from satchel.sources import (
        DistributionScan,
        PluginScan,
        SearchRoot,
        Selection,
        SkillFinding,
        SkillScan,
    )

_SERVER_RANK = 1_000_000_000
"""The rank of MCP servers: after all folders and packages."""
_CONTRIBUTION_FIELDS = tuple(item.name for item in fields(PluginContribution))
"""All fields, also those that `==` leaves out."""


def reconcile(
    config: LoaderConfig, cache: ScanCache, previous: Catalog, options: ReconcileOptions
) -> tuple[ScanCache, Catalog]:
    """Scan all sources and build the next catalog; return `previous` if nothing changed."""
    inputs = _inputs(config, cache, options)
    selection = inputs.selection

    scan = _scan(inputs)
    imported = import_plugins(inputs, scan)
    bound = bind(inputs, imported.contributions.values())
    bound |= bind(inputs, _without_disabled(_provided(config), selection))
    servers = _servers(inputs, bound.plugins.values())
    bound |= bind(inputs, _without_disabled(_offered(inputs, servers), selection))

    contributions = [plugin.contribution for plugin in bound.plugins.values()]
    plugins = build_plugins(contributions, with_last_good(previous, bound.served_instead))
    declared, invalid_servers = declared_servers(selection, plugins, inputs.gate)
    if config.lock is not None:
        declared, unlocked = config.lock.servers(declared)
        invalid_servers += unlocked
    rejected = frozenset(_skill_roots(inputs, _rejected_plugins(plugins, imported)))
    skills = _scan_skills(inputs, plugins, rejected)
    edited = _edited_skills(inputs, skills, plugins)
    ranked = tuple(_ranked(inputs, skills)) if edited is None else edited
    server_skills = _server_skills(config, ranked, plugins, previous)
    if server_skills and config.lock is not None:
        server_skills = config.lock.without_skills(server_skills)
    results = ScanCache(
        scan=scan,
        imported=imported,
        bound=bound,
        skills=skills,
        servers=servers,
        declared=declared,
        rejected=rejected,
        settling=frozenset(_settling_paths(ranked, imported)),
        plugins=plugins,
        host_skills=config.host_skills,
        provided=config.provided,
        provider_files=config.provider_files,
    )
    diagnostics = (
        *_source_diagnostics(inputs, results),
        *invalid_servers,
        *(server_skills.diagnostics if server_skills else ()),
        *_missing_packages(config, scan.distributions),
        # The host is not listed as a plugin, so its diagnostics are reported here.
        *bound.plugins[unit_of(config.host)].diagnostics,
        *options.diagnostics,
    )
    if edited is not None:
        # Tools, groups and plugins are those of the previous catalog.
        problems = contract_diagnostics(config, previous, bound.plugins.values())
        catalog = edit_skills(edited, previous, (*diagnostics, *problems))
        if catalog is not None:
            return results, catalog
        ranked = tuple(_ranked(inputs, skills))

    every_skill = (
        *ranked,
        *(
            RankedSkill(found, (_SERVER_RANK, found.path))
            for found in (server_skills.findings if server_skills else ())
        ),
    )
    is_disabled = selection.disabled if selection.chooses else nothing_disabled
    first = selection.first_skills
    names = name_rules(config, selection)
    catalog = build(
        every_skill, plugins, previous, diagnostics, is_disabled, first_skills=first, names=names
    )
    # Contracts are checked against the finished catalog, which must list their problems, too.
    contract_problems = tuple(contract_diagnostics(config, catalog, bound.plugins.values()))
    if contract_problems:
        diagnostics = (*diagnostics, *contract_problems)
        catalog = build(
            *(every_skill, plugins, previous, diagnostics, is_disabled),
            first_skills=first,
            names=names,
        )
    return results, catalog


def _inputs(config: LoaderConfig, cache: ScanCache, options: ReconcileOptions) -> PassInputs:
    """Read the settings, and limit those of projects to what the user trusts."""
    written = config.selection(cache.scan.written, debounce=options.debounce)
    gate = open_gate(config.projects, config.settings, cache.scan.gate)
    selection = gate.limited(written, cache.scan.selection) if gate.grants else written
    return PassInputs(
        config=config,
        options=options,
        cache=cache,
        selection=selection,
        written=written,
        gate=gate,
        roots=gate.roots(config.all_roots, selection) if gate.grants else config.all_roots,
    )


def _edited_skills(
    inputs: PassInputs, scans: Mapping[SearchRoot, SkillScan], plugins: Sequence[PluginEntry]
) -> tuple[RankedSkill, ...] | None:
    """Return the skills that changed or are broken; `None` if something else changed as well."""
    cache = inputs.cache
    is_same = (
        inputs.config.lock is None
        and cache.scan.selection == inputs.selection
        and not inputs.config.servers
        and not cache.servers
        and inputs.config.host_skills is cache.host_skills
        and inputs.config.provided == cache.provided
        and list(scans) == list(cache.skills)
        and all(_has_same_keys(cache.skills[root], scan) for root, scan in scans.items())
        and _are_same(plugins, cache.plugins)
    )
    if not is_same:
        return None
    edited = tuple(
        _ranked_skill(inputs, order, found)
        for order, (root, scan) in enumerate(scans.items())
        for found in _changed_or_broken(cache.skills[root], scan)
    )
    return None if any(item.is_settling for item in edited) else edited


def _has_same_keys(before: SkillScan, now: SkillScan) -> bool:
    old, new = before.findings, now.findings
    if now is before or now.edited is None:
        return old.keys() == new.keys()
    return all((key in old) is (key in new) for key in now.edited)


def _changed_or_broken(before: SkillScan, now: SkillScan) -> Iterable[SkillFinding]:
    if now is before:
        changed: Iterable[str] = ()
    elif now.edited is not None:
        changed = sorted(now.edited & now.findings.keys())
    else:
        # No loop in Python: there may be very many skills.
        old = map(before.findings.__getitem__, now.findings)
        changed = compress(now.findings, map(is_not, now.findings.values(), old))
    return (now.findings[key] for key in dict.fromkeys((*changed, *now.broken)))


def _are_same(plugins: Sequence[PluginEntry], before: Sequence[PluginEntry]) -> bool:
    return len(plugins) == len(before) and all(
        new == old and new.rank == old.rank and _is_same(new.contribution, old.contribution)
        for new, old in zip(plugins, before, strict=True)
    )


def _is_same(new: PluginContribution, old: PluginContribution) -> bool:
    """Return whether two contributions have equal values and the same tools, functions included."""
    return new is old or (
        all(getattr(new, name) == getattr(old, name) for name in _CONTRIBUTION_FIELDS)
        and all(map(is_, new.tools, old.tools))
    )


# ---- scanning --------------------------------------------------------------------------------


def _scan(inputs: PassInputs) -> Scan:
    """Scan plugin folders and installed packages; reuse cached results of paths not in `dirty`."""
    cache, dirty = inputs.cache.scan, inputs.options.dirty
    limits = inputs.limits
    distributions = scan_distributions(installed_folders(), cache.distributions)
    folders = {}
    for root in inputs.roots:
        if root.holds is RootKind.PLUGINS:
            from satchel.sources import scan_plugins  # lazy: needed only with plugin folders

            folders[root] = scan_plugins(root, limits, cache.folders.get(root), dirty)
    packages = scan_packages(
        distributions.findings,
        limits,
        lambda installed: is_enabled(inputs, installed),
        cache.packages,
        dirty,
    )
    return Scan(
        folders=folders,
        distributions=distributions,
        packages=packages,
        selection=inputs.selection,
        written=inputs.written,
        gate=inputs.gate,
    )


def _scan_skills(
    inputs: PassInputs, plugins: Iterable[PluginEntry], rejected: frozenset[SearchRoot]
) -> dict[SearchRoot, SkillScan]:
    configured = (root for root in inputs.roots if root.holds is RootKind.SKILLS)
    roots = (*configured, *_skill_roots(inputs, plugins))
    cache = inputs.cache
    scans = {root: _skills_in(inputs, root, is_rejected=root in rejected) for root in roots}
    return {
        root: inputs.gate.checked_scripts(scan, cache.skills.get(root), cache.scan.gate)
        for root, scan in scans.items()
    }


def _skills_in(inputs: PassInputs, root: SearchRoot, *, is_rejected: bool) -> SkillScan:
    # lazy: needed only with skill folders
    from satchel.sources import scan_skills
    from satchel.sources.cached_scan import scan_through_cache

    cached = inputs.cache.skills.get(root)
    if root.holds is RootKind.COMMANDS:
        from satchel.sources.command_scan import scan_commands  # lazy: few plugins have them

        return scan_commands(root, inputs.limits, cached, inputs.options.dirty)
    if is_rejected and cached is not None:
        return cached
    # Changes made while the plugin was rejected are not in `dirty`: read everything.
    dirty = None if root in inputs.cache.rejected else inputs.options.dirty
    if dirty is None and inputs.config.settings.cache:
        return scan_through_cache(root, inputs.limits, cached)
    return scan_skills(root, inputs.limits, cached, dirty)


def _skill_roots(inputs: PassInputs, plugins: Iterable[PluginEntry]) -> Iterable[SearchRoot]:
    served = [plugin for plugin in plugins if plugin.is_served]
    for plugin in served:
        policy = plugin.contribution.policy
        for folder in plugin.contribution.skills:
            root = skills_of_plugin(folder, plugin.path, policy, plugin.name)
            yield inputs.gate.ruled(root, plugin)
    # Last: a command must not take the name of a skill that the model uses.
    for plugin in served:
        for path in plugin.contribution.command_paths:
            policy = plugin.contribution.policy
            root = skills_of_plugin(path, plugin.path, policy, plugin.name, RootKind.COMMANDS)
            yield inputs.gate.ruled(root, plugin)


def _rejected_plugins(plugins: Iterable[PluginEntry], imported: Imported) -> Iterable[PluginEntry]:
    """Yield the open plugins whose newest version is broken, so an older one is served.

    Their new skills must not be discovered: Agent Plugins 1.0.0, section 5.2.
    """
    broken = {Status.FAILED, Status.SETTLING}
    for plugin in plugins:
        newest = imported.contributions.get((plugin.scope, plugin.source, plugin.unit))
        if newest is not None and newest.policy.has_extension and newest.state in broken:
            yield plugin


def _ranked(inputs: PassInputs, scans: Mapping[SearchRoot, SkillScan]) -> Iterable[RankedSkill]:
    """Give each skill its rank, and mark those that may be half written."""
    yield from (RankedSkill(found, (-1, found.path)) for found in inputs.config.host_skills)
    for order, scan in enumerate(scans.values()):
        for found in scan.findings.values():
            yield _ranked_skill(inputs, order, found)
    for order, item in enumerate(inputs.config.provided, len(scans)):
        for found in item.skills:
            yield RankedSkill(found, (order, found.path))


def _ranked_skill(inputs: PassInputs, order: int, found: SkillFinding) -> RankedSkill:
    if inputs.config.lock is not None:
        found = inputs.config.lock.skill(found)
    is_settling = found.manifest is None and inputs.may_be_half_written(found.folder)
    return RankedSkill(found, (order, found.is_hidden, found.key), is_settling)


def _settling_paths(ranked: Iterable[RankedSkill], imported: Imported) -> Iterable[str]:
    yield from (item.finding.path for item in ranked if item.is_settling)
    plugins = imported.contributions.values()
    yield from (plugin.path for plugin in plugins if plugin.state is Status.SETTLING)


# ---- MCP servers -------------------------------------------------------------------------------


def _provided(config: LoaderConfig) -> Iterable[PluginContribution]:
    return (item.plugin for item in config.provided)


def _servers(inputs: PassInputs, plugins: Iterable[BoundPlugin]) -> dict[str, ServerContribution]:
    """Return the contributions of the MCP servers; on a conflict, plugin tools keep their names."""
    if not inputs.config.servers:
        return {}
    # Lazy: needed only with MCP servers.
    from satchel.mcp_servers.server_contributions import server_contributions

    taken = {
        tool.name: _owner_of(plugin.contribution)
        for plugin in plugins
        for tool in plugin.contribution.tools
    }
    return server_contributions(inputs.config.servers, taken, inputs.cache.servers, _SERVER_RANK)


def _owner_of(contribution: PluginContribution) -> str:
    is_host = contribution.source == HOST
    return "the application" if is_host else f"plugin {contribution.name!r}"


def _offered(
    inputs: PassInputs, servers: Mapping[str, ServerContribution]
) -> Iterable[PluginContribution]:
    if (lock := inputs.config.lock) is None:
        return (server.contribution for server in servers.values())
    return (lock.offer(server, inputs.cache.declared) for server in servers.values())


def _without_disabled(
    contributions: Iterable[PluginContribution], selection: Selection
) -> Iterable[PluginContribution]:
    for contribution in contributions:
        reason = selection.disabled("plugin", contribution.name)
        yield disabled_contribution(contribution, reason) if reason else contribution


def _server_skills(
    config: LoaderConfig,
    ranked: Iterable[RankedSkill],
    plugins: Iterable[PluginEntry],
    previous: Catalog,
) -> ServerSkills | None:
    """Return the skills of the served MCP servers; on a conflict, other skills keep their names."""
    if not config.servers:
        return None
    from satchel.mcp_servers import collect_server_skills  # lazy: needed only with MCP servers

    findings = [item.finding for item in ranked]
    taken = {item.manifest.name if item.manifest else item.folder_name for item in findings}
    # The last good version of a broken skill may have another name than its folder.
    broken = {item.path for item in findings if item.manifest is None}
    taken |= {entry.name for entry in previous.all_skills if entry.path in broken}
    served = {entry.name for entry in plugins if entry.is_served}
    servers = (item for item in config.servers if item.source in served)
    return collect_server_skills(servers, taken, config.settings.limits)


# ---- diagnostics -------------------------------------------------------------------------------


def _source_diagnostics(inputs: PassInputs, results: ScanCache) -> Iterable[Diagnostic]:
    for folder_scan in results.scan.folders.values():
        yield from folder_scan.diagnostics
        yield from _nothing_found(folder_scan)
    for skill_scan in results.skills.values():
        yield from skill_scan.diagnostics
        yield from _nothing_found(skill_scan)
    yield from results.scan.distributions.diagnostics
    yield from inputs.selection.diagnostics
    yield from inputs.gate.diagnostics


def _nothing_found(scan: SkillScan | PluginScan) -> Iterable[Diagnostic]:
    """Report a folder that brings nothing, unless the scan has a reason already."""
    if scan.findings or scan.place.optional or scan.diagnostics:
        return
    from satchel.sources import empty_root  # lazy: few folders bring nothing

    if found := empty_root(scan.place):
        yield found


def _missing_packages(config: LoaderConfig, installed: DistributionScan) -> Iterable[Diagnostic]:
    """Report the enabled entry points that are not installed."""
    plugin_names = {item.name for item in installed.findings}
    names = plugin_names | {item.distribution for item in installed.findings}
    names |= {normalized(item.distribution) for item in installed.findings}
    for name in sorted(config.entry_points - names - {ALL}):
        near = near_misses(name, plugin_names)
        yield make_diagnostic(
            "plugin-not-installed",
            Where(f"entry point {name}"),
            f"no installed distribution has a plugin {name!r}",
            f"did you mean {', '.join(near)}?" if near else "pip install the package that has it",
        )
