"""The tools in a plugin's modules and the results of its hooks, as a contribution."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from satchel.catalog.catalog_entries import Group, Status, ToolContribution
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.files.file_reader import digest_of
from satchel.importing.code_guard import describe_error
from satchel.names import BASIC_GROUP, group_names, plugin_name_fault
from satchel.plugins.hook_host import merge_answers
from satchel.plugins.plugin_diagnostics import code_problem
from satchel.plugins.plugin_reading import code_path, manifest_groups, with_tools
from satchel.sources.plugin_formats import MANIFEST_FILE
from satchel.text import escaped
from satchel.tools import FunctionTool, Tool, as_tool, tools_in
from satchel.tools.tool_bounds import bounded_definition
from satchel.tools.tool_decorator import options_of

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution
    from satchel.formats.code_references import ToolReference
    from satchel.formats.toolkit_manifest import PluginManifest
    from satchel.plugins.hook_host import HookAnswers
    from satchel.settings import Limits
    from satchel.sources.plugin_findings import PluginFinding

ToolsFound = tuple[list[ToolContribution], list[Diagnostic]]
"""The usable tools, and diagnostics for the others."""


def tools_of_modules(
    finding: PluginFinding, modules: Mapping[str, Any], limits: Limits
) -> ToolsFound:
    """Return the tools of a plugin's modules, or those that its manifest lists.

    Runs plugin code: call it inside `guarded`.
    """
    digests = {tool.name: tool.digest for tool in finding.declared}
    if finding.manifest is None or not finding.manifest.listed_tools:
        objects = [item for module in modules.values() for item in tools_in(vars(module))]
        return tools_of_objects(objects, code_path(finding), digests, limits)
    tools: list[ToolContribution] = []
    diagnostics: list[Diagnostic] = []
    for reference in finding.manifest.listed_tools:
        path = os.path.join(finding.code_path, *finding.file_of(reference.module).split("/"))
        try:
            tool = _referenced_tool(reference, vars(modules[reference.module]))
            if tool is None:
                diagnostics.append(_missing_tool(finding, reference))
            else:
                tools.append(_tool_contribution(tool, path, digests, limits))
        except Exception as error:
            diagnostics.append(code_problem("plugin-tool-invalid", describe_error(error), path))
    return tools, diagnostics


def tools_of_objects(
    objects: Iterable[Any], path: str, digests: Mapping[str, str], limits: Limits
) -> ToolsFound:
    """Return the tools made from these objects. Runs plugin code: call it inside `guarded`."""
    tools: list[ToolContribution] = []
    diagnostics: list[Diagnostic] = []
    for item in objects:
        try:
            tools.append(_tool_contribution(as_tool(item), path, digests, limits))
        except Exception as error:
            diagnostics.append(code_problem("plugin-tool-invalid", describe_error(error), path))
    return tools, diagnostics


def with_code_tools(
    contribution: PluginContribution, tools_found: ToolsFound
) -> PluginContribution:
    """Add the tools of the code; a plugin with an unusable tool is degraded."""
    tools, diagnostics = tools_found
    state = Status.DEGRADED if diagnostics else contribution.state
    diagnostics = [*contribution.diagnostics, *diagnostics]
    return with_tools(replace(contribution, state=state, diagnostics=tuple(diagnostics)), tools)


def with_hook_answers(
    contribution: PluginContribution,
    manifest: PluginManifest | None,
    tools_found: ToolsFound,
    answers: HookAnswers,
    limits: Limits,
) -> PluginContribution:
    """Add the hooks' answers to what the manifest declares. Runs plugin code.

    A tool that both provide is added once, as the manifest describes it.
    """
    tools, diagnostics = tools_found
    other_objects = _not_in(answers.tools, tools)
    hook_tools, hook_diagnostics = tools_of_objects(other_objects, contribution.path, {}, limits)
    new = [tool for tool in hook_tools if not any(_is_same(tool, other) for other in tools)]
    described = (Group(name=contribution.name, description=contribution.description),)
    groups = manifest_groups(manifest, answers.groups) if manifest else answers.groups or described
    contribution = merge_answers(replace(contribution, groups=groups), answers, limits)
    return with_code_tools(contribution, ([*tools, *new], [*diagnostics, *hook_diagnostics]))


def _referenced_tool(reference: ToolReference, namespace: Mapping[str, Any]) -> Tool | None:
    """Return the tool that a manifest lists, under the name that the manifest gives it."""
    if not reference.function:
        return next(map(as_tool, _named(reference.name, namespace)), None)
    function = namespace.get(reference.function)
    if function is None:
        return None
    if not isinstance(function, Tool):
        return FunctionTool(function, name=reference.name)
    tool = as_tool(function)
    if tool.name != reference.name:
        tool = copy(tool)
        tool.name = reference.name
    return tool


def _named(name: str, namespace: Mapping[str, Any]) -> Iterable[Any]:
    """Yield the tools of this name; other tools of the module may be invalid."""
    for item in tools_in(namespace):
        given_name = item.name if isinstance(item, Tool) else (options_of(item) or {}).get("name")
        if (given_name or getattr(item, "__name__", "")) == name:
            yield item


def _missing_tool(finding: PluginFinding, reference: ToolReference) -> Diagnostic:
    kind, name = (
        ("function", reference.function) if reference.function else ("tool", reference.name)
    )
    line = finding.manifest.line(*reference.at) if finding.manifest else None
    return make_diagnostic(
        "plugin-group-unknown",
        Where(os.path.join(finding.code_path, MANIFEST_FILE), line),
        f"'tools' lists the {kind} {name!r}, and {finding.file_of(reference.module)} has none",
        "correct the name, or define it there",
    )


def _tool_contribution(
    tool: Tool, path: str, digests: Mapping[str, str], limits: Limits
) -> ToolContribution:
    if not isinstance(tool.description, str):
        raise DefinitionError(f"the description of the tool {tool.name!r} must be a string")
    groups = group_names(tool.group)
    for group in groups:
        if group != BASIC_GROUP and (fault := plugin_name_fault(group)):
            raise DefinitionError(f"tool {tool.name!r} is in group {escaped(group)}, which {fault}")
    schema = bounded_definition(tool, limits)
    version = digest_of(f"{schema}\0{digests.get(tool.name)}".encode("utf-8", "surrogatepass"))
    return ToolContribution(
        name=tool.name,
        description=tool.description,
        path=path,
        version=version,
        groups=groups,
        tool=tool,
    )


def _not_in(objects: Iterable[Any], tools: Iterable[ToolContribution]) -> list[Any]:
    """Return the objects that are not among the tools yet."""
    existing = [tool.tool for tool in tools]
    ids = {id(tool) for tool in existing}
    ids |= {id(tool.fn) for tool in existing if isinstance(tool, FunctionTool)}
    return [item for item in objects if id(item) not in ids]


def _is_same(one: ToolContribution, other: ToolContribution) -> bool:
    """Return whether two tools are the same function under the same name."""
    first, second = one.tool, other.tool
    if one.name != other.name or not isinstance(first, FunctionTool):
        return False
    return isinstance(second, FunctionTool) and first.fn is second.fn
