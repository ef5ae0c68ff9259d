"""The state of one session, and what both the host and the model can do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import ref

from satchel.catalog.catalog_entries import Status
from satchel.contracts.variable_places import fill_variables, variables_in
from satchel.errors import ConflictError, NotFoundError
from satchel.formats.skill_arguments import with_arguments
from satchel.groups.group_activation import Activation
from satchel.lazy_dataclass import dataclass
from satchel.names import BASIC_GROUP
from satchel.prompt.group_notes import render_notes
from satchel.prompt.skill_content import render_content
from satchel.session.loaded_skills import LoadedSkill, LoadedSkills
from satchel.sources.skill_findings import SKILL_FILE
from satchel.text import one_line, shorten, visible

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import GroupEntry, SkillEntry, ToolEntry
    from satchel.contracts.plan import PlanPolicy
    from satchel.formats.skill_manifest import SkillManifest
    from satchel.prompt.skill_prompt import SkillPrompt
    from satchel.session.session_options import SessionOptions
    from satchel.shared import SharedState, SharedView

_FEW = 5
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillContent:
    """A loaded skill: the text for the model, and what loading changed."""

    name: str
    text: str
    files: tuple[str, ...]
    """The other files of the skill, which the model may read."""
    activated: tuple[str, ...]
    """The tool groups that loading it activated."""
    allowed_tools: tuple[str, ...]
    """The tools that the skill asks to approve in advance; a host may ignore it."""


class SessionState:
    """Activation, loaded skills, options and tool state of one session."""

    __slots__ = (
        "_last_view",
        "activation",
        "loaded",
        "options",
        "plan_policy",
        "shared",
        "skill_style",
        "state",
    )

    def __init__(self, shared: SharedState, options: SessionOptions) -> None:
        self.shared, self.options = shared, options
        self.plan_policy: PlanPolicy | None = None
        self.skill_style: SkillPrompt = shared.skill_style
        self.activation = Activation(defers=options.defer_loading)
        self.loaded = LoadedSkills()
        self.state: dict[str, Any] = {}
        self._last_view: tuple[Activation, ref[SharedView]] | None = None

    def shared_view(self) -> SharedView:
        """Return the view of the newest catalog."""
        activation, last = self.activation, self._last_view
        if last is not None and last[0] is activation:
            view = last[1]()
            if view is not None and view.cache is self.shared.newest:
                return view
        view = self.shared.shared_view(activation, self.options.entries)
        self._last_view = activation, ref(view)  # a session keeps no catalog alive
        return view

    def switch(
        self, groups: Iterable[str], change: Callable[[Activation, str], Activation]
    ) -> None:
        """Activate or deactivate groups, all or none."""
        catalog, activation = self.shared.catalog, self.activation
        for name in groups:
            group = catalog.group(name)
            activation = change(activation, group.name)
            if group.name in activation.on:
                _require_usable(group)
        self.activation = activation

    def switch_tools(self, names: Iterable[str], *, is_on: bool) -> None:
        """Activate or deactivate single tools, all or none.

        Raises `NotFoundError`, and `ConflictError` for a tool that cannot be used.
        """
        tools = self.activation.tools
        if is_on:
            tools |= {require_usable_tool(name, self.shared.catalog).name for name in names}
        else:
            tools -= {self.shared.catalog.tool(name).name for name in names}
        self.activation = replace(self.activation, tools=tools)

    def values_of(self, names: Iterable[str], catalog: Catalog) -> dict[str, str]:
        """Return the current values of prompt variables."""
        names = tuple(names)
        if not names:
            return {}
        from satchel.contracts.prompt_variables import values_of  # lazy: needed only with contracts

        keys = catalog.contracts.prompt_variables
        # A character takes four bytes at most.
        return values_of(names, keys, self.state, self.shared.limits.result_text // 4)

    def notes_in_answer(self, groups: Iterable[GroupEntry], catalog: Catalog) -> str:
        """Return the notes of groups, if the options put notes into answers."""
        if not self.options.notes_in_answer:
            return ""
        notes = render_notes((group.name, group.notes) for group in groups)
        return fill_variables(notes, self.values_of(variables_in(notes), catalog))

    def active_in(self, catalog: Catalog) -> tuple[GroupEntry, ...]:
        """Return the active groups without `basic`."""
        groups = catalog.groups.values()
        return tuple(g for g in groups if self.activation.is_active(g) and g.name != BASIC_GROUP)

    def load(
        self,
        entry: SkillEntry,
        catalog: Catalog,
        name: str,
        *,
        for_model: bool = False,
        arguments: str | None = None,
    ) -> SkillContent:
        """Load a skill under a name, activate its groups, and return its content.

        `for_model` limits the text to one answer; the model reads the rest by `read_skill_file`.
        `arguments` replace the placeholders in the text; `None` leaves it as it is.

        Raises `NotFoundError` for a skill that could never be read, and `ConflictError` for a
        disabled one.
        """
        manifest = require_usable_skill(entry)
        skill = LoadedSkill.of(name, entry, manifest, self.shared.limits)
        self.loaded.add(skill)
        activated, remarks = self._activate(manifest.groups, catalog)
        notes = self._notes_of(activated, catalog)
        body = visible(
            manifest.body if arguments is None else with_arguments(manifest.body, arguments)
        )
        if self.options.allowed_tools == "enforce" and manifest.is_restricting:
            from satchel.session.skill_permissions import allowed_remark  # lazy: few enforce

            remarks = [*remarks, allowed_remark(manifest.allowed_tools)]
        shows_path = skill.access.has_folder or skill.access.origin

        def render(body: str, *hint: str) -> str:
            content = render_content(
                name,
                body,
                entry.path if shows_path else "",
                skill.resources,
                remarks=[*hint, *remarks],
                has_reader=self.options.skill_tools and bool(skill.resources),
                origin=skill.access.origin,
            )
            return "\n\n".join(filter(None, (content, notes)))

        text = render(body)
        maximum = self.shared.limits.result_text // 4  # a character takes four bytes at most
        if for_model and len(text) > maximum:
            length = max(maximum - len(render("", _how_to_continue(len(body), len(body)))), 0)
            text = render(body[:length], _how_to_continue(len(body) - length, length))
        return SkillContent(
            name=name,
            text=text,
            files=tuple(skill.resources),
            activated=activated,
            allowed_tools=manifest.allowed_tools,
        )

    @property
    def preapproved(self) -> tuple[str, ...]:
        """Return the tools that the loaded skills ask to approve in advance, each once."""
        if not self.loaded:
            return ()
        tools: dict[str, None] = {}
        for skill in self.loaded:
            entry = self.entry_of(skill) if skill.allowed_tools else None
            if entry is not None and entry.manifest is not None:
                # The skill must still ask for it.
                current = entry.manifest.allowed_tools
                tools |= dict.fromkeys(tool for tool in skill.allowed_tools if tool in current)
        return tuple(tools)

    def entry_of(self, skill: LoadedSkill) -> SkillEntry | None:
        """Return the current entry of a loaded skill; `None` if it was removed or disabled."""
        view = self.shared_view()
        entry = view.catalog.skills_by_folder.get(skill.folder)
        if entry is None or skill.name not in {entry.name, *entry.addresses}:
            return None
        return entry

    def activate_for(self, entry: SkillEntry, catalog: Catalog) -> str:
        """Activate the groups that a skill names; return remarks and notes for the model."""
        names = entry.manifest.groups if entry.manifest else ()
        activated, remarks = self._activate(names, catalog)
        notes = self._notes_of(activated, catalog)
        return "\n\n".join(filter(None, (*map(one_line, remarks), notes)))

    def _notes_of(self, groups: tuple[str, ...], catalog: Catalog) -> str:
        return self.notes_in_answer((catalog.groups[name] for name in groups), catalog)

    def _activate(
        self, names: Iterable[str], catalog: Catalog
    ) -> tuple[tuple[str, ...], list[str]]:
        """Activate the named groups and the groups of named tools; return new ones and remarks."""
        before = {BASIC_GROUP, *(group.name for group in self.active_in(catalog))}
        remarks: list[str] = []
        activated: dict[str, None] = {}
        unknown: list[str] = []
        for name in names:
            group = self._group_of(name, catalog)
            if group is None:
                unknown.append(repr(shorten(name, _LONGEST_NAME)))
            elif not group.is_available:
                reason = unavailable_reason(group)
                remarks.append(f"Tool group {group.name!r} is unavailable: {reason}.")
            elif group.name not in before:
                activated[group.name] = None
        if unknown:
            rest = f" and {len(unknown) - _FEW} more" if len(unknown) > _FEW else ""
            remarks.append(
                "The skill names tool groups or tools that do not exist here: "
                f"{', '.join(unknown[:_FEW])}{rest}."
            )
        for name in activated:
            self.activation = self.activation.activate(name)
        if activated:
            remarks.append(f"Now active: {join_group_names(activated)}.")
        return tuple(activated), remarks

    def _group_of(self, name: str, catalog: Catalog) -> GroupEntry | None:
        """Return the group with a name, or a group of the tool with that name, active ones first.

        Returns `None` if there is neither.
        """
        if name in catalog.groups:
            return catalog.groups[name]
        tool = catalog.tools.get(name)
        if tool is None:
            return None
        groups = [catalog.groups[group] for group in tool.groups if group in catalog.groups]
        groups.sort(key=lambda g: (not self.activation.is_active(g), not g.is_available))
        return groups[0] if groups else None


def is_disabled(entry: SkillEntry) -> bool:
    """Return whether a skill exists but is disabled or held."""
    return entry.state in {Status.DISABLED, Status.HELD}


def require_usable_skill(entry: SkillEntry) -> SkillManifest:
    """Return the manifest of a skill.

    Raises `NotFoundError` for a skill that could never be read, and `ConflictError` for a
    disabled one.
    """
    if is_disabled(entry):
        fix = "; ".join(problem.fix for problem in entry.diagnostics)
        raise ConflictError(f"skill {entry.name!r} is {entry.state}", fix=fix)
    if entry.manifest is None:
        raise NotFoundError("skill", entry.name)
    return entry.manifest


def _how_to_continue(rest: int, offset: int) -> str:
    return (
        f"The instructions have {rest} more characters. To continue, call read_skill_file with "
        f"path {SKILL_FILE!r} and offset={offset}."
    )


def require_usable_tool(name: str, catalog: Catalog) -> ToolEntry:
    """Return the tool with a name.

    Raises `NotFoundError`, and `ConflictError` for a tool that cannot be used.
    """
    entry = catalog.tool(name)
    if entry.tool is None:
        raise ConflictError(f"tool {name!r} is {entry.state}", fix="run: satchel doctor --run")
    groups = [catalog.groups[group] for group in entry.groups if group in catalog.groups]
    if groups and not any(group.is_available for group in groups):
        raise ConflictError(
            f"tool {name!r} is unavailable: {unavailable_reason(groups[0])}",
            fix="see the diagnostic 'group-unavailable' for where to configure it",
        )
    return entry


def find_skill(name: str, shared_view: SharedView) -> tuple[SkillEntry, str]:
    """Return the skill with a name or address, and its unique name.

    If two skills have the name, the visible one is returned. Raises `NotFoundError`.
    """
    for entry in shared_view.view.skills:
        if entry.name == name:
            return entry, name
    entry = shared_view.catalog.skill(name)
    # Only the address of a shadowed skill is unique.
    return entry, entry.name if entry.is_served else entry.address


def join_group_names(groups: Iterable[str]) -> str:
    """Return the names of tool groups as text, such as `tool groups 'a', 'b'`."""
    names = list(groups)
    return f"tool group{'s' if len(names) > 1 else ''} " + ", ".join(map(repr, names))


def unavailable_reason(group: GroupEntry) -> str:
    """Return which configuration a group lacks, as a clause."""
    return f"it requires {', '.join(group.missing)} to be configured"


def _require_usable(group: GroupEntry) -> None:
    """Raise `ConflictError` for a group that is unavailable or disabled."""
    if not group.is_available:
        raise ConflictError(
            f"group {group.name!r} is unavailable: {unavailable_reason(group)}",
            fix="see the diagnostic 'group-unavailable' for where to configure it",
        )
    if not group.is_served:
        fix = "; ".join(problem.fix for problem in group.diagnostics)
        raise ConflictError(f"group {group.name!r} is {group.state}", fix=fix)
