"""One look at all sources, and what the catalog is built of."""

from collections.abc import Iterable
from dataclasses import replace

from satchel.catalog import (
    Catalog,
    PluginContribution,
    PluginEntry,
    RankedSkill,
    build,
    build_plugins,
    nothing_disabled,
)
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.loader.config_binder import ConfigBinder, rebind_config
from satchel.loader.contract_checks import contract_problems
from satchel.loader.loader_config import ALL, LoaderConfig, ReconcileOptions, unit_of
from satchel.loader.plugin_loader import PluginLoader
from satchel.loader.scan_cache import ScanCache
from satchel.loader.wanted_servers import declared_servers, with_servers
from satchel.names import near_misses
from satchel.settings import Limits
from satchel.sources import (
    DistributionScan,
    Precedence,
    RootKind,
    SearchRoot,
    SkillScan,
    installed_folders,
    normalized,
    scan_distributions,
    scan_packages,
    scan_plugins,
    scan_skills,
)


def reconcile(
    wanted: LoaderConfig, before: ScanCache, previous: Catalog, asked: ReconcileOptions
) -> tuple[ScanCache, Catalog]:
    """Look at all sources and build the next generation; `previous` itself if nothing changed."""
    installed = scan_distributions(installed_folders(), before.distributions)
    limits = wanted.settings.limits
    scans = {
        place: scan_plugins(place, limits, before.plugins.get(place), asked.dirty)
        for place in wanted.places
        if place.holds is RootKind.PLUGINS
    }
    # What was installed may be what a broken plugin was missing.
    something_installed = installed.stamps != before.distributions.stamps
    choices = wanted.choices(before.choices, patient=asked.patient)
    load = PluginLoader(
        wanted=wanted,
        before=before,
        asked=asked,
        something_installed=something_installed,
        choices=choices,
    )
    packages = scan_packages(installed.findings, limits, load.enables, before.packages, asked.dirty)
    brought = (*load.folders(scans.values()), *load.packages(packages.values()))
    supplies = (wanted.host, *(with_servers(supply, wanted) for supply in brought))
    fitting = ConfigBinder(wanted=wanted, before=before, supplies=tuple(supplies), choices=choices)
    fitted, last_good = fitting.all()
    servers = load.servers(fitted.values())
    fitted |= replace(fitting, supplies=load.carried(servers)).all()[0]
    plugins = build_plugins(
        [item.supply for item in fitted.values()], rebind_config(previous, last_good)
    )
    declared, undeclared = declared_servers(choices, plugins)
    frozen = frozenset(_plugin_skill_places(_rejected(plugins, supplies)))
    skills = {
        place: _skills_in(place, limits, before, asked, is_frozen=place in frozen)
        for place in (*_skill_places(wanted), *_plugin_skill_places(plugins))
    }
    ranked = tuple(load.ranked(skills))
    carried = load.remote_skills(ranked, plugins, previous)
    now = ScanCache(
        plugins=scans,
        skills=skills,
        distributions=installed,
        packages=packages,
        supplies={unit_of(supply): supply for supply in supplies},
        loading=load.loading,
        unsettled=frozenset(
            (
                *(item.finding.path for item in ranked if item.unsettled),
                *(supply.path for supply in supplies if supply.unsettled),
            )
        ),
        fitted=fitted,
        sound=fitting.sound,
        config_files=tuple(fitting.files),
        choices=choices,
        servers=servers,
        declared=declared,
        read=load.read,
        frozen=frozen,
    )
    odd = (
        *(item for plugin_scan in scans.values() for item in plugin_scan.diagnostics),
        *(item for skill_scan in skills.values() for item in skill_scan.diagnostics),
        *installed.diagnostics,
        *choices.diagnostics,
        *undeclared,
        *carried.diagnostics,
        *_absent(wanted, installed),
        # The host is no plugin that is listed, so nobody else would tell of these.
        *fitted[unit_of(wanted.host)].problems,
        *asked.trouble,
    )
    every = (*ranked, *(RankedSkill(found, (found.path,)) for found in carried.findings))
    off = choices.disabled if choices.chooses else nothing_disabled
    built = build(every, plugins, previous, odd, off)
    # What is served has to be known before anybody can say what it lacks.
    lacking = tuple(contract_problems(wanted, built, fitted.values()))
    if lacking:
        built = build(every, plugins, previous, (*odd, *lacking), off)
    return now, built


def _skills_in(
    place: SearchRoot,
    limits: Limits,
    before: ScanCache,
    asked: ReconcileOptions,
    *,
    is_frozen: bool,
) -> SkillScan:
    known = before.skills.get(place)
    if is_frozen and known is not None:
        return known
    # What changed while it was frozen is not among what changed just now.
    return scan_skills(place, limits, known, None if place in before.frozen else asked.dirty)


def _rejected(
    plugins: Iterable[PluginEntry], supplies: Iterable[PluginContribution]
) -> Iterable[PluginEntry]:
    """Yield the open plugins that serve on though their newest version was rejected.

    Nothing more of them may be discovered: Agent Plugins 1.0.0, section 5.2.
    """
    units = {unit_of(supply) for supply in supplies if supply.is_open and supply.failed}
    return (plugin for plugin in plugins if (plugin.scope, plugin.source, plugin.unit) in units)


def _skill_places(wanted: LoaderConfig) -> Iterable[SearchRoot]:
    return (place for place in wanted.places if place.holds is RootKind.SKILLS)


def _plugin_skill_places(plugins: Iterable[PluginEntry]) -> Iterable[SearchRoot]:
    for plugin in plugins:
        for folder in plugin.supply.skills if plugin.is_served else ():
            yield SearchRoot(
                path=folder,
                holds=RootKind.SKILLS,
                scope=Precedence.PLUGIN,
                source=plugin.name,
                optional=True,
                within=plugin.path if plugin.supply.is_contained else "",
                is_open=plugin.supply.is_open,
            )


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
