"""Middleware that asks for approval before a call."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

from satchel.lazy_dataclass import dataclass
from satchel.runtime.middleware.tool_hints import may_change_something
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


def approve(ask: Ask, needs: Callable[[ToolCall], bool] = may_change_something) -> Middleware:
    """Make a call only after `ask` approved it; a denial has the code `denied`.

    `needs` says which calls must be approved: by default all except those of tools with the
    annotation `readOnlyHint`, which the author of the tool sets. A blocking `ask` runs in a
    thread. An error, or an answer that `Ask` does not list, denies the call.
    """

    async def layer(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        answer = await _answer(ask, needs, call)
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

    return layer


def is_preapproved(call: ToolCall) -> bool:
    """Return whether a loaded skill names this tool in `allowed-tools`.

    The author of the skill requests this. A host that trusts its skills may use it in the
    `needs` of `approve`. `call.context.preapproved` also has names with a condition,
    such as `Bash(git:*)`.
    """
    return call.name in call.context.preapproved


async def _answer(ask: Ask, needs: Callable[[ToolCall], bool], call: ToolCall) -> Approval:
    try:
        # Only `False` lets a call pass: a function without `return` returns `None`.
        if needs(call) is False:
            return Approval(allowed=True)
        return _read(await called(ask, call))
    except Exception:
        import logging

        log = logging.getLogger("satchel.runtime")
        log.exception("asking for the approval of a call of %s failed", one_line(call.name))
        return Approval(allowed=False, reason="asking for approval failed")


def _read(answer: Any) -> Approval:
    match answer:
        case bool():
            return Approval(answer)
        case str():
            return Approval(allowed=False, reason=answer)
        case Approval(reason=str()):
            return answer
    raise TypeError(f"a value of type {type(answer).__name__} is no approval")
