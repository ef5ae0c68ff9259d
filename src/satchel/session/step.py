"""A step: one turn of the model, from its prompt to its last call, on one consistent view."""

from typing import Any

from satchel.catalog import Change
from satchel.contracts import fill_variables
from satchel.groups import View, ViewDigest, changes_between
from satchel.prompt import render_changes
from satchel.session.caller import CallApi
from satchel.session.calls import CallDispatcher
from satchel.session.session_state import SessionState
from satchel.session.step_history import StepContent
from satchel.shared import SharedView
from satchel.tools import Tool


class StepChanges(tuple[Change, ...]):
    """What came, went and changed, in the order of kinds and names."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """Return a short text about it for the model, or `""`."""
        return render_changes(self)


class Step(CallApi):
    """A frozen view: its prompt, notes, schemas and calls agree, whatever is loaded meanwhile.

    Made by `Session.step()`. Groups that are switched meanwhile count from the next step on.
    """

    __slots__ = ("_before", "_conversation", "_handout", "_shown", "_values")

    def __init__(
        self,
        conversation: SessionState,
        calls: CallDispatcher,
        scene: SharedView,
        handout: StepContent,
        before: ViewDigest | None,
    ) -> None:
        super().__init__(calls)
        self._conversation = conversation
        self._shown, self._handout = scene, handout
        self._before = before
        # As the state is now: what the calls of this step write is for the next one.
        self._values = conversation.values_of(handout.showing.variables, scene.catalog)

    @property
    def generation(self) -> int:
        """Return the number of the generation that is shown."""
        return self._shown.catalog.generation

    @property
    def view(self) -> View:
        """Return what is seen of the catalog."""
        return self._shown.view

    @property
    def own_tools(self) -> tuple[Tool, ...]:
        """Return the session's own tools that are shown beside those of the view.

        They work by `call` only.
        """
        showing = self._handout.showing
        taken = showing.view.by_name
        return tuple(tool for name, tool in showing.own_tools.items() if name not in taken)

    @property
    def active_groups(self) -> tuple[str, ...]:
        """Return the names of the groups that are active in this step."""
        return tuple(group.name for group in self._shown.view.groups)

    @property
    def changes(self) -> StepChanges:
        """Return what this step shows that the one before did not, and the other way round."""
        return StepChanges(changes_between(self._before, self._handout.showing.sight))

    def prompt(self) -> str:
        """Return the skill prompt, the notes of the active groups and the plugins' sections."""
        notes = self.activated_notes() if self._conversation.options.notes_in_prompt else ""
        parts = (self.skill_prompt(), notes, self.prompt_sections())
        return "\n\n".join(part for part in parts if part)

    def skill_prompt(self) -> str:
        """Return the listing of the skills, or `""` if there are none."""
        return self._handout.showing.skill_prompt

    def activated_notes(self) -> str:
        """Return the notes of the active groups, each under its heading, or `""`."""
        return fill_variables(self._handout.showing.notes, self._values)

    def prompt_sections(self) -> str:
        """Return what plugins end the prompt with, or `""`."""
        return fill_variables(self._handout.showing.sections, self._values)

    def schemas(self, dialect: str = "openai") -> list[dict[str, Any]]:
        """Return the tools as `Session.schemas` does, each time the same list.

        The next step gives that list again if nothing changed and this step is still held, so
        what you change in it stays; copy it if that is not what you want.
        """
        return self._handout.schemas(self._shown, dialect)

    def _scene(self) -> SharedView:
        return self._shown
