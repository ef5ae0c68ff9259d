"""The calls of one session: how each begins, and how those that run are ended."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final
from weakref import WeakSet

from satchel.catalog import Catalog
from satchel.names import BASIC_GROUP, near_misses
from satchel.runtime import Middleware, Run, TaskBook, begin, layers_for
from satchel.runtime.executors import Concurrent, Executor, in_order
from satchel.runtime.messages import interruption
from satchel.runtime.once import Answers
from satchel.runtime.reading import readable
from satchel.runtime.run import ToolRun
from satchel.session.conversation import Conversation
from satchel.session.desk import HIDDEN, Desk
from satchel.session.grouping import MetaTool
from satchel.session.showing import OwnTool, Showing, show
from satchel.shared import Scene
from satchel.text import one_line, shorten
from satchel.tools import Item, Tool, ToolCall, ToolContext, ToolResult, failure
from satchel.tools.quick import quick

_NOTHING: Final = ToolContext()
_NAME_SHOWN: Final = 80

Arguments = Mapping[str, Any] | str | None
"""What a model wants a tool called with; it may be JSON text."""


Scenes = Callable[[], Scene]
"""Gives the scene for a call that begins now."""


class Calls:
    """The calls of one conversation, each made with what a scene shows."""

    __slots__ = ("_answers", "_conversation", "_queues", "_running", "_shared", "_tasks")

    def __init__(self, conversation: Conversation) -> None:
        self._conversation, self._shared = conversation, conversation.shared
        self._running: dict[int, Run] = {}
        self._answers: Answers | None = None
        self._tasks: TaskBook | None = None
        self._queues: WeakSet[_Queue] | None = None

    @property
    def has_tasks(self) -> bool:
        """Tell whether anything was ever begun in the background."""
        return self._tasks is not None

    async def call(
        self,
        scene: Scene,
        name: str,
        arguments: Arguments,
        call_id: str,
        context: ToolContext | None,
    ) -> ToolResult:
        """Run a tool; whatever goes wrong is told in the result."""
        # The scene is held until the call has ended: the modules of a plugin's version live as
        # long as a catalog that serves it, so a reload takes nothing away from this call.
        run = self._begin(scene, name, arguments, call_id, context)
        if isinstance(run, ToolResult):
            return run
        key = id(run)
        self._running[key] = run  # before it begins: its first step may be what interrupts it
        try:
            if isinstance(item := run.begin(), ToolResult):
                return item
            return await run.result()
        finally:
            del self._running[key]

    async def stream(
        self,
        scene: Scene,
        name: str,
        arguments: Arguments,
        call_id: str,
        context: ToolContext | None,
    ) -> AsyncIterator[Item]:
        """Run a tool and yield each chunk as it comes, last of all the result."""
        run = self._begin(scene, name, arguments, call_id, context)
        if isinstance(run, ToolResult):
            yield run
            return
        key = id(run)
        self._running[key] = run
        try:
            while not isinstance(item := await run.next(), ToolResult):
                yield item
            yield item
        finally:
            del self._running[key]
            await run.close()

    async def execute(
        self,
        scene: Scenes,
        calls: Iterable[ToolCall],
        executor: Executor | None,
        context: ToolContext | None,
    ) -> list[ToolResult]:
        """Run several calls and return their results in the order of the calls."""
        several = _several(calls)
        one = self._one(scene, several, context)
        return await in_order(executor or Concurrent(), several, one)

    def execute_streaming(
        self,
        scene: Scenes,
        calls: Iterable[ToolCall],
        executor: Executor | None,
        context: ToolContext | None,
    ) -> AsyncIterator[tuple[int, ToolResult]]:
        """Run several calls and yield `(index, result)` as each completes."""
        several = _several(calls)
        return (executor or Concurrent()).stream(several, self._one(scene, several, context))

    def interrupt(self, call_id: str | None) -> int:
        """End the calls of that id, or all; return how many there were."""
        background = self._tasks.running() if self._tasks else []
        runs = [
            run
            for run in (*tuple(self._running.values()), *background)
            if call_id is None or run.call.id == call_id
        ]
        for run in runs:
            run.interrupt()
        queued = [queue.interrupt(call_id) for queue in tuple(self._queues or ())]
        return len(runs) + sum(queued)

    def _one(
        self, scene: Scenes, calls: list[ToolCall], context: ToolContext | None
    ) -> Callable[[ToolCall], Any]:
        """Return what runs one of several calls, unless it was interrupted in the queue."""
        queue = _Queue(calls)
        if self._queues is None:
            self._queues = WeakSet()
        self._queues.add(queue)

        async def one(call: ToolCall) -> ToolResult:
            if queue.leave(call):
                return interruption(call.name, call.id or None)
            return await self.call(
                scene(), call.name, call.arguments, call.id, context or call.context
            )

        return one

    def _begin(
        self,
        scene: Scene,
        name: str,
        arguments: Arguments,
        call_id: str,
        context: ToolContext | None,
    ) -> Run | ToolResult:
        """Return a run, or the result that says why there is none."""
        # Models make up names; some are no text.
        found = self._find(name, scene) if isinstance(name, str) else None
        if found is None:
            text = _unavailable(name, self._showing(scene), self._desk(scene))
            return failure("tool_not_found", text, call_id or None)
        tool, groups = found
        if layers := self._layers_of(scene, name, groups):
            arguments = readable(name, arguments)
        # Making one takes longer than many a tool, so it is made for who can read it.
        if layers or tool.wants_context or tool.postprocess:
            context = replace(
                context or _NOTHING,
                state=self._conversation.state,
                call_id=call_id,
                tool=name,
                preapproved=self._conversation.preapproved,
            )
        call = quick(
            ToolCall,
            name=name,
            arguments={} if arguments is None else arguments,
            id=call_id,
            tool=tool,
            groups=groups,
            context=context or _NOTHING,
        )
        if not (layers or tool.idempotent or tool.background or tool.postprocess):
            return ToolRun(call, tool, self._shared.limits)  # as most calls are
        if tool.idempotent and self._answers is None:
            self._answers = Answers()
        return begin(
            call,
            tool,
            self._shared.limits,
            layers=layers,
            layers_of=partial(self._layers_of, scene),
            find=lambda other: self._find(other, scene),
            answers=self._answers,
            tasks=_Keeping(self._book(), scene.catalog) if tool.background else None,
        )

    def _layers_of(
        self, scene: Scene, tool: str, groups: Collection[str]
    ) -> tuple[Middleware, ...]:
        # The host's stand around those that came with the tools.
        layers = self._shared.layers + scene.generation.layers
        return layers_for(layers, tool, groups) if layers else ()

    def _find(self, name: str, scene: Scene) -> tuple[Tool, tuple[str, ...]] | None:
        entry = scene.view.by_name.get(name)
        if entry is not None and entry.tool is not None:
            return entry.tool, entry.groups
        own = self._showing(scene).own_tools.get(name)
        if own is None:
            return None
        return self._bound(own, scene), (BASIC_GROUP,)

    def _bound(self, own: OwnTool, scene: Scene) -> Tool:
        """Return a tool of the session's own that works for this one."""
        if isinstance(own, MetaTool):
            return own.at(self._desk(scene))
        if HIDDEN in own.hidden:
            return own.with_injected({HIDDEN: self._desk(scene)})
        return own.with_injected({"book": self._book()})

    def _showing(self, scene: Scene) -> Showing:
        return show(scene, self._conversation, self.has_tasks)

    def _desk(self, scene: Scene) -> Desk:
        return Desk(self._conversation, scene)

    def _book(self) -> TaskBook:
        if self._tasks is None:
            self._tasks = TaskBook()
        return self._tasks


