"""A session: the state of one conversation."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from satchel.contracts.variable_places import fill_variables, variables_in
from satchel.groups.group_activation import Activation
from satchel.groups.view_digest import changes_between
from satchel.session.call_api import CallApi
from satchel.session.lazy_dispatcher import LazyDispatcher
from satchel.session.rendered_step import render_step, schemas
from satchel.session.session_state import (
    SessionState,
    find_skill,
    require_usable_skill,
)
from satchel.session.skill_fetching import fetch_skill_blocking
from satchel.session.step import Step, StepChanges
from satchel.session.step_history import StepHistory

if TYPE_CHECKING:
    from satchel.contracts.plan import PlanPolicy
    from satchel.contracts.prompt_variables import Filled
    from satchel.diagnostics import Diagnostic
    from satchel.groups.view_digest import ViewDigest
    from satchel.prompt.skill_prompt import SkillPrompt
    from satchel.session.rendered_step import RenderedStep
    from satchel.session.session_options import SessionOptions
    from satchel.session.session_state import (
        SkillContent,
    )
    from satchel.session.step_history import StepContent
    from satchel.shared import SharedState, SharedView
    from satchel.tools import Resource, ToolResult


class Session(CallApi):
    """One conversation: its active groups, and what the model sees.

    `Satchel.session()` returns it. Its own methods use the newest catalog; `step()` returns a view
    that stays the same for one model request.
    """

    __slots__ = ("__weakref__", "_history", "_keyed_step", "_session_state")

    def __init__(
        self, shared: SharedState, options: SessionOptions, plan_policy: PlanPolicy | None = None
    ) -> None:
        self._session_state = SessionState(shared, options)
        super().__init__(LazyDispatcher(self._session_state))
        self._history = StepHistory()
        self._keyed_step: tuple[Hashable, Step] | None = None
        if plan_policy is not None:
            self.plan_policy = plan_policy

    @property
    def state(self) -> dict[str, Any]:
        """Return the values that tools keep between calls; `ToolContext.state` is the same."""
        return self._session_state.state

    @property
    def skill_style(self) -> SkillPrompt:
        """Return the style of the skill prompt; you may set it."""
        return self._session_state.skill_style

    @skill_style.setter
    def skill_style(self, style: SkillPrompt) -> None:
        self._session_state.skill_style = style.within(self._session_state.shared.limits)

    @property
    def plan_policy(self) -> PlanPolicy | None:
        """Return the function that accepts or refuses whole plans; you may set it.

        `policy(plan, state)` runs after the contracts. It returns why the plan is refused, or
        `None`. Setting something that is not callable raises `DefinitionError`.
        """
        return self._session_state.plan_policy

    @plan_policy.setter
    def plan_policy(self, policy: PlanPolicy | None) -> None:
        from satchel.session.planning import require_policy  # lazy: needed only with a policy

        self._session_state.plan_policy = require_policy(policy)

    @property
    def active_groups(self) -> tuple[str, ...]:
        """Return the names of the active groups."""
        return tuple(group.name for group in self._shared_view().view.groups)

    @property
    def loaded_skills(self) -> tuple[str, ...]:
        """Return the names of the loaded skills."""
        return tuple(skill.name for skill in self._session_state.loaded)

    # ---- what the model sees --------------------------------------------------------------

    def step(self, key: Hashable = None) -> Step:
        """Begin a model request: return a frozen view of the newest catalog.

        Hosts that ask for tools and prompt at different moments, or several times, give each model
        request a `key`: until another key comes, the answer is the same step.
        """
        if key is None:
            return self._new_step()
        if self._keyed_step is None or self._keyed_step[0] != key:
            self._keyed_step = (key, self._new_step())
        return self._keyed_step[1]

    def _new_step(self) -> Step:
        shared_view = self._shared_view()
        content, last_digest = self._begin_step(shared_view)
        return Step(self._session_state, self._lazy_calls, shared_view, content, last_digest)

    def changes(self) -> StepChanges:
        """Return the differences between the last step and the newest catalog.

        `step()` begins a step; so do the session's own methods for prompt, notes and schemas.
        Before the first step there are no changes.
        """
        rendered = self._rendered(self._shared_view())
        return StepChanges(changes_between(self._history.digest, rendered.digest))

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
        """Return the sections that plugins add to the end of the prompt, or `""`."""
        return self.step().prompt_sections()

    def fill(self, template: str) -> Filled:
        """Replace each `{{VARIABLE}}` in a template by its value in the state, as JSON.

        A variable that no contract declares is replaced by nothing, with a diagnostic.
        """
        from satchel.contracts.prompt_variables import (  # lazy: needed only with contracts
            Filled,
            unknown_variable,
        )

        catalog, names = self._session_state.shared.catalog, variables_in(template)
        values = self._session_state.values_of(names, catalog)
        unknown = (unknown_variable(name, "the template") for name in names if name not in values)
        return Filled(fill_variables(template, values), tuple(unknown))

    def prompt_variables(self) -> dict[str, str]:
        """Return every prompt variable with its current value, `""` if it has none."""
        catalog = self._session_state.shared.catalog
        return self._session_state.values_of(catalog.contracts.prompt_variables, catalog)

    def schemas(self, dialect: str = "openai") -> list[dict[str, Any]]:
        """Return the schemas of the tools of the active groups and of the session's own tools.

        Dialects are `openai`, `openai-strict`, `anthropic`, `gemini` and `mcp`; any other raises
        `NotFoundError`. Tools that are new to the session come last, so that the provider's prompt
        cache stays valid.
        """
        shared_view = self._shared_view()
        content, _ = self._begin_step(shared_view)
        return schemas(shared_view, content.rendered, dialect, content.names)

    # ---- what host and model choose -------------------------------------------------------

    def activate(self, *groups: str) -> None:
        """Activate groups, all or none.

        Raises `NotFoundError` with the near misses, and `ConflictError` for a group that is
        unavailable.
        """
        self._session_state.switch(groups, Activation.activate)

    def deactivate(self, *groups: str) -> None:
        """Deactivate groups, all or none. Raises `NotFoundError`; `ConflictError` for `basic`."""
        self._session_state.switch(groups, Activation.deactivate)

    def activate_tools(self, *names: str) -> None:
        """Activate single tools without the rest of their groups, all or none.

        Raises `NotFoundError` with the near misses, and `ConflictError` for a tool whose groups
        are unavailable.
        """
        self._session_state.switch_tools(names, is_on=True)

    def deactivate_tools(self, *names: str) -> None:
        """Undo `activate_tools`; raises `NotFoundError`. Tools of active groups stay active."""
        self._session_state.switch_tools(names, is_on=False)

    def new_turn(self) -> None:
        """Begin the user's next turn.

        Clears the state keys that contracts do not preserve, and the remembered answers of
        idempotent tools, except those that last for the session.
        """
        self._calls.new_turn()
        for key in self._session_state.shared.catalog.contracts.cleared:
            self._session_state.state.pop(key, None)

    def load_skill(self, name: str, arguments: str | None = None) -> SkillContent:
        """Load a skill for the host, such as for a slash command, even if it is hidden from models.

        Add its text to the conversation. Loading activates the groups that the skill names. `name`
        may be `source:name`. Raises `NotFoundError` with the near misses, and `ConflictError` for a
        disabled skill.

        `arguments` replace `$ARGUMENTS` and `$1`, `$2` and so on in the text, or follow it if it
        has none of them. Without `arguments`, the text of a skill for models stays as it is. In a
        skill that only the user calls, the placeholders become empty.

        A skill of an MCP server is fetched, and this blocks: in an event loop, write
        `await asyncio.to_thread(session.load_skill, name)`. Raises `ToolError` if the server does
        not return the file that it listed. A prompt of a server is such a skill that only the user
        calls; its `arguments` are `name=value` or values in the order of the prompt.
        """
        shared_view = self._shared_view()
        entry, own_name = find_skill(name, shared_view)
        require_usable_skill(entry)
        entry = fetch_skill_blocking(entry, self._session_state.shared.limits, arguments or "")
        if entry.access.fills_arguments:
            arguments = None
        elif arguments is None and not entry.is_for_model:
            arguments = ""
        return self._session_state.load(entry, shared_view.catalog, own_name, arguments=arguments)

    async def read_resource(self, uri: str) -> tuple[Resource, ...]:
        """Return the contents of a resource that a plugin or an MCP server offers.

        Its group need not be active. Raises `NotFoundError` with the near misses, and `ToolError`
        if it cannot be read.
        """
        from satchel.session.resource_reading import read_resource  # lazy: few sessions read one

        return await read_resource(uri, self._session_state.shared)

    def state_dict(self) -> dict[str, Any]:
        """Return the session as JSON: groups, loaded skills, order of tools, and state.

        Raises `DefinitionError` for a value in `state` that is not JSON.
        """
        from satchel.session.saved_state import dump_state  # lazy: most sessions are not saved

        return dump_state(self._session_state, self._history.seen)

    def load_state_dict(
        self, state: Mapping[str, Any], *, strict: bool = False
    ) -> tuple[Diagnostic, ...]:
        """Restore what `state_dict` returned, in place of the current state.

        Returns a diagnostic for each group and skill that no longer exists; if `strict`, raises
        `ConflictError` instead. Raises `DefinitionError` for an invalid state. If it raises,
        nothing has changed.
        """
        from satchel.session.saved_state import restore_state  # lazy: most are not restored

        diagnostics, seen = restore_state(self._session_state, state, strict=strict)
        self._history, self._keyed_step = StepHistory(seen=seen), None
        return diagnostics

    # ---- calls ----------------------------------------------------------------------------

    async def finished(self, result: ToolResult) -> ToolResult:
        """Wait for the background task of a result, and return the task's result.

        Any other result is returned as it is.
        """
        return await self._calls.finished(result)

    def interrupt(self, call_id: str | None = None) -> int:
        """End the calls with that id, or all calls; return how many there were.

        Each ends with a result that is marked interrupted and contains the output so far. Any
        thread may call this.
        """
        return self._calls.interrupt(call_id)

    def _shared_view(self) -> SharedView:
        return self._session_state.shared_view()

    def _begin_step(self, shared_view: SharedView) -> tuple[StepContent, ViewDigest | None]:
        """Begin a step; return its content, and the digest of the step before."""
        last_history = self._history
        # One assignment, so that two threads of one session do not mix their steps.
        self._history, content = last_history.step(self._rendered(shared_view))
        return content, last_history.digest

    def _rendered(self, shared_view: SharedView) -> RenderedStep:
        return render_step(shared_view, self._session_state, self._lazy_calls.has_tasks)
