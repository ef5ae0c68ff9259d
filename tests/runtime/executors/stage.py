"""An event loop whose clock jumps to whatever comes next, and calls that do as they are told."""

import asyncio
import gc
import selectors
from collections import Counter
from dataclasses import dataclass, field

from satchel.tools import Text, ToolCall, ToolResult, failure

FINE = ToolResult(content=(Text("fine"),))
FAILED = failure("tool_failed", "tool failed")


class _Jump(selectors.DefaultSelector):
    """Passes the time at once, and notices when nothing could ever happen any more."""

    now = 0.0

    def select(self, timeout=None):
        assert timeout is not None, "everybody waits, and nothing will come"
        self.now += max(0, timeout)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.jump = _Jump()
        super().__init__(self.jump)

    def time(self):
        return self.jump.now


def now():
    return asyncio.get_running_loop().time()


def play(main, *, loop_factory=_Loop):
    """Run to the end, and see that no task is left, nor any complaint."""
    complaints = []

    async def watched():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        try:
            return await main
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"left behind: {left}"

    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(watched())
    finally:
        gc.collect(1)
        assert complaints == []


@dataclass
class Stage:
    """A `run` for which each call says in its arguments what happens, and that keeps count.

    `seconds` pass, or else the call waits for ever; `cleanup` seconds pass when it is cancelled;
    it answers with `result`, or raises `problem`.
    """

    begun: list = field(default_factory=list)
    ended: list = field(default_factory=list)
    times: list = field(default_factory=list)
    at_once: Counter = field(default_factory=Counter)
    most: int = 0

    async def run(self, call):
        arguments = call.arguments
        self.begun.append(call.id)
        self.times.append((call.name, now()))
        self.at_once[call.name] += 1
        self.most = max(self.most, self.at_once.total())
        try:
            await self._wait(arguments.get("seconds", 0))
            if problem := arguments.get("problem"):
                raise problem
            return arguments.get("result", FINE)
        except asyncio.CancelledError:
            await asyncio.sleep(arguments.get("cleanup", 0))
            raise
        finally:
            self.at_once[call.name] -= 1
            self.ended.append(call.id)

    async def _wait(self, seconds):
        if seconds is None:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(seconds)

    @property
    def running(self):
        return self.at_once.total()


def some_calls(*message, name="probe"):
    """Make calls, numbered from 0; each is told its seconds, or all its arguments."""
    return [
        ToolCall(
            name=item.get("name", name) if isinstance(item, dict) else name,
            arguments=item if isinstance(item, dict) else {"seconds": item},
            id=str(number),
        )
        for number, item in enumerate(message)
    ]


async def in_order(executor, calls, run):
    """Run the calls, and return their results in the order of the calls."""
    answers = {index: result async for index, result in executor.stream(tuple(calls), run)}
    return [answers[index] for index in sorted(answers)]
