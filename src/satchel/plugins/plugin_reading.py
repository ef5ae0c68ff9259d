"""What a plugin declares, as a contribution, before any of its code runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from satchel.catalog.catalog_entries import Group, PluginContribution, Status, ToolContribution
from satchel.diagnostics import Where, make_diagnostic
from satchel.names import plugin_name_fault
from satchel.sources.plugin_formats import MANIFEST_FILE
from satchel.sources.search_roots import Precedence
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    from satchel.diagnostics import Diagnostic
    from satchel.formats.toolkit_manifest import PluginManifest
    from satchel.importing.distributions import DistributionFinding
    from satchel.sources.package_scan import PackageFinding
    from satchel.sources.plugin_findings import PluginFinding

Rank = tuple[Any, ...]
"""The precedence of a plugin."""
_BUILTIN = ("satchel", "builtin")
_BUILTIN_DESCRIPTION = "Tools for files, dates, Python code and shell commands."


def with_manifest(contribution: PluginContribution, finding: PluginFinding) -> PluginContribution:
    """Add what the manifest and the unexecuted code declare."""
    manifest = finding.manifest
    contribution = replace(
        contribution,
        diagnostics=(*finding.diagnostics, *finding.folder.diagnostics),
        state=_state_of(finding),
    )
    if manifest is None:
        return contribution
    contribution = replace(
        contribution,
        version=manifest.version,
        description=manifest.description,
        runner=manifest.runner,
        runners={tool.name: tool.runner for tool in manifest.listed_tools if tool.runner},
        compatible_with=manifest.compatible_with,
        # Without code, or with a broken `dev.satchel` extension, there are no tools to group. The
        # context of a Gemini extension needs a group, too.
        groups=manifest_groups(manifest)
        if (finding.code or manifest.notes) and not finding.is_degraded
        else (),
        skills=finding.skills,
        command_paths=finding.command_paths,
        servers=finding.servers,
        diagnostics=(*contribution.diagnostics, *_servers_not_started(finding)),
        config=manifest.config,
    )
    path = code_path(finding)
    return with_tools(
        contribution,
        [
            ToolContribution(
                name=tool.name,
                description=tool.description,
                path=tool.path or path,
                version=tool.digest,
                groups=tool.groups,
                needs=tool.needs,
            )
            for tool in finding.declared
        ],
    )


def _state_of(finding: PluginFinding) -> Status:
    if not finding.is_valid:
        return Status.FAILED
    return Status.DEGRADED if finding.is_degraded else Status.OK


def with_tools(
    contribution: PluginContribution, tools: Iterable[ToolContribution]
) -> PluginContribution:
    """Set a plugin's tools; if two share a name, the first one counts."""
    first: dict[str, ToolContribution] = {}
    duplicates = [
        make_diagnostic(
            "tool-shadowed",
            Where(tool.path),
            f"the plugin has two tools named {tool.name!r}; the first one counts",
            "rename one of them",
        )
        for tool in tools
        if first.setdefault(tool.name, tool) is not tool
    ]
    # The same duplicates may have been reported when the code was read.
    diagnostics = tuple(dict.fromkeys((*contribution.diagnostics, *duplicates)))
    return replace(contribution, tools=tuple(first.values()), diagnostics=diagnostics)


def manifest_groups(
    manifest: PluginManifest, code_groups: tuple[Group, ...] = ()
) -> tuple[Group, ...]:
    """Return a plugin's groups; the default group comes first and takes tools without a group.

    The default group has the plugin's name. It is left out if other groups are described and the
    manifest sets neither `notes` nor `active` at the top. If the manifest and the code describe
    the same group, the manifest counts.
    """
    declared = tuple(
        Group(
            name=group.name,
            description=group.description,
            notes=group.notes,
            active=group.active,
            is_off=group.is_off,
            tools=group.tools,
            skills=group.skills,
            requires=group.requires,
            runner=group.runner,
        )
        for group in manifest.groups
    )
    default = Group(
        name=manifest.name,
        description=manifest.description,
        notes=manifest.notes,
        active=manifest.active,
        is_off=manifest.is_off,
    )
    needs_default = bool(manifest.notes) or manifest.active or not (declared or code_groups)
    if needs_default and all(group.name != default.name for group in declared):
        declared = (default, *declared)
    names = {group.name for group in declared}
    return (*declared, *(group for group in code_groups if group.name not in names))


def is_isolated(finding: PluginFinding | None) -> bool:
    """Return whether a plugin must run in a process of its own."""
    return (
        finding is not None
        and finding.manifest is not None
        and finding.manifest.isolation == "process"
    )


def code_path(finding: PluginFinding) -> str:
    """Return the file with a plugin's tools, or `""` if it has none."""
    if finding.manifest is None:
        return ""
    file = finding.file_of(finding.modules[0])
    return os.path.join(finding.code_path, *file.split("/")) if file else ""


def _servers_not_started(finding: PluginFinding) -> Iterable[Diagnostic]:
    if finding.servers:
        names = ", ".join(one_line(server.name) for server in finding.servers)
        yield make_diagnostic(
            "mcp-not-started",
            Where(finding.path),
            f"declares MCP servers that are not started: {shorten(names, 200)}",
        )


def not_isolated(contribution: PluginContribution, finding: PluginFinding) -> PluginContribution:
    """Leave out the tools of an isolated plugin instead of running its code in this process."""
    problem = make_diagnostic(
        "plugin-not-isolated",
        Where(os.path.join(finding.code_path, MANIFEST_FILE)),
        "says 'isolation: process', and this process is not its own; its tools are left out",
        "remove the line if its code may run in the process of the host",
    )
    return replace(contribution, tools=(), diagnostics=(*contribution.diagnostics, problem))


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
        # An imported function may be a tool, which reading the text cannot show.
        imports_nothing=not any(b"import" in text for text in finding.sources.values()),
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
