"""Calls that somebody must approve."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from satchel.runtime.middleware.tool_hints import may_change_something
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.text import one_line, shorten
from satchel.tools import Item, ToolCall, failure
from satchel.tools.callables import called

_NAME_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Approval:
    """The answer of whoever was asked."""

    allowed: bool
    reason: str = ""
    """Why not, for the model."""
    arguments: Mapping[str, Any] | None = None
    """What the tool is to be called with instead, if it is allowed."""


Ask = Callable[[ToolCall], Any]
"""Gives `True`, `False`, the reason for a denial as text, or an `Approval`; may be async."""


def approve(ask: Ask, needs: Callable[[ToolCall], bool] = may_change_something) -> Middleware:
    """Make a call only after `ask` approved it; a denial has the code `denied`.

    `needs` says which calls must be approved: by default all but those of tools whose
    annotations say `readOnlyHint`, which is as true as whoever wrote the tool. A blocking `ask`
    runs in a thread. Approved is only what says so: an error, or any other answer, is no approval.
    """

    async def layer(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        answer = await _answer(ask, needs, call)
        if answer.allowed is not True:
            reason = answer.reason.encode(errors="replace").decode()
            name = shorten(one_line(call.name), _NAME_LENGTH)
            told = f"the call of {name} was denied: {reason or 'go on without it, or ask why'}"
            yield failure("denied", told, call.id or None)
            return
        if answer.arguments is not None:
            call = replace(call, arguments=answer.arguments)
        async with opened(inner, call) as items:
            async for item in items:
                yield item

    return layer


def is_preapproved(call: ToolCall) -> bool:
    """Tell whether a skill that was loaded asks for this tool, by name, in `allowed-tools`.

    That is a wish of whoever wrote the skill; a host that trusts its skills may heed it in the
    `needs` of `approve`. A name with a condition, such as `Bash(git:*)`, is for the host to read:
    it stands in `call.context.preapproved`.
    """
    return call.name in call.context.preapproved


async def _answer(ask: Ask, needs: Callable[[ToolCall], bool], call: ToolCall) -> Approval:
    try:
        # Only a plain `False` lets a call pass: whoever forgets to return says `None`.
        if needs(call) is False:
            return Approval(allowed=True)
        return _read(await called(ask, call))
    except Exception:
        import logging

        log = logging.getLogger("satchel.runtime")
        log.exception("the approval of a call of %s could not be had", one_line(call.name))
        return Approval(allowed=False, reason="an approval could not be had")


def _read(answer: Any) -> Approval:
    match answer:
        case bool():
            return Approval(answer)
        case str():
            return Approval(allowed=False, reason=answer)
        case Approval(reason=str()):
            return answer
    raise TypeError(f"a value of type {type(answer).__name__} neither approves nor denies")
