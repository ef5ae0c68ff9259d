"""What is reported of plugin code."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from satchel.catalog import PluginContribution, Status
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.runtime.redaction import redacted
from satchel.sources import PluginCodeError, PluginTimeoutError
from satchel.sources.process_state import PRIVATE_PREFIX
from satchel.text import one_line, shorten

# Authors know their modules by their own names.
_PRIVATE_NAME = re.compile(rf"{PRIVATE_PREFIX}\w*?_\d+(\.?)")


def failed_contribution(supply: PluginContribution, problem: Diagnostic) -> PluginContribution:
    """Take the tools from a plugin, and all else from one that is not made of parts."""
    state = Status.DEGRADED if supply.policy.has_extension else Status.FAILED
    return replace(supply, tools=(), state=state, diagnostics=(*supply.diagnostics, problem))


def import_failed(problem: PluginCodeError, path: str) -> Diagnostic:
    """Report that code could not be imported."""
    slow = isinstance(problem, PluginTimeoutError)
    code = "plugin-import-timeout" if slow else "plugin-import-failed"
    return code_problem(code, problem, path)


def code_problem(
    code: str, problem: PluginCodeError, path: str, values: Mapping[str, Any] | None = None
) -> Diagnostic:
    """Report what foreign code raised, where it did, without the values that it was given."""
    fix = "do the slow work inside a tool" if isinstance(problem, PluginTimeoutError) else ""
    return make_diagnostic(
        code,
        Where(problem.path or path, problem.line),
        without_secrets(problem, values or {}),
        fix or "mend the code; it is tried again when it changes",
    )


def without_secrets(problem: PluginCodeError, values: Mapping[str, Any]) -> str:
    """Return what foreign code raised as one line, without the values that it was given."""
    told = _PRIVATE_NAME.sub(_own_name, problem.message)
    return shorten(one_line(redacted(told, values)), 500)


def process_changed(supply: PluginContribution, changed: Iterable[str]) -> Iterable[Diagnostic]:
    """Report what plugin code changed in the process and we put back."""
    for what in changed:
        message = f"loading it changed {what}; it was put back"
        yield make_diagnostic("plugin-meddled", Where(supply.path), message)


def _own_name(match: re.Match[str]) -> str:
    """Return what an author calls a module: a part of the plugin, or the plugin itself."""
    return "" if match[1] else "the plugin"
