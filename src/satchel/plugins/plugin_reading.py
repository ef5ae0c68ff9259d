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
    from satchel.importing.distributions import DistributionFinding
    from satchel.sources.package_scan import PackageFinding
    from satchel.sources.plugin_findings import PluginFinding

Rank = tuple[Any, ...]

_BUILTIN = ("satchel", "builtin")
_BUILTIN_DESCRIPTION = "Tools for files, dates, Python code and shell commands."


def read_folder(finding: PluginFinding, rank: Rank) -> PluginContribution:
    """Return the contribution that a plugin folder declares, without running its code."""
    contribution = PluginContribution(
        name=finding.manifest.name if finding.manifest else finding.folder_name,
        source=finding.root.source,
        scope=finding.root.scope,
        path=finding.path,
        unit=finding.unit,
        rank=rank,
        digest=finding.digest,
        policy=finding.policy,
        # Python files beside a missing tools.py never run.
        has_code=bool(code_path(finding)),
        missing_skills=finding.missing,
        # What it imports may be a tool.
        is_code_plain=not any(b"import" in text for text in finding.sources.values()),
    )
    return with_manifest(contribution, finding)


def read_package(finding: PackageFinding, rank: Rank) -> PluginContribution:
    """Return the contribution that an installed plugin declares, without importing it."""
    installed = finding.installed
    contribution = PluginContribution(
        name=installed.name,
        source=installed.distribution,
        scope=Precedence.PLUGIN,
        path=finding.path,
        unit=finding.unit,
        rank=rank,
        digest=finding.digest,
        version=installed.version,
        description=_description(installed),
        has_code=finding.has_code,
    )
    if finding.part is not None:
        contribution = with_manifest(contribution, with_metadata(finding.part, finding))
    contribution = replace(contribution, skills=finding.skills)
    if finding.code is not None:
        unique = dict.fromkeys((*contribution.diagnostics, *finding.code.diagnostics))
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


def with_metadata(part: PluginFinding, finding: PackageFinding) -> PluginFinding:
    """Fill the version and description of a manifest from the package metadata."""
    manifest, installed = part.manifest, finding.installed
    if manifest is None:
        return part
    version = manifest.version or installed.version
    description = manifest.description or installed.summary
    return replace(part, manifest=replace(manifest, version=version, description=description))
