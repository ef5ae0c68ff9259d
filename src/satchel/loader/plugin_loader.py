"""Loading the plugins that a scan found, or reusing what the last pass made of them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from satchel.catalog import PluginContribution, Status
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.loader.loader_config import Unit, unit_of
from satchel.loader.scan_cache import Imported, Pass, PendingImport, Scan
from satchel.loader.wanted_servers import with_servers
from satchel.plugins import (
    fingerprint,
    is_isolated,
    load_folder,
    load_package,
    read_folder,
    read_package,
    started,
)
from satchel.sources import (
    DistributionFinding,
    GuardedWork,
    PackageFinding,
    PluginFinding,
    PluginScan,
    Precedence,
    normalized,
)
from satchel.workers import load_worker, with_health

_NEVER_IMPORTED = {Status.DISABLED, Status.SETTLING, Status.REVOKED}
"""The states of contributions whose code was not imported to the end."""

Read = dict[int, tuple[PluginFinding, PluginContribution]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A plugin that was read; its state says whether its code may be imported."""

    supply: PluginContribution
    finding: PluginFinding | PackageFinding

    @property
    def part(self) -> PluginFinding | None:
        """Return the folder that holds the manifest."""
        found = self.finding
        return found.part if isinstance(found, PackageFinding) else found


def import_plugins(given: Pass, scan: Scan) -> Imported:
    """Import the plugins that are wanted; of two of one name only the first good one."""
    read = _read_folders(given, scan.folders.values())
    candidates = [
        *(_folder(given, found, supply) for found, supply in read.values()),
        *_packages(given, scan.packages.values()),
    ]
    # What was installed may be what a broken plugin was missing.
    is_installed = scan.distributions.stamps != given.before.scan.distributions.stamps
    supplies: dict[Unit, PluginContribution] = {unit_of(given.wanted.host): given.wanted.host}
    loading: dict[Unit, PendingImport] = {}
    served: set[str] = set()
    for candidate in sorted(candidates, key=lambda it: (it.supply.scope, it.supply.rank)):
        supply, unit = candidate.supply, unit_of(candidate.supply)
        is_good = supply.state in {Status.OK, Status.DEGRADED}
        if given.wanted.run_code and is_good and supply.name not in served:
            supply, pending = _imported(given, candidate, may_heal=is_installed)
            if pending is not None:
                loading[unit] = pending
            if supply.state is not Status.FAILED:
                served.add(supply.name)
        if given.wanted.run_code:
            supply = with_health(supply, given.last_good(supply))
        supplies[unit] = with_servers(supply, given.wanted)
    return Imported(supplies=supplies, loading=loading, read=read)


def enables(given: Pass, found: DistributionFinding) -> bool:
    """Tell whether an installed plugin is used: the user's choice comes first."""
    verdict = given.choices.verdict("plugin", (found.name, *_names_of(found)))
    return verdict.is_on if verdict else given.wanted.enables(found)


def switched_off(supply: PluginContribution, reason: Diagnostic) -> PluginContribution:
    """Disable a plugin; its own diagnostics do not matter then."""
    return replace(supply, state=Status.DISABLED, diagnostics=(reason,))


# ---- which plugins there are, and which may be imported -----------------------------------------


def _read_folders(given: Pass, scans: Iterable[PluginScan]) -> Read:
    """Return what each folder declares; one that did not change is the same finding."""
    read: Read = {}
    for order, scan in enumerate(scans):
        for found in scan.findings.values():
            rank = (order, found.key)
            known = given.before.imported.read.get(id(found))
            supply = known[1] if known else read_folder(found, rank)
            read[id(found)] = (found, _ranked(supply, rank))
    return read


def _folder(given: Pass, found: PluginFinding, supply: PluginContribution) -> Candidate:
    texts = (f"{supply.source}:{supply.name}", supply.source)
    if (reason := given.choices.disabled("plugin", supply.name, texts)) is not None:
        supply = switched_off(supply, reason)
    return Candidate(supply=_settling(given, supply, found), finding=found)


def _packages(given: Pass, packages: Iterable[PackageFinding]) -> Iterable[Candidate]:
    packages = tuple(packages)
    findings = [package.installed for package in packages]
    for package in packages:
        found = package.installed
        rank = (len(given.wanted.places), found.name, found.distribution)
        supply = read_package(package, rank)
        same_name = [other for other in findings if other.name == found.name]
        # Only what somebody asked for competes: a stranger's package cannot disable one.
        rivals = [other for other in same_name if enables(given, other)]
        if (reason := given.choices.disabled("plugin", found.name, _names_of(found))) is not None:
            supply = switched_off(supply, reason)
        elif not enables(given, found):
            name = found.name if len(same_name) == 1 else found.distribution
            supply = switched_off(supply, _not_enabled(found, name))
        elif len(rivals) > 1:
            problem = _contested(found, rivals)
            supply = replace(supply, state=Status.REVOKED, diagnostics=(problem,))
        elif package.part is not None:
            supply = _settling(given, supply, package.part)
        yield Candidate(supply=supply, finding=package)


