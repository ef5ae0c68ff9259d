"""One pass over all sources: scan, import, bind, then build the catalog."""

from collections.abc import Iterable, Mapping

from satchel.catalog import (
    Catalog,
    PluginContribution,
    PluginEntry,
    RankedSkill,
    Status,
    build,
    build_plugins,
    nothing_disabled,
)
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.loader.config_binder import bind, with_last_good
from satchel.loader.contract_checks import contract_problems
from satchel.loader.loader_config import ALL, LoaderConfig, ReconcileOptions, unit_of
from satchel.loader.plugin_loader import enables, import_plugins, switched_off
from satchel.loader.scan_cache import Imported, Pass, Scan, ScanCache
from satchel.loader.wanted_servers import declared_servers
from satchel.mcp_servers import (
    ServerContribution,
    ServerSkills,
    collect_server_skills,
    server_contributions,
)
from satchel.names import near_misses
from satchel.plugins import BoundPlugin
from satchel.sources import (
    DistributionScan,
    RootKind,
    SearchRoot,
    Selection,
    SkillScan,
    installed_folders,
    normalized,
    scan_distributions,
    scan_packages,
    scan_plugins,
    scan_skills,
    skills_of_plugin,
)

_LAST = 1_000_000_000
"""The rank of servers: after all folders and packages, however many come later."""


def reconcile(
    wanted: LoaderConfig, before: ScanCache, previous: Catalog, asked: ReconcileOptions
) -> tuple[ScanCache, Catalog]:
    """Scan all sources and build the next generation; `previous` itself if nothing changed."""
    choices = wanted.choices(before.scan.choices, patient=asked.patient)
    given = Pass(wanted=wanted, asked=asked, before=before, choices=choices)

    scan = _scan(given)
    imported = import_plugins(given, scan)
    bound = bind(given, imported.supplies.values())
    servers = _servers(given, bound.fitted.values())
    bound = bound.joined(bind(given, _without_disabled(servers, choices)))

    contributions = [item.supply for item in bound.fitted.values()]
    plugins = build_plugins(contributions, with_last_good(previous, bound.served_instead))
    declared, invalid_servers = declared_servers(choices, plugins)
    rejected = frozenset(_skill_places(_rejected(plugins, imported)))
    skills = _scan_skills(given, plugins, rejected)
    ranked = tuple(_ranked(given, skills))
    remote_skills = _remote_skills(wanted, ranked, plugins, previous)
    now = ScanCache(
        scan=scan,
        imported=imported,
        bound=bound,
        skills=skills,
        servers=servers,
        declared=declared,
        rejected=rejected,
        settling=frozenset(_settling(ranked, imported)),
    )

    every_skill = (
        *ranked,
        *(RankedSkill(found, (found.path,)) for found in remote_skills.findings),
    )
    diagnostics = (
        *_of_sources(given, now),
        *invalid_servers,
        *remote_skills.diagnostics,
        *_absent(wanted, scan.distributions),
        # The host is not listed as a plugin, so its diagnostics are reported here.
        *bound.fitted[unit_of(wanted.host)].problems,
        *asked.trouble,
    )
    off = choices.disabled if choices.chooses else nothing_disabled
    built = build(every_skill, plugins, previous, diagnostics, off)
    # What a contract lacks is known only once everything is in the catalog.
    problems = tuple(contract_problems(wanted, built, bound.fitted.values()))
    if problems:
        built = build(every_skill, plugins, previous, (*diagnostics, *problems), off)
    return now, built


# ---- scanning --------------------------------------------------------------------------------


def _scan(given: Pass) -> Scan:
    """Find plugin folders and installed packages; what is not dirty is taken from before."""
    wanted, before, dirty = given.wanted, given.before.scan, given.asked.dirty
    limits = wanted.settings.limits
    distributions = scan_distributions(installed_folders(), before.distributions)
    folders = {
        place: scan_plugins(place, limits, before.folders.get(place), dirty)
        for place in wanted.places
        if place.holds is RootKind.PLUGINS
    }
    packages = scan_packages(
        distributions.findings,
        limits,
        lambda found: enables(given, found),
        before.packages,
        dirty,
    )
    return Scan(
        folders=folders, distributions=distributions, packages=packages, choices=given.choices
    )


def _scan_skills(
    given: Pass, plugins: Iterable[PluginEntry], rejected: frozenset[SearchRoot]
) -> dict[SearchRoot, SkillScan]:
    own = (place for place in given.wanted.places if place.holds is RootKind.SKILLS)
    places = (*own, *_skill_places(plugins))
    return {place: _skills_in(given, place, is_rejected=place in rejected) for place in places}


