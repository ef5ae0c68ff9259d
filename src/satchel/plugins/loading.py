"""From a plugin folder to its part of the catalog: reading it, or importing it as well.

What folders and installed packages share stands here too.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from satchel.catalog import Group, Supply, ToolSupply
from satchel.diagnostics import Diagnostic, Where, report
from satchel.errors import DefinitionError
from satchel.manifests import ChosenTool, PluginManifest
from satchel.names import group_names
from satchel.settings import Limits
from satchel.sources import (
    MANIFEST_FILE,
    Format,
    ImportedCode,
    PluginCodeError,
    PluginFinding,
    PluginTimeoutError,
    guarded,
    import_folder,
)
from satchel.sources.files import digest_of
from satchel.sources.guard import described
from satchel.sources.process import PRIVATE_PREFIX
from satchel.text import one_line, shorten
from satchel.tools import FunctionTool, Tool, as_tool, tools_in
from satchel.tools.decorator import options_of

Rank = tuple[Any, ...]

# Authors know their modules by their own names.
_PRIVATE_NAME = re.compile(rf"{PRIVATE_PREFIX}\w*?_\d+(\.?)")


def read_folder(found: PluginFinding, rank: Rank) -> Supply:
    """Tell what a plugin folder brings without running its code."""
    manifest = found.manifest
    supply = Supply(
        name=manifest.name if manifest else found.folder_name,
        source=found.place.source,
        scope=found.place.scope,
        path=found.path,
        unit=found.path,
        rank=rank,
        digest=found.digest,
        is_contained=found.format is not Format.TOOLKIT,
        is_open=found.format is Format.OPEN,
    )
    return with_manifest(supply, found)


def with_manifest(supply: Supply, found: PluginFinding) -> Supply:
    """Add to a plugin what its manifest and its code declare."""
    manifest = found.manifest
    supply = replace(
        supply,
        diagnostics=(*found.diagnostics, *found.folder.diagnostics),
        failed=not found.is_sound,
        flawed=found.is_flawed,
    )
    if manifest is None:
        return supply
    supply = replace(
        supply,
        version=manifest.version,
        description=manifest.description,
        # Without a part that is written for us there are no tools to switch.
        groups=manifest_groups(manifest) if found.code else (),
        skills=found.skills,
        servers=found.servers,
        diagnostics=(*supply.diagnostics, *_not_started(found)),
        config=manifest.config,
    )
    return _with_tools(
        supply,
        [
            ToolSupply(
                tool.name,
                tool.description,
                tool.path or _code_path(found),
                tool.digest,
                tool.groups,
            )
            for tool in found.declared
        ],
    )


def load_folder(found: PluginFinding, rank: Rank, limits: Limits, *, alone: bool = True) -> Supply:
    """Import a plugin folder's code and tell what it brings; whatever it does is a diagnostic."""
    supply = read_folder(found, rank)
    file = _code_path(found)
    if supply.failed or supply.flawed or found.manifest is None or not file:
        return supply
    try:
        first, *more = found.manifest.modules
        code = import_folder(
            found.code_path, found.sources, first, limits.plugin_import, more=more, alone=alone
        )
    except PluginCodeError as problem:
        return failed_supply(supply, import_failed(problem, file))
    try:
        offer, _ = guarded(
            lambda: offered_by_part(found, code.modules), limits.hook, "hook", alone=alone
        )
    except PluginCodeError as problem:
        code.purge()
        return failed_supply(supply, code_problem("plugin-tool-invalid", problem, file))
    return with_code(with_offered(supply, offer), code)


def failed_supply(supply: Supply, problem: Diagnostic) -> Supply:
    """Take the tools from a plugin, and all else from one that is not made of parts."""
    told = replace(supply, tools=(), diagnostics=(*supply.diagnostics, problem))
    return replace(told, flawed=True) if supply.is_open else replace(told, failed=True)


Offer = tuple[list[ToolSupply], list[Diagnostic]]
"""The tools that can be used, and why the others cannot."""


def offered(things: Iterable[Any], path: str, digests: Mapping[str, str]) -> Offer:
    """Make tools of what a plugin offers; it runs foreign code, so it must be guarded."""
    tools: list[ToolSupply] = []
    problems: list[Diagnostic] = []
    for thing in things:
        try:
            tools.append(_tool(as_tool(thing), path, digests))
        except Exception as problem:
            told = described(problem)
            problems.append(code_problem("plugin-tool-invalid", told, path))
    return tools, problems


def offered_by_part(found: PluginFinding, modules: Mapping[str, Any]) -> Offer:
    """Make tools of what the modules of a plugin hold, or of what its manifest chooses of it.

    It runs foreign code, so it must be guarded.
    """
    digests = {tool.name: tool.digest for tool in found.declared}
    if found.manifest is None or not found.manifest.chosen:
        things = [thing for module in modules.values() for thing in tools_in(vars(module))]
        return offered(things, _code_path(found), digests)
    tools: list[ToolSupply] = []
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
            problems.append(code_problem("plugin-tool-invalid", described(problem), path))
    return tools, problems