def _several(calls: Iterable[ToolCall]) -> list[ToolCall]:
    found = list(calls)
    for call in found:
        if not isinstance(call, ToolCall):
            raise TypeError(f"calls are ToolCall objects, not {type(call).__name__}")
    return found


class _Queue:
    """The calls of one step that have not begun."""

    def __init__(self, calls: list[ToolCall]) -> None:
        self._waiting = Counter(map(id, calls))
        self._calls = {id(call): call for call in calls}
        self._interrupted: set[int] = set()

    def interrupt(self, call_id: str | None) -> int:
        """Let the calls of that id, or all, end where they would begin; return how many."""
        met = [
            key
            for key, call in self._calls.items()
            if self._waiting[key] and call_id in {None, call.id} and key not in self._interrupted
        ]
        self._interrupted.update(met)
        return sum(self._waiting[key] for key in met)

    def leave(self, call: ToolCall) -> bool:
        """Take a call out; tell whether it was interrupted meanwhile."""
        self._waiting[id(call)] -= 1
        return id(call) in self._interrupted


class _Keeping(TaskBook):
    """Enters tasks into a book, and keeps the catalog that each needs until it has ended.

    The call itself has its answer, and lets go of the catalog, long before that.
    """

    def __init__(self, book: TaskBook, catalog: Catalog) -> None:
        super().__init__()
        self._book, self._catalog = book, catalog

    async def start(self, run: Run) -> AsyncIterator[Item]:
        async for item in self._book.start(run):
            task = self._book.get(item.metadata["task_id"])
            # A task forgets its callbacks, and what they hold, once it has called them.
            task.work.add_done_callback(partial(_let_go, self._catalog))
            yield item


def _let_go(_catalog: Catalog, _work: object) -> None:
    """Do nothing: that it is called no more is what counts."""


def _unavailable(name: str, showing: Showing, desk: Desk) -> str:
    """Tell the model why there is no such tool, and what to do."""
    if not isinstance(name, str):
        return "The name of a tool must be text."
    catalog = desk.catalog
    hidden = catalog.tools.get(name)
    if hidden is not None and name not in showing.names and hidden.tool is not None:
        return f"Tool {name!r} is in group {desk.group_of(hidden)!r}, " + desk.how_to_use(
            hidden.groups
        )
    name = shorten(one_line(name), _NAME_SHOWN)
    callable_ones = [other for other, entry in catalog.tools.items() if entry.tool is not None]
    near = near_misses(name, {*showing.names, *callable_ones})
    meant = [
        other if other in showing.names else f"{other} (in a tool group that is not active)"
        for other in near
    ]
    return f"There is no tool {name!r}." + (f" Did you mean {', '.join(meant)}?" if meant else "")
