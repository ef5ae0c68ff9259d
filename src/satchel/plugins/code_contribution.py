"""What the code of a plugin offers: its tools, and the answers of its hooks."""

import json
import os
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from satchel.catalog import Group, PluginContribution, Status, ToolContribution
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.formats import PluginManifest, ToolReference
from satchel.names import group_names
from satchel.plugins.hook_host import HookAnswers, merge_answers
from satchel.plugins.manifest_contribution import code_path, manifest_groups, with_tools
from satchel.plugins.plugin_diagnostics import code_problem
from satchel.settings import Limits
from satchel.sources import MANIFEST_FILE, PluginFinding
from satchel.sources.code_guard import describe_error
from satchel.sources.file_reader import digest_of
from satchel.tools import FunctionTool, Tool, as_tool, tools_in
from satchel.tools.tool_decorator import options_of

Offer = tuple[list[ToolContribution], list[Diagnostic]]
"""The tools that can be used, and why the others cannot."""


def contributed_by_modules(found: PluginFinding, modules: Mapping[str, Any]) -> Offer:
    """Make tools of what the modules of a plugin hold, or of what its manifest chooses of it.

    It runs foreign code, so it must be guarded.
    """
    digests = {tool.name: tool.digest for tool in found.declared}
    if found.manifest is None or not found.manifest.chosen:
        things = [thing for module in modules.values() for thing in tools_in(vars(module))]
        return contributed_tools(things, code_path(found), digests)
    tools: list[ToolContribution] = []
    problems: list[Diagnostic] = []
    for wanted in found.manifest.chosen:
        path = os.path.join(found.code_path, *found.file_of(wanted.module).split("/"))
        try:
            thing = _chosen(wanted, vars(modules[wanted.module]))
            if thing is None:
                problems.append(_not_there(found, wanted))
            else:
                tools.append(_tool(thing, path, digests))
        except Exception as problem:
            problems.append(code_problem("plugin-tool-invalid", describe_error(problem), path))
    return tools, problems


def contributed_tools(things: Iterable[Any], path: str, digests: Mapping[str, str]) -> Offer:
    """Make tools of what a plugin offers; it runs foreign code, so it must be guarded."""
    tools: list[ToolContribution] = []
    problems: list[Diagnostic] = []
    for thing in things:
        try:
            tools.append(_tool(as_tool(thing), path, digests))
        except Exception as problem:
            told = describe_error(problem)
            problems.append(code_problem("plugin-tool-invalid", told, path))
    return tools, problems


def with_offered(supply: PluginContribution, offer: Offer) -> PluginContribution:
    """Let a plugin bring what it offers, and say what is wrong with the rest."""
    tools, problems = offer
    state = Status.DEGRADED if problems else supply.state
    noted = replace(supply, state=state, diagnostics=(*supply.diagnostics, *problems))
    return with_tools(noted, tools)


def with_answers(
    supply: PluginContribution,
    manifest: PluginManifest | None,
    offer: Offer,
    answers: HookAnswers,
    limits: Limits,
) -> PluginContribution:
    """Add what hooks answered to what the manifest declares; it runs foreign code.

    A tool that both offer counts once, as the manifest offers it.
    """
    tools, problems = offer
    more, more_problems = contributed_tools(_others(answers.tools, tools), supply.path, {})
    new = [tool for tool in more if not any(_is_same(tool, known) for known in tools)]
    described = (Group(name=supply.name, description=supply.description),)
    groups = manifest_groups(manifest, answers.groups) if manifest else answers.groups or described
    supply = merge_answers(replace(supply, groups=groups), answers, limits)
    return with_offered(supply, ([*tools, *new], [*problems, *more_problems]))


def _chosen(wanted: ToolReference, namespace: Mapping[str, Any]) -> Tool | None:
    """Return the tool that a manifest chooses, under the name that it gives it."""
    if not wanted.function:
        made = (as_tool(thing) for thing in _named(wanted.name, namespace))
        return next(made, None)
    thing = namespace.get(wanted.function)
    if thing is None:
        return None
    if not isinstance(thing, Tool):
        return FunctionTool(thing, name=wanted.name)
    made_tool = as_tool(thing)
    if made_tool.name != wanted.name:
        made_tool = copy(made_tool)
        made_tool.name = wanted.name
    return made_tool


def _named(name: str, namespace: Mapping[str, Any]) -> Iterable[Any]:
    """Yield what is a tool of this name, without judging the other tools of the module."""
    for thing in tools_in(namespace):
        own = thing.name if isinstance(thing, Tool) else (options_of(thing) or {}).get("name")
        if (own or getattr(thing, "__name__", "")) == name:
            yield thing


def _not_there(found: PluginFinding, wanted: ToolReference) -> Diagnostic:
    what = f"the function {wanted.function!r}" if wanted.function else f"a tool {wanted.name!r}"
    return make_diagnostic(
        "plugin-group-unknown",
        Where(os.path.join(found.code_path, MANIFEST_FILE), _line(found, wanted)),
        f"'tools' lists {what}, which {found.file_of(wanted.module)} does not hold",
        "correct the name, or define it there",
    )


def _line(found: PluginFinding, wanted: ToolReference) -> int | None:
    return found.manifest.line(*wanted.at) if found.manifest else None


def _tool(tool: Tool, path: str, digests: Mapping[str, str]) -> ToolContribution:
    """Describe a tool as its owner offers it."""
    if not isinstance(tool.description, str):
        raise DefinitionError(f"the description of the tool {tool.name!r} must be text")
    groups = group_names(tool.group)
    schema = json.dumps(tool.to_schema(), sort_keys=True, default=str)
    version = digest_of(f"{schema}\0{digests.get(tool.name)}".encode("utf-8", "surrogatepass"))
    return ToolContribution(
        name=tool.name,
        description=tool.description,
        path=path,
        version=version,
        groups=groups,
        tool=tool,
    )


def _others(things: Iterable[Any], tools: Iterable[ToolContribution]) -> list[Any]:
    """Return the things of which no tool was made yet."""
    made = [tool.tool for tool in tools]
    known = {id(item) for item in made}
    known |= {id(item.fn) for item in made if isinstance(item, FunctionTool)}
    return [thing for thing in things if id(thing) not in known]


def _is_same(one: ToolContribution, other: ToolContribution) -> bool:
    """Tell whether two tools are one function under one name."""
    mine, its = one.tool, other.tool
    if one.name != other.name or not isinstance(mine, FunctionTool):
        return False
    return isinstance(its, FunctionTool) and mine.fn is its.fn
