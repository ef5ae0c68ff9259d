"""`satchel test`: call the tools of a plugin with their own examples."""

import contextlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

import click

import satchel
from satchel.cli.base_command import CatalogCommand, Sources, plugin_argument, set_option
from satchel.cli.call_output import run_and_print
from satchel.cli.console import Console, log_to_stderr
from satchel.cli.installed_project import installed_project
from satchel.cli.key_value_pairs import field_values
from satchel.cli.plugin_config import PluginConfigView, as_texts
from satchel.cli.rendering import diagnostic_line
from satchel.cli.signal_handling import run_to_end
from satchel.configuration.configuration import read_configuration
from satchel.configuration.scratch_world import scratch_world
from satchel.diagnostics import Diagnostic, has_error
from satchel.errors import SatchelError
from satchel.formats.frozen_values import to_plain
from satchel.lazy_dataclass import dataclass
from satchel.plugins.config_keys import keys_of
from satchel.reports.serializer import outcome_json
from satchel.reports.short_texts import count, relative
from satchel.sources.plugin_formats import MANIFEST_FILE, format_of
from satchel.sources.search_roots import Precedence
from satchel.text import one_line, shorten, visible
from satchel.tools import ToolResult
from satchel.tools.tool_examples import validate_examples

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginEntry, ToolContribution, ToolEntry

_MAX_SHOWN = 120
# The diagnostic has no structured fields for the tool and the configuration field.
_NO_VALUE = re.compile(r"tool '(?P<tool>.+)' is left out: (?P<reason>'.+' ha(?:s|ve) no value)")
_MISSING = re.compile(r"'.+' ha(?:s|ve) no value; ")
_QUOTED = re.compile(r"'([^']+)'")
_SKIP_CODES = frozenset({"tool-state-missing", "group-unavailable"})
_ADD_EXAMPLES = 'write @tool(examples=[{"parameter": "value"}])'


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRun:
    """One call of a tool with one of its examples."""

    tool: str
    arguments: Mapping[str, Any]
    result: ToolResult
    seconds: float
    location: str
    """Where the plugin's code raised an exception, or `""`."""


@dataclass(frozen=True, slots=True)
class SkippedTool:
    """A tool that was not called, with the reason and the fix."""

    tool: str
    reason: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginTestResult:
    """The result of testing one plugin."""

    plugin: "PluginEntry"
    left_out: tuple[SkippedTool, ...]
    diagnostics: tuple[Diagnostic, ...]
    """The diagnostics of the plugin, except for missing values."""
    attempts: tuple[ExampleRun, ...] = ()
    is_interrupted: bool = False

    @property
    def failures(self) -> list[ExampleRun]:
        """Return the calls that failed."""
        return [item for item in self.attempts if item.result.is_error]

    @property
    def has_called_nothing(self) -> bool:
        """Whether there are tools, and all of them were left out."""
        return bool(self.left_out) and not self.attempts

    @property
    def passed(self) -> bool:
        """Whether the plugin loaded without errors, and a call was made and all succeeded.

        A plugin without tools passes if it loaded.
        """
        has_failed = self.failures or self.has_called_nothing or self.is_interrupted
        return self.plugin.is_served and not (has_failed or has_error(self.diagnostics))


@click.command("test", cls=CatalogCommand)
@plugin_argument
@set_option("Configure the plugin")
def command(
    console: Console,
    *,
    name: str,
    values: tuple[str, ...],
    sources: Sources,
    as_json: bool,
) -> int:
    """Call the tools of a plugin with their own examples.

    PLUGIN is the folder of a plugin, or the name of one that the usual options find. Its code is
    run in an empty current folder. Only --set and default values configure it.
    """
    given_values = field_values(values)
    plugin = _find_plugin(name, sources)
    log_to_stderr()
    with scratch_world() as folder, _as_installed(plugin) as selected:
        view = _configured(selected, {})
        view.warn_if_unknown(console, given_values)
        texts = as_texts(selected.name, view.config.fields, given_values, any_key=True)
        empty = os.path.join(folder, "here")
        os.mkdir(empty)
        with contextlib.chdir(empty):
            declared = plugin.contribution.tools
            outcome = _test(selected, declared, texts, None if as_json else console)
    if as_json and not outcome.is_interrupted:
        console.json(outcome_json(outcome))
    _print_totals(outcome, console)
    if outcome.is_interrupted:
        raise click.Abort
    return 0 if outcome.passed else 1


