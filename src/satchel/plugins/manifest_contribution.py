"""What a plugin declares, before any of its code is run."""

import os
from collections.abc import Iterable
from dataclasses import replace

from satchel.catalog import Group, PluginContribution, Status, ToolContribution
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.formats import PluginManifest
from satchel.sources import MANIFEST_FILE, PluginFinding
from satchel.text import one_line, shorten


def with_manifest(supply: PluginContribution, found: PluginFinding) -> PluginContribution:
    """Add to a plugin what its manifest and its code declare."""
    manifest = found.manifest
    supply = replace(
        supply,
        diagnostics=(*found.diagnostics, *found.folder.diagnostics),
        state=_state_of(found),
    )
    if manifest is None:
        return supply
    supply = replace(
        supply,
        version=manifest.version,
        description=manifest.description,
        # Without a part that is written for us there are no tools to switch.
        groups=manifest_groups(manifest) if found.code and not found.is_flawed else (),
        skills=found.skills,
        servers=found.servers,
        diagnostics=(*supply.diagnostics, *_not_started(found)),
        config=manifest.config,
    )
    path = code_path(found)
    return with_tools(
        supply,
        [
            ToolContribution(
                name=tool.name,
                description=tool.description,
                path=tool.path or path,
                version=tool.digest,
                groups=tool.groups,
            )
            for tool in found.declared
        ],
    )


def _state_of(found: PluginFinding) -> Status:
    if not found.is_sound:
        return Status.FAILED
    return Status.DEGRADED if found.is_flawed else Status.OK


def with_tools(supply: PluginContribution, tools: Iterable[ToolContribution]) -> PluginContribution:
    """Let a plugin bring its tools; of two of one name the first counts."""
    first: dict[str, ToolContribution] = {}
    problems = [
        make_diagnostic(
            "tool-shadowed",
            Where(tool.path),
            f"the plugin brings two tools named {tool.name!r}; the first of them counts",
            "rename one of them",
        )
        for tool in tools
        if first.setdefault(tool.name, tool) is not tool
    ]
    # Reading the code may have found the same two before it was imported.
    found = tuple(dict.fromkeys((*supply.diagnostics, *problems)))
    return replace(supply, tools=tuple(first.values()), diagnostics=found)


def manifest_groups(manifest: PluginManifest, more: tuple[Group, ...] = ()) -> tuple[Group, ...]:
    """Return a plugin's groups; its own comes first, where tools go that no other group claims.

    It has one of its own unless groups are described and it says nothing for itself. Of two of one
    name the manifest's counts, and not that of `more`, which its code describes.
    """
    declared = tuple(
        Group(
            name=group.name,
            description=group.description,
            notes=group.notes,
            active=group.active,
            tools=group.tools,
            skills=group.skills,
            requires=group.requires,
        )
        for group in manifest.groups
    )
    own = Group(
        name=manifest.name,
        description=manifest.description,
        notes=manifest.notes,
        active=manifest.active,
    )
    speaks = bool(manifest.notes) or manifest.active
    is_enough = bool(declared or more) and not speaks
    if not is_enough and all(group.name != own.name for group in declared):
        declared = (own, *declared)
    known = {group.name for group in declared}
    return (*declared, *(group for group in more if group.name not in known))


def is_isolated(found: PluginFinding | None) -> bool:
    """Tell whether a plugin must not run in the process of the host."""
    return (
        found is not None and found.manifest is not None and found.manifest.isolation == "process"
    )


def code_path(found: PluginFinding) -> str:
    """Return the file that holds a plugin's tools, or `""` if it brings none."""
    if found.manifest is None:
        return ""
    file = found.file_of(found.modules[0])
    return os.path.join(found.code_path, *file.split("/")) if file else ""


def _not_started(found: PluginFinding) -> Iterable[Diagnostic]:
    if found.servers:
        names = ", ".join(one_line(server.name) for server in found.servers)
        yield make_diagnostic(
            "mcp-not-started",
            Where(found.path),
            f"brings MCP servers that are known and not started: {shorten(names, 200)}",
        )


def not_isolated(supply: PluginContribution, found: PluginFinding, why: str) -> PluginContribution:
    """Leave the tools out rather than run what asks for a process of its own in this one."""
    told = make_diagnostic(
        "plugin-not-isolated",
        Where(os.path.join(found.code_path, MANIFEST_FILE)),
        f"says 'isolation: process', and {why}; its tools are left out",
        "remove the line if its code may run in the process of the host",
    )
    return replace(supply, tools=(), diagnostics=(*supply.diagnostics, told))
