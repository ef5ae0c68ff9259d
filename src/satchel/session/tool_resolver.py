"""Find the tools that a session may call."""

import re
from collections.abc import Iterable, Sequence

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import Status
from satchel.contracts.tool_contract import ToolContract
from satchel.diagnostics import Diagnostic, left_out_server, outage_text
from satchel.names import BASIC_GROUP, near_misses
from satchel.runtime.background_tasks import BackgroundTasks
from satchel.runtime.error_results import error_result
from satchel.runtime.prepared_tool import PreparedTool
from satchel.session.builtin_context import HIDDEN, BuiltinContext
from satchel.session.call_middleware import prepare_tool, with_permissions
from satchel.session.group_tool import GroupTool
from satchel.session.rendered_step import RenderedStep, render_step
from satchel.session.session_state import SessionState
from satchel.shared import SharedView
from satchel.sources.search_roots import Precedence
from satchel.text import one_line, shorten
from satchel.tools import FunctionTool, Tool, ToolCall
from satchel.tools.argument_reading import checked_arguments

_LONGEST_NAME = 80
_MOST_SERVERS = 3
"""Servers that are down and named one by one."""


class ToolResolver:
    """Finds the tools of one session."""

    __slots__ = ("_session_state", "tasks")

    def __init__(self, session_state: SessionState) -> None:
        self._session_state = session_state
        self.tasks: BackgroundTasks | None = None
        """The background tasks, or `None` before the first one."""

    @property
    def task_registry(self) -> BackgroundTasks:
        """Return the registry of background tasks; create it on first use."""
        if self.tasks is None:
            self.tasks = BackgroundTasks()
        return self.tasks

    def prepared(self, name: str, shared_view: SharedView) -> PreparedTool | None:
        """Return a tool that may be called, with its middleware and limits, or `None`."""
        if not isinstance(name, str):  # a model may send anything
            return None
        state = self._session_state
        prepared = shared_view.prepared.get(name)
        if prepared is None or prepared.extensions is not state.shared.extensions:
            prepared = self._prepare(name, shared_view)
        if prepared is None or state.options.allowed_tools != "enforce":
            return prepared
        return with_permissions(prepared, state, shared_view)

    def _prepare(self, name: str, shared_view: SharedView) -> PreparedTool | None:
        entry, shared = shared_view.view.by_name.get(name), self._session_state.shared
        if entry is not None and entry.tool is not None:
            prepared = prepare_tool(entry.tool, entry.groups, shared_view, shared)
            shared_view.prepared[name] = prepared
            return prepared
        session_tool = self._rendered(shared_view).own_tools.get(name)
        if session_tool is None:
            return None
        tool = self._with_context(session_tool, shared_view)
        return prepare_tool(tool, (BASIC_GROUP,), shared_view, shared)

    def find_mismatch(self, call: ToolCall, shared_view: SharedView) -> tuple[str, str] | None:
        """Return the error code and message of a call that cannot run; `None` if it can."""
        prepared = self.prepared(call.name, shared_view)
        if prepared is None:
            return "tool_not_found", self.unavailable(call.name, shared_view)
        tool = prepared.tool
        try:
            checked_arguments(tool, call.arguments)
        except Exception as problem:
            result = error_result(tool, call.arguments, problem, call.id)
            return result.error_code or "", result.text
        return None

    def unavailable(self, name: str, shared_view: SharedView) -> str:
        """Return a message for the model: why there is no such tool, and what to do."""
        if not isinstance(name, str):
            return "The name of a tool must be a string."
        rendered, context, catalog = (
            self._rendered(shared_view),
            self._context(shared_view),
            shared_view.catalog,
        )
        hidden = catalog.tools.get(name)
        if hidden is not None and name not in rendered.names and hidden.tool is not None:
            hint = context.how_to_use_tool(hidden, alone="activate_tools" in rendered.own_tools)
            return f"Tool {name!r} is in tool group {context.group_of(hidden)!r}, {hint}"
        if reason := _why_unusable(name, catalog):
            return reason
        callable_names = [other for other, entry in catalog.tools.items() if entry.tool is not None]
        similar_names = near_misses(name, {*rendered.names, *callable_names})
        guesses = [
            other if other in rendered.names else f"{other} (in a tool group that is not active)"
            for other in similar_names
        ]
        return unknown_tool(name, guesses, catalog)

    def _with_context(self, tool: GroupTool | FunctionTool, shared_view: SharedView) -> Tool:
        """Return one of the session's own tools, ready to be called."""
        if isinstance(tool, GroupTool):
            return tool.with_context(self._context(shared_view))
        if HIDDEN in tool.hidden:
            return tool.with_injected({HIDDEN: self._context(shared_view)})
        return tool.with_injected({"tasks": self.task_registry})

    def _rendered(self, shared_view: SharedView) -> RenderedStep:
        return render_step(shared_view, self._session_state, self.tasks is not None)

    def _context(self, shared_view: SharedView) -> BuiltinContext:
        return BuiltinContext(self._session_state, shared_view)


