"""Diagnostics about plugin code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from satchel.catalog.catalog_entries import Status
from satchel.diagnostics import Where, make_diagnostic
from satchel.importing.code_guard import PluginTimeoutError
from satchel.importing.process_state import KEPT
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution, ToolContribution
    from satchel.diagnostics import Diagnostic
    from satchel.importing.code_guard import PluginCodeError


def failed_contribution(
    contribution: PluginContribution, problem: Diagnostic
) -> PluginContribution:
    """Take the tools of a plugin away; open plugins keep their other parts, all others fail."""
    state = Status.DEGRADED if contribution.policy.has_extension else Status.FAILED
    return replace(
        without_tools(contribution, Status.FAILED, problem),
        state=state,
        diagnostics=(*contribution.diagnostics, problem),
    )


def without_tools(
    contribution: PluginContribution, state: Status, problem: Diagnostic
) -> PluginContribution:
    """Serve no tool of a plugin, and say of each why."""
    left_out = tuple(unusable(tool, state, problem) for tool in contribution.tools)
    return replace(contribution, tools=(), unusable=(*contribution.unusable, *left_out))


def unusable(tool: ToolContribution, state: Status, problem: Diagnostic) -> ToolContribution:
    """Return a tool that is listed with its state and the reason, but cannot be called."""
    needs = tool.needs or tuple(field.name for field in getattr(tool.tool, "state", ()))
    return replace(tool, tool=None, contract=None, needs=needs, state=state, diagnostics=(problem,))


def import_failed(problem: PluginCodeError, path: str, plugin: str) -> Diagnostic:
    """Report a failed import."""
    if not isinstance(problem, PluginTimeoutError):
        return code_problem("plugin-import-failed", problem, path)
    late = PluginTimeoutError(f"importing plugin {plugin!r} {problem.message}")
    return code_problem("plugin-import-timeout", late, path)


def reading_failed(problem: PluginCodeError, path: str, *, has_hooks: bool) -> Diagnostic:
    """Report hooks and tools of a plugin that could not be read."""
    code = "plugin-hook-failed" if has_hooks else "plugin-tool-invalid"
    if has_hooks or not isinstance(problem, PluginTimeoutError):
        return code_problem(code, problem, path)
    message = f"making the schemas of its tools {problem.message}"
    fix = "split a plugin of very many tools, or raise that limit: Limits(hook=...)"
    return make_diagnostic(code, Where(path), message, fix)


def code_problem(
    code: str, problem: PluginCodeError, path: str, values: Mapping[str, Any] | None = None
) -> Diagnostic:
    """Report an error of plugin code with its place, without the values in `values`."""
    fix = "do the slow work inside a tool" if isinstance(problem, PluginTimeoutError) else ""
    return make_diagnostic(
        code,
        Where(problem.path or path, problem.line),
        without_secrets(problem, values or {}),
        fix or "fix the code; it is loaded again when it changes",
    )


def without_secrets(problem: PluginCodeError, values: Mapping[str, Any]) -> str:
    """Return an error of plugin code as one line, without the values in `values`."""
    from satchel.runtime.redaction import redacted  # lazy: needed only by an error

    return shorten(one_line(redacted(problem.message, values)), 500)


def process_changed(
    contribution: PluginContribution, changed: Iterable[str]
) -> Iterable[Diagnostic]:
    """Report what plugin code changed in the process; nearly all of it was restored."""
    for changed_part in changed:
        end = "" if changed_part.endswith(KEPT) else "; the change was reverted"
        message = f"loading it changed {changed_part}{end}"
        yield make_diagnostic("plugin-meddled", Where(contribution.path), message)