def _settling(given: Pass, supply: PluginContribution, found: PluginFinding) -> PluginContribution:
    """Mark a broken plugin that may be half written."""
    is_broken = supply.state in {Status.FAILED, Status.DEGRADED}
    if is_broken and given.may_be_half_written(found.folder):
        return replace(supply, state=Status.SETTLING)
    return supply


# ---- importing one --------------------------------------------------------------------------


def _imported(
    given: Pass, candidate: Candidate, *, may_heal: bool
) -> tuple[PluginContribution, PendingImport | None]:
    """Import a plugin; one that takes long goes on in the background, if it may."""
    supply, load = candidate.supply, partial(_start, given, candidate)
    if (known := _reusable(given, supply, may_heal=may_heal)) is not None:
        return known, None
    loading, wait = given.before.imported.loading.get(unit_of(supply)), 0.0
    if not given.asked.aside:
        # A watch may have begun it and stopped; it must not start twice.
        if loading is not None and loading.ended_with(supply.digest):
            return loading.work.result(), None
        return load(), None
    # A folder that was edited meanwhile is imported again at once. The modules of a package have
    # public names, so there one import has to end before the next begins.
    is_folder = supply.scope is not Precedence.PLUGIN
    if loading is None or (is_folder and loading.digest != supply.digest):
        loading = PendingImport(supply.digest, GuardedWork(load))
        wait = given.wanted.settings.pace.settle
    if not loading.work.is_done_within(wait):
        return replace(supply, state=Status.SETTLING), loading
    if loading.digest == supply.digest:
        return loading.work.result(), None
    return replace(supply, state=Status.SETTLING), None


def _start(given: Pass, candidate: Candidate) -> PluginContribution:
    """Import a plugin and run its startup with its configuration."""
    supply = _load(given, candidate)
    if supply.life is None:
        return supply
    return started(supply, given.configuration(supply), alone=not given.asked.aside)


def _load(given: Pass, candidate: Candidate) -> PluginContribution:
    """Import a plugin, or start the process that it asks for."""
    supply, found, workers = candidate.supply, candidate.finding, given.wanted.workers
    limits, alone = given.wanted.settings.limits, not given.asked.aside
    has_code = isinstance(found, PackageFinding) or bool(found.sources)
    is_process = is_isolated(candidate.part) and supply.state is Status.OK and has_code
    if is_process and workers is not None:
        return load_worker(supply, found, given.configuration, workers)
    if isinstance(found, PackageFinding):
        return load_package(found, supply.rank, limits, alone=alone)
    return load_folder(found, supply.rank, limits, alone=alone)


def _reusable(
    given: Pass, supply: PluginContribution, *, may_heal: bool
) -> PluginContribution | None:
    """Return what the last pass made of the same content: broken code is not tried twice."""
    known = given.before.imported.supplies.get(unit_of(supply))
    if known is None or known.digest != supply.digest or known.state in _NEVER_IMPORTED:
        return None
    may_heal = may_heal and _lacks_a_module(known)
    if known.state is not Status.OK and (given.asked.retry or may_heal):
        return None
    if known.started_with and known.started_with != fingerprint(given.configuration(known).values):
        return None  # What it opened, or could not open, was opened with other values.
    if known.state is not Status.FAILED and known.code is None and known.tools:
        return None  # It was shadowed, so it was only read.
    return _ranked(known, supply.rank)


def _ranked(supply: PluginContribution, rank: tuple[object, ...]) -> PluginContribution:
    return supply if supply.rank == rank else replace(supply, rank=rank)


def _lacks_a_module(supply: PluginContribution) -> bool:
    """Tell whether an installation may be what a broken plugin waits for."""
    return any(
        item.code == "plugin-import-failed"
        and item.message.startswith(("ModuleNotFoundError", "ImportError"))
        for item in supply.diagnostics
    )


def _names_of(found: DistributionFinding) -> tuple[str, ...]:
    """Return what an installed plugin answers to beside its name."""
    owner = found.distribution
    return (f"{owner}:{found.name}", owner, normalized(owner))


def _not_enabled(found: DistributionFinding, enabled_by: str) -> Diagnostic:
    return make_diagnostic(
        "plugin-not-enabled",
        Where(found.path),
        f"plugin {found.name!r} of {found.distribution} {found.version} is available, not enabled",
        f"--entry-points {enabled_by}",
    )


def _contested(found: DistributionFinding, rivals: Iterable[DistributionFinding]) -> Diagnostic:
    owners = " and ".join(sorted(other.distribution for other in rivals))
    return make_diagnostic(
        "plugin-contested",
        Where(found.path),
        f"plugin {found.name!r} is offered by {owners}; neither is used",
        "uninstall one of them",
    )
