"""A session: one conversation's view of the catalog."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from satchel.catalog import Catalog
from satchel.groups import Activation, View, in_order_of_appearance, view_of
from satchel.names import near_misses
from satchel.prompt import SkillLine, SkillPrompt, render_notes, render_skills
from satchel.runtime import run_call
from satchel.settings import Limits
from satchel.tools import ToolCall, ToolResult, failure


class Session:
    """One conversation: which groups are active, and what the model sees because of it.

    Made by `Satchel.session()`. It always shows the newest generation.
    """

    __slots__ = ("_activation", "_catalog", "_limits", "_seen", "skill_style")

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        limits: Limits,
        skill_style: SkillPrompt,
    ) -> None:
        self._catalog, self._limits = catalog, limits
        self._activation = Activation()
        self._seen: tuple[str, ...] = ()
        self.skill_style = skill_style

    @property
    def active_groups(self) -> tuple[str, ...]:
        """Return the names of the active groups."""
        return tuple(group.name for group in self._view().groups)

    def activate(self, *groups: str) -> None:
        """Switch groups on, all or none. Raises `NotFoundError` with the near misses."""
        self._switch(groups, Activation.activate)

    def deactivate(self, *groups: str) -> None:
        """Switch groups off, all or none. Raises `NotFoundError`; `ConflictError` for `basic`."""
        self._switch(groups, Activation.deactivate)

    def _switch(
        self, groups: tuple[str, ...], step: Callable[[Activation, str], Activation]
    ) -> None:
        catalog, activation = self._catalog(), self._activation
        for name in groups:
            activation = step(activation, catalog.group(name).name)
        self._activation = activation

    def _view(self) -> View:
        return view_of(self._catalog(), self._activation)

    def prompt(self) -> str:
        """Return the skill prompt followed by the notes of the active groups, or `""`."""
        return _prompt(self._view(), self.skill_style)

    def skill_prompt(self) -> str:
        """Return the listing of the skills, or `""` if there are none."""
        return _skill_prompt(self._view(), self.skill_style)

    def activated_notes(self) -> str:
        """Return the notes of the active groups, each under its heading, or `""`."""
        return _notes(self._view())

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools of the active groups in the shape of OpenAI's function calling.

        Tools that are new to the session come last, so that what a provider cached stays valid.
        """
        tools = in_order_of_appearance(self._view().tools, self._seen)
        self._seen = tuple(dict.fromkeys((*self._seen, *(entry.name for entry in tools))))
        return [entry.tool.to_schema() for entry in tools if entry.tool]

    async def call(
        self, name: str, arguments: Mapping[str, Any] | str | None = None, *, call_id: str = ""
    ) -> ToolResult:
        """Run a tool of an active group; whatever goes wrong is told in the result.

        `arguments` may be the JSON text that models produce.
        """
        # Held until the call has ended: the modules of a plugin's version live as long as a
        # catalog that serves it, so a reload meanwhile takes nothing away from this call.
        catalog = self._catalog()
        view = view_of(catalog, self._activation)
        entry = next((item for item in view.tools if item.name == name), None)
        if entry is None or entry.tool is None:
            problem = failure("tool_not_found", _unavailable(name, catalog, view))
            return replace(problem, call_id=call_id or None)
        call = ToolCall(name, {} if arguments is None else arguments, call_id)
        return await run_call(entry.tool, call, self._limits)


def _prompt(view: View, style: SkillPrompt) -> str:
    parts = (_skill_prompt(view, style), _notes(view))
    return "\n\n".join(part for part in parts if part)


def _skill_prompt(view: View, style: SkillPrompt) -> str:
    return render_skills(
        [SkillLine(skill.name, skill.description, skill.path) for skill in view.skills], style
    )


def _notes(view: View) -> str:
    return render_notes((group.name, group.notes) for group in view.groups)


def _unavailable(name: str, catalog: Catalog, view: View) -> str:
    """Tell the model why there is no such tool, and what to do."""
    hidden = catalog.tools.get(name)
    if hidden is not None and hidden.group not in {group.name for group in view.groups}:
        return (
            f"Tool {name!r} is in group {hidden.group!r}, which is not active. Activate it first."
        )
    near = near_misses(name, (tool.name for tool in view.tools))
    return f"There is no tool {name!r}." + (f" Did you mean {', '.join(near)}?" if near else "")
