"""The calls of one session: how each begins, and how those that run are ended."""

from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Mapping,
)
from functools import partial
from typing import Any, Final
from weakref import WeakSet

from satchel.catalog import Catalog
from satchel.contracts import ToolContract, Validation
from satchel.runtime import BackgroundTasks, CallTask, Handler, Middleware, begin, layers_for
from satchel.runtime.answer_memory import AnswerMemory, forget_turn
from satchel.runtime.background_tasks import BackgroundTask
from satchel.runtime.executors import Concurrent, Executor
from satchel.runtime.stream_opening import opened
from satchel.session.plan_run import Plan, PlanStream, Scenes
from satchel.session.planning import write_effects
from satchel.session.plans import PlanJudge
from satchel.session.session_state import SessionState
from satchel.session.tool_resolver import ToolResolver, contract_of
from satchel.shared import SharedView
from satchel.tools import Item, ToolCall, ToolContext, ToolResult, failure
from satchel.tools.fast_construction import construct_fast

_NOTHING: Final = ToolContext()

Arguments = Mapping[str, Any] | str | None
"""What a model wants a tool called with; it may be JSON text."""


class CallDispatcher:
    """The calls of one conversation, each made with what a scene shows."""

    __slots__ = (
        "_answers",
        "_conversation",
        "_plans",
        "_running",
        "_shared",
        "_toolbox",
    )

    def __init__(self, conversation: SessionState) -> None:
        self._conversation, self._shared = conversation, conversation.shared
        self._toolbox = ToolResolver(conversation)
        self._running: dict[int, CallTask] = {}
        self._answers: AnswerMemory | None = None
        self._plans: WeakSet[Plan] | None = None

    @property
    def _judge(self) -> PlanJudge:
        # Made when it is needed: sessions are many, and most calls have no contract.
        return PlanJudge(self._conversation, self._toolbox)

    @property
    def has_tasks(self) -> bool:
        """Whether any call was ever started in the background."""
        return self._toolbox.tasks is not None

    async def call(self, scene: SharedView, call: ToolCall) -> ToolResult:
        """Run a tool as a plan of one; every failure becomes a result."""
        # The scene is held until the call has ended: the modules of a plugin's version live as
        # long as a catalog that serves it, so a reload takes nothing away from this call.
        run = self._admit(scene, call)
        if isinstance(run, ToolResult):
            return run
        return self._written(scene, run, await self._result_of(run))

    async def stream(self, scene: SharedView, call: ToolCall) -> AsyncIterator[Item]:
        """Run a tool; yield each chunk as it comes, and last the result."""
        run = self._admit(scene, call)
        if isinstance(run, ToolResult):
            yield run
            return
        key = id(run)
        self._running[key] = run
        try:
            while not isinstance(item := await run.next(), ToolResult):
                yield item
            yield self._written(scene, run, item)
        finally:
            del self._running[key]
            await run.close()

    async def execute(
        self,
        scenes: Scenes,
        calls: Iterable[ToolCall],
        executor: Executor | None,
        context: ToolContext | None,
    ) -> list[ToolResult]:
        """Run several calls and return their results in the order of the calls."""
        answers = self.execute_streaming(scenes, calls, executor, context)
        results = {index: result async for index, result in answers}
        return [results[index] for index in sorted(results)]

    def execute_streaming(
        self,
        scenes: Scenes,
        calls: Iterable[ToolCall],
        executor: Executor | None,
        context: ToolContext | None,
    ) -> AsyncIterator[tuple[int, ToolResult]]:
        """Run several calls and yield `(index, result)` as each completes."""
        plan_calls = _with_context(calls, context)
        plan = Plan(plan_calls, scenes, self._judge, self._run_in_plan)
        if self._plans is None:
            self._plans = WeakSet()
        self._plans.add(plan)
        return PlanStream(plan, executor or Concurrent())

    async def _run_in_plan(
        self, scene: SharedView, call: ToolCall
    ) -> tuple[ToolResult, ToolContract | None]:
        run = self._begin(scene, call)
        if isinstance(run, ToolResult):
            return run, self._judge.writing(scene, call.name, run)
        result = await self._result_of(run)
        return result, self._judge.writing(scene, run.answered_by or call.name, result)

    async def _result_of(self, run: CallTask) -> ToolResult:
        key = id(run)
        self._running[key] = run  # before it begins: its first step may be what interrupts it
        try:
            return await run.result()
        finally:
            del self._running[key]

    def _admit(self, scene: SharedView, call: ToolCall) -> CallTask | ToolResult:
        """Return a single call that is ready to run, or the result that says why it is not run."""
        judge = self._judge
        if judge.concerns(scene, call.name):
            judged = judge.judged_with_policy(scene, [call])
            if not judged.calls:
                return judged.answers[0]
            call = judged.calls[0]
        return self._begin(scene, call)

    def _written(self, scene: SharedView, run: CallTask, result: ToolResult) -> ToolResult:
        """Write the effects of a call into the state; if that fails, return why instead."""
        name = run.answered_by or run.call.name  # middleware may have sent it to another tool
        if contract_of(scene, name) is None:
            return result
        return self._judge.written(scene, name, result)

    def validate(
        self, scene: SharedView, calls: Iterable[ToolCall], config: Mapping[str, Any] | None
    ) -> Validation:
        """Hold a plan to the contracts of its tools and the policy, and run nothing."""
        context = None if config is None else ToolContext(config=config)
        return self._judge.validate(scene, _with_context(calls, context))

    def new_turn(self) -> None:
        """Forget the answers that last for one turn of the user."""
        if self._answers is not None:
            forget_turn(self._answers)

    async def finished(self, result: ToolResult) -> ToolResult:
        """Wait for what goes on in the background, and return what came of it."""
        tasks, task_id = self._toolbox.tasks, str(result.metadata.get("task_id"))
        if tasks is None or task_id not in tasks:
            return result
        task = tasks.get(task_id)
        await task.wait(None)
        return task.result or task.view()

    def interrupt(self, call_id: str | None) -> int:
        """End the calls of that id, or all; return how many there were."""
        tasks = self._toolbox.tasks
        background = tasks.running() if tasks else []
        runs = [
            run
            for run in (*tuple(self._running.values()), *background)
            if call_id is None or run.call.id == call_id
        ]
        for run in runs:
            run.interrupt()
        waiting = [plan.interrupt(call_id) for plan in tuple(self._plans or ())]
        return len(runs) + sum(waiting)

    def _begin(
        self,
        scene: SharedView,
        call: ToolCall,
    ) -> CallTask | ToolResult:
        """Return a call that is ready to run, or the result that says why there is none."""
        name = call.name
        # Models make up names; some are no text.
        found = self._toolbox.find(name, scene) if isinstance(name, str) else None
        if found is None:
            text = self._toolbox.unavailable(name, scene)
            return failure("tool_not_found", text, call.id or None)
        tool, groups = found
        layers, context = self._layers_of(scene, name, groups), call.context
        # Making one takes longer than many a tool, so it is made for who can read it.
        if layers or tool.wants_context or tool.postprocess:
            context = ToolContext(
                metadata=context.metadata,
                config=context.config,
                messages=context.messages,
                state=self._conversation.state,
                preapproved=self._conversation.preapproved,
                call_id=call.id,
                tool=name,
            )
        call = call.changed(tool=tool, groups=groups, context=context)
        if not (layers or tool.idempotent or tool.background or tool.postprocess):
            return begin(call, tool, self._shared.limits)  # as most calls are
        if tool.idempotent and self._answers is None:
            self._answers = AnswerMemory()
        return begin(
            call,
            tool,
            self._shared.limits,
            layers=layers,
            layers_of=partial(self._layers_of_another, scene),
            find=lambda other: self._toolbox.find(other, scene),
            answers=self._answers,
            tasks=self._keeping(scene) if tool.background else None,
        )

    def _layers_of(
        self, scene: SharedView, tool: str, groups: Collection[str]
    ) -> tuple[Middleware, ...]:
        # The host's middleware is outside that of plugins.
        own, generation = self._shared.layers, scene.generation
        if not (own or generation.layers):
            return ()
        # Found by its id, and kept with the value, so that no other tuple can take that id.
        _, layers = generation.once(
            (id(own), tool, tuple(groups)),
            lambda: (own, layers_for(own + generation.layers, tool, groups)),
        )
        return layers

    def _layers_of_another(
        self, scene: SharedView, tool: str, groups: Collection[str]
    ) -> tuple[Middleware, ...]:
        """Return the middleware of a tool that other middleware sends a call to."""
        layers = self._layers_of(scene, tool, groups)
        return (
            layers
            if contract_of(scene, tool) is None
            else (*layers, self._contract_middleware(scene))
        )

    def _contract_middleware(self, scene: SharedView) -> Middleware:
        async def layer(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
            plan = self._judge.judged(scene, [call], None)
            for answer in plan.answers.values():
                yield answer
            for passed in plan.calls:
                async with opened(inner, passed) as items:
                    async for item in items:
                        yield item

        return layer

    def _keeping(self, scene: SharedView) -> BackgroundTasks:
        def ended(tool: str, result: ToolResult) -> ToolResult:
            contract = contract_of(scene, tool)
            if contract is None:
                return result
            return write_effects(contract, result, self._conversation.state)

        return _Keeping(self._toolbox.book, scene.catalog, ended)


def call_of(name: str, arguments: Arguments, call_id: str, context: ToolContext | None) -> ToolCall:
    """Make the one value that a call is, from the door to the function."""
    return construct_fast(
        ToolCall,
        name=name,
        arguments={} if arguments is None else arguments,
        id=call_id,
        tool=None,
        groups=(),
        context=context or _NOTHING,
    )


def _with_context(calls: Iterable[ToolCall], context: ToolContext | None) -> list[ToolCall]:
    plan = list(calls)
    for call in plan:
        if not isinstance(call, ToolCall):
            raise TypeError(f"calls are ToolCall objects, not {type(call).__name__}")
    return plan if context is None else [call.changed(context=context) for call in plan]


class _Keeping(BackgroundTasks):
    """Enters tasks into a book, and keeps the catalog that each needs until it has ended.

    The call itself has its answer, and lets go of the catalog, long before that.
    """

    def __init__(
        self,
        book: BackgroundTasks,
        catalog: Catalog,
        ended: Callable[[str, ToolResult], ToolResult],
    ) -> None:
        super().__init__()
        self._book, self._catalog, self._tell = book, catalog, ended

    async def start(self, run: CallTask) -> AsyncIterator[Item]:
        async for item in self._book.start(run):
            task = self._book.get(item.metadata["task_id"])
            # A task forgets its callbacks, and what they hold, once it has called them.
            task.work.add_done_callback(partial(self._end, task))
            yield item

    def _end(self, task: BackgroundTask, _work: object) -> None:
        if task.result is not None:
            task.result = self._tell(task.tool, task.result)
