"""The calls of one session: how each begins, and how those that run are ended."""

from collections import Counter
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
)
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Final
from weakref import WeakSet

from satchel.catalog import Catalog
from satchel.contracts import PlanPolicy, ToolContract, Validation
from satchel.runtime import BackgroundTasks, CallTask, Handler, Middleware, begin, layers_for
from satchel.runtime.answer_memory import AnswerMemory, forget_turn
from satchel.runtime.background_tasks import BackgroundTask
from satchel.runtime.call_messages import interruption
from satchel.runtime.executors import Answer, Concurrent, Executor, RunCall, in_order
from satchel.runtime.stream_opening import opened
from satchel.session.answering import PlanStream
from satchel.session.planning import EffectWriter, PlannedCalls, write_effects
from satchel.session.plans import PlanJudge, concerns
from satchel.session.session_state import SessionState
from satchel.session.tool_resolver import ToolResolver, contract_of
from satchel.shared import SharedView
from satchel.tools import Item, ToolCall, ToolContext, ToolResult, failure
from satchel.tools.fast_construction import construct_fast

_NOTHING: Final = ToolContext()

Arguments = Mapping[str, Any] | str | None
"""What a model wants a tool called with; it may be JSON text."""


Scenes = Callable[[], SharedView]
"""Gives the scene for a call that begins now."""


