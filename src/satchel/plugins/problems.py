"""What is reported of plugin code."""

import re
from collections.abc import Iterable
from dataclasses import replace

from satchel.catalog import Supply
from satchel.diagnostics import Diagnostic, Where, report
from satchel.sources import PluginCodeError, PluginTimeoutError
from satchel.sources.process import PRIVATE_PREFIX
from satchel.text import one_line, shorten

# Authors know their modules by their own names.
_PRIVATE_NAME = re.compile(rf"{PRIVATE_PREFIX}\w*?_\d+(\.?)")


def failed_supply(supply: Supply, problem: Diagnostic) -> Supply:
    """Take the tools from a plugin, and all else from one that is not made of parts."""
    told = replace(supply, tools=(), diagnostics=(*supply.diagnostics, problem))
    return replace(told, flawed=True) if supply.is_open else replace(told, failed=True)


def import_failed(problem: PluginCodeError, path: str) -> Diagnostic:
    """Report that code could not be imported."""
    slow = isinstance(problem, PluginTimeoutError)
    code = "plugin-import-timeout" if slow else "plugin-import-failed"
    return code_problem(code, problem, path)


def code_problem(code: str, problem: PluginCodeError, path: str) -> Diagnostic:
    """Report what foreign code raised, at the place where it did."""
    fix = "do the slow work inside a tool" if isinstance(problem, PluginTimeoutError) else ""
    return report(
        code,
        Where(problem.path or path, problem.line),
        shorten(one_line(_PRIVATE_NAME.sub(_own_name, problem.message)), 500),
        fix or "mend the code; it is tried again when it changes",
    )


def meddling(supply: Supply, changed: Iterable[str]) -> Iterable[Diagnostic]:
    """Report what plugin code changed in the process and we put back."""
    for what in changed:
        message = f"importing it changed {what}; it was put back"
        yield report("plugin-meddled", Where(supply.path), message)


def _own_name(match: re.Match[str]) -> str:
    """Return what an author calls a module: a part of the plugin, or the plugin itself."""
    return "" if match[1] else "the plugin"
