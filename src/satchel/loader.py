"""The loader: one look at all sources, and what the catalog is built of.

Everything is compared, nothing is replayed: a look takes what the last look found, reads what
may have changed, imports what did change, and hands the whole to the catalog.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from satchel.catalog import Catalog, PluginEntry, RankedSkill, Supply, build, build_plugins
from satchel.diagnostics import Diagnostic, Where, report
from satchel.manifests import ConfigField
from satchel.names import near_misses
from satchel.plugins import (
    Fitted,
    fingerprint,
    fit,
    load_folder,
    load_package,
    read_folder,
    read_package,
    started,
)
from satchel.settings import Settings
from satchel.sources import (
    Background,
    Choices,
    Configuration,
    DistributionFinding,
    DistributionScan,
    Holds,
    PackageFinding,
    Place,
    PluginFinding,
    PluginScan,
    Scope,
    SkillScan,
    Watched,
    choices_path,
    configuration_path,
    folder_stamps,
    installed_folders,
    normalized,
    read_choices,
    read_configuration,
    scan_distributions,
    scan_packages,
    scan_plugins,
    scan_skills,
)

ALL = "all"
"""Asks for every installed plugin."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be loaded."""

    places: tuple[Place, ...]
    entry_points: frozenset[str]
    """Names of entry points or distributions, or `all`."""
    host: Supply
    run_code: bool
    settings: Settings
    config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """Values for the state fields of plugins' tools, by plugin; they may be secrets."""
    models: Mapping[str, Any] = field(default_factory=dict)
    """Pydantic models of further arguments, by the address of the tool."""
    project_choices: str = ""
    """The `satchel.toml` of a project that is trusted, `""` if there is none."""

    def choices(self, before: Choices, *, patient: bool) -> Choices:
        """Return what the user, and a trusted project, switched on and off."""
        patience = self.settings.pace.settle if patient else 0.0
        user = choices_path(self.settings.config_folder)
        return read_choices(user, self.project_choices, before, patience)

    def configuration(
        self, plugin: str, fields: tuple[ConfigField, ...], choices: Choices
    ) -> Configuration:
        """Return what a plugin that declares these fields is configured with."""
        given, folder = self.config.get(plugin, {}), self.settings.config_folder
        return read_configuration(plugin, given, folder, fields, choices.layer(plugin))

    def enables(self, found: DistributionFinding) -> bool:
        """Tell whether somebody asked for an installed plugin."""
        names = {ALL, found.name, found.distribution, normalized(found.distribution)}
        return not names.isdisjoint(self.entry_points)


Unit = tuple[Scope, str, str]
"""What makes a plugin the same one in every look: scope, source, unit."""


