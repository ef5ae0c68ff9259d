"""A session: one conversation's view of the catalog."""

from collections.abc import Mapping
from typing import Any

from satchel.contracts import Filled, PlanPolicy, fill_variables, unknown_variable, variables_in
from satchel.diagnostics import Diagnostic
from satchel.groups import Activation, ViewDigest, changes_between
from satchel.prompt import SkillPrompt
from satchel.session.caller import CallApi
from satchel.session.calls import CallDispatcher
from satchel.session.planning import require_policy
from satchel.session.rendered_step import RenderedStep, render_step, schemas
from satchel.session.saved_state import dump_state, restore_state
from satchel.session.session_options import SessionOptions
from satchel.session.session_state import (
    SessionState,
    SkillContent,
    require_usable_skill,
    skill_called,
)
from satchel.session.skill_fetching import fetch_skill_async
from satchel.session.step import Step, StepChanges
from satchel.session.step_history import StepContent, StepHistory
from satchel.shared import SharedState, SharedView
from satchel.tools import ToolResult


class Session(CallApi):
    """One conversation: which groups are active, and what the model sees because of it.

    Made by `Satchel.session()`. What is asked of it directly comes from the newest generation;
    `step()` gives a view that stays as it is for one turn of the model.
    """

    __slots__ = ("__weakref__", "_conversation", "_past")

    def __init__(
        self, shared: SharedState, options: SessionOptions, plan_policy: PlanPolicy | None = None
    ) -> None:
        self._conversation = SessionState(shared, options, require_policy(plan_policy))
        super().__init__(CallDispatcher(self._conversation))
        self._past = StepHistory()

    @property
    def state(self) -> dict[str, Any]:
        """Return what tools keep from call to call; they get it with their `ToolContext`."""
        return self._conversation.state

    @property
    def skill_style(self) -> SkillPrompt:
        """Return how the skill prompt is worded here; it may be set."""
        return self._conversation.skill_style

    @skill_style.setter
    def skill_style(self, style: SkillPrompt) -> None:
        self._conversation.skill_style = style.within(self._conversation.shared.limits)

    @property
    def plan_policy(self) -> PlanPolicy | None:
        """Return what judges each plan as a whole, after the contracts; it may be set.

        `policy(plan, state)` returns why a plan is not acceptable, or `None`. Raises
        `DefinitionError` for what cannot be called.
        """
        return self._conversation.plan_policy

    @plan_policy.setter
    def plan_policy(self, policy: PlanPolicy | None) -> None:
        self._conversation.plan_policy = require_policy(policy)

    @property
    def active_groups(self) -> tuple[str, ...]:
        """Return the names of the active groups."""
        return tuple(group.name for group in self._scene().view.groups)

    @property
    def loaded_skills(self) -> tuple[str, ...]:
        """Return the names of the skills that were loaded."""
        return tuple(skill.name for skill in self._conversation.loaded)

    # ---- what the model sees --------------------------------------------------------------

    def step(self) -> Step:
        """Begin a turn of the model: the newest generation, frozen for all that the turn needs."""
        scene = self._scene()
        handout, before = self._begun(scene)
        return Step(self._conversation, self._calls, scene, handout, before)

    def changes(self) -> StepChanges:
        """Return what a new step would show that the last one did not, and the other way round.

        A step begins with `step()`, and whenever the session itself is asked for its prompt,
        notes or schemas. Before the first there is nothing to compare.
        """
        showing = self._showing(self._scene())
        return StepChanges(changes_between(self._past.sight, showing.sight))

    def prompt(self) -> str:
        """Return the skill prompt, the notes of the active groups and the plugins' sections."""
        return self.step().prompt()

    def skill_prompt(self) -> str:
        """Return the listing of the skills, or `""` if there are none."""
        return self.step().skill_prompt()

    def activated_notes(self) -> str:
        """Return the notes of the active groups, each under its heading, or `""`."""
        return self.step().activated_notes()

    def prompt_sections(self) -> str:
        """Return what plugins end the prompt with, or `""`."""
        return self.step().prompt_sections()

    def fill(self, template: str) -> Filled:
        """Put what tools keep in the state into a prompt of the host's, at `{{VARIABLE}}`.

        Values are JSON. A variable that no contract fills is left empty, with a diagnostic.
        """
        catalog, names = self._conversation.shared.catalog, variables_in(template)
        values = self._conversation.values_of(names, catalog)
        unknown = (unknown_variable(name, "the template") for name in names if name not in values)
        return Filled(fill_variables(template, values), tuple(unknown))

    def prompt_variables(self) -> dict[str, str]:
        """Return every prompt variable with what stands for it now, `""` for nothing yet."""
        catalog = self._conversation.shared.catalog
        return self._conversation.values_of(catalog.contracts.prompt_variables, catalog)

    def schemas(self, dialect: str = "openai") -> list[dict[str, Any]]:
        """Return the tools of the active groups, and the session's own, as a provider wants them.

        Dialects are `openai`, `openai-strict`, `anthropic`, `gemini` and `mcp`; raises
        `NotFoundError` for any other. Tools that are new to the session come last, so that what
        a provider cached stays valid.
        """
        scene = self._scene()
        handout, _ = self._begun(scene)
        return schemas(scene, handout.showing, dialect, handout.names)

    # ---- what host and model choose -------------------------------------------------------

    def activate(self, *groups: str) -> None:
        """Switch groups on, all or none.

        Raises `NotFoundError` with the near misses, and `ConflictError` for a group that is
        unavailable.
        """
        self._conversation.switch(groups, Activation.activate)

    def deactivate(self, *groups: str) -> None:
        """Switch groups off, all or none. Raises `NotFoundError`; `ConflictError` for `basic`."""
        self._conversation.switch(groups, Activation.deactivate)

    def new_turn(self) -> None:
        """Begin a turn of the user.

        What tools wrote goes, unless it is to be preserved, and so do the remembered answers of
        idempotent tools, unless they are remembered for the session.
        """
        self._calls.new_turn()
        for key in self._conversation.shared.catalog.contracts.cleared:
            self._conversation.state.pop(key, None)

    def load_skill(self, name: str) -> SkillContent:
        """Load a skill for the host, such as for a slash command: also one hidden from the model.

        Its text is for the conversation. Groups that it names are switched on. `name` may be
        `source:name`. Raises `NotFoundError` with the near misses, and `ConflictError` for one
        that the user switched off.

        One of a remote server is fetched meanwhile: where an event loop must go on, write
        `await asyncio.to_thread(session.load_skill, name)`. It raises `ToolError` if the server
        does not give what it listed.
        """
        scene = self._scene()
        entry, own_name = skill_called(name, scene)
        require_usable_skill(entry)
        entry = fetch_skill_async(entry, self._conversation.shared.limits)
        return self._conversation.load(entry, scene.catalog, own_name)

    def state_dict(self) -> dict[str, Any]:
        """Return what the session remembers, as JSON: groups, loaded skills, tools' state.

        Raises `DefinitionError` for something in `state` that is no JSON.
        """
        return dump_state(self._conversation, self._past.seen)

    def load_state_dict(
        self, state: Mapping[str, Any], *, strict: bool = False
    ) -> tuple[Diagnostic, ...]:
        """Take up what `state_dict` returned, in place of what is remembered now.

        Returns a diagnostic for each group and skill that no longer exists; if `strict`, raises
        `ConflictError` instead. Raises `DefinitionError` for what is no such state. If it raises,
        nothing has changed.
        """
        problems, seen = restore_state(self._conversation, state, strict=strict)
        self._past = StepHistory(seen=seen)
        return problems

    # ---- calls ----------------------------------------------------------------------------

    async def finished(self, result: ToolResult) -> ToolResult:
        """Wait for the background task that a result tells of; return what came of it.

        Any other result is returned as it is.
        """
        return await self._calls.finished(result)

    def interrupt(self, call_id: str | None = None) -> int:
        """End the calls of that id, or all of this session; return how many there were.

        Each ends with a result that is marked interrupted and keeps what was told so far. May
        be called from any thread.
        """
        return self._calls.interrupt(call_id)

    def _scene(self) -> SharedView:
        conversation = self._conversation
        return conversation.shared.scene(conversation.activation, conversation.options.tools)

    def _begun(self, scene: SharedView) -> tuple[StepContent, ViewDigest | None]:
        """Begin a step: return what it hands out, and what the one before showed."""
        before = self._past
        # One assignment, so that threads that share a session do not mix two steps.
        self._past, handout = before.step(self._showing(scene))
        return handout, before.sight

    def _showing(self, scene: SharedView) -> RenderedStep:
        return render_step(scene, self._conversation, self._calls.has_tasks)
