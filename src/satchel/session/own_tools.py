"""The session's own tools, such as `load_skill`: which of them a model needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from satchel.lazy_dataclass import dataclass
from satchel.names import BASIC_GROUP
from satchel.prompt.listing_words import ListingForm

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import SkillEntry
    from satchel.groups.group_activation import View
    from satchel.prompt.skill_listing import PromptListing
    from satchel.session.group_tool import GroupTool
    from satchel.session.session_options import SessionOptions
    from satchel.tools import FunctionTool

    OwnTool = GroupTool | FunctionTool

_MIN_SEARCHABLE = 30
"""The number of tools or skills in groups from which on the model can search them."""


@dataclass(frozen=True, slots=True)
class OpenWork:
    """What a session began: it needs the tools for that, even if they are otherwise hidden."""

    tasks: bool
    """Whether a background task was ever started."""
    files: bool
    """Whether a skill with other files was loaded."""
    scripts: bool
    """Whether a skill with scripts was loaded."""


class OwnTools(Mapping[str, "OwnTool"]):
    """The own tools by name. Each is made when it is first used: a prompt needs only the names."""

    __slots__ = ("_made", "_makers")

    def __init__(self, makers: Mapping[str, Callable[[], OwnTool]]) -> None:
        self._makers = makers
        self._made: dict[str, OwnTool] = {}

    def __getitem__(self, name: str) -> OwnTool:
        if name not in self._made:
            # Two threads get the same one.
            self._made.setdefault(name, self._makers[name]())
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def own_tool_makers(
    catalog: Catalog,
    view: View,
    options: SessionOptions,
    listing: PromptListing,
    open_work: OpenWork,
) -> dict[str, Callable[[], OwnTool]]:
    """Return what makes each of the session's own tools, by its name."""
    makers: dict[str, Callable[[], OwnTool]] = {}
    skills = view.model_skills
    if options.meta_tool and len(catalog.groups) > 1:
        makers["reset_equipped_tools"] = lambda: _group_tool(catalog)
    if options.skill_tools and skills:
        makers["load_skill"] = _loader_tool
    most_files = max(map(len, map(attrgetter("files"), skills)), default=0)
    if options.skill_tools and (open_work.files or most_files > 1):
        makers["read_skill_file"] = _reader_tool
    if options.scripts and (open_work.scripts or _has_scripts(view)):
        makers["run_skill_script"] = _script_tool
    # Count what can be hidden, not what is: then activating a group does not change the tools.
    hideable_tools = sum(BASIC_GROUP not in entry.groups for entry in catalog.tools.values())
    if hideable_tools and _is_enabled(options.search, hideable_tools >= _MIN_SEARCHABLE):
        makers["search_tools"] = lambda: _search_tool("tool")
        if options.meta_tool:
            makers["activate_tools"] = _activation_tool
    is_grouped = bool(catalog.groups_of_skills)
    hideable_skills = sum(map(_can_be_hidden, catalog.skills.values())) if is_grouped else 0
    is_large = listing.form is not ListingForm.FULL or hideable_skills >= _MIN_SEARCHABLE
    if (hideable_skills or skills) and _is_enabled(options.search, is_large):
        makers["search_skills"] = lambda: _search_tool("skill")
    if open_work.tasks:
        makers |= _task_tools()
    return makers


def _can_be_hidden(skill: SkillEntry) -> bool:
    """Return whether the model sees a skill only while one of its groups is active."""
    return bool(skill.groups) and BASIC_GROUP not in skill.groups and skill.is_for_model


def _is_enabled(option: bool | None, default: bool) -> bool:
    return default if option is None else option


# ---- each tool, with the modules that it needs ---------------------------------------------------


def _group_tool(catalog: Catalog) -> GroupTool:
    from satchel.session.group_tool import GroupTool  # lazy: a prompt needs only the name

    return GroupTool(catalog)


def _loader_tool() -> FunctionTool:
    from satchel.session.skill_tools import loader_tool  # lazy: a prompt needs only the name

    return loader_tool()


def _reader_tool() -> FunctionTool:
    from satchel.session.skill_tools import reader_tool  # lazy: a prompt needs only the name

    return reader_tool()


def _script_tool() -> FunctionTool:
    from satchel.session.skill_tools import script_tool  # lazy: a prompt needs only the name

    return script_tool()


def _search_tool(kind: str) -> FunctionTool:
    from satchel.session.search_tools import search_tool  # lazy: a prompt needs only the name

    return search_tool(kind)


def _activation_tool() -> FunctionTool:
    from satchel.session.tool_activation import activation_tool  # lazy: a prompt needs the name

    return activation_tool()


def _task_tools() -> dict[str, Callable[[], OwnTool]]:
    from satchel.runtime.background_tasks import task_tools  # lazy: needed only with tasks

    return {tool.name: partial(_same, tool) for tool in task_tools()}


def _same(tool: FunctionTool) -> FunctionTool:
    return tool


def _has_scripts(view: View) -> bool:
    from satchel.runtime.skill_scripts import scripts_of  # lazy: needed only with scripts

    return any(
        scripts_of(file.name for file in skill.files)
        for skill in view.model_skills
        if skill.access.is_runnable
    )