@dataclass(frozen=True, slots=True)
class Loading:
    """A plugin whose code is being imported while everything else goes on."""

    digest: str
    work: Background[Supply]


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found, so that the next has less to do."""

    plugins: Mapping[Place, PluginScan] = field(default_factory=dict)
    skills: Mapping[Place, SkillScan] = field(default_factory=dict)
    distributions: DistributionScan = field(default_factory=lambda: DistributionScan({}))
    packages: Mapping[tuple[str, str], PackageFinding] = field(default_factory=dict)
    supplies: Mapping[Unit, Supply] = field(default_factory=dict)
    loading: Mapping[Unit, Loading] = field(default_factory=dict)
    unsettled: frozenset[str] = frozenset()
    fitted: Mapping[Unit, Fitted] = field(default_factory=dict)
    sound: Mapping[Unit, Supply] = field(default_factory=dict)
    """The newest good version of each plugin, before it was fitted."""
    config_files: tuple[tuple[str, tuple[int, int, int]], ...] = ()
    """Configuration files that were looked for, with the stamps they had."""
    choices: Choices = field(default_factory=Choices)

    def watched(self) -> Watched:
        """Return what a watch has to keep an eye on from now on."""
        scans: list[PluginScan | SkillScan] = [*self.plugins.values(), *self.skills.values()]
        edited = [package for package in self.packages.values() if self._uses(package)]
        roots = {scan.place.path for scan in scans}.union(*(item.roots for item in edited))
        return Watched(
            roots=tuple(sorted(roots)),
            links=frozenset().union(*(item.links for item in (*scans, *edited))),
            installed=(
                *self.distributions.stamps,
                *self.config_files,
                *self.choices.stamps,
                *(stamp for item in edited for stamp in item.stamps),
            ),
            awaited=self.distributions.awaited,
            unsettled=self.unsettled,
            unreadable=tuple(
                sorted(
                    {
                        item.where.path
                        for scan in scans
                        for item in scan.diagnostics
                        if item.code == "source-unreadable"
                    }
                )
            ),
        )

    def _uses(self, package: PackageFinding) -> bool:
        installed = package.installed
        name = f"{installed.distribution}:{installed.name}"
        supply = self.supplies.get((Scope.PLUGIN, installed.distribution, name))
        return supply is not None and not supply.disabled


@dataclass(frozen=True, slots=True)
class Asked:
    """How a look is to be taken."""

    dirty: frozenset[str] | None = None
    """Paths that may have changed, `None` for everything."""
    patient: bool = False
    """Whether a unit that may be half written is left as it was for a moment."""
    aside: bool = False
    """Whether code that takes long to import is left to a watch, which takes it over later."""
    retry: bool = False
    """Whether code that failed is tried again although it did not change."""
    trouble: tuple[Diagnostic, ...] = ()
    """What is wrong with the watching itself."""


def look(wanted: Wanted, before: Look, previous: Catalog, asked: Asked) -> tuple[Look, Catalog]:
    """Look at all sources and build the next generation; `previous` itself if nothing changed."""
    installed = scan_distributions(installed_folders(), before.distributions)
    limits = wanted.settings.limits
    scans = {
        place: scan_plugins(place, limits, before.plugins.get(place), asked.dirty)
        for place in wanted.places
        if place.holds is Holds.PLUGINS
    }
    # What was installed may be what a broken plugin was missing.
    something_installed = installed.stamps != before.distributions.stamps
    choices = wanted.choices(before.choices, patient=asked.patient)
    load = _Load(wanted, before, asked, something_installed, choices)
    packages = scan_packages(installed.findings, limits, load.enables, before.packages, asked.dirty)
    supplies = (wanted.host, *load.folders(scans.values()), *load.packages(packages.values()))
    fitting = _Fit(wanted, before, tuple(supplies), choices)
    fitted, last_good = fitting.all()
    plugins = build_plugins(
        [item.supply for item in fitted.values()], _refitted(previous, last_good)
    )
    skills = {
        place: scan_skills(place, limits, before.skills.get(place), asked.dirty)
        for place in (*_skill_places(wanted), *_plugin_skill_places(plugins))
    }
    ranked = tuple(load.ranked(skills))
    now = Look(
        scans,
        skills,
        installed,
        packages,
        {_unit(supply): supply for supply in supplies},
        load.loading,
        frozenset(
            (
                *(item.finding.path for item in ranked if item.unsettled),
                *(supply.path for supply in supplies if supply.unsettled),
            )
        ),
        fitted,
        fitting.sound,
        tuple(fitting.files),
        choices,
    )
    odd = (
        *(item for plugin_scan in scans.values() for item in plugin_scan.diagnostics),
        *(item for skill_scan in skills.values() for item in skill_scan.diagnostics),
        *installed.diagnostics,
        *choices.diagnostics,
        *_absent(wanted, installed),
        # The host is no plugin that is listed, so nobody else would tell of these.
        *fitted[_unit(wanted.host)].problems,
        *asked.trouble,
    )
    return now, build(ranked, plugins, previous, odd, choices.disabled)


@dataclass(frozen=True, slots=True)
class _Fit:
    """Fits every plugin's tools to the host, also those of a last good version."""

    wanted: Wanted
    before: Look
    supplies: tuple[Supply, ...]
    choices: Choices
    sound: dict[Unit, Supply] = field(default_factory=dict)
    files: list[tuple[str, tuple[int, int, int]]] = field(default_factory=list)
    """The files that were looked for, with their stamps."""

    def all(self) -> tuple[dict[Unit, Fitted], dict[Unit, Supply]]:
        """Return each plugin fitted; and the last good versions of those that are broken now."""
        fitted: dict[Unit, Fitted] = {}
        last_good: dict[Unit, Supply] = {}
        for supply in self.supplies:
            unit = _unit(supply)
            last = self._last_good(supply)
            fitted[unit] = self._fitted(last or supply)
            if last is not None:
                self.sound[unit] = last
            if last is not None and last is not supply:
                # What is served is configured anew, though it is not what stands on disk.
                last_good[unit] = fitted[unit].supply
                told = (*supply.diagnostics, *fitted[unit].problems)
                fitted[unit] = replace(fitted[unit], supply=replace(supply, diagnostics=told))
        return fitted, last_good

    def _last_good(self, supply: Supply) -> Supply | None:
        if supply.disabled:
            return None
        is_good = supply.is_sound and not supply.unsettled
        return supply if is_good else self.before.sound.get(_unit(supply))

    def _fitted(self, supply: Supply) -> Fitted:
        known = self.before.fitted.get(_unit(supply))
        return fit(self._without_off(supply), self._configured, self.wanted.models, known)

    def _without_off(self, supply: Supply) -> Supply:
        """Take the code from tools that the user switched off: they need no values."""
        off = {tool.name for tool in supply.tools if self._is_off(supply, tool.name)}
        if not off:
            return supply
        tools = (replace(t, tool=None) if t.name in off else t for t in supply.tools)
        return replace(supply, tools=tuple(tools))

    def _is_off(self, supply: Supply, tool: str) -> bool:
        texts = (f"{supply.name}:{tool}", supply.name)
        return self.choices.disabled("tool", tool, texts) is not None

    def _configured(self, plugin: str, fields: tuple[ConfigField, ...]) -> Configuration:
        # Stamped first: what changes while it is read is read again.
        path = configuration_path(plugin, self.wanted.settings.config_folder)
        self.files.extend(folder_stamps([path]))
        return self.wanted.configuration(plugin, fields, self.choices)


