"""The executor that runs calls at the same time."""

from collections.abc import Sequence

from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.runtime.executors.answer_stream import AnswerStream
from satchel.runtime.executors.executor import CallGate, RunCall
from satchel.tools import ToolCall


@dataclass(frozen=True, slots=True)
class Concurrent:
    """Runs up to `limit` calls of a step at once; they start in the order of the calls.

    Calls start when an answer is asked for; a reader that stops asking starts no more of them.
    """

    limit: int = 10

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise DefinitionError(f"the limit must be at least 1, not {self.limit}")

    def stream(self, calls: Sequence[ToolCall], run: RunCall) -> AnswerStream:
        """Run the calls, and yield each answer as it comes."""
        return self.stream_through(calls, run, ())

    def stream_through(
        self, calls: Sequence[ToolCall], run: RunCall, gates: Sequence[CallGate]
    ) -> AnswerStream:
        """Do as `stream`, and let each call pass the gates before it starts."""
        return AnswerStream(calls, run, self.limit, gates)
