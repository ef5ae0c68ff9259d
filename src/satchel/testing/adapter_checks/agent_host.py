"""What the checks need of an adapter: a host that runs the framework's agent by a script."""

import importlib.util
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from satchel.session.session import Session
from satchel.tools import ToolCall


@dataclass(frozen=True)
class Answered:
    """What the model reads of one call."""

    text: str
    is_error: bool | None = None
    """`None` if the framework has no sign for an error."""
    media: int = 0
    """How many pictures and files it was given."""


@dataclass(frozen=True)
class SeenRequest:
    """What one request to the model contained."""

    tools: tuple[str, ...]
    prompt: str
    at: float


Turn = Sequence[ToolCall] | Callable[[], Sequence[ToolCall]]


class ScriptedModel:
    """Answers each request with the next calls of a script, then with the text `done`."""

    def __init__(self, *turns: Turn) -> None:
        self._turns = list(turns)
        self.requests: list[SeenRequest] = []
        self.answers: dict[str, Answered] = {}
        """What the model read of each call, by the call's id; the host fills it in."""
        self.chunks: list[str] = []
        """The texts of the chunks that reached the host; it fills them in."""

    def answer(self, tools: Collection[str], prompt: str | None) -> list[ToolCall]:
        """Return the calls of the next answer; none if the model is done."""
        number = len(self.requests)
        self.requests.append(SeenRequest(tuple(tools), prompt or "", time.monotonic()))
        turn = self._turns[number] if number < len(self._turns) else ()
        calls = turn() if callable(turn) else turn
        return [
            call if call.id else call.changed(id=f"call_{number}_{at}")
            for at, call in enumerate(calls)
        ]


@dataclass(frozen=True)
class Cannot:
    """Why a framework cannot pass a check, and the lines of its source that show it."""

    reason: str
    module: str
    lines: str
    """One line, or several in a row such as all fields of a record; their indent is ignored."""

    def place(self) -> str:
        """Return module and number of the first. Raises `AssertionError` if they are not there."""
        spec = importlib.util.find_spec(self.module)
        assert spec is not None, f"the framework has no module {self.module} now"
        source = _stripped(Path(str(spec.origin)).read_text(encoding="utf-8"))
        before, is_there, _ = source.partition(_stripped(self.lines))
        assert is_there, f"{self.module} has no {self.lines!r} now: can the framework do it?"
        number = before.count("\n") + 1
        return f"{self.module}:{number}"


def _stripped(text: str) -> str:
    """Return the lines without the space around them, between line breaks."""
    return "".join(f"\n{line.strip()}" for line in text.splitlines()) + "\n"


class AgentHost(Protocol):
    """Runs the agent of a framework."""

    name: str
    cannot: Mapping[str, Cannot]
    """The checks that the framework cannot pass."""
    own_tool: str
    """The name of a tool of the host. It returns "own"."""
    provider_tool: str
    """The name of a tool that the model's provider runs; `""` if the framework has none."""

    def make(
        self,
        source: Any,
        model: Callable[[Any], ScriptedModel],
        prompt: str,
        tools: Collection[str],
    ) -> Any:
        """Return an agent with the adapter for `source`, and these tools beside those of Satchel.

        `model(context)` returns the script of a run, where `context` is what `user_of` takes.
        """

    async def run(self, agent: Any, user: str, model: ScriptedModel) -> None:
        """Run the agent for a user until the model is done, and fill in `model.answers`."""

    async def run_asking(
        self, session: Callable[[], Session], model: ScriptedModel, *, answer: bool
    ) -> int:
        """Run an agent whose adapter asks by the framework's own confirmation; answer each time.

        Return how often it asked. Begin with the session that `session()` returns. A framework that
        can save a run resumes it with new objects, and with what a second `session()` returns. A
        host whose framework has no confirmation leaves this out.
        """

    def user_of(self, context: Any) -> str:
        """Return the user of a run from what the adapter passes to a session source."""
