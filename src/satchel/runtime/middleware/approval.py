"""Middleware that asks for approval before a call."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

from satchel.lazy_dataclass import dataclass
from satchel.runtime.middleware.tool_hints import may_change_something, tool_of
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.text import one_line, shorten
from satchel.tools import Item, ToolCall, failure
from satchel.tools.callables import called

_NAME_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Approval:
    """The answer to a request for approval."""

    allowed: bool
    reason: str = ""
    """Why the call is denied, for the model."""
    arguments: Mapping[str, Any] | None = None
    """Other arguments to call the tool with, if it is allowed."""


Ask = Callable[[ToolCall], Any]
"""Returns `True`, `False`, the reason for a denial, or an `Approval`; may be async."""

Needs = Callable[[ToolCall], bool]
"""Returns whether a call must be approved."""


def approve(ask: Ask | None = None, needs: Needs = may_change_something) -> Middleware:
    """Make a call only after it was approved; a denial has the code `denied`.

    `needs` says which calls must be approved: by default all except those of tools with the
    annotation `readOnlyHint`. The author of a tool sets it, so for tools of remote servers it
    counts for nothing. A call with `approved=True` passes: the host has asked before. Any other is
    passed to `ask`, in a thread if it blocks; without `ask`, it is denied. An error, or an answer
    that `Ask` does not list, denies the call.
    """
    return ApprovalMiddleware(ask or _never_approved, needs)


@dataclass(frozen=True, slots=True)
class ApprovalMiddleware:
    """The middleware that `approve` returns; `Step.needs_approval` asks it."""

    ask: Ask
    needs: Needs

    def needs_approval(self, call: ToolCall) -> bool:
        """Return whether a call must be approved and is not yet. If `needs` fails, it must be."""
        try:
            return self._must_ask(call)
        except Exception:
            _log().exception("whether %s needs approval is unknown", one_line(call.name))
            return True

    async def __call__(self, call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        """Ask, then run the call or yield the denial."""
        answer = await self._answer(call)
        if answer.allowed is not True:
            reason = answer.reason.encode(errors="replace").decode()
            name = shorten(one_line(call.name), _NAME_LENGTH)
            why = reason or "continue without it, or ask why"
            message = f"the call of {name} was denied: {why}"
            yield failure("denied", message, call.id or None)
            return
        if answer.arguments is not None:
            call = replace(call, arguments=answer.arguments)
        async with opened(inner, call) as items:
            async for item in items:
                yield item

    def _must_ask(self, call: ToolCall) -> bool:
        # An approval does not count for another tool that middleware sent the call to. And only
        # `False` lets a call pass: a function without `return` returns `None`.
        is_approved = call.approved is True and tool_of(call) is not None
        return not is_approved and self.needs(call) is not False

    async def _answer(self, call: ToolCall) -> Approval:
        try:
            if not self._must_ask(call):
                return Approval(allowed=True)
            return _read(await called(self.ask, call))
        except Exception:
            _log().exception("asking for the approval of %s failed", one_line(call.name))
            return Approval(allowed=False, reason="asking for approval failed")


def is_preapproved(call: ToolCall) -> bool:
    """Return whether a loaded skill names this tool in `allowed-tools`.

    The author of the skill requests this. A host that trusts its skills may use it in the
    `needs` of `approve`. `call.context.preapproved` also has names with a condition,
    such as `Bash(git:*)`.
    """
    return call.name in call.context.preapproved


def _never_approved(_call: ToolCall) -> str:
    return "the user has not approved it"


def _read(answer: Any) -> Approval:
    match answer:
        case bool():
            return Approval(answer)
        case str():
            return Approval(allowed=False, reason=answer)
        case Approval(reason=str()):
            return answer
    raise TypeError(f"a value of type {type(answer).__name__} is no approval")


def _log() -> Any:
    import logging

    return logging.getLogger("satchel.runtime")
