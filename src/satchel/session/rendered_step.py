"""A showing: all that a model is shown of one generation, worked out once for many sessions."""

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

_MANY = 30
"""From how many tools or skills in groups on a model is helped to search them."""


OwnTool = GroupTool | FunctionTool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RenderedStep:
    """The prompt, the notes and the tools that belong together."""

    view: View
    own_tools: Mapping[str, OwnTool]
    """The session's own tools, not yet bound to a session."""
    names: tuple[str, ...]
    """The names of all tools, in their first order."""
    skill_prompt: str
    notes: str
    sections: str
    """What plugins end the prompt with."""
    variables: tuple[str, ...]
    """The variables that notes and sections have places for."""
    sight: ViewDigest


@dataclass(frozen=True, slots=True)
class OpenWork:
    """What a conversation began, and needs tools for even when it is out of sight."""

    tasks: bool
    """Whether anything was ever begun in the background."""
    files: bool
    """Whether a skill with further files was loaded."""
    scripts: bool
    """Whether a skill with scripts was loaded."""


def render_step(scene: SharedView, conversation: SessionState, has_tasks: bool) -> RenderedStep:
    """Return what a conversation is shown of a scene; those that are alike share it."""
    options, style, loaded = conversation.options, conversation.skill_style, conversation.loaded
    begun = OpenWork(has_tasks, loaded.has_files, loaded.has_scripts)
    return scene.once((options, style, begun), lambda: _shown(scene, options, style, begun))


def schemas(
    scene: SharedView, showing: RenderedStep, dialect: str, names: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Return the schemas of the tools of those names, in that order, as a copy for the caller.

    Raises `NotFoundError` for an unknown dialect.
    """
    if dialect not in DIALECTS:
        raise NotFoundError("dialect", dialect, near_misses(dialect, DIALECTS))
    generation, by_name = scene.generation, showing.view.by_name

    def schema(name: str) -> Any:
        """Return the schema of one tool; one of the catalog wins over the session's own."""
        entry = by_name.get(name)
        if entry and entry.tool:
            return generation.schema(entry.tool, dialect)
        return showing.own_tools[name].to_schema(dialect)

    packed = generation.once(
        (showing, dialect, names), lambda: PackedValue([schema(name) for name in names])
    )
    found: list[dict[str, Any]] = packed.unpacked()
    return found


def _shown(
    scene: SharedView, options: SessionOptions, style: SkillPrompt, begun: OpenWork
) -> RenderedStep:
    listing, own = _alike(scene, options, style, begun)
    taken = scene.view.by_name
    entries = [entry.name for entry in scene.view.tools if entry.tool]
    names = (*entries, *(name for name in own if name not in taken))
    groups = ((group.name, group.notes) for group in scene.view.groups)
    sight = digest_view(scene.catalog, scene.view, own, scene.generation.traits)
    notes, sections = render_notes(groups), scene.generation.sections
    variables = variables_in(notes + sections)
    return RenderedStep(
        view=scene.view,
        own_tools=own,
        names=names,
        skill_prompt=listing.text,
        notes=notes,
        sections=sections,
        variables=variables,
        sight=sight,
    )


def _alike(
    scene: SharedView, options: SessionOptions, style: SkillPrompt, begun: OpenWork
) -> tuple[RenderedListing, Mapping[str, OwnTool]]:
    """Return what does not change with most groups: the listing, and the session's own tools."""
    view, catalog = scene.view, scene.catalog
    active = frozenset(group.name for group in view.groups)
    has_tasks = begun.tasks or any(entry.tool and entry.tool.background for entry in view.tools)
    begun = replace(begun, tasks=has_tasks)

    def made() -> tuple[RenderedListing, Mapping[str, OwnTool]]:
        listing = _listing(view, options, style)
        tools = _own_tools(catalog, view, options, listing, begun)
        return listing, {tool.name: tool for tool in tools}

    # Few groups hold skills, so most scenes list the same ones.
    key = ("alike", active & catalog.groups_of_skills, options, style, begun)
    return scene.generation.once(key, made)


def _listing(view: View, options: SessionOptions, style: SkillPrompt) -> RenderedListing:
    lines = [
        SkillLine(
            name=skill.name, description=skill.description, dir=skill.path, rank=int(skill.scope)
        )
        for skill in view.model_skills
        # What is at a server no model can read but by the session's own tools.
        if options.skill_tools or not skill.server
    ]
    searchable = options.search is not False
    return render_skills(lines, style, loader=options.skill_tools, search=searchable)


def _own_tools(
    catalog: Catalog, view: View, options: SessionOptions, listing: RenderedListing, begun: OpenWork
) -> list[OwnTool]:
    """Return the tools that are there for what a session does."""
    own: list[OwnTool | None] = []
    if options.meta_tool:
        own.append(group_tool(catalog))
    if options.skill_tools:
        own.append(loader_tool(view, is_whole=listing.left_out == 0))
        own.append(reader_tool(view, is_needed=begun.files))
    if options.scripts:
        own.append(script_tool(view, is_needed=begun.scripts))
    # By what can be out of sight, not by what is: switching a group is to change little.
    tools = sum(BASIC_GROUP not in entry.groups for entry in catalog.tools.values())
    if tools and _wanted(options.search, tools >= _MANY):
        own.append(search_tool("tool"))
    skills = sum(_can_be_hidden(entry) for entry in catalog.skills.values())
    is_much = listing.names_only or skills >= _MANY
    if (skills or view.model_skills) and _wanted(options.search, is_much):
        own.append(search_tool("skill"))
    if begun.tasks:
        own += task_tools()
    return [tool for tool in own if tool is not None]


def _can_be_hidden(skill: SkillEntry) -> bool:
    """Tell whether a skill that the model may see goes out of sight with its groups."""
    return skill.is_for_model and bool(skill.groups) and BASIC_GROUP not in skill.groups


def _wanted(choice: bool | None, needed: bool) -> bool:
    return needed if choice is None else choice
