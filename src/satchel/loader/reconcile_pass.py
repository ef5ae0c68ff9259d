"""One pass over all providers: ask, import, bind, then build the catalog."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import compress
from operator import attrgetter, is_, is_not
from typing import TYPE_CHECKING, NamedTuple

from satchel.catalog.catalog_builder import build, skill_membership
from satchel.catalog.catalog_entries import PluginContribution, Status
from satchel.catalog.disable_rules import nothing_disabled
from satchel.catalog.unit_entries import RankedSkill, SkillChanges, build_plugins, skill_unit
from satchel.files.file_reader import real_path
from satchel.garbage_collection import paused_collector
from satchel.loader.builtin_providers import pass_providers
from satchel.loader.config_binder import bind
from satchel.loader.contract_checks import contract_diagnostics
from satchel.loader.loader_config import unit_of
from satchel.loader.name_choices import name_rules
from satchel.loader.pass_provider import PassProvider, problems_of
from satchel.loader.plugin_loader import import_plugins
from satchel.loader.scan_cache import PassInputs, ScanCache
from satchel.loader.trust_gate import open_gate
from satchel.loader.wanted_servers import declared_servers, left_out_servers

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import PluginEntry
    from satchel.configuration.selection import Selection
    from satchel.diagnostics import Diagnostic
    from satchel.loader.loader_config import LoaderConfig, ReconcileOptions
    from satchel.sources.search_roots import SearchRoot
    from satchel.sources.skill_findings import SkillFinding, SkillScan

_CONTRIBUTION_FIELDS = tuple(item.name for item in fields(PluginContribution))
"""All fields, also those that `==` leaves out."""
_NAME = attrgetter("name")
_MOST_EDITS = 400
"""With more changed skills, as they were and as they are now, a whole catalog is built."""


def reconcile(
    config: LoaderConfig, cache: ScanCache, previous: Catalog, options: ReconcileOptions
) -> tuple[ScanCache, Catalog]:
    """Ask all providers and build the next catalog; return `previous` if nothing changed."""
    whole = cache.whole
    if options.follows_files or not whole.files:
        # Other passes come at any time, and would take half written settings for the user's.
        whole = config.selection(whole, debounce=options.debounce)
    inputs = _inputs(config, cache, previous, options, whole)
    providers = pass_providers(inputs)
    next_cache = ScanCache(selection=inputs.selection, whole=whole, gate=inputs.gate)
    # Names of plugins win over those of MCP servers, so servers are asked last.
    for renamed_on_conflict in (False, True):
        asked = [
            provider
            for provider in providers
            if provider.renamed_on_conflict is renamed_on_conflict
        ]
        next_cache = _with_plugins(inputs, next_cache, asked)
    plugins = build_plugins(
        (plugin.contribution for plugin in next_cache.bound.plugins.values()),
        previous,
        next_cache.bound.served_instead,
    )
    declared, invalid_servers = declared_servers(
        inputs.selection, plugins, inputs.gate, config.owners
    )
    if config.lock is not None:
        declared, unlocked = config.lock.servers(declared)
        invalid_servers += unlocked
    of_plugins = (item for plugin in plugins for item in plugin.diagnostics)
    problems = (*inputs.selection.diagnostics, *invalid_servers, *of_plugins)
    left_out = left_out_servers(problems, declared, plugins, inputs)
    next_cache = replace(next_cache, plugins=plugins, declared=declared, left_out=left_out)
    with paused_collector():
        return _with_catalog(inputs, next_cache, providers, invalid_servers)


def _with_catalog(
    inputs: PassInputs,
    next_cache: ScanCache,
    providers: Iterable[PassProvider],
    invalid_servers: tuple[Diagnostic, ...],
) -> tuple[ScanCache, Catalog]:
    """Add the skills of all providers, and build the catalog."""
    for provider in providers:
        next_cache = _with_skills(inputs, next_cache, provider)
    if any(scan.missing for scan in next_cache.skills.values()):
        from satchel.sources.kept_skills import without_moved  # lazy: few skills go missing

        next_cache = replace(next_cache, skills=without_moved(next_cache.skills))
    skills = _incremental_skills(inputs, next_cache)
    if skills is None:
        skills = _NextSkills(ranked=tuple(_ranked(inputs, next_cache.skills)))
    next_cache = replace(next_cache, settling=frozenset(_settling_paths(skills.ranked, next_cache)))
    diagnostics = (
        *_source_diagnostics(inputs, next_cache),
        *invalid_servers,
        *inputs.options.diagnostics,
    )
    return next_cache, _catalog(inputs, next_cache, skills, diagnostics)


def _inputs(
    config: LoaderConfig,
    cache: ScanCache,
    previous: Catalog,
    options: ReconcileOptions,
    whole: Selection,
) -> PassInputs:
    """Limit the settings of projects to what the user trusts."""
    gate = open_gate(config.projects, config.settings, cache.gate)
    selection = gate.limited(whole, cache.selection) if gate.grants else whole
    roots = gate.roots(config.all_roots, selection) if gate.grants else config.all_roots
    return PassInputs(
        config=config,
        options=options,
        cache=cache,
        selection=selection,
        gate=gate,
        roots=tuple(map(selection.ruled, roots)),
        previous=previous,
    )


# ---- asking the providers --------------------------------------------------------------------


def _with_plugins(
    inputs: PassInputs, next_cache: ScanCache, providers: Iterable[PassProvider]
) -> ScanCache:
    """Add the plugins of some providers, imported and bound."""
    answers = {provider: provider.plugins(inputs, next_cache) for provider in providers}
    candidates = [item for answer in answers.values() for item in answer.candidates]
    # A new installation may provide a module that a broken plugin was missing.
    has_new_packages = any(
        answer.watch.installed != inputs.last_answer(provider).watch.installed
        for provider, answer in answers.items()
    )
    imported = import_plugins(inputs, candidates, may_heal=has_new_packages)
    return replace(
        next_cache,
        answers={**next_cache.answers, **answers},
        imported=next_cache.imported | imported,
        bound=next_cache.bound | bind(inputs, imported.contributions.values()),
    )


def _with_skills(inputs: PassInputs, next_cache: ScanCache, provider: PassProvider) -> ScanCache:
    """Add the skills of a provider; the user's trust decides which scripts may be run."""
    skills = dict(next_cache.skills)
    for scan in provider.skills(inputs, next_cache):
        last = inputs.cache.skills.get(scan.root)
        skills[scan.root] = inputs.gate.checked_scripts(scan, last, inputs.cache.gate)
    return replace(next_cache, skills=skills)


