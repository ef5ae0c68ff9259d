"""What one conversation remembers, and what can be done to it by the host and the model alike."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from satchel.catalog import Catalog, GroupEntry, SkillEntry, Status
from satchel.contracts import PlanPolicy, fill_variables, values_of, variables_in
from satchel.errors import ConflictError, NotFoundError
from satchel.formats import SkillManifest
from satchel.groups import Activation
from satchel.names import BASIC_GROUP
from satchel.prompt import SkillPrompt, render_content, render_notes
from satchel.session.loaded_skills import LoadedSkill, LoadedSkills
from satchel.session.session_options import SessionOptions
from satchel.shared import SharedState, SharedView
from satchel.sources.skill_scan import SKILL_FILE
from satchel.text import one_line, shorten, visible

_FEW = 5
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillContent:
    """A skill that was loaded: what the model is to read."""

    name: str
    text: str
    files: tuple[str, ...]
    """The files beside the instructions, which can be read from now on."""
    activated: tuple[str, ...]
    """The tool groups that loading it switched on."""
    allowed_tools: tuple[str, ...]
    """What the skill asks to be approved beforehand; a host need not heed it."""


class SessionState:
    """One conversation's memory."""

    __slots__ = (
        "activation",
        "loaded",
        "options",
        "plan_policy",
        "shared",
        "skill_style",
        "state",
    )

    def __init__(
        self, shared: SharedState, options: SessionOptions, plan_policy: PlanPolicy | None = None
    ) -> None:
        self.shared, self.options = shared, options
        self.plan_policy = plan_policy
        self.skill_style: SkillPrompt = shared.skill_style
        self.activation = Activation()
        self.loaded = LoadedSkills()
        self.state: dict[str, Any] = {}

    def switch(self, groups: Iterable[str], step: Callable[[Activation, str], Activation]) -> None:
        """Switch groups on or off, all or none."""
        catalog, activation = self.shared.catalog, self.activation
        for name in groups:
            group = catalog.group(name)
            activation = step(activation, group.name)
            if group.name in activation.on:
                _require_usable(group)
        self.activation = activation

    def values_of(self, names: Iterable[str], catalog: Catalog) -> dict[str, str]:
        """Return what stands for prompt variables now."""
        keys = catalog.contracts.prompt_variables
        # A letter takes four bytes at most.
        return values_of(names, keys, self.state, self.shared.limits.result_text // 4)

    def notes_in_answer(self, groups: Iterable[GroupEntry], catalog: Catalog) -> str:
        """Return the notes of groups that were just switched on, if they go into answers."""
        if not self.options.notes_in_answer:
            return ""
        notes = render_notes((group.name, group.notes) for group in groups)
        return fill_variables(notes, self.values_of(variables_in(notes), catalog))

    def active_in(self, catalog: Catalog) -> tuple[GroupEntry, ...]:
        """Return the groups that are active now, but for `basic`."""
        groups = catalog.groups.values()
        return tuple(g for g in groups if self.activation.covers(g) and g.name != BASIC_GROUP)

    def load(
        self, entry: SkillEntry, catalog: Catalog, name: str, *, for_model: bool = False
    ) -> SkillContent:
        """Note that a skill was loaded by a name, switch its groups on, and return what to read.

        One of a remote server comes with what was fetched of it.

        What is `for_model` is an answer, and so has its limit: the rest is read page by page.

        Raises `NotFoundError` for one that never could be read, and `ConflictError` for one that
        the user switched off.
        """
        manifest = require_usable_skill(entry)
        skill = LoadedSkill.of(name, entry, manifest, self.shared.limits)
        self.loaded.add(skill)
        activated, remarks = self._switched_on(manifest.groups, catalog)
        notes = self._notes_of(activated, catalog)
        body = visible(manifest.body)

        def text(body: str, *more: str) -> str:
            content = render_content(
                name,
                body,
                entry.path,
                skill.resources,
                remarks=[*more, *remarks],
                has_reader=self.options.skill_tools and bool(skill.resources),
                server=skill.server,
            )
            return "\n\n".join(filter(None, (content, notes)))

        whole = text(body)
        room = self.shared.limits.result_text // 4  # a letter takes four bytes at most
        if for_model and len(whole) > room:
            length = max(room - len(text("", _how_to_go_on(len(body), len(body)))), 0)
            whole = text(body[:length], _how_to_go_on(len(body) - length, length))
        return SkillContent(
            name=name,
            text=whole,
            files=tuple(skill.resources),
            activated=activated,
            allowed_tools=manifest.allowed_tools,
        )

    @property
    def preapproved(self) -> tuple[str, ...]:
        """Return what the loaded skills ask to be approved beforehand, each once."""
        asked: dict[str, None] = {}
        for skill in self.loaded:
            entry = self.entry_of(skill) if skill.allowed_tools else None
            if entry is not None and entry.manifest is not None:
                # What it no longer asks for, it no longer gets.
                still = entry.manifest.allowed_tools
                asked |= dict.fromkeys(tool for tool in skill.allowed_tools if tool in still)
        return tuple(asked)

    def entry_of(self, skill: LoadedSkill) -> SkillEntry | None:
        """Return what became of a skill that was loaded; `None` if it went or was switched off."""
        entry = self.shared.catalog.skills_by_folder.get(skill.folder)
        if entry is None or skill.name not in {entry.name, *entry.addresses}:
            return None
        return entry

    def switch_on_for(self, entry: SkillEntry, catalog: Catalog) -> str:
        """Switch on what a skill names, and return what there is to say of it, or `""`."""
        names = entry.manifest.groups if entry.manifest else ()
        activated, remarks = self._switched_on(names, catalog)
        notes = self._notes_of(activated, catalog)
        return "\n\n".join(filter(None, (*map(one_line, remarks), notes)))

    def _notes_of(self, groups: tuple[str, ...], catalog: Catalog) -> str:
        return self.notes_in_answer((catalog.groups[name] for name in groups), catalog)

    def _switched_on(
        self, names: Iterable[str], catalog: Catalog
    ) -> tuple[tuple[str, ...], list[str]]:
        """Switch on the groups that are named, themselves or by a tool; return them and remarks."""
        before = {group.name for group in self.active_in(catalog)}
        remarks: list[str] = []
        wanted: dict[str, GroupEntry] = {}
        unknown: list[str] = []
        for name in names:
            group = self._group_of(name, catalog)
            if group is None:
                unknown.append(name)
            elif group.is_available:
                wanted[group.name] = group
            else:
                told = unavailable_reason(group)
                remarks.append(f"Tool group {group.name!r} is unavailable: {told}.")
        if unknown:
            told = ", ".join(repr(shorten(name, _LONGEST_NAME)) for name in unknown[:_FEW])
            more = f" and {len(unknown) - _FEW} more" if len(unknown) > _FEW else ""
            remarks.append(f"It asks for what is no tool group and no tool here: {told}{more}.")
        news = [group for name, group in wanted.items() if name not in before | {BASIC_GROUP}]
        for group in news:
            self.activation = self.activation.activate(group.name)
        if news:
            remarks.append(f"Now active: {join_group_names(group.name for group in news)}.")
        return tuple(group.name for group in news), remarks

    def _group_of(self, name: str, catalog: Catalog) -> GroupEntry | None:
        """Return the group of that name, or one of the tool of that name: an active one if any."""
        if name in catalog.groups:
            return catalog.groups[name]
        tool = catalog.tools.get(name)
        if tool is None:
            return None
        groups = [catalog.groups[group] for group in tool.groups if group in catalog.groups]
        groups.sort(key=lambda g: (not self.activation.covers(g), not g.is_available))
        return groups[0] if groups else None


def is_disabled(entry: SkillEntry) -> bool:
    """Tell whether a skill is there, but not to be used by anybody."""
    return entry.state in {Status.DISABLED, Status.HELD}


def require_usable_skill(entry: SkillEntry) -> SkillManifest:
    """Return what a skill says of itself.

    Raises `NotFoundError` for one that never could be read, and `ConflictError` for one that
    the user switched off.
    """
    if is_disabled(entry):
        fix = "; ".join(problem.fix for problem in entry.diagnostics)
        raise ConflictError(f"skill {entry.name!r} is {entry.state}", fix=fix)
    if entry.manifest is None:
        raise NotFoundError("skill", entry.name)
    return entry.manifest


def _how_to_go_on(left: int, offset: int) -> str:
    how = f"go on with read_skill_file, path {SKILL_FILE!r}, offset={offset}"
    return f"The instructions have {left} more characters; {how}."


def skill_called(name: str, scene: SharedView) -> tuple[SkillEntry, str]:
    """Return the skill that a host means by a name, and the name that is its own.

    Of two of one name the one that is shown is meant. Raises `NotFoundError`.
    """
    for entry in scene.view.skills:
        if entry.name == name:
            return entry, name
    entry = scene.catalog.skill(name)
    # One that another shadows has only its long name for itself.
    return entry, entry.name if entry.is_served else entry.address


def join_group_names(groups: Iterable[str]) -> str:
    """Name tool groups in a sentence."""
    names = list(groups)
    return f"tool group{'s' if len(names) > 1 else ''} " + ", ".join(map(repr, names))


def unavailable_reason(group: GroupEntry) -> str:
    """Say what a group is missing."""
    return f"it requires {', '.join(group.missing)} to be configured"


def _require_usable(group: GroupEntry) -> None:
    """Raise `ConflictError` for a group that is unavailable or switched off."""
    if not group.is_available:
        raise ConflictError(
            f"group {group.name!r} is unavailable: {unavailable_reason(group)}",
            fix="the diagnostic 'group-unavailable' says where to put it",
        )
    if not group.is_served:
        fix = "; ".join(problem.fix for problem in group.diagnostics)
        raise ConflictError(f"group {group.name!r} is {group.state}", fix=fix)
