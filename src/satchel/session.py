"""A session: one conversation's view of the catalog."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from satchel.catalog import Catalog
from satchel.groups import Activation, View, in_order_of_appearance
from satchel.names import BASIC_GROUP, near_misses
from satchel.prompt import SkillLine, SkillPrompt, render_notes, render_skills
from satchel.runtime import Middleware, Run, TaskBook, begin, layers_for, task_tools
from satchel.runtime.executors import Concurrent, Executor, in_order
from satchel.runtime.once import Answers
from satchel.shared import Shared
from satchel.tools import Item, Tool, ToolCall, ToolContext, ToolResult, failure
from satchel.tools.quick import quick

_NOTHING: Final = ToolContext()


class Session:
    """One conversation: which groups are active, and what the model sees because of it.

    Made by `Satchel.session()`. It always shows the newest generation.
    """

    __slots__ = (
        "_activation",
        "_answers",
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
        view = self._view()
        entries = in_order_of_appearance(view.tools, self._seen)
        self._seen = tuple(dict.fromkeys((*self._seen, *(entry.name for entry in entries))))
        tools = [entry.tool for entry in entries if entry.tool]
        own = [tool for tool in self._own_tools(view) if tool.name not in view.by_name]
        return [tool.to_schema(dialect) for tool in (*tools, *own)]

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
        if isinstance(item := run.begin(), ToolResult):
            return item
        key = id(run)
        self._running[key] = run
        try:
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
        return await in_order(executor or Concurrent(), _several(calls), self._one(context))

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
        return (executor or Concurrent()).stream(_several(calls), self._one(context))

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
        return len(runs)

    def _one(self, context: ToolContext | None) -> Callable[[ToolCall], Any]:
        return lambda call: self.call(
            call.name,
            call.arguments,
            call_id=call.id,
            context=context or call.context,
        )

    def _begin(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None,
        call_id: str,
        context: ToolContext | None,
    ) -> tuple[Run | ToolResult, Catalog]:
        """Return a run, or the result that says why there is none; and the catalog it needs."""
        catalog, view = self._shared.view(self._activation)
        found = self._find(name, view)
        if found is None:
            text = _unavailable(name, catalog, view)
            return failure("tool_not_found", text, call_id or None), catalog
        tool, group = found
        layers: tuple[Middleware, ...] = ()
        if self._shared.layers:
            layers = layers_for(self._shared.layers, name, group)
        if layers or tool.wants_context:  # Making one takes longer than many a tool.
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
        if tool.idempotent and self._answers is None:
            self._answers = Answers()
        run = begin(
            call,
            tool,
            self._shared.limits,
            layers=layers,
            find=lambda other: self._find(other, view),
            answers=self._answers,
            tasks=self._book() if tool.background else None,
        )
        return run, catalog

    def _find(self, name: str, view: View) -> tuple[Tool, str] | None:
        entry = view.by_name.get(name)
        if entry is not None:
            return (entry.tool, entry.group) if entry.tool else None
        own = self._own_tool(name, view)
        return (own, BASIC_GROUP) if own else None

    def _own_tool(self, name: str, view: View) -> Tool | None:
        return next((tool for tool in self._own_tools(view) if tool.name == name), None)

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
    hidden = catalog.tools.get(name)
    if hidden is not None and hidden.group not in {group.name for group in view.groups}:
        return (
            f"Tool {name!r} is in group {hidden.group!r}, which is not active. Activate it first."
        )
    near = near_misses(name, (tool.name for tool in view.tools))
    return f"There is no tool {name!r}." + (f" Did you mean {', '.join(near)}?" if near else "")
