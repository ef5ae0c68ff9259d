"""The executor that runs calls one after another."""

from collections.abc import Sequence

from satchel.lazy_dataclass import dataclass
from satchel.runtime.executors.answer_stream import AnswerStream
from satchel.runtime.executors.executor import CallGate, RunCall
from satchel.tools import ToolCall


@dataclass(frozen=True, slots=True)
class Sequential:
    """Runs the calls of a step one after another.

    A call starts when its answer is asked for: a reader that stops after a failure runs no more.
    """

    def stream(self, calls: Sequence[ToolCall], run: RunCall) -> AnswerStream:
        """Run the calls, and yield their answers in the order of the calls."""
        return AnswerStream(calls, run, 1)

    def stream_through(
        self, calls: Sequence[ToolCall], run: RunCall, gates: Sequence[CallGate]
    ) -> AnswerStream:
        """Do as `stream`, and let each call pass the gates; one that waits lets others go first."""
        return AnswerStream(calls, run, 1, gates)
