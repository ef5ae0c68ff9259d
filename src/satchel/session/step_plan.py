"""A plan that the host runs call by call, as most frameworks do."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import aclosing

from satchel.errors import ConflictError, NotFoundError
from satchel.names import near_misses
from satchel.session.calls import CallDispatcher
from satchel.session.sync_calls import run_sync, stream_sync
from satchel.shared import SharedView
from satchel.tools import Item, ToolCall, ToolResult


class StepPlan:
    """The calls of one model message: judged together, each run when the host asks for it.

    `Step.plan` returns it. Contracts and the policy have judged all calls when it is made. The host
    runs each by its id, or by its index in the message, in any order and also at the same time.
    Calls that run together write their effects in the order of the message: a call with effects
    ends after the earlier ones with effects, so do not wait for it in a loop over the stream of
    such a call. A call runs once: asked for again, it gives the same result.
    """

    def __init__(
        self, dispatcher: CallDispatcher, shared_view: SharedView, calls: Sequence[ToolCall]
    ) -> None:
        self._dispatcher, self._shared_view = dispatcher, shared_view
        self.calls = tuple(calls)
        """The calls as the model sent them."""
        planned = dispatcher.validator.plan_calls_with_policy(shared_view, calls)
        self._accepted = {accepted.plan_index: accepted for accepted in planned.accepted}
        self._results = dict(planned.refusals)
        # Calls may run in several event loops, so a future of `asyncio` could not be waited for.
        self._running: dict[int, Future[None]] = {}

    def needs_approval(self, call: str | int) -> bool:
        """Return whether `approve` would ask before a call; `False` for one that will not run."""
        accepted = self._accepted.get(self._index(call))
        return accepted is not None and self._dispatcher.needs_approval(
            self._shared_view, accepted.call
        )

    async def run(self, call: str | int, *, approved: bool = False) -> ToolResult:
        """Run a call; return its result, or the answer to a call that was refused.

        `approved` says that the user has approved it. Raises `NotFoundError` for an unknown id, and
        `ConflictError` while the same call runs.
        """
        async with aclosing(self._items(self._index(call), approved=approved)) as items:
            async for item in items:
                if isinstance(item, ToolResult):
                    return item
        raise AssertionError("a call yields a result last")

    def stream(self, call: str | int, *, approved: bool = False) -> AsyncIterator[Item]:
        """Run a call as `run` does; yield each `ToolChunk` as it comes, and last the result."""
        return self._items(self._index(call), approved=approved)

    def run_sync(self, call: str | int, *, approved: bool = False) -> ToolResult:
        """Run a call as `run` does, for hosts without an event loop; see `Session.call_sync`."""
        return run_sync(self._dispatcher.background_loop, self.run(call, approved=approved))

    def stream_sync(self, call: str | int, *, approved: bool = False) -> Iterator[Item]:
        """Run a call as `stream` does, for hosts without an event loop."""
        return stream_sync(self._dispatcher.background_loop, self.stream(call, approved=approved))

    def _index(self, call: str | int) -> int:
        """Return the index of a call in the message; of calls with one id, the first not run."""
        if isinstance(call, int) and 0 <= call < len(self.calls):
            return call
        indexes = [at for at, item in enumerate(self.calls) if item.id == call]
        if not indexes:
            ids = [item.id for item in self.calls]
            raise NotFoundError("call", str(call), near_misses(str(call), ids))
        return next((at for at in indexes if at not in self._results), indexes[0])

    async def _items(self, index: int, *, approved: bool) -> AsyncGenerator[Item, None]:
        if (result := self._results.get(index)) is not None:
            yield result
            return
        call, has_ended = self._accepted[index].call, Future[None]()
        if self._running.setdefault(index, has_ended) is not has_ended:
            raise ConflictError(f"the call {call.id or index!r} of this plan runs already")
        try:
            approved = approved or call.approved
            run = self._dispatcher.prepare(self._shared_view, call.changed(approved=approved))
            async with aclosing(self._dispatcher.items_of(run)) as items:
                async for item in items:
                    if isinstance(item, ToolResult):
                        await self._earlier_effects(index)
                        written = self._dispatcher.write_effects(self._shared_view, run, item)
                        yield self._results.setdefault(index, written)
                    else:
                        yield item
        finally:
            del self._running[index]
            has_ended.set_result(None)

    async def _earlier_effects(self, index: int) -> None:
        """Wait until the effects of earlier calls that run are written."""
        if self._has_effects(index):
            for at, has_ended in list(self._running.items()):
                if at < index and self._has_effects(at):
                    await asyncio.shield(asyncio.wrap_future(has_ended))

    def _has_effects(self, index: int) -> bool:
        contract = self._accepted[index].contract
        return contract is not None and bool(contract.state_effects)
