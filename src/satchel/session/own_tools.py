"""The session's own tools, such as `load_skill`: which of them a model needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

_TASK_TOOLS = ("view_task", "wait_task", "cancel_task")
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

    __slots__ = ("_made", "_make", "_names")

    def __init__(self, names: Sequence[str], make: Callable[[str], OwnTool]) -> None:
        self._names, self._make = names, make
        self._made: dict[str, OwnTool] = {}

    def __getitem__(self, name: str) -> OwnTool:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            # Two threads get the same one.
            self._made.setdefault(name, self._make(name))
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def own_tools_of(
    catalog: Catalog,
    view: View,
    options: SessionOptions,
    listing: PromptListing,
    open_work: OpenWork,
) -> OwnTools:
    """Return the own tools that a session needs."""
    names: list[str] = []
    skills = view.model_skills
    if options.meta_tool and len(catalog.groups) > 1:
        names.append("reset_equipped_tools")
    if options.skill_tools and skills:
        names.append("load_skill")
    most_files = max(map(len, map(attrgetter("files"), skills)), default=0)
    if options.skill_tools and (open_work.files or most_files > 1):
        names.append("read_skill_file")
    if options.scripts and (open_work.scripts or _has_scripts(view)):
        names.append("run_skill_script")
    # Count what can be hidden, not what is: then activating a group does not change the tools.
    hideable_tools = sum(BASIC_GROUP not in entry.groups for entry in catalog.tools.values())
    if hideable_tools and _is_enabled(options.search, hideable_tools >= _MIN_SEARCHABLE):
        names.append("search_tools")
        if options.meta_tool:
            names.append("activate_tools")
    is_grouped = bool(catalog.groups_of_skills)
    hideable_skills = sum(map(_can_be_hidden, catalog.skills.values())) if is_grouped else 0
    is_large = listing.form is not ListingForm.FULL or hideable_skills >= _MIN_SEARCHABLE
    if (hideable_skills or skills) and _is_enabled(options.search, is_large):
        names.append("search_skills")
    if open_work.tasks:
        names += _TASK_TOOLS
    return OwnTools(names, partial(_own_tool, catalog))


def _can_be_hidden(skill: SkillEntry) -> bool:
    """Return whether the model sees a skill only while one of its groups is active."""
    return bool(skill.groups) and BASIC_GROUP not in skill.groups and skill.is_for_model


def _is_enabled(option: bool | None, default: bool) -> bool:
    return default if option is None else option


def _own_tool(catalog: Catalog, name: str) -> OwnTool:
    # All lazy: a prompt needs only the names.
    match name:
        case "reset_equipped_tools":
            from satchel.session.group_tool import GroupTool

            return GroupTool(catalog)
        case "load_skill" | "read_skill_file" | "run_skill_script":
            from satchel.session.skill_tools import skill_tool

            return skill_tool(name)
        case "search_tools" | "search_skills":
            from satchel.session.search_tools import search_tool

            return search_tool(name)
        case "activate_tools":
            from satchel.session.tool_activation import activation_tool

            return activation_tool()
    from satchel.runtime.background_tasks import task_tool

    return task_tool(name)


def _has_scripts(view: View) -> bool:
    from satchel.runtime.skill_scripts import scripts_of  # lazy: needed only with scripts

    return any(
        scripts_of(file.name for file in skill.files)
        for skill in view.model_skills
        if skill.access.is_runnable
    )