# ---- skills ----------------------------------------------------------------------------------


class _NextSkills(NamedTuple):
    """The skills that the next catalog is built of."""

    ranked: tuple[RankedSkill, ...]
    changes: SkillChanges | None = None
    """What else changed; `None` if `ranked` are all skills."""


def _incremental_skills(inputs: PassInputs, next_cache: ScanCache) -> _NextSkills | None:
    """Return the skills that changed since the last pass; `None` if a whole catalog is needed."""
    cache, selection = inputs.cache, inputs.selection
    is_same = (
        inputs.config.lock is None
        and cache.selection == selection
        and list(next_cache.skills) == list(cache.skills)
        and skill_membership(next_cache.plugins) == skill_membership(cache.plugins)
    )
    if not is_same:
        return None
    changed, earlier = list[RankedSkill](), []
    for order, (root, scan) in enumerate(next_cache.skills.items()):
        before = cache.skills[root]
        keys = dict.fromkeys(
            (
                *_changed(before, scan),
                *(key for key in scan.suspect if scan.findings[key].path in cache.settling),
            )
        )
        changed += [_ranked_skill(inputs, order, scan.findings[key]) for key in keys]
        gone = _gone(before, scan)
        earlier += [before.findings[key] for key in (*keys, *gone) if key in before.findings]
    keeps_plugins = _are_same(next_cache.plugins, cache.plugins) and (
        next_cache.imported.unfinished == cache.imported.unfinished
    )
    findings = [*earlier, *(ranked.finding for ranked in changed)]
    if len(findings) > _MOST_EDITS or not _has_ascii_names_only(inputs.previous, findings):
        return None
    has_groups = skill_membership(next_cache.plugins) or any(it.root.groups for it in findings)
    if selection.chooses and (has_groups or not keeps_plugins):
        return None  # A group may be disabled, or no longer.
    names = {skill_unit(finding): finding.name for finding in earlier}
    changes = SkillChanges(names, keeps_plugins)
    return _NextSkills(tuple(changed), changes)