def _refitted(previous: Catalog, last_good: Mapping[Unit, Supply]) -> Catalog:
    """Return the last generation with its good versions as they are configured now."""
    if not last_good:
        return previous
    entries = (
        replace(entry, supply=last_good.get((entry.scope, entry.source, entry.unit), entry.supply))
        if entry.supply.is_sound
        else entry
        for entry in previous.all_plugins
    )
    return replace(previous, all_plugins=tuple(entries))


def _skill_places(wanted: Wanted) -> Iterable[Place]:
    return (place for place in wanted.places if place.holds is Holds.SKILLS)


def _plugin_skill_places(plugins: Iterable[PluginEntry]) -> Iterable[Place]:
    for plugin in plugins:
        for folder in plugin.supply.skills if plugin.is_served else ():
            yield Place(
                folder,
                Holds.SKILLS,
                Scope.PLUGIN,
                plugin.name,
                optional=True,
                within=plugin.path if plugin.supply.is_contained else "",
                is_open=plugin.supply.is_open,
            )


def _absent(wanted: Wanted, installed: DistributionScan) -> Iterable[Diagnostic]:
    """Report the plugins that were asked for and are not installed."""
    known = {found.name for found in installed.findings}
    answered = known | {found.distribution for found in installed.findings}
    answered |= {normalized(found.distribution) for found in installed.findings}
    for name in sorted(wanted.entry_points - answered - {ALL}):
        near = near_misses(name, known)
        yield report(
            "plugin-not-installed",
            Where(f"entry point {name}"),
            f"no installed distribution offers a plugin {name!r}",
            f"did you mean {', '.join(near)}?" if near else "pip install the package that has it",
        )


