"""The calls of one session: how they start, and how they are interrupted."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Final
from weakref import WeakSet

from satchel.contracts.plan import Validation
from satchel.contracts.tool_contract import ToolContract
from satchel.runtime.answer_memory import AnswerMemory, forget_turn
from satchel.runtime.background_tasks import BackgroundTasks
from satchel.runtime.call_pipeline import CallScope
from satchel.runtime.call_task import CallTask
from satchel.runtime.event_loop_thread import EventLoopThread
from satchel.runtime.executors import Concurrent, Executor
from satchel.runtime.prepared_tool import PreparedTool
from satchel.runtime.scoped_runner import runner_for, unknown_runner
from satchel.session.call_middleware import contract_middleware
from satchel.session.plan_run import CurrentView, PlanRun, PlanStream
from satchel.session.plans import PlanValidator, needs_validation
from satchel.session.session_state import SessionState
from satchel.session.session_tasks import SessionTasks
from satchel.session.tool_resolver import ToolResolver, contract_of
from satchel.shared import SharedView
from satchel.tools import Item, ToolCall, ToolContext, ToolResult, failure
from satchel.tools.argument_errors import ArgumentError
from satchel.tools.fast_construction import Draft, changed_fast
from satchel.tools.runner import Runner

_log = logging.getLogger("satchel.session")

_EMPTY_CONTEXT: Final = ToolContext()

Arguments = Mapping[str, Any] | str | None
"""The arguments of a model; they may be JSON text."""


class CallDispatcher:
    """Runs the calls of one session, each with the tools that a shared view shows."""

    __slots__ = (
        "_plans",
        "_running",
        "_session_state",
        "_shared",
        "answers",
        "resolver",
    )

    def __init__(self, session_state: SessionState) -> None:
        self._session_state, self._shared = session_state, session_state.shared
        self.resolver = ToolResolver(session_state)
        """Finds the tools of the session."""
        self._running: set[CallTask] = set()
        self.answers: AnswerMemory | None = None
        """The remembered results of idempotent tools, if there are any."""
        self._plans: WeakSet[PlanRun] | None = None

    @property
    def validator(self) -> PlanValidator:
        """Validates the plans of the session."""
        # Not kept: sessions are many, and most calls have no contract.
        return PlanValidator(self._session_state, self.resolver)

    @property
    def has_tasks(self) -> bool:
        """Whether any call was ever started in the background."""
        return self.resolver.tasks is not None

    @property
    def background_loop(self) -> EventLoopThread:
        """The loop of the satchel for hosts without one."""
        return self._shared.background_loop.get()

    @staticmethod
    def call_of(
        name: str, arguments: Arguments, call_id: str, context: ToolContext | None
    ) -> ToolCall:
        """Return a `ToolCall` that has no tool and no groups yet."""
        draft: Any = Draft()
        draft.name, draft.id = name, call_id
        draft.arguments = {} if arguments is None else arguments
        draft.context = context or _EMPTY_CONTEXT
        draft.__class__ = ToolCall
        call: ToolCall = draft
        return call

    async def call(self, shared_view: SharedView, call: ToolCall) -> ToolResult:
        """Run a tool as a plan of one; every failure becomes a result."""
        # This holds the view until the call has ended: the modules of a plugin's version live as
        # long as a catalog that serves it, so a reload does not unload them during this call.
        is_planned = shared_view.cache.has_contracts or self._session_state.plan_policy is not None
        prepare = self._prepare_validated if is_planned else self.prepare
        run = prepare(shared_view, call)
        if isinstance(run, ToolResult):
            return run
        self._running.add(run)  # before it starts: its first step may interrupt it
        try:
            result = run.start() or await run.result()
        finally:
            self._running.discard(run)
        return self.write_effects(shared_view, run, result) if is_planned else result

    async def stream(self, shared_view: SharedView, call: ToolCall) -> AsyncIterator[Item]:
        """Run a tool; yield each chunk as it comes, and last the result."""
        run = self._prepare_validated(shared_view, call)
        async with aclosing(self.items_of(run)) as items:
            async for item in items:
                if isinstance(item, ToolResult):
                    item = self.write_effects(shared_view, run, item)  # noqa: PLW2901
                yield item

    async def items_of(self, run: CallTask | ToolResult) -> AsyncGenerator[Item, None]:
        """Run a prepared call; yield each chunk, and last the result, without its effects."""
        if isinstance(run, ToolResult):
            yield run
            return
        self._running.add(run)
        try:
            while not isinstance(item := await run.next(), ToolResult):
                yield item
            yield item
        finally:
            self._running.discard(run)
            await run.aclose()

    def needs_approval(self, shared_view: SharedView, call: ToolCall) -> bool:
        """Return whether middleware would ask for approval before a call of a validated plan."""
        from satchel.runtime.middleware.approval import ApprovalMiddleware  # lazy: few hosts ask

        run = self.prepare(shared_view, call)
        if isinstance(run, ToolResult):
            return False
        middleware = run.prepared.middleware
        asking = [item for item in middleware if isinstance(item, ApprovalMiddleware)]
        try:
            return any(item.needs_approval(run.validated_call()) for item in asking)
        except ArgumentError:
            return False  # it will be answered without running

    async def execute(
        self,
        current_view: CurrentView,
        calls: Iterable[ToolCall],
        executor: Executor | None,
        context: ToolContext | None,
    ) -> list[ToolResult]:
        """Run several calls and return their results in the order of the calls."""
        answers = self.execute_streaming(current_view, calls, executor, context)
        results = {index: result async for index, result in answers}
        return [results[index] for index in sorted(results)]

    def execute_streaming(
        self,
        current_view: CurrentView,
        calls: Iterable[ToolCall],
        executor: Executor | None,
        context: ToolContext | None,
    ) -> AsyncIterator[tuple[int, ToolResult]]:
        """Run several calls and yield `(index, result)` as each completes."""
        plan_run = PlanRun(
            with_context(calls, context), current_view, self.validator, self._run_in_plan
        )
        if self._plans is None:
            self._plans = WeakSet()
        self._plans.add(plan_run)
        return PlanStream(plan_run, executor or Concurrent())

    async def _run_in_plan(
        self, shared_view: SharedView, call: ToolCall
    ) -> tuple[ToolResult, ToolContract | None]:
        run, name = self.prepare(shared_view, call), call.name
        if isinstance(run, ToolResult):
            result = run
        else:
            result = await self._result_of(run)
            name = run.executed_tool or name
        return result, self.validator.contract_to_write(shared_view, name, result)

    async def _result_of(self, run: CallTask) -> ToolResult:
        self._running.add(run)  # before it starts: its first step may interrupt it
        try:
            return run.start() or await run.result()
        finally:
            self._running.discard(run)

    def _prepare_validated(self, shared_view: SharedView, call: ToolCall) -> CallTask | ToolResult:
        """Return a single call that is ready to run, or the result of a refused call."""
        if needs_validation(shared_view, call.name, self._session_state.plan_policy):
            planned = self.validator.plan_calls_with_policy(shared_view, [call])
            if planned.refusals:
                return planned.refusals[0]
            call = planned.accepted[0].call
        return self.prepare(shared_view, call)

    def write_effects(
        self, shared_view: SharedView, run: CallTask | ToolResult, result: ToolResult
    ) -> ToolResult:
        """Write the effects of a call into the state; if that fails, return why instead."""
        if isinstance(run, ToolResult):
            return result
        name = run.executed_tool or run.call.name  # middleware may have sent it to another tool
        return self.validator.write_effects(shared_view, name, result)

    def validate(
        self, shared_view: SharedView, calls: Iterable[ToolCall], config: Mapping[str, Any] | None
    ) -> Validation:
        """Validate a plan by the contracts of its tools and by the policy; run nothing."""
        context = None if config is None else ToolContext(config=config)
        return self.validator.validate(shared_view, with_context(calls, context))

    def new_turn(self) -> None:
        """Forget the answers that last for one turn of the user."""
        if self.answers is not None:
            forget_turn(self.answers)

    async def finished(self, result: ToolResult) -> ToolResult:
        """Wait for the background task of a result, and return the result of the task."""
        tasks, task_id = self.resolver.tasks, str(result.metadata.get("task_id"))
        if tasks is None or task_id not in tasks:
            return result
        task = tasks.get(task_id)
        await task.wait(None)
        return task.result or task.view()

    def interrupt(self, call_id: str | None) -> int:
        """Interrupt the calls with that id, or all; return how many there were."""
        tasks = self.resolver.tasks
        background = tasks.running() if tasks else []
        runs = [
            run
            for run in (*tuple(self._running), *background)
            if call_id is None or run.call.id == call_id
        ]
        for run in runs:
            run.interrupt()
        waiting = [plan.interrupt(call_id) for plan in tuple(self._plans or ())]
        return len(runs) + sum(waiting)

    def prepare(self, shared_view: SharedView, call: ToolCall) -> CallTask | ToolResult:
        """Return a call that is ready to run, or the result that says why it cannot run."""
        prepared = self.resolver.prepared(call.name, shared_view)
        if prepared is None:
            text = self.resolver.unavailable(call.name, shared_view)
            return failure("tool_not_found", text, call.id or None)
        scope = SessionScope(self, shared_view) if prepared.has_middleware else None
        context = self._full_context(call) if prepared.needs_context else None
        run = CallTask(call, prepared, scope, context)
        if prepared.is_routed:
            run.route = partial(self._route, shared_view)
        return run

    def _full_context(self, call: ToolCall) -> ToolContext:
        """Return the context with the values of the session, for code that can read it."""
        values = {
            "state": self._session_state.state,
            "preapproved": self._session_state.preapproved,
            "programs": self._shared.programs,
            "call_id": call.id,
            "tool": call.name,
        }
        return changed_fast(call.context, values)

    def _route(self, shared_view: SharedView, call: ToolCall) -> tuple[Runner, ToolCall]:
        """Return the runner of a call: the host's, if there is one for this tool of a plugin."""
        assert call.tool is not None
        catalog = shared_view.catalog
        name = catalog.runner_name_of(call.name)
        chosen = runner_for(self._shared.extensions.runners, call, name)
        if name and chosen is None and name not in self._shared.unknown_runners:
            self._shared.unknown_runners |= {name}
            _log.warning("%s", unknown_runner(name, call.name))
        digest = catalog.plugin_digest_of(call.name) if chosen is not None else ""
        if chosen is None or not digest:
            return call.tool.runner, call
        return chosen, call.changed(plugin_digest=digest, session_key=id(self._session_state))