def _has_ascii_names_only(previous: Catalog, findings: Iterable[SkillFinding]) -> bool:
    """Return whether all names are ASCII.

    Other names may look like those of other skills, so they need a whole catalog.
    """
    return previous.has_ascii_names and "".join(map(_NAME, findings)).isascii()


def _changed(before: SkillScan, now: SkillScan) -> Iterable[str]:
    """Return the keys of the skills that changed."""
    if now is before:
        return ()
    if now.edited is not None:
        return sorted(now.edited & now.findings.keys())
    # No loop in Python: there may be very many skills.
    old = map(before.findings.get, now.findings)
    return compress(now.findings, map(is_not, now.findings.values(), old))


def _gone(before: SkillScan, now: SkillScan) -> Iterable[str]:
    """Return the keys of the skills that are gone."""
    if now is before:
        return ()
    edited = before.findings if now.edited is None else now.edited & before.findings.keys()
    return (key for key in edited if key not in now.findings)


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


def _ranked(inputs: PassInputs, scans: Mapping[SearchRoot, SkillScan]) -> Iterable[RankedSkill]:
    for order, scan in enumerate(scans.values()):
        for finding in scan.findings.values():
            yield _ranked_skill(inputs, order, finding)


def _ranked_skill(inputs: PassInputs, order: int, finding: SkillFinding) -> RankedSkill:
    if inputs.config.lock is not None:
        finding = inputs.config.lock.skill(finding)
    is_settling = finding.is_suspect and inputs.may_be_half_written(finding.folder)
    return RankedSkill(finding, (order, finding.is_hidden, finding.key), is_settling)


def _settling_paths(ranked: Iterable[RankedSkill], next_cache: ScanCache) -> Iterable[str]:
    yield from (item.finding.path for item in ranked if item.is_settling)
    plugins = next_cache.imported.contributions.values()
    yield from (plugin.path for plugin in plugins if plugin.state is Status.SETTLING)


# ---- the catalog -----------------------------------------------------------------------------


def _catalog(
    inputs: PassInputs,
    next_cache: ScanCache,
    skills: _NextSkills,
    diagnostics: tuple[Diagnostic, ...],
) -> Catalog:
    selection = inputs.selection
    make = partial(
        build,
        skills.ranked,
        next_cache.plugins,
        inputs.previous,
        disable_reason=selection.disabled if selection.chooses else nothing_disabled,
        first_skills=selection.first_skills,
        names=name_rules(inputs.config, selection, next_cache),
        changes=skills.changes,
    )
    catalog = make(diagnostics)
    # Contracts need the finished catalog. If they have problems, build it again with these.
    bound = next_cache.bound.plugins.values()
    problems = tuple(contract_diagnostics(inputs.config, catalog, bound))
    return make((*diagnostics, *problems)) if problems else catalog


def _source_diagnostics(inputs: PassInputs, next_cache: ScanCache) -> Iterable[Diagnostic]:
    for answer in next_cache.answers.values():
        yield from answer.diagnostics
    for scan in next_cache.skills.values():
        yield from (item for item in problems_of(scan) if not _is_served_anyway(item, next_cache))
    yield from inputs.selection.diagnostics
    yield from inputs.gate.diagnostics
    # The host is not listed as a plugin, so its diagnostics are reported here.
    yield from next_cache.bound.plugins[unit_of(inputs.config.host)].diagnostics


def _is_served_anyway(item: Diagnostic, next_cache: ScanCache) -> bool:
    """Return whether a refused link leads to a search root, or to a skill in one."""
    if item.code != "source-link-outside":
        return False
    target = real_path(item.where.path)
    return any(
        key == "." or key.replace(os.sep, "/") in scan.findings
        for root, scan in next_cache.skills.items()
        if root.is_folder and "" in scan.walked  # else the root itself may be the refused link
        for key in [os.path.relpath(target, real_path(root.path))]
    )
