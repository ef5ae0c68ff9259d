"""The methods to call tools, shared by `Session` and `Step`."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from satchel.catalog import ToolEntry
from satchel.contracts import Contracts, Validation
from satchel.prompt import ToolGuideEntry, render_guide
from satchel.runtime.executors import Executor
from satchel.session.calls import Arguments, CallDispatcher, call_of
from satchel.shared import SharedView
from satchel.tools import Item, ToolCall, ToolContext, ToolResult


class CallApi(ABC):
    """Calls the tools of a view."""

    __slots__ = ("_calls",)

    def __init__(self, calls: CallDispatcher) -> None:
        self._calls = calls

    @abstractmethod
    def _shared_view(self) -> SharedView:
        """Return the view for a call that begins now."""

    async def call(
        self,
        name: str,
        arguments: Arguments = None,
        *,
        call_id: str = "",
        context: ToolContext | None = None,
    ) -> ToolResult:
        """Run a tool of an active group. Errors are part of the result.

        `arguments` may be the JSON text that models produce. `context` passes further values from
        the host to the tool.
        """
        return await self._calls.call(
            self._shared_view(), call_of(name, arguments, call_id, context)
        )

    def stream(
        self,
        name: str,
        arguments: Arguments = None,
        *,
        call_id: str = "",
        context: ToolContext | None = None,
    ) -> AsyncIterator[Item]:
        """Run a tool and yield each `ToolChunk` as it comes, then the `ToolResult`.

        Leaving the loop early ends the tool; with `contextlib.aclosing`, immediately.
        """
        return self._calls.stream(self._shared_view(), call_of(name, arguments, call_id, context))

    @property
    def contracts(self) -> Contracts:
        """Return the contracts of the visible tools."""
        entries = self._shared_view().view.tools
        return Contracts(entry.contract for entry in entries if entry.tool and entry.contract)

    def tool_guide(self) -> str:
        """Return text for a planner: the tools of the active groups and their rules."""
        shared_view = self._shared_view()
        return shared_view.once(
            "guide",
            lambda: render_guide(
                _guide_entry(entry) for entry in shared_view.view.tools if entry.tool
            ),
        )

    def validate(
        self, plan: Iterable[ToolCall], *, config: Mapping[str, Any] | None = None
    ) -> Validation:
        """Check a plan against its tools, their contracts and the policy; nothing is run.

        Returns the calls to run, and what would be corrected, pruned and rejected. `config` is the
        configuration for every call; the default is that of each call's own context.
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

        Ten run at once, unless an `executor` says otherwise. A call that fails does not affect the
        others. If a tool has a contract, the calls are one plan: pruned or rejected calls get an
        answer and are not run; the others write to the state in the order of the calls.
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


def _guide_entry(entry: ToolEntry) -> ToolGuideEntry:
    rules = entry.contract.invariants if entry.contract else ()
    return ToolGuideEntry(
        name=entry.name,
        description=entry.tool.description if entry.tool else entry.description,
        parameters=entry.tool.parameters if entry.tool else {},
        rules=tuple((rule.id, rule.rule) for rule in rules),
    )
