"""A session: one conversation's view of the catalog."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final
from weakref import WeakSet

from satchel.catalog import Catalog
from satchel.errors import NotFoundError
from satchel.groups import Activation, View, in_order_of_appearance
from satchel.names import BASIC_GROUP, near_misses
from satchel.prompt import SkillLine, SkillPrompt, render_notes, render_skills
from satchel.runtime import Middleware, Run, TaskBook, begin, layers_for, task_tools
from satchel.runtime.executors import Concurrent, Executor, in_order
from satchel.runtime.messages import interruption
from satchel.runtime.once import Answers
from satchel.runtime.reading import readable
from satchel.runtime.run import ToolRun
from satchel.shared import Shared
from satchel.text import one_line, shorten
from satchel.tools import Item, Tool, ToolCall, ToolContext, ToolResult, failure
from satchel.tools.dialects import DIALECTS
from satchel.tools.quick import quick

_NOTHING: Final = ToolContext()
_NAME_SHOWN: Final = 80


class Session:
    """One conversation: which groups are active, and what the model sees because of it.

    Made by `Satchel.session()`. It always shows the newest generation.
    """

    __slots__ = (
        "_activation",
        "_answers",
        "_queues",
        "_running",
        "_seen",
        "_shared",
        "_task_tools",
        "_tasks",
        "skill_style",
        "state",
    )

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._activation = Activation()
        self._seen: tuple[str, ...] = ()
        self._running: dict[int, Run] = {}
        self._answers: Answers | None = None
        self._tasks: TaskBook | None = None
        self._task_tools: tuple[Tool, ...] = ()
        self.skill_style: SkillPrompt = shared.skill_style
        self._queues: WeakSet[_Queue] | None = None
        self.state: dict[str, Any] = {}
        """What tools keep from one call to the next; they get it with their `ToolContext`."""

    @property
    def active_groups(self) -> tuple[str, ...]:
        """Return the names of the active groups."""
        return tuple(group.name for group in self._view().groups)

    def activate(self, *groups: str) -> None:
        """Switch groups on, all or none. Raises `NotFoundError` with the near misses."""
        self._switch(groups, Activation.activate)

    def deactivate(self, *groups: str) -> None:
        """Switch groups off, all or none. Raises `NotFoundError`; `ConflictError` for `basic`."""
        self._switch(groups, Activation.deactivate)

    def _switch(
        self, groups: tuple[str, ...], step: Callable[[Activation, str], Activation]
    ) -> None:
        catalog, activation = self._shared.catalog, self._activation
        for name in groups:
            activation = step(activation, catalog.group(name).name)
        self._activation = activation

    def _view(self) -> View:
        return self._shared.view(self._activation)[1]

    def prompt(self) -> str:
        """Return the skill prompt followed by the notes of the active groups, or `""`."""
        return _prompt(self._view(), self.skill_style)

    def skill_prompt(self) -> str:
        """Return the listing of the skills, or `""` if there are none."""
        return _skill_prompt(self._view(), self.skill_style)

    def activated_notes(self) -> str:
        """Return the notes of the active groups, each under its heading, or `""`."""
        return _notes(self._view())

    def schemas(self, dialect: str = "openai") -> list[dict[str, Any]]:
        """Return the tools of the active groups, in the words of a provider.

        Dialects are `openai`, `openai-strict`, `anthropic`, `gemini` and `mcp`; raises
        `NotFoundError` for any other. Tools that are new to the session come last, so that what
        a provider cached stays valid.
        """
        if dialect not in DIALECTS:
            raise NotFoundError("dialect", dialect, near_misses(dialect, DIALECTS))
        view = self._view()
        own = (tool for tool in self._own_tools(view) if tool.name not in view.by_name)
        # Tools in place of their entries: only the names are looked at.
        shown: list[Any] = [*(entry.tool for entry in view.tools if entry.tool), *own]
        tools: Iterable[Any] = in_order_of_appearance(shown, self._seen)
        self._seen = tuple(dict.fromkeys((*self._seen, *(tool.name for tool in tools))))
        return [tool.to_schema(dialect) for tool in tools]

    # ---- calls ----------------------------------------------------------------------------

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        call_id: str = "",
        context: ToolContext | None = None,
    ) -> ToolResult:
        """Run a tool of an active group; whatever goes wrong is told in the result.

        `arguments` may be the JSON text that models produce. `context` is what the host tells
        the tool beside them.
        """
        # Held until the call has ended: the modules of a plugin's version live as long as a
        # catalog that serves it, so a reload meanwhile takes nothing away from this call.
        run, _held = self._begin(name, arguments, call_id, context)
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
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        call_id: str = "",
        context: ToolContext | None = None,
    ) -> AsyncIterator[Item]:
        """Run a tool and yield each `ToolChunk` as it comes, last of all the `ToolResult`.

        Leaving the loop early ends the tool; with `contextlib.aclosing`, at once.
        """
        run, _held = self._begin(name, arguments, call_id, context)
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
        calls: Iterable[ToolCall],
        *,
        executor: Executor | None = None,
        context: ToolContext | None = None,
    ) -> list[ToolResult]:
        """Run several calls and return their results in the order of the calls.

        Ten run at once unless an `executor` says otherwise. One that fails disturbs no other.
        """
        several = _several(calls)
        return await in_order(executor or Concurrent(), several, self._one(several, context))

    def execute_streaming(
        self,
        calls: Iterable[ToolCall],
        *,
        executor: Executor | None = None,
        context: ToolContext | None = None,
    ) -> AsyncIterator[tuple[int, ToolResult]]:
        """Run several calls and yield `(index, result)` as each completes.

        Leaving the loop early ends what still runs.
        """
        several = _several(calls)
        return (executor or Concurrent()).stream(several, self._one(several, context))

    def interrupt(self, call_id: str | None = None) -> int:
        """End the calls of that id, or all of this session; return how many there were.

        Each ends with a result that is marked interrupted and keeps what was told so far. May
        be called from any thread.
        """
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

    def _one(self, calls: list[ToolCall], context: ToolContext | None) -> Callable[[ToolCall], Any]:
        """Return what runs one of several calls, unless it was interrupted in the queue."""
        queue = _Queue(calls)
        if self._queues is None:
            self._queues = WeakSet()
        self._queues.add(queue)

        async def one(call: ToolCall) -> ToolResult:
            if queue.leave(call):
                return interruption(call.name, call.id or None)
            return await self.call(
                call.name, call.arguments, call_id=call.id, context=context or call.context
            )

        return one

    def _begin(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None,
        call_id: str,
        context: ToolContext | None,
    ) -> tuple[Run | ToolResult, Catalog]:
        """Return a run, or the result that says why there is none; and the catalog it needs."""
        catalog, view = self._shared.view(self._activation)
        # Models make up names; some are no text.
        found = self._find(name, view) if isinstance(name, str) else None
        if found is None:
            text = _unavailable(name, catalog, view)
            return failure("tool_not_found", text, call_id or None), catalog
        tool, group = found
        if layers := self._layers_of(name, group):
            arguments = readable(name, arguments)
        # Making one takes longer than many a tool, so it is made for who can read it.
        if layers or tool.wants_context or tool.postprocess:
            context = replace(context or _NOTHING, state=self.state, call_id=call_id, tool=name)
        call = quick(
            ToolCall,
            name=name,
            arguments={} if arguments is None else arguments,
            id=call_id,
            tool=tool,
            group=group,
            context=context or _NOTHING,
        )
        if not (layers or tool.idempotent or tool.background or tool.postprocess):
            return ToolRun(call, tool, self._shared.limits), catalog  # as most calls are
        if tool.idempotent and self._answers is None:
            self._answers = Answers()
        run = begin(
            call,
            tool,
            self._shared.limits,
            layers=layers,
            layers_of=self._layers_of,
            find=lambda other: self._find(other, view),
            answers=self._answers,
            tasks=_Keeping(self._book(), catalog) if tool.background else None,
        )
        return run, catalog

    def _layers_of(self, tool: str, group: str) -> tuple[Middleware, ...]:
        layers = self._shared.layers
        return layers_for(layers, tool, group) if layers else ()

    def _find(self, name: str, view: View) -> tuple[Tool, str] | None:
        entry = view.by_name.get(name)
        if entry is not None:
            return (entry.tool, entry.group) if entry.tool else None
        own = (tool for tool in self._own_tools(view) if tool.name == name)
        return next(((tool, BASIC_GROUP) for tool in own), None)

    def _own_tools(self, view: View) -> tuple[Tool, ...]:
        """Return the tools that are there for what this session does."""
        has_tasks = self._tasks is not None
        if not has_tasks and not any(e.tool and e.tool.background for e in view.tools):
            return ()
        if not self._task_tools:
            self._task_tools = task_tools(self._book())
        return self._task_tools

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


def _prompt(view: View, style: SkillPrompt) -> str:
    parts = (_skill_prompt(view, style), _notes(view))
    return "\n\n".join(part for part in parts if part)


def _skill_prompt(view: View, style: SkillPrompt) -> str:
    return render_skills(
        [SkillLine(skill.name, skill.description, skill.path) for skill in view.skills], style
    )


def _notes(view: View) -> str:
    return render_notes((group.name, group.notes) for group in view.groups)


def _unavailable(name: str, catalog: Catalog, view: View) -> str:
    """Tell the model why there is no such tool, and what to do."""
    if not isinstance(name, str):
        return "The name of a tool must be text."
    hidden = catalog.tools.get(name)
    if hidden is not None and hidden.group not in {group.name for group in view.groups}:
        return (
            f"Tool {name!r} is in group {hidden.group!r}, which is not active. Activate it first."
        )
    name = shorten(one_line(name), _NAME_SHOWN)
    near = near_misses(name, (entry.name for entry in view.tools if entry.tool))
    return f"There is no tool {name!r}." + (f" Did you mean {', '.join(near)}?" if near else "")