def _find_plugin(name: str, sources: Sources) -> "PluginEntry":
    """Return a plugin by its folder or its name. Raises `SatchelError` if there is none."""
    folder = _plugin_folder(name)
    if not folder and os.sep in name:
        if not os.path.lexists(name):
            fault = one_line(f"the folder {name!r} does not exist")
            raise click.BadParameter(fault, param_hint="PLUGIN")
        fix = f"write its {MANIFEST_FILE}" if os.path.isdir(name) else ""
        raise SatchelError("there is no plugin", where=name, fix=fix)
    if not folder or sources.locked or sources.frozen:
        catalog = sources.open(run_code=False).catalog
        plugins = [item for item in catalog.all_plugins if item.unit == folder]
        if folder and not plugins:
            message = "is not among the plugins that are compared with the lock"
            raise SatchelError(message, where=name, fix="name its folder with --plugins")
        plugin = plugins[0] if plugins else catalog.plugin(name)
        for item in plugin.diagnostics:
            if plugin.contribution.is_untrusted or item.code.startswith("lock-"):
                raise SatchelError(item.message, where=item.where.path, fix=item.fix)
        return plugin
    catalog = satchel.Satchel(plugins=[folder], run_code=False).catalog
    return next(item for item in catalog.all_plugins if item.unit == folder)


def _plugin_folder(path: str) -> str:
    """Return the plugin's folder at a path, or in a package below its `src`; `""` if none."""
    if os.path.basename(path) == MANIFEST_FILE:
        path = os.path.dirname(path) or "."
    source = os.path.join(path, "src")
    packages = sorted(os.listdir(source)) if os.path.isdir(source) else []
    for folder in (path, *(os.path.join(source, package) for package in packages)):
        if format_of(folder) is not None:
            return os.path.abspath(folder)
    return ""


@contextlib.contextmanager
def _as_installed(plugin: "PluginEntry") -> Iterator["PluginEntry"]:
    """Yield the package of a project as it is when installed: it may import itself by its name."""
    if plugin.scope is Precedence.PLUGIN:
        yield plugin
        return
    with installed_project(plugin.path) as name:
        if name:
            catalog = satchel.Satchel(entry_points=[name], run_code=False).catalog
        yield catalog.plugin(name) if name else plugin


def _configured(plugin: "PluginEntry", values: Mapping[str, str]) -> PluginConfigView:
    config = read_configuration(plugin.name, values, fields=plugin.contribution.config)
    return PluginConfigView(config, None, keys_of(plugin.contribution))


def _test(
    selected: "PluginEntry",
    declared: "Iterable[ToolContribution]",
    values: Mapping[str, str],
    console: Console | None,
) -> PluginTestResult:
    """Load the plugin alone and call each tool with each example, printing each result."""
    is_package = selected.scope is Precedence.PLUGIN
    locations: list[str] = []

    def note_location(_tool: str, problem: BaseException) -> str:
        locations.append(_location(problem, selected.path))
        return "tool failed"

    with satchel.Satchel(
        plugins=() if is_package else [selected.path],
        entry_points=[selected.name] if is_package else (),
        config={selected.name: values},
        errors=note_location,
    ) as app:
        outcome, tools = _plan(app, selected, declared)
        if console:
            for item in outcome.diagnostics:
                console.wrapped(diagnostic_line(item))
        attempts: list[ExampleRun] = []
        is_interrupted = False
        try:
            run_to_end(_call_examples(app, tools, locations, attempts, console))
        except click.Abort:
            is_interrupted = True
    if console:
        for tool in outcome.left_out:
            console.out("-       " + one_line(f"{tool.tool}: {tool.reason} -> {tool.fix}"))
    return replace(outcome, attempts=tuple(attempts), is_interrupted=is_interrupted)


def _plan(
    app: satchel.Satchel, selected: "PluginEntry", declared: "Iterable[ToolContribution]"
) -> "tuple[PluginTestResult, list[ToolEntry]]":
    """Return the result before any call, and the tools to call."""
    plugin = next(item for item in app.catalog.all_plugins if item.unit == selected.unit)
    skipped = list(_without_value(plugin))
    examples, tools = [], []
    for tool in app.catalog.all_tools:
        if tool.source != plugin.name or not tool.is_served:
            continue
        if not _usable_groups(app, tool):
            missing = app.catalog.groups[tool.group].missing
            reason = f"group {tool.group!r} requires {', '.join(missing)}"
            fix = "give " + " ".join(f"--set {key}=VALUE" for key in missing)
            skipped.append(SkippedTool(tool.name, reason, fix))
        elif tool.tool is None or not tool.tool.examples:
            examples.append(SkippedTool(tool.name, "no examples", _ADD_EXAMPLES))
        else:
            tools.append(tool)
    if plugin.is_served and not (skipped or examples or tools):
        skipped += map(_not_loaded, declared)
    others = [item for item in plugin.diagnostics if item.code not in _SKIP_CODES]
    diagnostics = tuple(item for item in others if not _is_missing_value(item))
    left_out = (*skipped, *examples)
    return PluginTestResult(plugin=plugin, left_out=left_out, diagnostics=diagnostics), tools