class CallDispatcher:
    """The calls of one conversation, each made with what a scene shows."""

    __slots__ = (
        "_answers",
        "_conversation",
        "_queues",
        "_running",
        "_shared",
        "_toolbox",
    )

    def __init__(self, conversation: SessionState) -> None:
        self._conversation, self._shared = conversation, conversation.shared
        self._toolbox = ToolResolver(conversation)
        self._running: dict[int, CallTask] = {}
        self._answers: AnswerMemory | None = None
        self._queues: WeakSet[_Queue] | None = None

    @property
    def _plans(self) -> PlanJudge:
        # Made when it is needed: sessions are many, and most calls have no contract.
        return PlanJudge(self._conversation, self._toolbox)

    @property
    def has_tasks(self) -> bool:
        """Tell whether anything was ever begun in the background."""
        return self._toolbox.tasks is not None

    def call(
        self,
        scene: SharedView,
        call: ToolCall,
    ) -> Coroutine[Any, Any, ToolResult]:
        """Run a tool as a plan of one; whatever goes wrong is told in the result."""
        if not self._concern(scene, call.name):
            return self._call(scene, call)
        return self._held(scene, call, self._conversation.plan_policy)

    def _concern(self, scene: SharedView, name: str) -> bool:
        """Tell whether a call of this tool has to be judged before it is run."""
        return self._conversation.plan_policy is not None or concerns(scene, name)

    def _concern_any(self, scene: SharedView, calls: Iterable[ToolCall]) -> bool:
        """Tell whether some of these calls have to be judged before they are run."""
        return any(self._concern(scene, call.name) for call in calls)

    async def _held(
        self, scene: SharedView, call: ToolCall, policy: PlanPolicy | None
    ) -> ToolResult:
        """Run a call if the contract of its tool, and the policy, let it pass."""
        plan = self._plans.judged(scene, [call], policy)
        if not plan.calls:
            return plan.answers[0]
        result, ran = await self._run(scene, plan.calls[0])
        return self._plans.written(scene, ran, result)

    async def _run(self, scene: SharedView, call: ToolCall) -> tuple[ToolResult, str]:
        """Run a call; return its result, and the name of the tool that a layer let run."""
        run = self._begin(scene, call)
        if isinstance(run, ToolResult):
            return run, call.name
        return await self._finished(run), run.answered_by or call.name

    async def _call(
        self,
        scene: SharedView,
        call: ToolCall,
    ) -> ToolResult:
        # The scene is held until the call has ended: the modules of a plugin's version live as
        # long as a catalog that serves it, so a reload takes nothing away from this call.
        run = self._begin(scene, call)
        if isinstance(run, ToolResult):
            return run
        result = await self._finished(run)
        return (
            self._plans.written(scene, run.answered_by or call.name, result)
            if run.sent_to
            else result
        )

    async def _finished(self, run: CallTask) -> ToolResult:
        key = id(run)
        self._running[key] = run  # before it begins: its first step may be what interrupts it
        try:
            return await run.result()
        finally:
            del self._running[key]

    def stream(
        self,
        scene: SharedView,
        call: ToolCall,
    ) -> AsyncIterator[Item]:
        """Run a tool and yield each chunk as it comes, last of all the result."""
        if not self._concern(scene, call.name):
            return self._stream(scene, call)
        return self._stream_held(scene, call)

    async def _stream_held(self, scene: SharedView, call: ToolCall) -> AsyncIterator[Item]:
        plan = self._plans.judged(scene, [call], self._conversation.plan_policy)
        for answer in plan.answers.values():
            yield answer
        for passed in plan.calls:
            async with aclosing(self._stream(scene, passed, is_held=True)) as items:
                async for item in items:
                    yield item

    async def _stream(
        self, scene: SharedView, call: ToolCall, *, is_held: bool = False
    ) -> AsyncGenerator[Item, None]:
        run = self._begin(scene, call)
        if isinstance(run, ToolResult):
            yield run
            return
        key = id(run)
        self._running[key] = run
        try:
            while not isinstance(item := await run.next(), ToolResult):
                yield item
            brings = is_held or run.sent_to
            yield self._plans.written(scene, run.answered_by or call.name, item) if brings else item
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
        executor = executor or Concurrent()
        if not self._concern_any(scene(), several):
            return await in_order(executor, several, self._one(scene, several, context))
        answers = self._answers_to_plan(scene, several, executor, context)
        results = {index: result async for index, result in answers}
        return [results[index] for index in range(len(several))]

    def execute_streaming(
        self,
        scene: Scenes,
        calls: Iterable[ToolCall],
        executor: Executor | None,
        context: ToolContext | None,
    ) -> AsyncIterator[tuple[int, ToolResult]]:
        """Run several calls and yield `(index, result)` as each completes."""
        several = _several(calls)
        executor = executor or Concurrent()
        if self._concern_any(scene(), several):
            return self._answers_to_plan(scene, several, executor, context)
        return executor.stream(several, self._one(scene, several, context))

    def validate(
        self, scene: SharedView, calls: Iterable[ToolCall], config: Mapping[str, Any] | None
    ) -> Validation:
        """Hold a plan to the contracts of its tools and the policy, and run nothing."""
        given = None if config is None else ToolContext(config=config)
        several = [_with_context(call, given) for call in _several(calls)]
        return self._plans.validate(scene, several)

    def _answers_to_plan(
        self,
        scene: Scenes,
        calls: list[ToolCall],
        executor: Executor,
        context: ToolContext | None,
    ) -> PlanStream:
        """Run what contracts and the policy leave of a plan; effects go by the order of calls."""

        def begin() -> tuple[PlannedCalls, EffectWriter, AsyncIterator[Answer]]:
            first = scene()
            several = [_with_context(call, context) for call in calls]
            plan = self._plans.judged(first, several, self._conversation.plan_policy)
            contracts = [contract_of(first, call.name) for call in plan.calls]
            ledger = EffectWriter(contracts, self._conversation.state)
            run = self._planned(scene, plan, contracts, ledger)
            return plan, ledger, executor.stream(plan.calls, run)

        return PlanStream(begin)

    def _planned(
        self,
        scene: Scenes,
        plan: PlannedCalls,
        contracts: list[ToolContract | None],
        ledger: EffectWriter,
    ) -> RunCall:
        """Return what runs one call of a plan that was judged."""
        numbers = {id(call): number for number, call in enumerate(plan.calls)}

        async def run(call: ToolCall) -> ToolResult:
            number = numbers.get(id(call))
            if number is None:
                # Somebody's own executor made another call of it; what it brings is written when
                # the executor says whose answer it is.
                return (await self._ended(scene(), call, None))[0]
            result, contract = await self._ended(scene(), call, contracts[number])
            if not result.is_error:
                ledger.end(number, result, contract)
            return result

        return self._unless_interrupted(list(plan.calls), run)

    async def _ended(
        self, scene: SharedView, call: ToolCall, held_to: ToolContract | None
    ) -> tuple[ToolResult, ToolContract | None]:
        """Run a call of a plan; return its result, and the contract by which that is written."""
        if contract_of(scene, call.name) is not held_to:
            # It was reloaded meanwhile: what its calls are held to now is something else.
            plan = self._plans.judged(scene, [call], None)
            if not plan.calls:
                return plan.answers[0], None
            call = plan.calls[0]
        result, ran = await self._run(scene, call)
        return result, self._plans.writing(scene, ran, result)

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
        queued = [queue.interrupt(call_id) for queue in tuple(self._queues or ())]
        return len(runs) + sum(queued)

    def _one(
        self, scene: Scenes, calls: list[ToolCall], context: ToolContext | None
    ) -> Callable[[ToolCall], Any]:

        async def run(call: ToolCall) -> ToolResult:
            return await self.call(scene(), _with_context(call, context))

        return self._unless_interrupted(calls, run)

    def _unless_interrupted(self, calls: list[ToolCall], run: RunCall) -> RunCall:
        """Return what runs one of several calls, unless it was interrupted in the queue."""
        queue = _Queue(calls)
        if self._queues is None:
            self._queues = WeakSet()
        self._queues.add(queue)

        async def one(call: ToolCall) -> ToolResult:
            if queue.leave(call):
                return interruption(call.name, call.id or None)
            return await run(call)

        return one

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
            context = replace(
                context,
                state=self._conversation.state,
                call_id=call.id,
                tool=name,
                preapproved=self._conversation.preapproved,
            )
        call = call.changed(tool=tool, groups=groups, context=context)
        if not (layers or tool.idempotent or tool.background or tool.postprocess):
            return begin(call, tool, self._shared.limits)  # as most calls are
        if tool.idempotent and self._answers is None:
            self._answers = AnswerMemory()
        sent_to: list[str] = []
        run = begin(
            call,
            tool,
            self._shared.limits,
            layers=layers,
            layers_of=partial(self._layers_of_another, scene, sent_to),
            find=lambda other: self._toolbox.find(other, scene),
            answers=self._answers,
            tasks=self._keeping(scene) if tool.background else None,
        )
        run.sent_to = sent_to
        return run

    def _layers_of(
        self, scene: SharedView, tool: str, groups: Collection[str]
    ) -> tuple[Middleware, ...]:
        # The host's stand around those that came with the tools.
        layers = self._shared.layers + scene.generation.layers
        return layers_for(layers, tool, groups) if layers else ()

    def _layers_of_another(
        self, scene: SharedView, sent_to: list[str], tool: str, groups: Collection[str]
    ) -> tuple[Middleware, ...]:
        """Return what stands around a tool that a layer sends a call to: its contract, too."""
        sent_to.append(tool)
        layers = self._layers_of(scene, tool, groups)
        return layers if contract_of(scene, tool) is None else (*layers, self._holding(scene))

    def _holding(self, scene: SharedView) -> Middleware:
        async def held(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
            plan = self._plans.judged(scene, [call], None)
            for answer in plan.answers.values():
                yield answer
            for passed in plan.calls:
                async with opened(inner, passed) as items:
                    async for item in items:
                        yield item

        return held

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


def _with_context(call: ToolCall, context: ToolContext | None) -> ToolCall:
    return call if context is None else call.changed(context=context)


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
