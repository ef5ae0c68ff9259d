"""The middleware of a call: the host's, that of plugins, and what the session itself adds."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING

from satchel.runtime.middleware_chain import Handler, Middleware, middleware_for
from satchel.runtime.prepared_tool import PreparedTool
from satchel.runtime.stream_opening import opened
from satchel.session.session_state import SessionState
from satchel.shared import SharedState, SharedView
from satchel.tools import Item, Tool, ToolCall

if TYPE_CHECKING:
    from satchel.session.plans import PlanValidator


def prepare_tool(
    tool: Tool, groups: tuple[str, ...], shared_view: SharedView, shared: SharedState
) -> PreparedTool:
    """Return a tool with the middleware of the host, and inside it that of plugins."""
    cache, extensions = shared_view.cache, shared.extensions
    middleware = extensions.middleware + cache.middleware
    return PreparedTool(
        tool=tool,
        limits=shared.limits,
        errors=shared.errors,
        groups=groups,
        middleware=middleware_for(middleware, tool.name, groups),
        is_remembered=tool.idempotent,
        is_background=tool.background,
        is_routed=bool(extensions.runners or tool.runner_name or cache.names_runners),
        extensions=extensions,
    )


def with_permissions(
    prepared: PreparedTool, session_state: SessionState, shared_view: SharedView
) -> PreparedTool:
    """Return a tool that the loaded skills must allow."""
    from satchel.session.skill_permissions import permission_middleware  # lazy: few enforce

    entry = shared_view.view.by_name.get(prepared.tool.name)
    check = permission_middleware(session_state, entry)
    # Before a person is asked, and again for what other middleware made of the call.
    return replace(prepared, middleware=(check, *prepared.middleware, check))


def contract_middleware(validator: "PlanValidator", shared_view: SharedView) -> Middleware:
    """Return middleware that validates a call by the contract of its tool."""

    async def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        planned = validator.plan_calls(shared_view, [call], None)
        for refusal in planned.refusals.values():
            yield refusal
        for accepted in planned.accepted:
            async with opened(inner, accepted.call) as items:
                async for item in items:
                    yield item

    return middleware