def _skills_in(given: Pass, place: SearchRoot, *, is_rejected: bool) -> SkillScan:
    known = given.before.skills.get(place)
    if is_rejected and known is not None:
        return known
    # What changed while its plugin was rejected is not among what changed just now.
    dirty = None if place in given.before.rejected else given.asked.dirty
    return scan_skills(place, given.wanted.settings.limits, known, dirty)


def _skill_places(plugins: Iterable[PluginEntry]) -> Iterable[SearchRoot]:
    for plugin in plugins:
        for folder in plugin.supply.skills if plugin.is_served else ():
            yield skills_of_plugin(folder, plugin.path, plugin.supply.policy, plugin.name)


def _rejected(plugins: Iterable[PluginEntry], imported: Imported) -> Iterable[PluginEntry]:
    """Yield the open plugins that are served although their newest version was rejected.

    Nothing more of them may be discovered: Agent Plugins 1.0.0, section 5.2.
    """
    # One that may be half written is judged when it has settled.
    broken = {Status.FAILED, Status.SETTLING}
    for plugin in plugins:
        supply = imported.supplies.get((plugin.scope, plugin.source, plugin.unit))
        if supply is not None and supply.policy.has_extension and supply.state in broken:
            yield plugin


def _ranked(given: Pass, scans: Mapping[SearchRoot, SkillScan]) -> Iterable[RankedSkill]:
    """Give each skill its rank, and mark those that may be half written."""
    for order, scan in enumerate(scans.values()):
        for found in scan.findings.values():
            is_settling = found.manifest is None and given.may_be_half_written(found.folder)
            yield RankedSkill(found, (order, found.key), is_settling)


def _settling(ranked: Iterable[RankedSkill], imported: Imported) -> Iterable[str]:
    yield from (item.finding.path for item in ranked if item.unsettled)
    supplies = imported.supplies.values()
    yield from (supply.path for supply in supplies if supply.state is Status.SETTLING)


# ---- remote servers ----------------------------------------------------------------------------


def _servers(given: Pass, fitted: Iterable[BoundPlugin]) -> dict[str, ServerContribution]:
    """Return what the remote servers contribute; the tools of all others keep their names."""
    taken = {tool.name for item in fitted for tool in item.supply.tools}
    return server_contributions(given.wanted.servers, taken, given.before.servers, _LAST)


def _without_disabled(
    servers: Mapping[str, ServerContribution], choices: Selection
) -> Iterable[PluginContribution]:
    for made in servers.values():
        reason = choices.disabled("plugin", made.supply.name)
        yield switched_off(made.supply, reason) if reason else made.supply


def _remote_skills(
    wanted: LoaderConfig,
    ranked: Iterable[RankedSkill],
    plugins: Iterable[PluginEntry],
    previous: Catalog,
) -> ServerSkills:
    """Return the skills of the served remote servers; all others keep their names."""
    found = [item.finding for item in ranked]
    taken = {item.manifest.name if item.manifest else item.folder_name for item in found}
    # What is broken now may be served as it was, under another name than its folder's.
    broken = {item.path for item in found if item.manifest is None}
    taken |= {entry.name for entry in previous.all_skills if entry.path in broken}
    served = {entry.name for entry in plugins if entry.is_served}
    return collect_server_skills((item for item in wanted.servers if item.source in served), taken)


# ---- diagnostics -------------------------------------------------------------------------------


def _of_sources(given: Pass, now: ScanCache) -> Iterable[Diagnostic]:
    """Yield what is wrong with the sources themselves."""
    for folder_scan in now.scan.folders.values():
        yield from folder_scan.diagnostics
    for skill_scan in now.skills.values():
        yield from skill_scan.diagnostics
    yield from now.scan.distributions.diagnostics
    yield from given.choices.diagnostics


def _absent(wanted: LoaderConfig, installed: DistributionScan) -> Iterable[Diagnostic]:
    """Report the plugins that were asked for and are not installed."""
    known = {found.name for found in installed.findings}
    answered = known | {found.distribution for found in installed.findings}
    answered |= {normalized(found.distribution) for found in installed.findings}
    for name in sorted(wanted.entry_points - answered - {ALL}):
        near = near_misses(name, known)
        yield make_diagnostic(
            "plugin-not-installed",
            Where(f"entry point {name}"),
            f"no installed distribution offers a plugin {name!r}",
            f"did you mean {', '.join(near)}?" if near else "pip install the package that has it",
        )