def _not_loaded(tool: "ToolContribution") -> SkippedTool:
    """Return a tool that is in the code of a plugin of which no tool was loaded."""
    fix = "run 'satchel validate --run' with the folder of the plugin"
    return SkippedTool(tool.name, "it is in the code, but was not loaded", fix)


def _usable_groups(app: satchel.Satchel, tool: "ToolEntry") -> list[str]:
    """Return the groups of a tool, without those that lack a required value."""
    groups = app.catalog.groups
    return [name for name in tool.groups if name not in groups or not groups[name].missing]


def _is_missing_value(item: Diagnostic) -> bool:
    return item.code == "config-invalid" and bool(_MISSING.match(item.message))


def _without_value(plugin: "PluginEntry") -> Iterator[SkippedTool]:
    for item in plugin.diagnostics:
        if item.code == "tool-state-missing" and (match := _NO_VALUE.fullmatch(item.message)):
            options = (f"--set {key}=VALUE" for key in _QUOTED.findall(match["reason"]))
            yield SkippedTool(match["tool"], match["reason"], f"give {' '.join(options)}")


async def _call_examples(
    app: satchel.Satchel,
    tools: Iterable["ToolEntry"],
    locations: list[str],
    attempts: list[ExampleRun],
    console: Console | None,
) -> None:
    """Call each tool with each example, and add each call to `attempts`."""
    for entry in tools:
        for example in validate_examples(entry.tool.examples if entry.tool else (), entry.path):
            # A new session for each call: calls do not depend on each other.
            session = app.session()
            session.activate(*_usable_groups(app, entry))
            arguments = to_plain(example)
            locations.clear()
            begin = time.perf_counter()
            result = await run_and_print(session, entry.name, arguments, None)
            seconds = time.perf_counter() - begin
            has_raised = result.error_code == "tool_failed" and bool(locations)
            attempt = ExampleRun(
                tool=entry.name,
                arguments=arguments,
                result=result,
                seconds=seconds,
                location=locations[-1] if has_raised else "",
            )
            attempts.append(attempt)
            if console:
                _print_attempt(attempt, console)


def _location(problem: BaseException, folder: str) -> str:
    """Return the last frame in the plugin's code, without the message: it may hold a secret."""
    frames = extract_tb(problem.__traceback__)
    # What an isolated plugin raised was raised in its own process.
    if isinstance(problem, satchel.IsolatedToolError) or not frames:
        return ""
    own = [frame for frame in frames if frame.filename.startswith(os.path.join(folder, ""))]
    frame = (own or frames)[-1]
    kind = f"{type(problem).__module__}.{type(problem).__qualname__}".removeprefix("builtins.")
    return f"{frame.filename}:{frame.lineno} in {frame.name}: {kind}"


def _print_attempt(attempt: ExampleRun, console: Console) -> None:
    is_error = attempt.result.is_error
    label = console.paint("FAILED", fg="red") if is_error else console.paint("ok", fg="green")
    gap = " " * (2 if is_error else 6)
    arguments = shorten(json.dumps(attempt.arguments, ensure_ascii=False), _MAX_SHOWN)
    text = one_line(f"{attempt.tool} {arguments} ({attempt.seconds * 1000:,.0f} ms)")
    console.out(f"{label}{gap}{text}")
    for line in visible(attempt.result.text).splitlines() if is_error else ():
        console.out(f"        {line}")
    if attempt.location:
        console.out(f"        {one_line(relative(attempt.location))}")


def _print_totals(outcome: PluginTestResult, console: Console) -> None:
    without_examples = sum(item.fix == _ADD_EXAMPLES for item in outcome.left_out)
    parts = [f"{count(len(outcome.attempts), 'call')}, {len(outcome.failures)} failed"]
    if without_examples:
        parts.append(f"{count(without_examples, 'tool')} without examples")
    if others := len(outcome.left_out) - without_examples:
        parts.append(f"{count(others, 'tool')} left out")
    if outcome.has_called_nothing:
        parts.append("no tool was tested")
    if not outcome.plugin.is_served:
        parts.append("the plugin did not load")
    if outcome.is_interrupted:
        parts.append("interrupted")
    console.say(one_line(f"{outcome.plugin.name}: {', '.join(parts)}"))
