"""A conversation that a person holds by hand, in place of a model."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from satchel.catalog.catalog_entries import ToolEntry
from satchel.lazy_dataclass import dataclass
from satchel.prompt.token_estimate import about_tokens
from satchel.session.recording import Recording
from satchel.session.session import Session
from satchel.session.session_state import SkillContent
from satchel.session.step import Step
from satchel.tools import ToolCall, ToolContext, ToolResult

_MOST_STEPS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """What the model saw in one step."""

    number: int
    generation: int
    groups: tuple[str, ...]
    prompt: str
    tools: tuple[dict[str, Any], ...]
    """The schemas in the dialect `mcp`."""
    changes: str
    """What the model would read about the changes since the last step."""

    def as_dict(self) -> dict[str, Any]:
        """Return the step as JSON, without its prompt and schemas."""
        return {
            "number": self.number,
            "generation": self.generation,
            "groups": list(self.groups),
            "characters": len(self.prompt),
            "tokens": about_tokens(self.prompt),
            "tools": [tool["name"] for tool in self.tools],
            "changes": self.changes,
        }


class Conversation:
    """A session with the steps that were taken in it."""

    def __init__(self, number: int, session: Session) -> None:
        self.number, self.session = number, session
        self.steps: deque[StepRecord] = deque(maxlen=_MOST_STEPS)
        self.recording = Recording()
        self._step: Step | None = None
        self._is_outdated = False

    @property
    def newest_step(self) -> Step:
        """Return the newest step, or begin the first, also the first after a skill was loaded."""
        return self.take_step() if self._step is None or self._is_outdated else self._step

    def load_skill(self, name: str, arguments: str | None) -> SkillContent:
        """Load a skill for the host; the next plan begins a step, which records it."""
        skill = self.session.load_skill(name, arguments)
        self._is_outdated = True
        return skill

    def take_step(self) -> Step:
        """Begin a step, as for a model request."""
        step = self._step = self.session.step()
        self._is_outdated = False
        number = self.steps[-1].number + 1 if self.steps else 1
        self.recording.add_step(step)
        self.steps.append(
            StepRecord(
                number=number,
                generation=step.generation,
                groups=step.active_groups,
                prompt=step.prompt(),
                tools=tuple(step.schemas("mcp")),
                changes=step.changes.text,
            )
        )
        return step

    def newest_view(self) -> Sequence[ToolEntry]:
        """Return the tools that the calls of a plan may use now."""
        # Not a new step: reading a page must not change what the next step reports.
        return (self._step.view if self._step else self.session.step().view).sent_tools

    def step(self, number: int) -> StepRecord | None:
        """Return a step by its number, if it is still known."""
        return next((step for step in self.steps if step.number == number), None)

    async def run(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Run the calls of one message in the newest step."""
        context = ToolContext(run_id=f"session {self.number}")
        results = await self.newest_step.execute(calls, context=context)
        self.recording.add_calls(calls, results)
        return results
