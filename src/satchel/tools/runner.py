"""Where a function runs: the last step of a call, which can be exchanged.

A runner gets a call whose arguments were checked, after contracts, approval and middleware.
"""

import inspect
from abc import ABC, abstractmethod
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from satchel.tools.callables import in_thread, iterate_in_thread

if TYPE_CHECKING:
    from satchel.tools.tool_call import ToolCall


class Runner(ABC):
    """Runs the function of a tool, in this process or elsewhere.

    Set `Tool.runner` to run a tool by another one.
    """

    ends_when_cancelled = True
    """Whether the function has ended when `run` was cancelled."""

    @abstractmethod
    async def run(self, call: "ToolCall") -> Any:
        """Run a call; return what the tool returned, or an async iterator of chunks.

        `call.tool` is set, and `call.arguments` were checked. `call.bind()` adds what the host
        injects and returns the function, ready to be called; a runner that sends calls to another
        process leaves that to the other side.
        """


async def settled(value: Any) -> Any:
    """Await a value until it is an answer, or an async iterator of chunks."""
    while True:
        if hasattr(value, "__await__"):
            value = await value
        elif not isinstance(value, GeneratorType):
            return value
        elif inspect.isawaitable(value):  # a coroutine made by `types.coroutine`
            value = await value
        else:
            return iterate_in_thread(value)


class LoopRunner(Runner):
    """Runs functions on the event loop."""

    async def run(self, call: "ToolCall") -> Any:
        """Call the function, and await what it returns."""
        return await settled(call.bind()())


class ThreadRunner(Runner):
    """Runs functions in threads, because they may block."""

    ends_when_cancelled = False

    async def run(self, call: "ToolCall") -> Any:
        """Call the function in a thread, and await what it returns."""
        return await settled(await in_thread(call.bind()))


LOOP, THREAD = LoopRunner(), ThreadRunner()