@dataclass(frozen=True, slots=True)
class _Load:
    """What the steps of one look share."""

    wanted: Wanted
    before: Look
    asked: Asked
    something_installed: bool
    choices: Choices
    loading: dict[Unit, Loading] = field(default_factory=dict)

    def folders(self, scans: Iterable[PluginScan]) -> Iterable[Supply]:
        """Load the plugin folders; of two of one name only the first sound one is imported."""
        read = [
            (read_folder(found, (order, found.key)), found)
            for order, scan in enumerate(scans)
            for found in scan.findings.values()
        ]
        taken: set[str] = set()
        limits = self.wanted.settings.limits
        for supply, found in sorted(read, key=lambda pair: (pair[0].scope, pair[0].rank)):
            texts = (f"{supply.source}:{supply.name}", supply.source)
            if (off := self.choices.disabled("plugin", supply.name, texts)) is not None:
                yield _switched_off(supply, off)
            elif self._may_be_half_read(supply, found):
                yield replace(supply, unsettled=True)
            elif not self.wanted.run_code or supply.failed or supply.name in taken:
                yield supply
            else:
                alone = not self.asked.aside
                load = partial(load_folder, found, supply.rank, limits, alone=alone)
                loaded = self._loaded(supply, load)
                if not loaded.failed:
                    taken.add(loaded.name)
                yield loaded

    def packages(self, packages: Iterable[PackageFinding]) -> Iterable[Supply]:
        """Load the installed plugins that somebody asked for; list the others."""
        packages = tuple(packages)
        findings = [package.installed for package in packages]
        for package in packages:
            found = package.installed
            rank = (len(self.wanted.places), found.name, found.distribution)
            supply = read_package(package, rank)
            # Only what somebody asked for competes: a stranger's package cannot switch one off.
            rivals = [o for o in findings if o.name == found.name and self.enables(o)]
            off = self.choices.disabled("plugin", found.name, _names_of(found))
            if off is not None:
                yield _switched_off(supply, off)
            elif not self.enables(found):
                is_unique = [other.name for other in findings].count(found.name) == 1
                told = _not_enabled(found, found.name if is_unique else found.distribution)
                yield _switched_off(supply, told)
            elif len(rivals) > 1:
                yield replace(supply, failed=True, diagnostics=(_contested(found, rivals),))
            elif package.part and self._may_be_half_read(supply, package.part):
                yield replace(supply, unsettled=True)
            elif not self.wanted.run_code:
                yield supply
            else:
                limits, alone = self.wanted.settings.limits, not self.asked.aside
                load = partial(load_package, package, rank, limits, alone=alone)
                yield self._loaded(supply, load)

    def enables(self, found: DistributionFinding) -> bool:
        """Tell whether an installed plugin is to be used: the user's choice counts first."""
        verdict = self.choices.verdict("plugin", (found.name, *_names_of(found)))
        return verdict.is_on if verdict else self.wanted.enables(found)

    def ranked(self, scans: Mapping[Place, SkillScan]) -> Iterable[RankedSkill]:
        """Give each skill its rank, and spare those that may be half written."""
        for order, scan in enumerate(scans.values()):
            for found in scan.findings.values():
                unsettled = (
                    self.asked.patient
                    and found.manifest is None
                    and self._may_be_half_written(found.folder)
                )
                yield RankedSkill(found, (order, found.key), unsettled)

    def _may_be_half_read(self, supply: Supply, found: PluginFinding) -> bool:
        is_broken = supply.failed or supply.flawed
        return self.asked.patient and is_broken and self._may_be_half_written(found.folder)

    def _may_be_half_written(self, folder: Any) -> bool:
        return bool(folder.is_younger_than(self.wanted.settings.pace.settle))

    def _loaded(self, supply: Supply, load: Callable[[], Supply]) -> Supply:
        """Import a plugin; one that takes long is left aside, if it may be."""
        if (known := self._known(supply)) is not None:
            return known
        if not self.asked.aside:
            return self._started(load)
        loading, wait = self.before.loading.get(_unit(supply)), 0.0
        # A folder that was edited meanwhile begins anew at once; the modules of a package have
        # public names, so there one import has to end before the next begins.
        is_folder = supply.scope is not Scope.PLUGIN
        if loading is None or (is_folder and loading.digest != supply.digest):
            loading = Loading(supply.digest, Background(partial(self._started, load)))
            wait = self.wanted.settings.pace.settle
        if not loading.work.is_done_within(wait):
            self.loading[_unit(supply)] = loading
        elif loading.digest == supply.digest:
            return loading.work.result()
        return replace(supply, unsettled=True)

    def _started(self, load: Callable[[], Supply]) -> Supply:
        """Import a plugin and run its startup with the values that it is configured with."""
        supply = load()
        if supply.life is None:
            return supply
        return started(supply, self._configuration(supply), alone=not self.asked.aside)

    def _configuration(self, supply: Supply) -> Configuration:
        return self.wanted.configuration(supply.name, supply.config, self.choices)

    def _known(self, supply: Supply) -> Supply | None:
        """Return what the last look made of the same content: broken code is not tried twice."""
        known = self.before.supplies.get(_unit(supply))
        if known is None or known.digest != supply.digest or known.disabled or known.unsettled:
            return None
        may_heal = self.something_installed and _lacks_a_module(known)
        if not known.is_sound and (self.asked.retry or may_heal):
            return None
        if known.started_with and known.started_with != fingerprint(
            self._configuration(known).values
        ):
            return None  # What it opened, or could not open, was opened with other values.
        if not known.failed and known.code is None and known.tools:
            return None  # It was shadowed, so it was only read.
        return replace(known, rank=supply.rank)


def _lacks_a_module(supply: Supply) -> bool:
    """Tell whether an installation may be what a broken plugin waits for."""
    return any(
        item.code == "plugin-import-failed"
        and item.message.startswith(("ModuleNotFoundError", "ImportError"))
        for item in supply.diagnostics
    )


def _unit(supply: Supply) -> Unit:
    return supply.scope, supply.source, supply.unit


def _names_of(found: DistributionFinding) -> tuple[str, ...]:
    """Return what an installed plugin answers to beside its name."""
    owner = found.distribution
    return (f"{owner}:{found.name}", owner, normalized(owner))


def _switched_off(supply: Supply, off: Diagnostic) -> Supply:
    """Disable a plugin that nobody wants; what is wrong with it troubles nobody then."""
    return replace(supply, disabled=True, failed=False, diagnostics=(off,))


def _not_enabled(found: DistributionFinding, enabled_by: str) -> Diagnostic:
    return report(
        "plugin-not-enabled",
        Where(found.path),
        f"plugin {found.name!r} of {found.distribution} {found.version} is available, not enabled",
        f"--entry-points {enabled_by}",
    )


def _contested(found: DistributionFinding, rivals: Iterable[DistributionFinding]) -> Diagnostic:
    owners = " and ".join(sorted(other.distribution for other in rivals))
    return report(
        "plugin-contested",
        Where(found.path),
        f"plugin {found.name!r} is offered by {owners}; neither is used",
        "uninstall one of them",
    )