_REASONS = {
    "tool-state-missing": "a value that it needs is not configured",
    "config-invalid": "a value that its plugin needs is missing or invalid",
    "plugin-startup-failed": "its plugin could not be started",
    "plugin-import-timeout": "its plugin took too long to load",
    "mcp-tool-held": "it waits for approval",
    "code-held": "its code changed after the user trusted it",
    "choices-held": "the user's settings cannot be read, so it may be disabled",
    "lock-changed": "it differs from what the user locked",
    "lock-new": "it is not in the lock file",
}
"""Why a tool cannot be called, by the code of its diagnostic, without text from the plugin."""

_COMMAND = re.compile(r"(?:^|(?<=&& ))satchel (config |mcp )?[a-z]+")


def unknown_tool(name: str, guesses: Iterable[str], catalog: Catalog) -> str:
    """Return a message for the model that there is no such tool.

    While a server is down whose tools are not known, the tool may be one of them, so no similar
    name is suggested. It may also be one of a server that is left out.
    """
    message = f"There is no tool {shorten(one_line(name), _LONGEST_NAME)!r}."
    outages = [
        (plugin.name.partition(":")[2], next(iter(plugin.diagnostics), None))
        for plugin in catalog.all_plugins
        if plugin.state is Status.REVOKED
        and plugin.contribution.keeps_groups
        and not plugin.contribution.unusable
    ]
    hint = "" if outages else ", ".join(guesses)
    message += f" Did you mean {hint}?" if hint else ""
    outages += [(name, item) for item in catalog.diagnostics if (name := left_out_server(item))]
    may_be = "Either no server has it, or it is a tool of a server that is not connected"
    return f"{message} {may_be}: {_server_states(outages)}" if outages else message


def _server_states(outages: Sequence[tuple[str, Diagnostic | None]]) -> str:
    """Return the states of servers that are down, and what to do about them."""
    named = sorted(outages, key=lambda outage: not _needs_user(outage[1]))[:_MOST_SERVERS]
    states = [
        f"server {server!r} {outage_text(outage.code if outage else '')}"
        for server, outage in named
    ]
    if len(outages) > len(named):
        states.append(f"and {len(outages) - len(named):,} more")
    waiting = [outage for _, outage in named if outage and _needs_user(outage)]
    fixes = ["satchel mcp list" if left_out_server(item) else item.fix for item in waiting]
    if not fixes:
        return f"{', '.join(states)}. Try again later, or continue without it."
    commands = ", ".join(dict.fromkeys(fix for fix in fixes if fix.startswith("satchel ")))
    advice = f"Ask the user to {f'run: {commands}' if commands else 'log in'}"
    if len(fixes) < len(outages):
        advice += ". Or try again later"
    return f"{', '.join(states)}. {advice}. Continue without it if you can."


def _needs_user(outage: Diagnostic | None) -> bool:
    return outage is not None and outage.code in {"mcp-login-needed", "mcp-server-invalid"}


def _why_unusable(name: str, catalog: Catalog) -> str:
    """Return why a tool cannot be called, for the model; `""` for any other tool."""
    states = {Status.HELD, Status.FAILED}
    entry = next((item for item in catalog.all_tools if item.name == name), None)
    if entry is not None and entry.is_served and entry.tool is None:
        return (
            f"Tool {name!r} cannot be used now: its plugin was read and not run. "
            "Continue without it if you can."
        )
    if entry is not None and entry.state is Status.REVOKED:
        server = entry.source.partition(":")[2]
        plugins = (item for item in catalog.all_plugins if item.name == entry.source)
        outages = [item for plugin in plugins for item in plugin.diagnostics]
        state = _server_states([(server, outages[0] if outages else None)])
        return f"Tool {name!r} cannot be used now: {state}"
    if entry is None or entry.state not in states or not entry.diagnostics:
        return ""
    problem = entry.diagnostics[-1]
    if problem.code == "code-untrusted":  # the user decided; the model must not ask for more
        return (
            f"Tool {name!r} cannot be used: the user trusts only the data of its project. "
            "Continue without it."
        )
    reason = _REASONS.get(problem.code, "its code or its configuration has an error")
    command = re.split(r"[,;] ", problem.fix)[0]
    if not command.startswith("satchel "):
        command = "satchel doctor --run"
    if entry.scope is Precedence.EXPLICIT:
        # The command line does not know the folder, and the model must not see its path.
        command = _COMMAND.sub(r"\g<0> --plugins FOLDER", command)
        command += ", where FOLDER is the folder of the plugin"
    return (
        f"Tool {name!r} cannot be used now: {reason}. Ask the user to run: {one_line(command)}. "
        "Continue without it if you can."
    )


def contract_of(shared_view: SharedView, name: str) -> ToolContract | None:
    """Return the contract of a tool in a view, or `None`."""
    if not (shared_view.cache.has_contracts and isinstance(name, str)):
        return None
    entry = shared_view.view.by_name.get(name)
    return entry.contract if entry is not None else None