def _chosen(wanted: ChosenTool, namespace: Mapping[str, Any]) -> Tool | None:
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
        options = options_of(thing)
        own = thing.name if isinstance(thing, Tool) else options and options.name
        if (own or getattr(thing, "__name__", "")) == name:
            yield thing


def _not_there(found: PluginFinding, wanted: ChosenTool) -> Diagnostic:
    what = f"the function {wanted.function!r}" if wanted.function else f"a tool {wanted.name!r}"
    return report(
        "plugin-group-unknown",
        Where(os.path.join(found.path, MANIFEST_FILE)),
        f"'tools' lists {what}, which {found.file_of(wanted.module)} does not hold",
        "correct the name, or define it there",
    )


def with_offered(supply: Supply, offer: Offer) -> Supply:
    """Let a plugin bring what it offers, and say what is wrong with the rest."""
    tools, problems = offer
    noted = replace(supply, flawed=bool(problems), diagnostics=(*supply.diagnostics, *problems))
    return _with_tools(noted, tools)


def _with_tools(supply: Supply, tools: Iterable[ToolSupply]) -> Supply:
    """Let a plugin bring its tools; of two of one name the first counts."""
    first: dict[str, ToolSupply] = {}
    problems = [
        report(
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


def with_code(supply: Supply, code: ImportedCode) -> Supply:
    """Keep the handle to the imported version, and say what looks wrong with what it brought."""
    problems = [
        report(
            "plugin-meddled", Where(supply.path), f"importing it changed {what}; it was put back"
        )
        for what in code.meddled
    ]
    names = {tool.name for tool in supply.tools}
    for group in supply.groups:
        problems += [
            report(
                "plugin-group-unknown",
                Where(supply.path),
                f"group {group.name!r} lists the tool {name!r}, which the plugin does not bring",
                "correct the name, or define the tool",
            )
            for name in group.tools
            if name not in names
        ]
    return replace(supply, code=code, diagnostics=(*supply.diagnostics, *problems))


def _not_started(found: PluginFinding) -> Iterable[Diagnostic]:
    if found.servers:
        names = ", ".join(one_line(server.name) for server in found.servers)
        yield report(
            "mcp-not-started",
            Where(found.path),
            f"brings MCP servers that are known and not started yet: {shorten(names, 200)}",
        )


def manifest_groups(manifest: PluginManifest, more: tuple[Group, ...] = ()) -> tuple[Group, ...]:
    """Return a plugin's groups; its own comes first, where tools go that no other group claims.

    It has one of its own unless it declares groups and says nothing for itself. Of two of one name
    that of `more`, which its code describes, takes the place of the other.
    """
    declared = tuple(
        Group(
            group.name,
            group.description,
            group.notes,
            group.active,
            group.tools,
            group.skills,
            group.requires,
        )
        for group in manifest.groups
    )
    own = Group(manifest.name, manifest.description, manifest.notes, manifest.active)
    speaks = bool(manifest.notes) or manifest.active
    is_enough = bool(declared or more) and not speaks
    if not is_enough and all(group.name != own.name for group in declared):
        declared = (own, *declared)
    return tuple({group.name: group for group in (*declared, *more)}.values())


def _code_path(found: PluginFinding) -> str:
    """Return the file that holds a plugin's tools, or `""` if it brings none."""
    if found.manifest is None:
        return ""
    file = found.file_of(found.manifest.modules[0])
    return os.path.join(found.code_path, *file.split("/")) if file else ""


def _tool(tool: Tool, path: str, digests: Mapping[str, str]) -> ToolSupply:
    """Describe a tool as its owner offers it."""
    if not isinstance(tool.description, str):
        raise DefinitionError(f"the description of the tool {tool.name!r} must be text")
    groups = group_names(tool.group)
    schema = json.dumps(tool.to_schema(), sort_keys=True, default=str)
    version = digest_of(f"{schema}\0{digests.get(tool.name)}".encode("utf-8", "surrogatepass"))
    return ToolSupply(tool.name, tool.description, path, version, groups, tool)


def import_failed(problem: PluginCodeError, path: str) -> Diagnostic:
    """Report that code could not be imported."""
    slow = isinstance(problem, PluginTimeoutError)
    code = "plugin-import-timeout" if slow else "plugin-import-failed"
    return code_problem(code, problem, path)


def _own_name(match: re.Match[str]) -> str:
    """Return what an author calls a module: a part of the plugin, or the plugin itself."""
    return "" if match[1] else "the plugin"


def code_problem(code: str, problem: PluginCodeError, path: str) -> Diagnostic:
    """Report what foreign code raised, at the place where it did."""
    fix = "do the slow work inside a tool" if isinstance(problem, PluginTimeoutError) else ""
    return report(
        code,
        Where(problem.path or path, problem.line),
        shorten(one_line(_PRIVATE_NAME.sub(_own_name, problem.message)), 500),
        fix or "mend the code; it is tried again when it changes",
    )
