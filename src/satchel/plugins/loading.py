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
from satchel.plugins.host import Answers, ask, joined
from satchel.plugins.life import fingerprint
from satchel.settings import Limits
from satchel.sources import (
    MANIFEST_FILE,
    Configuration,
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

_HOOK = b"hookimpl"

Offer = tuple[list[ToolSupply], list[Diagnostic]]
"""The tools that can be used, and why the others cannot."""

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
        diagnostics=(*supply.diagnostics, *_not_started(found), *_not_isolated(found)),
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
            if not is_isolated(found)
        ],
    )


def load_folder(found: PluginFinding, rank: Rank, limits: Limits, *, alone: bool = True) -> Supply:
    """Import a plugin folder's code and tell what it brings; whatever it does is a diagnostic."""
    supply = read_folder(found, rank)
    file = _code_path(found)
    if supply.failed or supply.flawed or not file or is_isolated(found):
        return supply
    try:
        first, *more = found.modules
        code = import_folder(
            found.code_path, found.sources, first, limits.plugin_import, more=more, alone=alone
        )
    except PluginCodeError as problem:
        return failed_supply(supply, import_failed(problem, file))
    # Reading costs nothing, and most folders have no hooks.
    has_hooks = any(_HOOK in source for source in found.sources.values())

    def answered() -> Supply:
        offer = offered_by_part(found, code.modules)
        if not has_hooks:
            return with_offered(supply, offer)
        answers = ask(*code.modules.values())
        return with_answers(supply, found.manifest, offer, answers, limits)

    try:
        served, _ = guarded(answered, limits.hook, "hook", alone=alone)
    except PluginCodeError as problem:
        code.purge()
        trouble = "plugin-hook-failed" if has_hooks else "plugin-tool-invalid"
        return failed_supply(supply, code_problem(trouble, problem, file))
    return with_code(served, code)


def with_answers(
    supply: Supply,
    manifest: PluginManifest | None,
    offer: Offer,
    answers: Answers,
    limits: Limits,
) -> Supply:
    """Add what hooks answered to what the manifest declares; it runs foreign code.

    A tool that both offer counts once, as the manifest offers it.
    """
    tools, problems = offer
    more, more_problems = offered(_others(answers.tools, tools), supply.path, {})
    new = [tool for tool in more if not any(_is_same(tool, known) for known in tools)]
    described = (Group(supply.name, supply.description),)
    groups = manifest_groups(manifest, answers.groups) if manifest else answers.groups or described
    supply = joined(replace(supply, groups=groups), answers, limits)
    return with_offered(supply, ([*tools, *new], [*problems, *more_problems]))


def _others(things: Iterable[Any], tools: Iterable[ToolSupply]) -> list[Any]:
    """Return the things of which no tool was made yet."""
    made = [tool.tool for tool in tools]
    known = {id(item) for item in made}
    known |= {id(item.fn) for item in made if isinstance(item, FunctionTool)}
    return [thing for thing in things if id(thing) not in known]


def _is_same(one: ToolSupply, other: ToolSupply) -> bool:
    """Tell whether two tools are one function under one name."""
    mine, its = one.tool, other.tool
    if one.name != other.name or not isinstance(mine, FunctionTool):
        return False
    return isinstance(its, FunctionTool) and mine.fn is its.fn


def started(supply: Supply, config: Configuration, *, alone: bool = True) -> Supply:
    """Run the startup of a version that was just imported; one that fails is not served.

    Without a value that it requires it is not started: then it has no tools, and the rest serves.
    """
    life = supply.life
    if life is None or supply.failed:
        return supply
    supply = replace(supply, started_with=fingerprint(config.values) if life.has_startup else "")
    if life.has_startup and config.missing:
        problem = _not_ready(config)
        bare = replace(supply, tools=(), layers=(), commands=(), life=None, flawed=True)
        return replace(bare, diagnostics=(*supply.diagnostics, problem))
    try:
        meddled = life.begin(config.values, alone=alone)
    except PluginCodeError as problem:
        supply.code.purge()
        return failed_supply(supply, code_problem("plugin-startup-failed", problem, supply.path))
    supply.code.at_end(life.end)
    return replace(supply, diagnostics=(*supply.diagnostics, *_meddled(supply, meddled)))


def failed_supply(supply: Supply, problem: Diagnostic) -> Supply:
    """Take the tools from a plugin, and all else from one that is not made of parts."""
    told = replace(supply, tools=(), diagnostics=(*supply.diagnostics, problem))
    return replace(told, flawed=True) if supply.is_open else replace(told, failed=True)


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
    problems = list(_meddled(supply, code.meddled))
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


def _not_ready(config: Configuration) -> Diagnostic:
    key = config.missing[0].name
    return report(
        "plugin-startup-failed",
        Where(config.path),
        f"it is not started, and its tools are left out: {key!r} has no value",
        config.how_to_set(key),
    )


def _meddled(supply: Supply, changed: Iterable[str]) -> Iterable[Diagnostic]:
    for what in changed:
        message = f"importing it changed {what}; it was put back"
        yield report("plugin-meddled", Where(supply.path), message)


def _not_started(found: PluginFinding) -> Iterable[Diagnostic]:
    if found.servers:
        names = ", ".join(one_line(server.name) for server in found.servers)
        yield report(
            "mcp-not-started",
            Where(found.path),
            f"brings MCP servers that are known and not started yet: {shorten(names, 200)}",
        )


def is_isolated(found: PluginFinding | None) -> bool:
    """Tell whether a plugin must not run in the process of the host."""
    return (
        found is not None and found.manifest is not None and found.manifest.isolation == "process"
    )


def _not_isolated(found: PluginFinding) -> Iterable[Diagnostic]:
    """Leave the tools out rather than run what asks for a process of its own in this one."""
    if is_isolated(found):
        yield report(
            "plugin-not-isolated",
            Where(os.path.join(found.code_path, MANIFEST_FILE)),
            "says 'isolation: process', and nothing runs plugins that way yet; its tools are "
            "left out",
            "remove the line if its code may run in the process of the host",
        )


def manifest_groups(manifest: PluginManifest, more: tuple[Group, ...] = ()) -> tuple[Group, ...]:
    """Return a plugin's groups; its own comes first, where tools go that no other group claims.

    It has one of its own unless groups are described and it says nothing for itself. Of two of one
    name the manifest's counts, and not that of `more`, which its code describes.
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
    known = {group.name for group in declared}
    return (*declared, *(group for group in more if group.name not in known))


def _code_path(found: PluginFinding) -> str:
    """Return the file that holds a plugin's tools, or `""` if it brings none."""
    if found.manifest is None:
        return ""
    file = found.file_of(found.modules[0])
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
