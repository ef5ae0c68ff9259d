"""Find the tools that a session may call, ready to run."""

from satchel.contracts import ToolContract
from satchel.names import BASIC_GROUP, near_misses
from satchel.runtime import BackgroundTasks
from satchel.runtime.error_results import error_result
from satchel.session.builtin_context import HIDDEN, BuiltinContext
from satchel.session.group_tool import GroupTool
from satchel.session.rendered_step import OwnTool, RenderedStep, render_step
from satchel.session.session_state import SessionState
from satchel.shared import SharedView
from satchel.text import one_line, shorten
from satchel.tools import Tool, ToolCall
from satchel.tools.argument_reading import read_arguments

_NAME_SHOWN = 80


class ToolResolver:
    """Finds the tools of one session."""

    __slots__ = ("_session", "_tasks")

    def __init__(self, session: SessionState) -> None:
        self._session = session
        self._tasks: BackgroundTasks | None = None

    @property
    def tasks(self) -> BackgroundTasks | None:
        """The background tasks, or `None` if there never was one."""
        return self._tasks

    @property
    def book(self) -> BackgroundTasks:
        """The background tasks, made when they are first needed."""
        if self._tasks is None:
            self._tasks = BackgroundTasks()
        return self._tasks

    def find(self, name: str, shared_view: SharedView) -> tuple[Tool, tuple[str, ...]] | None:
        """Return a tool that the model may call, and its groups."""
        entry = shared_view.view.by_name.get(name)
        if entry is not None and entry.tool is not None:
            return entry.tool, entry.groups
        own = self._rendered(shared_view).own_tools.get(name)
        if own is None:
            return None
        return self._bound(own, shared_view), (BASIC_GROUP,)

    def misfit(self, call: ToolCall, shared_view: SharedView) -> tuple[str, str] | None:
        """Return the error code and message for a call that cannot run as it is."""
        entry = self.find(call.name, shared_view) if isinstance(call.name, str) else None
        if entry is None:
            return "tool_not_found", self.unavailable(call.name, shared_view)
        tool, _ = entry
        try:
            tool.check(read_arguments(call.name, call.arguments))
        except Exception as problem:
            result = error_result(tool, call.arguments, problem, call.id)
            return result.error_code or "", result.text
        return None

    def unavailable(self, name: str, shared_view: SharedView) -> str:
        """Return the message for the model: why there is no such tool, and what to do."""
        if not isinstance(name, str):
            return "The name of a tool must be text."
        step, catalog = self._rendered(shared_view), shared_view.catalog
        hidden = catalog.tools.get(name)
        if hidden is not None and name not in step.names and hidden.tool is not None:
            builtins = self._builtins(shared_view)
            group, advice = builtins.group_of(hidden), builtins.how_to_use(hidden.groups)
            return f"Tool {name!r} is in group {group!r}, {advice}"
        name = shorten(one_line(name), _NAME_SHOWN)
        callable_ones = [other for other, entry in catalog.tools.items() if entry.tool is not None]
        near = near_misses(name, {*step.names, *callable_ones})
        meant = [
            other if other in step.names else f"{other} (in a tool group that is not active)"
            for other in near
        ]
        guess = f" Did you mean {', '.join(meant)}?" if meant else ""
        return f"There is no tool {name!r}.{guess}"

    def _bound(self, own: OwnTool, shared_view: SharedView) -> Tool:
        """Return a built-in tool that is bound to this session."""
        if isinstance(own, GroupTool):
            return own.at(self._builtins(shared_view))
        if HIDDEN in own.hidden:
            return own.with_injected({HIDDEN: self._builtins(shared_view)})
        return own.with_injected({"book": self.book})

    def _rendered(self, shared_view: SharedView) -> RenderedStep:
        return render_step(shared_view, self._session, self._tasks is not None)

    def _builtins(self, shared_view: SharedView) -> BuiltinContext:
        return BuiltinContext(self._session, shared_view)


def contract_of(shared_view: SharedView, name: str) -> ToolContract | None:
    """Return the contract of a tool, or `None`."""
    entry = shared_view.view.by_name.get(name) if isinstance(name, str) else None
    return entry.contract if entry is not None else None
