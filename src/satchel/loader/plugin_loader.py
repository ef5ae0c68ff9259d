"""Load the plugins that a scan found, or reuse the results of the last pass."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from satchel.catalog import PluginContribution, Status
from satchel.diagnostics import Where, make_diagnostic
from satchel.lazy_dataclass import dataclass
from satchel.loader.loader_config import unit_of
from satchel.loader.name_choices import held_newcomers
from satchel.loader.scan_cache import Imported, PendingImport
from satchel.loader.wanted_servers import with_servers
from satchel.plugins import (
    failed_contribution,
    fingerprint,
    is_isolated,
    read_folder,
    read_package,
)
from satchel.sources import (
    GuardedWork,
    PackageFinding,
    PluginFinding,
    Precedence,
    normalized,
)
from satchel.workers import with_health

if TYPE_CHECKING:
    from satchel.diagnostics import Diagnostic
    from satchel.loader.loader_config import Unit
    from satchel.loader.scan_cache import PassInputs, Scan
    from satchel.sources import (
        DistributionFinding,
        PluginScan,
    )
    from satchel.sources.code_units import CodeUnit

_NOT_IMPORTED = {Status.DISABLED, Status.SETTLING, Status.REVOKED}
"""States in which a cached contribution has no finished import."""

Manifests = dict[int, tuple[PluginFinding, PluginContribution]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A plugin whose manifest was read; its state says whether its code may be imported."""

    contribution: PluginContribution
    finding: PluginFinding | PackageFinding

    @property
    def folder(self) -> PluginFinding | None:
        """The folder that holds the manifest; a package may have none."""
        finding = self.finding
        return finding.part if isinstance(finding, PackageFinding) else finding


def import_plugins(inputs: PassInputs, scan: Scan) -> Imported:
    """Import the enabled plugins. If several share a name, only the first good one is imported."""
    manifests = _read_folders(inputs, scan.folders.values())
    units = inputs.gate.units(
        (finding for finding, _ in manifests.values()), inputs.cache.imported.units
    )
    candidates = [
        *(
            _folder_candidate(inputs, finding, contribution, units.get(id(finding)))
            for finding, contribution in manifests.values()
        ),
        *_package_candidates(inputs, scan.packages.values()),
    ]
    held = held_newcomers(
        (candidate.contribution for candidate in candidates), inputs.config, inputs.selection
    )
    # A new installation may provide a module that a broken plugin was missing.
    has_new_packages = scan.distributions.stamps != inputs.cache.scan.distributions.stamps
    host = inputs.config.host
    contributions: dict[Unit, PluginContribution] = {unit_of(host): host}
    pending: dict[Unit, PendingImport] = {}
    served: set[str] = set()
    for candidate in sorted(
        candidates, key=lambda it: (it.contribution.scope, it.contribution.rank)
    ):
        contribution = held.get(id(candidate.contribution), candidate.contribution)
        unit = unit_of(contribution)
        is_good = contribution.state in {Status.OK, Status.DEGRADED}
        is_good = is_good and not contribution.is_untrusted
        if inputs.config.run_code and is_good and contribution.name not in served:
            contribution, pending_import = _import(inputs, candidate, may_heal=has_new_packages)
            if pending_import is not None:
                pending[unit] = pending_import
            if contribution.state is not Status.FAILED:
                served.add(contribution.name)
        if inputs.config.run_code:
            contribution = with_health(contribution, inputs.last_good(contribution))
        contributions[unit] = with_servers(contribution, inputs.config)
    for unit, contribution in contributions.items():
        if contribution.is_untrusted and contribution.name in served:
            contributions[unit] = replace(contribution, state=Status.REVOKED)
    return Imported(contributions=contributions, pending=pending, manifests=manifests, units=units)


def is_enabled(inputs: PassInputs, installed: DistributionFinding) -> bool:
    """Return whether an installed plugin is enabled; the user's selection comes first."""
    verdict = inputs.selection.verdict("plugin", (installed.name, *_names_of(installed)))
    return verdict.is_on if verdict else inputs.config.enables(installed)


def disabled_contribution(
    contribution: PluginContribution, reason: Diagnostic
) -> PluginContribution:
    """Disable a plugin; `reason` replaces its diagnostics."""
    return replace(contribution, state=Status.DISABLED, diagnostics=(reason,))


