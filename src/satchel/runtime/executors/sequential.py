"""Running calls one after another."""

from collections.abc import Sequence
from dataclasses import dataclass

from satchel.runtime.executors.answer_stream import AnswerStream
from satchel.runtime.executors.executor import CallGate, RunCall
from satchel.tools import ToolCall


@dataclass(frozen=True, slots=True)
class Sequential:
    """Runs the calls of a step one after another.

    The next begins when its answer is asked for: whoever stops after a failure has run no more.
    """

    def stream(self, calls: Sequence[ToolCall], run: RunCall) -> AnswerStream:
        """Run the calls, and yield their answers in the order of the calls."""
        return AnswerStream(calls, run, 1)

    def stream_through(
        self, calls: Sequence[ToolCall], run: RunCall, gates: Sequence[CallGate]
    ) -> AnswerStream:
        """Do as `stream`, but let each call pass the gates; one that waits lets others go first."""
        return AnswerStream(calls, run, 1, gates)
