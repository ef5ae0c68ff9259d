"""Load the plugins that providers have, or reuse the results of the last pass."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from satchel.catalog.catalog_entries import PluginContribution, Status
from satchel.configuration.configuration import fingerprint
from satchel.importing.guarded_work import GuardedWork
from satchel.loader.loader_config import unit_of
from satchel.loader.name_choices import held_newcomers
from satchel.loader.scan_cache import Imported, PendingImport
from satchel.loader.trust_gate import without_code
from satchel.loader.wanted_servers import with_servers
from satchel.plugins.plugin_reading import is_isolated
from satchel.settings import WALL_FACTOR
from satchel.sources.lost_files import lost_files
from satchel.sources.search_roots import Precedence
from satchel.workers.worker_health import with_health

if TYPE_CHECKING:
    from satchel.loader.loader_config import Unit
    from satchel.loader.pass_provider import Candidate
    from satchel.loader.scan_cache import PassInputs
    from satchel.sources.plugin_findings import PluginFinding

_NOT_IMPORTED = {Status.DISABLED, Status.SETTLING, Status.REVOKED}
"""States in which a cached contribution has no finished import."""

_LEFT_ALONE = {"plugin-name-held", "plugin-file-lost"}
"""Diagnostics of plugins that were not imported, for a reason that is not in their content."""

_PATIENCE = 2.0
"""Seconds after which the other plugins are imported beside a slow one."""


def import_plugins(
    inputs: PassInputs, candidates: Iterable[Candidate], *, may_heal: bool = False
) -> Imported:
    """Import the enabled plugins. If several share a name, only the first good one is imported.

    None waits long for another: the slow ones are awaited together, at the end.
    With `may_heal`, those that lacked a module are tried again.
    """
    judged = [_unless_unknown(inputs, _judged(inputs, item)) for item in candidates]
    held = held_newcomers(judged, inputs.config, inputs.selection)
    contributions: dict[Unit, PluginContribution] = {}
    pending: dict[Unit, PendingImport] = {}
    served: set[str] = set()
    names = Counter(candidate.contribution.name for candidate in judged)
    for candidate in sorted(judged, key=lambda it: (it.contribution.scope, it.contribution.rank)):
        contribution = held.get(id(candidate.contribution), candidate.contribution)
        unit = unit_of(contribution)
        is_good = contribution.state in {Status.OK, Status.DEGRADED}
        is_good = is_good and not contribution.is_untrusted and candidate.load is not None
        if inputs.config.run_code and is_good and contribution.name not in served:
            # Others of its name are imported only if this one fails.
            patience = _PATIENCE if names[contribution.name] == 1 else None
            contribution, pending_import = _import(inputs, candidate, patience, may_heal=may_heal)
            if pending_import is not None:
                pending[unit] = pending_import
            if contribution.state is not Status.FAILED:
                served.add(contribution.name)
        contribution = with_health(contribution, inputs.last_good(contribution))
        contributions[unit] = with_servers(contribution, inputs.config)
    for unit, started_import in [*pending.items()]:
        if (finding := _awaited(inputs, started_import, contributions[unit])) is not None:
            finding = with_health(finding, inputs.last_good(finding))
            contributions[unit] = with_servers(finding, inputs.config)
            del pending[unit]
    for unit, contribution in contributions.items():
        if contribution.is_untrusted and contribution.name in served:
            contributions[unit] = replace(contribution, state=Status.REVOKED)
    return Imported(contributions=contributions, pending=pending)


# ---- what may be imported --------------------------------------------------------------------


def _judged(inputs: PassInputs, candidate: Candidate) -> Candidate:
    """Apply the choices, the lock file, trust, losses and settling: the state says what is left."""
    contribution, lock = candidate.contribution, inputs.config.lock
    reason = inputs.selection.disabled("plugin", contribution.name, candidate.names)
    if candidate.is_optional and reason is not None:
        contribution = replace(contribution, state=Status.DISABLED, diagnostics=(reason,))
    elif lock is not None and contribution.state not in _NOT_IMPORTED:
        configured = inputs.selection.layer(contribution.name).values
        contribution = lock.plugin(candidate, inputs.cache.declared, configured)
    part = candidate.finding.part if candidate.finding else None
    if part is not None and contribution.state is not Status.DISABLED:
        last_good = inputs.last_good(contribution)
        contribution = inputs.gate.guarded(part, candidate.unit, contribution, last_good)
        had_tools = {tool.path for tool in last_good.tools} if last_good is not None else set()
        is_ok = contribution.state is Status.OK
        if is_ok and (lost := tuple(lost_files(part, had_tools))):
            diagnostics = (*contribution.diagnostics, *lost)
            contribution = replace(contribution, state=Status.DEGRADED, diagnostics=diagnostics)
            # Not imported: it must not become the last good version.
            candidate = replace(candidate, load=None)
        contribution = _or_settling(inputs, contribution, part)
    is_same = contribution is candidate.contribution
    return candidate if is_same else replace(candidate, contribution=contribution)


def _unless_unknown(inputs: PassInputs, candidate: Candidate) -> Candidate:
    """Return a plugin without its code while it is not known whether the user disabled it."""
    contribution = candidate.contribution
    if not candidate.is_optional or contribution.state is Status.DISABLED:
        return candidate
    reason = inputs.selection.withheld(f"plugin {contribution.name!r}")
    if reason is None:
        return candidate
    held = without_code(contribution, reason)
    if candidate.finding is None:  # a connected server, or what a provider of the program gives
        held = replace(held, state=Status.REVOKED, offers=())
    return replace(candidate, contribution=held)


def _or_settling(
    inputs: PassInputs, contribution: PluginContribution, finding: PluginFinding
) -> PluginContribution:
    """Return a plugin, marked as settling if it is broken and may be half written.

    So may be one that lost tools, or of which a file is much shorter: editors truncate a file
    before they write it, and an empty file is valid Python.
    """
    is_suspect = contribution.state in {Status.FAILED, Status.DEGRADED} or finding.folder.has_shrunk
    if not is_suspect and (last := inputs.last_good(contribution)) is not None:
        is_suspect = not {it.name for it in last.tools} <= {it.name for it in contribution.tools}
    if is_suspect and inputs.may_be_half_written(finding.folder):
        return replace(contribution, state=Status.SETTLING)
    return contribution


# ---- importing a plugin ---------------------------------------------------------------------


def _import(
    inputs: PassInputs, candidate: Candidate, patience: float | None, *, may_heal: bool
) -> tuple[PluginContribution, PendingImport | None]:
    """Import a plugin; a slow import continues in the background."""
    contribution, load = candidate.contribution, partial(_load, inputs, candidate)
    if (cached := _reusable(inputs, contribution, may_heal=may_heal)) is not None:
        return cached, None
    pending = inputs.cache.imported.pending.get(unit_of(contribution))
    wait: float | None = 0.0
    # If a folder was edited during its import, import the new content at once. Modules of a package
    # have public names, so its running import must end first.
    is_folder = contribution.scope is not Precedence.PLUGIN
    if pending is not None and inputs.options.waits_for_all and not is_folder:
        pending = pending if pending.ended_with(contribution.digest) else None
    if pending is None or (is_folder and pending.digest != contribution.digest):
        pending = PendingImport(contribution.digest, GuardedWork(load))
        wait = _first_wait(inputs, patience)
    if not pending.work.is_done_within(wait):
        if wait and not inputs.options.in_background:
            _say_late(inputs, contribution.name)
        return replace(contribution, state=Status.SETTLING), pending
    if pending.digest == contribution.digest:
        return pending.work.result(), None
    return replace(contribution, state=Status.SETTLING), None


def _say_late(inputs: PassInputs, name: str) -> None:
    import logging  # lazy: seldom needed

    log = logging.getLogger("satchel.loader.plugin_loader")
    rest = "; the others continue"
    if inputs.options.waits_for_all:
        most = f"{WALL_FACTOR * inputs.limits.plugin_import:g} s (limit plugin_import)"
        rest = f"; the others are imported meanwhile, and then it is awaited for up to {most}"
    log.info("plugin %r is still being imported%s", name, rest)


def _first_wait(inputs: PassInputs, patience: float | None) -> float | None:
    """Return how long the other plugins wait for an import."""
    settle, options = inputs.config.settings.pace.settle, inputs.options
    if options.waits_for_all:
        return patience
    if options.wait_until is None:
        return settle
    left = options.wait_until - time.monotonic()
    return max(settle, left if patience is None else min(left, patience))


def _awaited(
    inputs: PassInputs, pending: PendingImport, contribution: PluginContribution
) -> PluginContribution | None:
    """Return the result of an import that ends while this pass waits; else `None`."""
    wait: float | None = 0.0
    if inputs.options.wait_until is not None:
        wait = max(0.0, inputs.options.wait_until - time.monotonic())
    elif inputs.options.waits_for_all:
        wait = None
    is_done = pending.work.is_done_within(wait) and pending.digest == contribution.digest
    return pending.work.result() if is_done else None


def _load(inputs: PassInputs, candidate: Candidate) -> PluginContribution:
    """Import a plugin, or start its process if it is isolated; then run its startup."""
    contribution, finding = candidate.contribution, candidate.finding
    workers, alone = inputs.config.workers, not inputs.options.in_background
    assert finding is not None
    assert candidate.load is not None
    needs_worker = is_isolated(finding.part) and contribution.state is Status.OK
    if needs_worker and finding.has_code and workers is not None:
        from satchel.workers.worker_loading import (
            load_worker,  # lazy: needed only by isolated plugins
        )

        loaded = load_worker(contribution, finding, inputs.configuration, workers)
    else:
        loaded = candidate.load(finding, contribution.rank, inputs.limits, alone=alone)
    if loaded.lifecycle is None:
        return loaded
    from satchel.plugins.code_loading import started  # lazy: needed only with code

    return started(loaded, inputs.configuration(loaded), alone=alone)


def _reusable(
    inputs: PassInputs, contribution: PluginContribution, *, may_heal: bool
) -> PluginContribution | None:
    """Return the last result for the same content; broken code is not tried twice."""
    cached = inputs.cache.imported.contributions.get(unit_of(contribution))
    if cached is None or cached.digest != contribution.digest or cached.state in _NOT_IMPORTED:
        return None
    was_left = any(item.code in _LEFT_ALONE for item in cached.diagnostics)
    if was_left or cached.is_untrusted:
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
    return cached if cached.rank == contribution.rank else replace(cached, rank=contribution.rank)


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