class SessionScope(CallScope):
    """What a session offers to the middleware of a call with one view."""

    def __init__(self, calls: CallDispatcher, shared_view: SharedView) -> None:
        self._calls, self._shared_view = calls, shared_view

    def find(self, name: str) -> PreparedTool | None:
        """Return a tool to which a call may be redirected."""
        calls, shared_view = self._calls, self._shared_view
        prepared = calls.resolver.prepared(name, shared_view)
        if prepared is None or contract_of(shared_view, name) is None:
            return prepared
        contract = contract_middleware(calls.validator, shared_view)
        return replace(prepared, middleware=(*prepared.middleware, contract))

    def answers(self) -> AnswerMemory:
        """Return the remembered results of idempotent tools."""
        self._calls.answers = self._calls.answers or AnswerMemory()
        return self._calls.answers

    def tasks(self) -> BackgroundTasks:
        """Return the background tasks."""
        calls = self._calls
        return SessionTasks(calls.resolver.task_registry, self._shared_view, calls.validator.state)


def with_context(calls: Iterable[ToolCall], context: ToolContext | None) -> list[ToolCall]:
    """Return the calls, each with the context if there is one. Raises `TypeError`."""
    plan = list(calls)
    for call in plan:
        if not isinstance(call, ToolCall):
            raise TypeError(f"calls are ToolCall objects, not {type(call).__name__}")
    return plan if context is None else [call.changed(context=context) for call in plan]