# ---- candidates for import -------------------------------------------------------------------


def _read_folders(inputs: PassInputs, scans: Iterable[PluginScan]) -> Manifests:
    """Read the manifests. An unchanged folder has the same finding object: its result is reused."""
    manifests: Manifests = {}
    for order, scan in enumerate(scans):
        for finding in scan.findings.values():
            rank = (order, finding.key, finding.listed.name if finding.listed else "")
            cached = inputs.cache.imported.manifests.get(id(finding))
            contribution = cached[1] if cached else read_folder(finding, rank)
            manifests[id(finding)] = (finding, _ranked(contribution, rank))
    return manifests


def _folder_candidate(
    inputs: PassInputs,
    found: PluginFinding,
    contribution: PluginContribution,
    unit: CodeUnit | None,
) -> Candidate:
    aliases = (f"{contribution.source}:{contribution.name}", contribution.source)
    if (reason := inputs.selection.disabled("plugin", contribution.name, aliases)) is not None:
        contribution = disabled_contribution(contribution, reason)
    else:
        contribution = _unless_it_differs(inputs, contribution, found)
    contribution = inputs.gate.guarded(found, unit, contribution, inputs.last_good(contribution))
    return Candidate(contribution=_or_settling(inputs, contribution, found), finding=found)


def _unless_it_differs(
    inputs: PassInputs, contribution: PluginContribution, found: PluginFinding | PackageFinding
) -> PluginContribution:
    """Return a plugin, failed if a lock file has another version: its code must not run."""
    lock = inputs.config.lock
    if lock is None or (reason := lock.plugin(found)) is None:
        return contribution
    return replace(failed_contribution(contribution, reason), state=Status.FAILED)


def _package_candidates(
    inputs: PassInputs, packages: Iterable[PackageFinding]
) -> Iterable[Candidate]:
    packages = tuple(packages)
    findings = [package.installed for package in packages]
    for package in packages:
        found = package.installed
        rank = (len(inputs.roots), found.name, found.distribution)
        contribution = read_package(package, rank)
        same_name = [other for other in findings if other.name == found.name]
        # Only enabled packages compete: installing an unrelated one must not disable a plugin.
        rivals = [other for other in same_name if is_enabled(inputs, other)]
        if (
            reason := inputs.selection.disabled("plugin", found.name, _names_of(found))
        ) is not None:
            contribution = disabled_contribution(contribution, reason)
        elif not is_enabled(inputs, found):
            name = found.name if len(same_name) == 1 else found.distribution
            contribution = disabled_contribution(contribution, _not_enabled(found, name))
        elif len(rivals) > 1:
            problem = _contested(found, rivals)
            contribution = replace(contribution, state=Status.REVOKED, diagnostics=(problem,))
        else:
            contribution = _unless_it_differs(inputs, contribution, package)
            if package.part is not None:
                contribution = _or_settling(inputs, contribution, package.part)
        yield Candidate(contribution=contribution, finding=package)


def _or_settling(
    inputs: PassInputs, contribution: PluginContribution, found: PluginFinding
) -> PluginContribution:
    """Return a plugin, marked as settling if it is broken and may be half written."""
    is_broken = contribution.state in {Status.FAILED, Status.DEGRADED}
    is_suspect = is_broken or _has_lost_tools(inputs, contribution)
    if is_suspect and inputs.may_be_half_written(found.folder):
        return replace(contribution, state=Status.SETTLING)
    return contribution


def _has_lost_tools(inputs: PassInputs, contribution: PluginContribution) -> bool:
    """Return whether tools of the last good version are missing.

    Editors truncate a file before they write it, and an empty file is valid Python.
    """
    last = inputs.last_good(contribution) if contribution.state is Status.OK else None
    if last is None:
        return False
    return not {tool.name for tool in last.tools} <= {tool.name for tool in contribution.tools}


# ---- importing a plugin ---------------------------------------------------------------------


