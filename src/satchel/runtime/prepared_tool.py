"""What all calls of one tool have in common, decided once."""

from dataclasses import field, replace

from satchel.lazy_dataclass import dataclass
from satchel.runtime.call_messages import EndReason, interruption, too_slow
from satchel.runtime.error_results import ErrorText, error_result
from satchel.runtime.middleware_chain import Middleware
from satchel.runtime.result_limits import limit_result
from satchel.settings import Limits
from satchel.tools import Tool, ToolCall, ToolResult, failure


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PreparedTool:
    """A tool with all that surrounds its calls. A session prepares it once for each view."""

    tool: Tool
    limits: Limits
    errors: ErrorText = "summary"
    groups: tuple[str, ...] = ()
    middleware: tuple[Middleware, ...] = ()
    """The middleware of the host, of plugins and of the session, the outermost first."""
    is_remembered: bool = False
    """Whether the session answers a repeated call from memory."""
    is_background: bool = False
    """Whether a call starts a background task of the session."""
    is_routed: bool = False
    """Whether a runner of the host may run it."""
    extensions: object = None
    """The middleware and the runners of the host when it was prepared."""
    has_inner: bool = field(init=False)
    """Whether something of the tool itself is around the function."""
    has_middleware: bool = field(init=False)
    """Whether anything is around the function."""
    needs_context: bool = field(init=False)
    """Whether any code can read the context of a call."""

    def __post_init__(self) -> None:
        tool = self.tool
        has_inner = bool(tool.postprocess or self.is_remembered or self.is_background)
        has_middleware = has_inner or bool(self.middleware)
        object.__setattr__(self, "has_inner", has_inner)
        object.__setattr__(self, "has_middleware", has_middleware)
        object.__setattr__(self, "needs_context", has_middleware or tool.wants_context)

    def failed(self, call: ToolCall, problem: BaseException) -> ToolResult:
        """Return the result for an exception; its text is safe for the model."""
        result = error_result(self.tool, call.arguments, problem, call.id or None, self.errors)
        result = limit_result(result, self.limits)
        return replace(result, exception=problem) if self.has_middleware else result

    def ended_early(
        self, call: ToolCall, reason: EndReason, *, is_elsewhere: bool = False
    ) -> ToolResult:
        """Return the result of a call that was ended early, here or on another machine."""
        tool = self.tool
        if reason is EndReason.INTERRUPTED:
            return interruption(tool.name, call.id or None)
        seconds, limit = tool.timeout, "the tool's own timeout"
        if seconds is None:
            seconds, limit = self.limits.tool_call, "limit tool_call"
        text = too_slow(tool.name, seconds, limit, is_elsewhere=is_elsewhere)
        return failure("timeout", text, call.id or None)
