"""Circuit breaker: stop calling a tool after repeated failures."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from math import ceil
from threading import Lock
from time import monotonic

from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.runtime.executors.executor import (
    Answer,
    CallGate,
    Executor,
    RunCall,
    attempt,
    through,
)
from satchel.tools import ToolCall, ToolResult, failure

FAULTS_OF_A_TOOL = ("tool_failed", "timeout")
"""The error codes that are faults of a tool, not of its arguments."""


@dataclass(slots=True, kw_only=True)
class _Circuit:
    """The failures of one tool."""

    failures: int = 0
    openings: int = 0
    is_open: bool = False
    rests_until: float = 0.0
    is_probed: bool = False


class CircuitBreaker:
    """Stops calling a tool after repeated failures, for some time.

    After `failures` in a row, without a success between them, the circuit of a tool is open for
    `rest` seconds, in all steps that this executor runs: its calls are answered with the code
    `circuit_open`. Then one call runs: a success closes the circuit, and a failure opens it again.
    Only the error codes in `counts` are failures. Other errors and interruptions do not count, nor
    do calls that started before the circuit opened.

    Put it inside a `RateLimited`, so that calls of an open circuit do not wait for their turn.
    """

    __slots__ = ("_circuits", "_clock", "_counts", "_failures", "_guard", "_inner", "_rest")

    def __init__(
        self,
        inner: Executor,
        failures: int = 5,
        rest: float = 30.0,
        counts: Collection[str] = FAULTS_OF_A_TOOL,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if failures < 1:
            raise DefinitionError(f"a circuit cannot open after {failures} failures")
        if not rest > 0:  # not "<= 0": that would let NaN pass
            raise DefinitionError(f"the rest of a circuit breaker must be positive, not {rest} s")
        self._inner, self._failures, self._rest = inner, failures, rest
        self._counts, self._clock = frozenset(counts), clock
        self._guard = Lock()  # sessions may live in several threads
        # Only tools that failed: a model may make up any number of names.
        self._circuits: dict[str, _Circuit] = {}

    def reset(self, tool: str | None = None) -> None:
        """Forget the failures of one tool, or of all; the next call runs."""
        with self._guard:
            if tool is None:
                self._circuits.clear()
            else:
                self._circuits.pop(tool, None)

    def stream(self, calls: Sequence[ToolCall], run: RunCall) -> AsyncIterator[Answer]:
        """Run the calls of tools whose circuit is closed; yield each answer as it comes."""
        return self.stream_through(calls, run, ())

    def stream_through(
        self, calls: Sequence[ToolCall], run: RunCall, gates: Sequence[CallGate]
    ) -> AsyncIterator[Answer]:
        """Do as `stream`, and let each call that runs pass the gates first."""

        async def run_unless_resting(call: ToolCall) -> ToolResult:
            return await self._answer(call, run)

        opened = [_BreakerGate(gate, self._seconds_of_rest) for gate in gates]
        return through(self._inner, calls, run_unless_resting, opened)

    async def _answer(self, call: ToolCall, run: RunCall) -> ToolResult:
        with self._guard:
            circuit = self._circuits.get(call.name) or _Circuit()
            seconds, openings = self._seconds_of_rest(call.name), circuit.openings
            is_probe = circuit.is_open and seconds is None
            circuit.is_probed = circuit.is_probed or is_probe
        if seconds is not None:
            message = _open_message(call.name, circuit.failures, seconds)
            return failure("circuit_open", message, call.id or None)
        try:
            result = await attempt(run, call)
        finally:
            if is_probe:
                circuit.is_probed = False
        with self._guard:
            self._count(call.name, result, openings)
        return result

    def _seconds_of_rest(self, tool: str) -> float | None:
        """Return how long a circuit stays open: 0 during a probe, `None` if the tool may run."""
        circuit = self._circuits.get(tool)
        if circuit is None or not circuit.is_open:
            return None
        if circuit.is_probed:
            return 0.0
        seconds = circuit.rests_until - self._clock()
        return seconds if seconds > 0 else None

    def _count(self, tool: str, result: ToolResult, openings: int) -> None:
        circuit = self._circuits.get(tool) or _Circuit()
        if circuit.openings != openings:
            return  # it started before the circuit opened
        if not result.is_error and not result.is_interrupted:
            circuit.is_open, circuit.failures = False, 0
        elif self._is_failure(result):
            self._circuits[tool] = circuit
            circuit.failures += 1
            if circuit.failures >= self._failures:
                self._open(circuit)

    def _open(self, circuit: _Circuit) -> None:
        circuit.is_open = True
        circuit.openings += 1
        circuit.rests_until = self._clock() + self._rest

    def _is_failure(self, result: ToolResult) -> bool:
        return result.error_code in self._counts and not result.is_interrupted


@dataclass(frozen=True, slots=True)
class _BreakerGate:
    """A gate that calls of an open circuit pass at once, because they do not run."""

    gate: CallGate
    seconds_of_rest: Callable[[str], float | None]

    def take(self, tool: str) -> bool:
        """Take a turn if one is needed and free now; return whether the call may pass."""
        return self.seconds_of_rest(tool) is not None or self.gate.take(tool)

    async def wait(self, tool: str) -> None:
        """Wait for a turn if one is needed, and take it."""
        if self.seconds_of_rest(tool) is None:
            await self.gate.wait(tool)


def _open_message(tool: str, failures: int, seconds: float) -> str:
    when = f"in {ceil(seconds)} s" if seconds else "by another call at this moment"
    often = "once" if failures == 1 else f"{failures} times in a row"
    return (
        f"{tool} failed {often} and is tried again {when}; use another tool, or continue without it"
    )
