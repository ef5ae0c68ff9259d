"""All that a model sees of one catalog, rendered once for many sessions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from satchel.catalog import Catalog, SkillEntry
from satchel.contracts import variables_in
from satchel.errors import NotFoundError
from satchel.groups import View, ViewDigest, digest_view
from satchel.names import BASIC_GROUP, near_misses
from satchel.prompt import RenderedListing, SkillLine, SkillPrompt, render_notes, render_skills
from satchel.runtime import task_tools
from satchel.session.group_tool import GroupTool, group_tool
from satchel.session.search_tools import search_tool
from satchel.session.session_options import SessionOptions
from satchel.session.session_state import SessionState
from satchel.session.skill_tools import loader_tool, reader_tool, script_tool
from satchel.shared import PackedValue, SharedView
from satchel.tools import FunctionTool
from satchel.tools.dialects import DIALECTS

_MIN_SEARCHABLE = 30
"""The number of tools or skills in groups from which on the model can search them."""

OwnTool = GroupTool | FunctionTool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RenderedStep:
    """The prompt, the notes and the tools of one view."""

    view: View
    own_tools: Mapping[str, OwnTool]
    """The session's own tools, without their context."""
    names: tuple[str, ...]
    """The names of all tools, in the order of the catalog."""
    skill_prompt: str
    notes: str
    sections: str
    """The text that plugins add to the end of the prompt."""
    variables: tuple[str, ...]
    """The prompt variables in notes and sections."""
    digest: ViewDigest


@dataclass(frozen=True, slots=True)
class OpenWork:
    """What a session began: it needs the tools for that, even if they are otherwise hidden."""

    tasks: bool
    """Whether a background task was ever started."""
    files: bool
    """Whether a skill with other files was loaded."""
    scripts: bool
    """Whether a skill with scripts was loaded."""


def render_step(
    shared_view: SharedView, conversation: SessionState, has_tasks: bool
) -> RenderedStep:
    """Return what the model of a session sees; sessions with equal options share it."""
    options, style, loaded = conversation.options, conversation.skill_style, conversation.loaded
    open_work = OpenWork(has_tasks, loaded.has_files, loaded.has_scripts)
    return shared_view.get_or_make(
        (options, style, open_work), lambda: _render(shared_view, options, style, open_work)
    )


def schemas(
    shared_view: SharedView, rendered: RenderedStep, dialect: str, names: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Return a copy of the schemas of the tools with these names, in this order.

    Raises `NotFoundError` for an unknown dialect.
    """
    if dialect not in DIALECTS:
        raise NotFoundError("dialect", dialect, near_misses(dialect, DIALECTS))
    cache, by_name = shared_view.cache, rendered.view.by_name

    def schema(name: str) -> Any:
        # A tool of the catalog takes precedence over the session's own.
        entry = by_name.get(name)
        if entry and entry.tool:
            return cache.schema(entry.tool, dialect)
        return rendered.own_tools[name].to_schema(dialect)

    packed = cache.get_or_make(
        (rendered, dialect, names), lambda: PackedValue([schema(name) for name in names])
    )
    unpacked: list[dict[str, Any]] = packed.unpacked()
    return unpacked


def _render(
    shared_view: SharedView, options: SessionOptions, style: SkillPrompt, open_work: OpenWork
) -> RenderedStep:
    view, cache = shared_view.view, shared_view.cache
    listing, own_tools = _listing_and_tools(shared_view, options, style, open_work)
    names = [entry.name for entry in view.tools if entry.tool]
    names += [name for name in own_tools if name not in view.by_name]
    notes = render_notes((group.name, group.notes) for group in view.groups)
    return RenderedStep(
        view=view,
        own_tools=own_tools,
        names=tuple(names),
        skill_prompt=listing.text,
        notes=notes,
        sections=cache.sections,
        variables=variables_in(notes + cache.sections),
        digest=digest_view(shared_view.catalog, view, own_tools, cache.digest),
    )


def _listing_and_tools(
    shared_view: SharedView, options: SessionOptions, style: SkillPrompt, open_work: OpenWork
) -> tuple[RenderedListing, Mapping[str, OwnTool]]:
    """Return the skill listing and the session's own tools: most groups do not change them."""
    view, catalog = shared_view.view, shared_view.catalog
    active = frozenset(group.name for group in view.groups)
    has_tasks = open_work.tasks or any(entry.tool and entry.tool.background for entry in view.tools)
    open_work = replace(open_work, tasks=has_tasks)

    def render() -> tuple[RenderedListing, Mapping[str, OwnTool]]:
        listing = _listing(view, options, style)
        tools = _own_tools(catalog, view, options, listing, open_work)
        return listing, {tool.name: tool for tool in tools}

    # Few groups have skills, so most views list the same ones.
    key = ("listing", active & catalog.groups_of_skills, options, style, open_work)
    return shared_view.cache.get_or_make(key, render)


def _listing(view: View, options: SessionOptions, style: SkillPrompt) -> RenderedListing:
    lines = [
        SkillLine(
            name=skill.name,
            description=skill.description,
            dir=skill.path if skill.access.has_folder else "",
            rank=int(skill.scope),
        )
        for skill in view.model_skills
        # A model can read a skill without a folder only by the session's own tools.
        if options.skill_tools or skill.access.has_folder
    ]
    searchable = options.search is not False
    return render_skills(lines, style, loader=options.skill_tools, search=searchable)


def _own_tools(
    catalog: Catalog,
    view: View,
    options: SessionOptions,
    listing: RenderedListing,
    open_work: OpenWork,
) -> list[OwnTool]:
    """Return the session's own tools, such as `load_skill`."""
    tools: list[OwnTool | None] = []
    if options.meta_tool:
        tools.append(group_tool(catalog))
    if options.skill_tools:
        tools.append(loader_tool(view, is_complete=listing.left_out == 0))
        tools.append(reader_tool(view, is_needed=open_work.files))
    if options.scripts:
        tools.append(script_tool(view, is_needed=open_work.scripts))
    # Count what can be hidden, not what is: then activating a group does not change the tools.
    hideable_tools = sum(BASIC_GROUP not in entry.groups for entry in catalog.tools.values())
    if hideable_tools and _is_enabled(options.search, hideable_tools >= _MIN_SEARCHABLE):
        tools.append(search_tool("tool"))
    hideable_skills = sum(_can_be_hidden(entry) for entry in catalog.skills.values())
    is_large = listing.names_only or hideable_skills >= _MIN_SEARCHABLE
    if (hideable_skills or view.model_skills) and _is_enabled(options.search, is_large):
        tools.append(search_tool("skill"))
    if open_work.tasks:
        tools += task_tools()
    return [tool for tool in tools if tool is not None]


def _can_be_hidden(skill: SkillEntry) -> bool:
    """Return whether the model sees a skill only while one of its groups is active."""
    return bool(skill.groups) and BASIC_GROUP not in skill.groups and skill.is_for_model


def _is_enabled(option: bool | None, default: bool) -> bool:
    return default if option is None else option
