"""The middleware of a call: the host's, that of plugins, and what the session itself adds."""

from collections.abc import AsyncIterator, Collection

from satchel.runtime.middleware_chain import Handler, Middleware, middleware_for
from satchel.runtime.stream_opening import opened
from satchel.session.plans import PlanValidator
from satchel.session.session_state import SessionState
from satchel.shared import SharedView
from satchel.tools import Item, ToolCall


def middleware_of(
    conversation: SessionState, shared_view: SharedView, tool: str, groups: Collection[str]
) -> tuple[Middleware, ...]:
    """Return the middleware of a tool, the outermost first."""
    # The host's middleware is outside that of plugins.
    host_middleware, cache = conversation.shared.middleware, shared_view.cache
    middleware: tuple[Middleware, ...] = ()
    if host_middleware or cache.middleware:
        # The cached value keeps the tuple alive, so that no other tuple gets the same id.
        _, middleware = cache.get_or_make(
            (id(host_middleware), tool, tuple(groups)),
            lambda: (
                host_middleware,
                middleware_for(host_middleware + cache.middleware, tool, groups),
            ),
        )
    if conversation.options.allowed_tools != "enforce":
        return middleware
    from satchel.session.skill_permissions import permission_middleware  # lazy: few enforce

    check = permission_middleware(conversation, shared_view.view.by_name.get(tool))
    # Before a person is asked, and again for what other middleware made of the call.
    return (check, *middleware, check)


def contract_middleware(validator: PlanValidator, shared_view: SharedView) -> Middleware:
    """Return middleware that validates a call by the contract of its tool."""

    async def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        planned = validator.plan_calls(shared_view, [call], None)
        for answer in planned.answers.values():
            yield answer
        for accepted in planned.calls:
            async with opened(inner, accepted) as items:
                async for item in items:
                    yield item

    return middleware
