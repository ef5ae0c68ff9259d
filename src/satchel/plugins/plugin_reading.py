"""Turn a plugin that was found into a contribution, without running its code."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from satchel.catalog.catalog_entries import PluginContribution
from satchel.diagnostics import Where, make_diagnostic
from satchel.names import plugin_name_fault
from satchel.plugins.manifest_contribution import code_path, with_manifest
from satchel.sources.search_roots import Precedence

if TYPE_CHECKING:
    from satchel.sources.distributions import DistributionFinding
    from satchel.sources.package_scan import PackageFinding
    from satchel.sources.plugin_findings import PluginFinding

Rank = tuple[Any, ...]

_BUILTIN = ("satchel", "builtin")
_BUILTIN_DESCRIPTION = "Tools for files, dates, Python code and shell commands."


def read_folder(found: PluginFinding, rank: Rank) -> PluginContribution:
    """Return the contribution that a plugin folder declares, without running its code."""
    contribution = PluginContribution(
        name=found.manifest.name if found.manifest else found.folder_name,
        source=found.place.source,
        scope=found.place.scope,
        path=found.path,
        unit=found.unit,
        rank=rank,
        digest=found.digest,
        policy=found.policy,
        # Python files beside a missing tools.py never run.
        has_code=bool(code_path(found)),
        missing_skills=found.missing,
        # What it imports may be a tool.
        is_code_plain=not any(b"import" in text for text in found.sources.values()),
    )
    return with_manifest(contribution, found)


def read_package(found: PackageFinding, rank: Rank) -> PluginContribution:
    """Return the contribution that an installed plugin declares, without importing it."""
    installed = found.installed
    contribution = PluginContribution(
        name=installed.name,
        source=installed.distribution,
        scope=Precedence.PLUGIN,
        path=found.path,
        unit=found.unit,
        rank=rank,
        digest=found.digest,
        version=installed.version,
        description=_description(installed),
        has_code=found.has_code,
    )
    if found.part is not None:
        contribution = with_manifest(contribution, with_metadata(found.part, found))
    contribution = replace(contribution, skills=found.skills)
    if found.code is not None:
        unique = dict.fromkeys((*contribution.diagnostics, *found.code.diagnostics))
        contribution = replace(contribution, diagnostics=tuple(unique))
    if fault := plugin_name_fault(installed.name):
        from satchel.plugins.plugin_diagnostics import failed_contribution  # lazy: rare

        problem = make_diagnostic(
            "plugin-name-shape",
            Where(installed.path),
            f"the entry point's name {installed.name!r} {fault}",
            "rename the entry point",
        )
        return failed_contribution(contribution, problem)
    return contribution


def _description(installed: DistributionFinding) -> str:
    """Return what the metadata say about a plugin."""
    if (installed.distribution, installed.name) == _BUILTIN:
        return _BUILTIN_DESCRIPTION  # the summary describes Satchel
    # Without an entry point it is a library, not made as a plugin.
    return installed.summary if installed.value else f"Ships skills. {installed.summary}".rstrip()


def with_metadata(part: PluginFinding, found: PackageFinding) -> PluginFinding:
    """Fill the version and description of a manifest from the package metadata."""
    manifest, installed = part.manifest, found.installed
    if manifest is None:
        return part
    version = manifest.version or installed.version
    description = manifest.description or installed.summary
    return replace(part, manifest=replace(manifest, version=version, description=description))
