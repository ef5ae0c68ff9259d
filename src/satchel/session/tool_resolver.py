"""The toolbox: finds the tools that a conversation may call in a scene, ready to be called."""

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
    """Finds the tools of one conversation."""

    __slots__ = ("_conversation", "_tasks")

    def __init__(self, conversation: SessionState) -> None:
        self._conversation = conversation
        self._tasks: BackgroundTasks | None = None

    @property
    def tasks(self) -> BackgroundTasks | None:
        """Return the book of the tasks in the background, if there ever was one."""
        return self._tasks

    @property
    def book(self) -> BackgroundTasks:
        """Return the book of the tasks in the background."""
        if self._tasks is None:
            self._tasks = BackgroundTasks()
        return self._tasks

    def find(self, name: str, scene: SharedView) -> tuple[Tool, tuple[str, ...]] | None:
        """Return a tool that may be called, and its groups."""
        entry = scene.view.by_name.get(name)
        if entry is not None and entry.tool is not None:
            return entry.tool, entry.groups
        own = self._showing(scene).own_tools.get(name)
        if own is None:
            return None
        return self._bound(own, scene), (BASIC_GROUP,)

    def misfit(self, call: ToolCall, scene: SharedView) -> tuple[str, str] | None:
        """Return the code and the words for a call that cannot be run as it is."""
        found = self.find(call.name, scene) if isinstance(call.name, str) else None
        if found is None:
            return "tool_not_found", self.unavailable(call.name, scene)
        tool, _ = found
        try:
            tool.check(read_arguments(call.name, call.arguments))
        except Exception as problem:
            result = error_result(tool, call.arguments, problem, call.id)
            return result.error_code or "", result.text
        return None

    def unavailable(self, name: str, scene: SharedView) -> str:
        """Tell the model why there is no such tool, and what to do."""
        if not isinstance(name, str):
            return "The name of a tool must be text."
        showing, desk, catalog = self._showing(scene), self._desk(scene), scene.catalog
        hidden = catalog.tools.get(name)
        if hidden is not None and name not in showing.names and hidden.tool is not None:
            return f"Tool {name!r} is in group {desk.group_of(hidden)!r}, " + desk.how_to_use(
                hidden.groups
            )
        name = shorten(one_line(name), _NAME_SHOWN)
        callable_ones = [other for other, entry in catalog.tools.items() if entry.tool is not None]
        near = near_misses(name, {*showing.names, *callable_ones})
        meant = [
            other if other in showing.names else f"{other} (in a tool group that is not active)"
            for other in near
        ]
        guess = f" Did you mean {', '.join(meant)}?" if meant else ""
        return f"There is no tool {name!r}.{guess}"

    def _bound(self, own: OwnTool, scene: SharedView) -> Tool:
        """Return a tool of the session's own that works for this one."""
        if isinstance(own, GroupTool):
            return own.at(self._desk(scene))
        if HIDDEN in own.hidden:
            return own.with_injected({HIDDEN: self._desk(scene)})
        return own.with_injected({"book": self.book})

    def _showing(self, scene: SharedView) -> RenderedStep:
        return render_step(scene, self._conversation, self._tasks is not None)

    def _desk(self, scene: SharedView) -> BuiltinContext:
        return BuiltinContext(self._conversation, scene)


def contract_of(scene: SharedView, name: str) -> ToolContract | None:
    """Return what calls of a tool are held to in a scene."""
    entry = scene.view.by_name.get(name) if isinstance(name, str) else None
    return entry.contract if entry is not None else None
