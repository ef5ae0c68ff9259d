"""What a provider contributed, checked and converted; one bad item never affects the others."""

import os
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from functools import partial
from itertools import islice
from types import MethodType
from typing import Any, TypeVar

from satchel.catalog.catalog_entries import Group, PluginContribution, Status, ToolContribution
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.files.file_reader import StampedPath, digest_of
from satchel.formats.packed_text import pack
from satchel.lazy_dataclass import dataclass
from satchel.names import group_names, plugin_name_fault
from satchel.providers.provider import Contribution
from satchel.providers.skill import find_skill, skill_path
from satchel.settings import Limits
from satchel.sources.search_roots import Precedence, RootKind, SearchRoot, search_root
from satchel.sources.skill_findings import SkillFinding
from satchel.text import shorten
from satchel.tools import FunctionTool, Tool, as_tool
from satchel.tools.tool_bounds import bounded_definition

T = TypeVar("T")

_MOST_PACKED = 500
"""Bodies of unchanged skills that are compressed in one answer."""
SOURCE = "provider"
"""The source of the plugin entry that stands for a provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """The contribution of one provider as the loader takes it."""

    plugin: PluginContribution
    """Its tools, groups and diagnostics, under its own name."""
    skills: tuple[SkillFinding, ...] = ()
    roots: tuple[SearchRoot, ...] = ()
    """The folders of skills and plugins that it names."""
    watched: tuple[StampedPath, ...] = field(default=(), compare=False)
    """The paths that it watches, with their stamps when it was asked."""
    contribution: Contribution | None = field(default=None, compare=False, repr=False)
    """What it returned."""

    @property
    def name(self) -> str:
        """Return the name of the provider."""
        return self.plugin.name


def nothing_provided(name: str, owner: str, rank: int) -> Provided:
    """Return the state of a provider before its first answer."""
    return Provided(
        plugin=PluginContribution(
            name=name,
            source=SOURCE,
            scope=Precedence.EXPLICIT,
            path=f"{name}://",
            unit=f"{owner}/{name}",
            rank=(rank, name),
            digest="",
        )
    )


def failed(last: Provided, message: str, fix: str = "") -> Provided:
    """Return the last state of a provider, marked as broken: the last good versions stay."""
    effect = "its last contribution stays" if last.contribution else "it contributes nothing"
    problem = make_diagnostic(
        "provider-failed",
        Where(last.plugin.path),
        f"the provider {last.name!r} failed, so {effect}: {message}",
        fix or "fix it, and call refresh; it is asked again after the next change, too",
    )
    return replace(
        last,
        plugin=replace(last.plugin, state=Status.FAILED, diagnostics=(problem,)),
        skills=tuple(
            replace(skill, manifest=None, diagnostics=(problem,)) for skill in last.skills
        ),
    )


def take(contribution: Any, last: Provided, limits: Limits, number: int) -> Provided:
    """Check and convert what a provider returned; `number` differs for each answer of it.

    Raises `DefinitionError` for nonsense.
    """
    if not isinstance(contribution, Contribution):
        raise DefinitionError(
            f"contribute returned {type(contribution).__name__}",
            fix="return a satchel.Contribution",
        )
    if not isinstance(contribution.precedence, Precedence):
        raise DefinitionError("the precedence of a contribution is no Precedence")
    plugin, checked = last.plugin, _Checked(last.plugin.path, [])
    reported = _all(contribution.diagnostics, "diagnostics", limits)
    checked.diagnostics.extend([*checked.each(reported, _diagnostic)])
    skills, roots = _skills(contribution, last, limits, checked)
    groups = tuple(checked.each(_all(contribution.groups, "groups", limits), _group))
    tools = tuple(_tools(contribution, plugin, checked, limits, f"answer {number}"))
    folders = _all(contribution.plugins, "plugins", limits)
    roots += checked.each(folders, partial(_root, RootKind.PLUGINS, plugin.name, contribution))
    return Provided(
        plugin=replace(
            plugin,
            scope=contribution.precedence,
            groups=groups,
            tools=tools,
            digest=digest_of(
                "\n".join(f"{tool.name} {tool.version} {tool.state}" for tool in tools).encode()
            ),
            diagnostics=tuple(checked.diagnostics),
        ),
        skills=skills,
        roots=tuple(dict.fromkeys(roots)),
        contribution=contribution,
    )


@dataclass(frozen=True, slots=True)
class _Checked:
    """Collects the diagnostics of items that are left out."""

    path: str
    diagnostics: list[Diagnostic]

    def each(self, items: Iterable[Any], convert: Callable[[Any], T]) -> Iterable[T]:
        """Yield the converted items without the invalid ones."""
        for item in items:
            try:
                yield convert(item)
            except Exception as error:
                self.diagnostics.append(_invalid_item(error, self.path, "left out"))

    def leave_out(self, message: str) -> None:
        """Report an item that is left out."""
        self.diagnostics.append(_invalid_item(DefinitionError(message), self.path, "left out"))


def _invalid_item(error: Exception, path: str, effect: str) -> Diagnostic:
    # Only the type of other errors: their text may hold what the provider keeps secret.
    message, fix = f"an item that raises {type(error).__name__}", ""
    if isinstance(error, DefinitionError):
        message, fix = error.message, error.fix
    fix = fix or "correct it in the provider"
    return make_diagnostic("provider-item-invalid", Where(path), f"{effect}: {message}", fix)


def _skills(
    contribution: Contribution, last: Provided, limits: Limits, checked: _Checked
) -> tuple[tuple[SkillFinding, ...], list[SearchRoot]]:
    name, earlier = last.name, {finding.path: finding for finding in last.skills}
    items = _all(contribution.skills, "skills", limits)
    folders = [item for item in items if isinstance(item, str | os.PathLike)]
    roots = checked.each(folders, partial(_root, RootKind.SKILLS, name, contribution))
    findings: dict[str, SkillFinding] = {}

    still_to_pack = _MOST_PACKED

    def find(skill: Any) -> SkillFinding:
        nonlocal still_to_pack
        path = skill_path(name, str(getattr(skill, "name", "")))
        before = earlier.get(path)
        try:
            finding = find_skill(skill, name, contribution.precedence, limits, before)
        except Exception as error:
            if before is None:
                raise
            kept = f"skill {before.folder_name!r} keeps its last good version"
            problem = _invalid_item(error, path, kept)
            return replace(before, manifest=None, diagnostics=(problem,))
        if finding is before and still_to_pack and finding.manifest:
            still_to_pack -= pack(finding.manifest, "body")
        return finding

    others = (item for item in items if not isinstance(item, str | os.PathLike))
    for finding in checked.each(others, find):
        if findings.setdefault(finding.path, finding) is not finding:
            checked.leave_out(f"a second skill {finding.folder_name!r}; the first one is used")
    return tuple(findings.values()), list(roots)


def _root(kind: RootKind, source: str, contribution: Contribution, path: Any) -> SearchRoot:
    if not isinstance(path, str | os.PathLike):
        raise DefinitionError(f"{type(path).__name__} is not the path of a folder of {kind}")
    root = search_root(path, kind, contribution.precedence)
    # The user did not make its links: the folder may be a copy from anywhere.
    return replace(root, source=source, follows_links_out=False)


def _group(group: Any) -> Group:
    if not isinstance(group, Group):
        raise DefinitionError(
            f"{type(group).__name__} is not a group", fix="return a satchel.Group"
        )
    if fault := plugin_name_fault(group.name) if isinstance(group.name, str) else "is no text":
        raise DefinitionError(f"the group name {shorten(repr(group.name), 100)} {fault}")
    return group


def _tools(
    contribution: Contribution,
    plugin: PluginContribution,
    checked: _Checked,
    limits: Limits,
    version: str,
) -> Iterable[ToolContribution]:
    # Not by `==`, which an item may define; but a method is a new object each time it is read.
    earlier = {
        _identity(_source_of(item)): replace(item, state=Status.OK, diagnostics=())
        if item.state is Status.STALE
        else item
        for item in plugin.tools
    }
    last_good = {item.name: item for item in plugin.tools}
    names: set[str] = set()

    def convert(item: Any) -> ToolContribution:
        try:
            return earlier.get(_identity(item)) or _tool(item, plugin, version, limits)
        except Exception as error:
            before = last_good.get(_name_of(item))
            if before is None:
                raise
            kept = f"tool {before.name!r} keeps its last good version"
            problem = _invalid_item(error, plugin.path, kept)
            return replace(before, state=Status.STALE, diagnostics=(problem,))

    tools = list(checked.each(_all(contribution.tools, "tools", limits), convert))
    valid = {tool.name for tool in tools if tool.state is not Status.STALE}
    for tool in tools:
        if tool.state is Status.STALE and tool.name in valid:
            checked.leave_out(f"an invalid tool {tool.name!r}; a valid one has this name")
        elif tool.name in names:
            checked.leave_out(f"a second tool {tool.name!r}; the first one is used")
        else:
            names.add(tool.name)
            yield tool


def _tool(item: Any, plugin: PluginContribution, version: str, limits: Limits) -> ToolContribution:
    tool = as_tool(item) if isinstance(item, Tool) else FunctionTool(item)
    bounded_definition(tool, limits)
    return ToolContribution(
        name=tool.name,
        description=tool.description,
        path=plugin.path,
        # A new object is a new version: its code may have changed.
        version=version,
        groups=group_names(tool.group),
        tool=tool,
    )


def _source_of(contribution: ToolContribution) -> Any:
    """Return the object that a provider returned for a tool: the tool or its function."""
    tool = contribution.tool
    return tool.fn if isinstance(tool, FunctionTool) else tool


def _name_of(item: Any) -> str:
    """Return the name of an invalid tool, or of its function."""
    return str(getattr(item, "name", None) or getattr(item, "__name__", ""))


def _identity(item: Any) -> tuple[int, ...]:
    if isinstance(item, MethodType):
        return id(item.__self__), id(item.__func__)
    return (id(item),)


def _diagnostic(item: Any) -> Diagnostic:
    if not isinstance(item, Diagnostic):
        raise DefinitionError(
            f"{type(item).__name__} is not a diagnostic", fix="return a satchel.Diagnostic"
        )
    return item


def _all(items: Any, kind: str, limits: Limits) -> list[Any]:
    """Return the items of one field. Raises `DefinitionError` for too many, or for no list."""
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise DefinitionError(f"{kind} of a contribution is {type(items).__name__}, not a list")
    collected = list(islice(items, limits.find_folders + 1))
    if len(collected) > limits.find_folders:
        most = f"{limits.find_folders:,} (limit find_folders)"
        raise DefinitionError(f"a contribution has more {kind} than {most}")
    return collected
