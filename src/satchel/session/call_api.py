"""The calls that both sessions and steps offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import ToolEntry
    from satchel.contracts.contract_set import Contracts
    from satchel.contracts.plan import Validation
    from satchel.prompt.tool_guide import ToolGuideEntry
    from satchel.runtime.executors import Executor
    from satchel.session.calls import Arguments, CallDispatcher
    from satchel.session.lazy_dispatcher import LazyDispatcher
    from satchel.shared import SharedView
    from satchel.tools import Item, Tool, ToolCall, ToolContext, ToolResult


class CallApi(ABC):
    """Runs calls, each with the tools that a shared view shows."""

    __slots__ = ("_lazy_calls",)

    def __init__(self, calls: LazyDispatcher) -> None:
        self._lazy_calls = calls

    @property
    def _calls(self) -> CallDispatcher:
        return self._lazy_calls.get()

    @abstractmethod
    def _shared_view(self) -> SharedView:
        """Return the view of the tools that a call which starts now can use."""

    async def call(
        self,
        name: str,
        arguments: Arguments = None,
        *,
        call_id: str = "",
        context: ToolContext | None = None,
    ) -> ToolResult:
        """Run a tool of an active group; every failure becomes a result.

        `arguments` may be the JSON text that models produce. `context` is what the host passes
        to the tool beside them.
        """
        calls = self._calls
        call = calls.call_of(name, arguments, call_id, context)
        return await calls.call(self._shared_view(), call)

    def stream(
        self,
        name: str,
        arguments: Arguments = None,
        *,
        call_id: str = "",
        context: ToolContext | None = None,
    ) -> AsyncIterator[Item]:
        """Run a tool; yield each `ToolChunk` as it comes, and last the `ToolResult`.

        Leaving the loop early ends the tool; with `contextlib.aclosing`, at once.
        """
        calls = self._calls
        call = calls.call_of(name, arguments, call_id, context)
        return calls.stream(self._shared_view(), call)

    def call_sync(
        self,
        name: str,
        arguments: Arguments = None,
        *,
        call_id: str = "",
        context: ToolContext | None = None,
    ) -> ToolResult:
        """Run a tool and wait for its result, for hosts without an event loop.

        All such calls of a satchel run on one loop in a thread of its own, with the context
        variables of the caller. Any number of threads may call. Raises `ConflictError` where an
        event loop runs.
        """
        from satchel.session.sync_calls import run_sync  # lazy: most hosts have a loop

        work = self.call(name, arguments, call_id=call_id, context=context)
        return run_sync(self._calls.background_loop, work)

    def execute_sync(
        self,
        calls: Iterable[ToolCall],
        *,
        executor: Executor | None = None,
        context: ToolContext | None = None,
    ) -> list[ToolResult]:
        """Run several calls as `execute` does, and wait for them as `call_sync` does."""
        from satchel.session.sync_calls import run_sync  # lazy: most hosts have a loop

        work = self.execute(calls, executor=executor, context=context)
        return run_sync(self._calls.background_loop, work)

    def stream_sync(
        self,
        name: str,
        arguments: Arguments = None,
        *,
        call_id: str = "",
        context: ToolContext | None = None,
    ) -> Iterator[Item]:
        """Run a tool as `stream` does, and yield its items as `call_sync` waits.

        Leaving the loop early ends the tool once the iterator is closed or freed.
        """
        from satchel.session.sync_calls import stream_sync  # lazy: most hosts have a loop

        items = self.stream(name, arguments, call_id=call_id, context=context)
        return stream_sync(self._calls.background_loop, items)

    @property
    def contracts(self) -> Contracts:
        """The contracts of the tools that can be called now."""
        from satchel.contracts.contract_set import Contracts  # lazy: needed only with contracts

        entries = self._shared_view().view.tools
        return Contracts(entry.contract for entry in entries if entry.tool and entry.contract)

    def tool_guide(self) -> str:
        """Return a block for a planner: the tools of the active groups, and the rules they keep."""
        from satchel.prompt.tool_guide import render_guide  # lazy: needed only by a planner

        shared_view = self._shared_view()
        return shared_view.get_or_make(
            "guide",
            lambda: render_guide(
                _guide_entry(entry, entry.tool)
                for entry in shared_view.view.sent_tools
                if entry.tool is not None
            ),
        )

    def validate(
        self, plan: Iterable[ToolCall], *, config: Mapping[str, Any] | None = None
    ) -> Validation:
        """Validate a plan by its tools, their contracts and the policy; run nothing.

        Returns the calls that would run, and those that would be corrected, pruned and rejected.
        `config` is for every call; without it, each call's own context has it.
        """
        return self._calls.validate(self._shared_view(), plan, config)

    async def execute(
        self,
        calls: Iterable[ToolCall],
        *,
        executor: Executor | None = None,
        context: ToolContext | None = None,
    ) -> list[ToolResult]:
        """Run several calls and return their results in the order of the calls.

        Ten run at once, unless an `executor` orders them differently. A failure does not affect
        other calls. The calls are one plan: contracts may prune or reject calls, which are then
        answered without running; effects go into the state in the order of the calls.
        """
        return await self._calls.execute(self._shared_view, calls, executor, context)

    def execute_streaming(
        self,
        calls: Iterable[ToolCall],
        *,
        executor: Executor | None = None,
        context: ToolContext | None = None,
    ) -> AsyncIterator[tuple[int, ToolResult]]:
        """Run several calls and yield `(index, result)` as each completes.

        Leaving the loop early ends the calls that still run.
        """
        return self._calls.execute_streaming(self._shared_view, calls, executor, context)


def _guide_entry(entry: ToolEntry, tool: Tool) -> ToolGuideEntry:
    from satchel.prompt.tool_guide import ToolGuideEntry  # lazy: needed only by a planner

    rules = entry.contract.invariants if entry.contract else ()
    return ToolGuideEntry(
        name=entry.name,
        description=tool.description,
        parameters=tool.parameters,
        rules=tuple((rule.id, rule.rule) for rule in rules),
    )
