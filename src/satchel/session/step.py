"""A step: one model request and its calls, on one frozen view of the catalog."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from satchel.catalog.catalog_changes import Change
from satchel.contracts.variable_places import fill_variables
from satchel.groups.view_digest import changes_between
from satchel.session.call_api import CallApi

if TYPE_CHECKING:
    from satchel.groups.group_activation import View
    from satchel.groups.view_digest import ViewDigest
    from satchel.prompt.skill_listing import PromptListing
    from satchel.session.lazy_dispatcher import LazyDispatcher
    from satchel.session.session_state import SessionState
    from satchel.session.step_history import StepContent
    from satchel.session.step_plan import StepPlan
    from satchel.shared import SharedView
    from satchel.tools import Tool, ToolCall, ToolContext


class StepChanges(tuple[Change, ...]):
    """What was added, removed and changed, ordered by kind and name."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """Return one sentence about the changes for the model, or `""`."""
        from satchel.prompt.change_summary import render_changes  # lazy: needed only after changes

        return render_changes(self)


class Step(CallApi):
    """A frozen view: its prompt, notes, schemas and calls agree, even if the catalog changes.

    `Session.step()` returns it. Groups that are activated later are visible from the next step on.
    """

    __slots__ = (
        "_content",
        "_frozen_view",
        "_last_digest",
        "_session_state",
        "_values",
        "activation",
        "loaded_skills",
    )

    def __init__(
        self,
        session_state: SessionState,
        calls: LazyDispatcher,
        shared_view: SharedView,
        content: StepContent,
        last_digest: ViewDigest | None,
    ) -> None:
        super().__init__(calls)
        self._session_state = session_state
        self._frozen_view, self._content = shared_view, content
        self._last_digest = last_digest
        self.activation = session_state.activation
        self.loaded_skills = tuple(skill.name for skill in session_state.loaded)
        # The current state: what the calls of this step write counts from the next step on.
        self._values = session_state.values_of(content.rendered.variables, shared_view.catalog)

    @property
    def generation(self) -> int:
        """Return the number of the catalog snapshot."""
        return self._frozen_view.catalog.generation

    @property
    def view(self) -> View:
        """Return the visible part of the catalog."""
        return self._frozen_view.view

    @property
    def own_tools(self) -> tuple[Tool, ...]:
        """Return the session's own tools, such as `load_skill`. They work by `call` only."""
        rendered = self._content.rendered
        by_name = rendered.view.by_name
        return tuple(tool for name, tool in rendered.own_tools.items() if name not in by_name)

    @property
    def active_groups(self) -> tuple[str, ...]:
        """Return the names of the active groups of this step."""
        return tuple(group.name for group in self._frozen_view.view.groups)

    @property
    def changes(self) -> StepChanges:
        """Return the differences between the last step and this one."""
        return StepChanges(changes_between(self._last_digest, self._content.rendered.digest))

    def prompt(self) -> str:
        """Return the skill prompt, the notes of the active groups and the plugins' sections."""
        notes = self.activated_notes() if self._session_state.options.notes_in_prompt else ""
        parts = (self.skill_prompt(), notes, self.prompt_sections())
        return "\n\n".join(part for part in parts if part)

    def skill_prompt(self) -> str:
        """Return the listing of the skills, or `""` if there are none."""
        return self.skill_listing.text

    @property
    def skill_listing(self) -> PromptListing:
        """Return the same listing with its form, and how many skills it describes and names."""
        return self._content.rendered.listing

    def activated_notes(self) -> str:
        """Return the notes of the active groups, each under its heading, or `""`."""
        return fill_variables(self._content.rendered.notes, self._values)

    def prompt_sections(self) -> str:
        """Return the sections that plugins add to the end of the prompt, or `""`."""
        return fill_variables(self._content.rendered.sections, self._values)

    def schemas(self, dialect: str = "openai") -> list[dict[str, Any]]:
        """Return the schemas of the tools, as `Session.schemas` does, but always the same list.

        If nothing changed and this step still exists, the next step returns that list, too: copy it
        before you change it.
        """
        return self._content.schemas(self._frozen_view, dialect)

    def plan(self, calls: Iterable[ToolCall], *, context: ToolContext | None = None) -> StepPlan:
        """Judge the calls of one model message together; the host runs each when it wants to.

        For frameworks that run calls one by one: `execute` judges and runs them all. `context` is
        for every call.
        """
        from satchel.session.calls import with_context  # lazy: needed only with calls
        from satchel.session.step_plan import StepPlan  # lazy: needed only by some frameworks

        return StepPlan(self._calls, self._frozen_view, with_context(calls, context))

    def needs_approval(self, call: ToolCall) -> bool:
        """Return whether `approve` would ask before a call, so that the host can ask first.

        It then runs the call with `approved=True`. A call that will not run needs no approval.
        Middleware that sends the call to another tool asks again.
        """
        return self.plan([call]).needs_approval(0)

    def _shared_view(self) -> SharedView:
        return self._frozen_view
