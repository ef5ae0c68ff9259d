"""Where a function runs: the last step of a call, which can be replaced.

A runner gets a call whose arguments were validated, after contracts, approval and middleware.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from enum import Enum
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from satchel.tools.callables import in_thread, iterate_in_thread

if TYPE_CHECKING:
    from satchel.tools.tool_call import ToolCall


_DATA = frozenset({str, dict, list})


class Runner(ABC):
    """Runs the function of a tool, in this process or elsewhere.

    Set `Tool.runner` to choose the runner of a tool.
    """

    ends_when_cancelled = True
    """Whether cancelling `run` also ends the function."""
    waits = False
    """Whether a call may wait before its function starts, outside the time limit.

    Such a runner returns `RunnerSignal.HERE`, or a stream with `RunnerSignal.STARTED` in it.
    """

    @abstractmethod
    def run(self, call: "ToolCall") -> Awaitable[Any]:
        """Run a call, `async`; return what the tool returned, or an async iterator of chunks.

        `call.tool` is set, and `call.arguments` were validated. `call.bind()` adds the values that
        the host injects and returns the function, ready to be called; a runner that sends calls
        to another process does not call it: the other process adds the values.
        """


def is_resolved(value: Any) -> bool:
    """Return whether a value is a result or an async iterator of chunks, as nearly all are."""
    if type(value) in _DATA:
        return True
    return not (hasattr(value, "__await__") or isinstance(value, GeneratorType))


async def resolved(value: Any) -> Any:
    """Await a value until it is a result, or an async iterator of chunks."""
    while True:
        if hasattr(value, "__await__"):
            value = await value
        elif not isinstance(value, GeneratorType):
            return value
        elif inspect.isawaitable(value):  # a coroutine made by `types.coroutine`
            value = await value
        else:
            return iterate_in_thread(value)


def on_loop(fn: Callable[[], Any]) -> Awaitable[Any]:
    """Call a function that does not block, and return what gives its value."""
    value = fn()
    return value if type(value) is CoroutineType else resolved(value)


class LoopRunner(Runner):
    """Runs functions on the event loop."""

    def run(self, call: "ToolCall") -> Awaitable[Any]:
        """Call the function, and return its coroutine."""
        return on_loop(call.bind())


class ThreadRunner(Runner):
    """Runs functions in threads, because they may block."""

    ends_when_cancelled = False

    def run(self, call: "ToolCall") -> Awaitable[Any]:
        """Call the function in a thread, and return what it returns."""
        return in_thread(call.bind())


class RunnerSignal(Enum):
    """What a runner that waits says beside results and chunks."""

    STARTED = "started"
    """In its stream: the function has started, perhaps once more."""
    HERE = "here"
    """In place of a result: the tool's own runner shall run the call."""


LOOP, THREAD = LoopRunner(), ThreadRunner()