def _import(
    inputs: PassInputs, candidate: Candidate, *, may_heal: bool
) -> tuple[PluginContribution, PendingImport | None]:
    """Import a plugin; a slow import may continue in the background."""
    contribution, load = candidate.contribution, partial(_import_and_start, inputs, candidate)
    if (cached := _reusable(inputs, contribution, may_heal=may_heal)) is not None:
        return cached, None
    pending, wait = inputs.cache.imported.pending.get(unit_of(contribution)), 0.0
    options = inputs.options
    if not options.in_background and options.wait_until is None:
        # A stopped watch may have begun this import. The same content must not be imported twice.
        if pending is not None and pending.ended_with(contribution.digest):
            return pending.work.result(), None
        return load(), None
    # If a folder was edited during its import, import the new content at once. Modules of a package
    # have public names, so its running import must end first.
    is_folder = contribution.scope is not Precedence.PLUGIN
    if pending is None or (is_folder and pending.digest != contribution.digest):
        pending = PendingImport(contribution.digest, GuardedWork(load))
        wait = inputs.config.settings.pace.settle
        if options.wait_until is not None:
            wait = max(wait, options.wait_until - time.monotonic())
    if not pending.work.is_done_within(wait):
        return replace(contribution, state=Status.SETTLING), pending
    if pending.digest == contribution.digest:
        return pending.work.result(), None
    return replace(contribution, state=Status.SETTLING), None


def _import_and_start(inputs: PassInputs, candidate: Candidate) -> PluginContribution:
    contribution = _load(inputs, candidate)
    if contribution.lifecycle is None:
        return contribution
    from satchel.plugins import started  # lazy: needed only with code

    return started(
        contribution, inputs.configuration(contribution), alone=not inputs.options.in_background
    )


def _load(inputs: PassInputs, candidate: Candidate) -> PluginContribution:
    """Import a plugin, or start its process if it is isolated."""
    contribution, finding, workers = (
        candidate.contribution,
        candidate.finding,
        inputs.config.workers,
    )
    limits, alone = inputs.limits, not inputs.options.in_background
    has_code = isinstance(finding, PackageFinding) or bool(finding.sources)
    needs_worker = is_isolated(candidate.folder) and contribution.state is Status.OK and has_code
    if needs_worker and workers is not None:
        from satchel.workers import load_worker  # lazy: needed only by isolated plugins

        return load_worker(contribution, finding, inputs.configuration, workers)
    from satchel.plugins import load_folder, load_package  # lazy: needed only with code

    if isinstance(finding, PackageFinding):
        return load_package(finding, contribution.rank, limits, alone=alone)
    return load_folder(finding, contribution.rank, limits, alone=alone)


def _reusable(
    inputs: PassInputs, contribution: PluginContribution, *, may_heal: bool
) -> PluginContribution | None:
    """Return the last result for the same content; broken code is not tried twice."""
    cached = inputs.cache.imported.contributions.get(unit_of(contribution))
    if cached is None or cached.digest != contribution.digest or cached.state in _NOT_IMPORTED:
        return None
    was_held = any(item.code == "plugin-name-held" for item in cached.diagnostics)
    if was_held or cached.is_untrusted:
        return None  # Its code was not imported.
    may_heal = (may_heal and _lacks_a_module(cached)) or (
        inputs.options.retry_late and was_late(cached)
    )
    if cached.state is not Status.OK and (inputs.options.retry or may_heal):
        return None
    if cached.started_with and cached.started_with != fingerprint(
        inputs.configuration(cached).values
    ):
        return None  # Its startup ran with other values.
    if cached.state is not Status.FAILED and cached.code is None and cached.tools:
        return None  # It was shadowed, so its code was not imported.
    return _ranked(cached, contribution.rank)


def _ranked(contribution: PluginContribution, rank: tuple[object, ...]) -> PluginContribution:
    return contribution if contribution.rank == rank else replace(contribution, rank=rank)


def _lacks_a_module(contribution: PluginContribution) -> bool:
    """Return whether installing a package may fix a broken plugin."""
    return any(
        item.code == "plugin-import-failed"
        and item.message.startswith(("ModuleNotFoundError", "ImportError"))
        for item in contribution.diagnostics
    )


def was_late(contribution: PluginContribution) -> bool:
    """Return whether the import of a plugin took too long."""
    return any(item.code == "plugin-import-timeout" for item in contribution.diagnostics)


def _names_of(found: DistributionFinding) -> tuple[str, ...]:
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
