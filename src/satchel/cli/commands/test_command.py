"""`satchel test`: the tools of a plugin, each called with its own examples."""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

import satchel
from satchel.cli.base_command import Sources, View
from satchel.cli.call_output import run_and_print, run_to_end
from satchel.cli.console import Console, log_visibly
from satchel.cli.key_value_pairs import field_values
from satchel.cli.plugin_config import PluginConfigView, as_texts
from satchel.cli.rendering import count, diagnostic_line, relative
from satchel.cli.serializer import outcome_json
from satchel.diagnostics import Diagnostic, Severity
from satchel.errors import SatchelError
from satchel.formats import to_plain
from satchel.sources import MANIFEST_FILE, Precedence, format_of
from satchel.sources.configuration import read_configuration
from satchel.sources.scratch_world import scratch_world
from satchel.text import one_line, shorten, visible
from satchel.tools import ToolResult
from satchel.tools.tool_examples import good_examples

if TYPE_CHECKING:
    from satchel.catalog import PluginEntry, ToolEntry

_SHOWN_LENGTH = 120
# The catalog says it in words only.
_NO_VALUE = re.compile(r"tool '(?P<tool>.+)' is left out: '(?P<field>.+)' has no value")
_FRAME = re.compile(r'^ *File "(?P<path>.+)", line (?P<line>\d+), in (?P<name>.+)$', re.MULTILINE)
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?::|$)", re.MULTILINE)
_EXAMPLES = 'write @tool(examples=[{"parameter": "value"}])'


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRun:
    """One call with one example."""

    tool: str
    arguments: Mapping[str, Any]
    result: ToolResult
    seconds: float
    location: str
    """Where the plugin's code raised, if it did."""


@dataclass(frozen=True, slots=True)
class SkippedTool:
    """A tool that is not called, why, and what makes it called."""

    tool: str
    reason: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginTestResult:
    """What became of one plugin."""

    plugin: "PluginEntry"
    attempts: tuple[ExampleRun, ...] = ()
    left_out: tuple[SkippedTool, ...] = ()
    problems: tuple[Diagnostic, ...] = ()
    """What is wrong with it, beside values that nobody gave."""
    is_interrupted: bool = False

    @property
    def failures(self) -> tuple[ExampleRun, ...]:
        """Return the calls that ended in an error."""
        return tuple(item for item in self.attempts if item.result.is_error)

    @property
    def passed(self) -> bool:
        """Tell whether everything that was tried went well."""
        is_broken = any(item.severity is Severity.ERROR for item in self.problems)
        is_whole = self.plugin.is_served and not is_broken and not self.is_interrupted
        return is_whole and not self.failures


@click.command("test", cls=View)
@click.argument("name", metavar="PLUGIN")
@click.option(
    "--set", "values", multiple=True, metavar="KEY=VALUE",
    help="Configure the plugin; '-' reads the value from stdin. Repeatable.",
)  # fmt: skip
def command(
    console: Console,
    *,
    name: str,
    values: tuple[str, ...],
    sources: Sources,
    as_json: bool,
) -> int:
    """Call the tools of a plugin with the examples that they were given.

    PLUGIN is the plugin's folder, or the name of one that the usual options find. Its code is run,
    in an empty current folder, and with nothing configured but defaults and what --set says.
    """
    given = field_values(values)
    wanted = _wanted(name, sources)
    log_visibly()
    with scratch_world() as folder:
        plugin = _configured(wanted, {})
        plugin.warn_if_unknown(console, given)
        texts = as_texts(wanted.name, plugin.config.fields, given, any_key=True)
        with contextlib.chdir(_made(folder, "here")):
            plugin = _configured(wanted, texts)
            outcome = _tried(wanted, plugin, texts, None if as_json else console)
    if as_json and not outcome.is_interrupted:
        console.json(outcome_json(outcome))
    _sum_up(outcome, console)
    if outcome.is_interrupted:
        raise click.Abort
    return 0 if outcome.passed else 1


def _wanted(name: str, sources: Sources) -> "PluginEntry":
    """Find a plugin by its folder or its name. Raises `SatchelError`."""
    folder = _folder(name)
    if not folder and os.sep in name:
        raise SatchelError("there is no plugin", where=name)
    if not folder:
        return sources.open(run_code=False).catalog.plugin(name)
    found = satchel.Satchel(plugins=[folder], run_code=False).catalog
    return next(item for item in found.all_plugins if item.unit == folder)


def _folder(path: str) -> str:
    """Return the plugin's folder that a path leads to, also inside a package; `""` if to none."""
    if os.path.basename(path) == MANIFEST_FILE:
        path = os.path.dirname(path) or "."
    below = os.path.join(path, "src")
    packages = sorted(os.listdir(below)) if os.path.isdir(below) else []
    for folder in (path, *(os.path.join(below, package) for package in packages)):
        if format_of(folder) is not None:
            return os.path.abspath(folder)
    return ""


def _made(*parts: str) -> str:
    path = os.path.join(*parts)
    os.mkdir(path)
    return path


def _configured(wanted: "PluginEntry", given: Mapping[str, str]) -> PluginConfigView:
    return PluginConfigView(
        read_configuration(wanted.name, given, fields=wanted.supply.config), None
    )


def _tried(
    wanted: "PluginEntry",
    plugin: PluginConfigView,
    given: Mapping[str, str],
    console: Console | None,
) -> PluginTestResult:
    """Load the plugin alone, and call each of its tools with each of its examples.

    What comes of it is told on the console as it comes.
    """
    is_package = wanted.scope is Precedence.PLUGIN
    attempts: list[ExampleRun] = []

    def done(attempt: ExampleRun) -> None:
        attempts.append(attempt)
        if console:
            _tell_attempt(attempt, console)

    with satchel.Satchel(
        plugins=() if is_package else [wanted.path],
        entry_points=[wanted.name] if is_package else (),
        config={wanted.name: given},
    ) as app:
        outcome, tools, unavailable = _loaded(app, wanted, plugin)
        if console:
            for item in outcome.problems:
                console.out(diagnostic_line(item))
        try:
            run_to_end(_attempts(app, tools, unavailable, outcome.plugin.path, done))
        except click.Abort:
            outcome = replace(outcome, is_interrupted=True)
    if console:
        for tool in outcome.left_out:
            console.out("-       " + one_line(f"{tool.tool}: {tool.reason} -> {tool.fix}"))
    return replace(outcome, attempts=tuple(attempts))


def _loaded(
    app: satchel.Satchel, wanted: "PluginEntry", plugin: PluginConfigView
) -> "tuple[PluginTestResult, list[ToolEntry], Mapping[str, tuple[str, ...]]]":
    """Return what is known before any call, the tools to call, and the groups that cannot be."""
    found = next(item for item in app.catalog.all_plugins if item.unit == wanted.unit)
    tools = [item for item in app.catalog.all_tools if item.source == found.name and item.is_served]
    unavailable = {
        group.name: group.missing for group in app.catalog.groups.values() if group.missing
    }
    reachable = [item for item in tools if not unavailable.keys() >= {*item.groups}]
    callable_ones = [item for item in reachable if item.tool is not None and item.tool.examples]
    left_out = (
        *_without_value(found),
        *(_without_group(item, unavailable) for item in tools if item not in reachable),
        *(
            SkippedTool(i.name, "no examples", _EXAMPLES)
            for i in reachable
            if i not in callable_ones
        ),
    )
    waiting = {plugin.config.without_value(item) for item in plugin.config.missing}
    problems = (item for item in found.diagnostics if item not in waiting)
    told = tuple(item for item in problems if not _is_left_out(item))
    return (
        PluginTestResult(plugin=found, attempts=(), left_out=left_out, problems=told),
        callable_ones,
        unavailable,
    )


def _is_left_out(item: Diagnostic) -> bool:
    return item.code in {"tool-state-missing", "group-unavailable"}


def _without_value(found: "PluginEntry") -> Iterator[SkippedTool]:
    for item in found.diagnostics:
        if item.code == "tool-state-missing" and (told := _NO_VALUE.fullmatch(item.message)):
            key = told["field"]
            yield SkippedTool(told["tool"], f"{key!r} has no value", f"give --set {key}=VALUE")


def _without_group(tool: "ToolEntry", unavailable: Mapping[str, tuple[str, ...]]) -> SkippedTool:
    keys = unavailable[tool.group]
    reason = f"group {tool.group!r} requires {', '.join(keys)}"
    return SkippedTool(tool.name, reason, "give " + " ".join(f"--set {key}=VALUE" for key in keys))


async def _attempts(
    app: satchel.Satchel,
    tools: Iterable["ToolEntry"],
    unavailable: Mapping[str, tuple[str, ...]],
    folder: str,
    done: Callable[[ExampleRun], None],
) -> None:
    for entry in tools:
        for example in good_examples(entry.tool.examples if entry.tool else (), entry.path):
            # One conversation each: no call knows of the one before.
            session = app.session()
            session.activate(*(group for group in entry.groups if group not in unavailable))
            arguments = to_plain(example)
            begun = time.perf_counter()
            with _tracebacks() as tracebacks:
                result = await run_and_print(session, entry.name, arguments, None)
            seconds = time.perf_counter() - begun
            has_raised = result.error_code == "tool_failed" and bool(tracebacks)
            location = _location(tracebacks[-1], folder) if has_raised else ""
            done(
                ExampleRun(
                    tool=entry.name,
                    arguments=arguments,
                    result=result,
                    seconds=seconds,
                    location=location,
                )
            )


@contextlib.contextmanager
def _tracebacks() -> Iterator[list[str]]:
    """Yield the tracebacks of tools that are logged until the block ends."""
    # Lazy: only what runs code has anything to log.
    import logging

    found: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if _FRAME.search(record.getMessage()):
                found.append(record.getMessage())

    handler, log = Keeping(), logging.getLogger("satchel.runtime")
    log.addHandler(handler)
    try:
        yield found
    finally:
        log.removeHandler(handler)


def _location(traceback: str, folder: str) -> str:
    """Say where an exception left the plugin's own code, without its text: that may be a secret."""
    frames = list(_FRAME.finditer(traceback))
    own = [frame for frame in frames if _path(frame).startswith(os.path.join(folder, ""))]
    if not frames:
        return ""
    frame = (own or frames)[-1]
    kind = _RAISED.search(traceback, frames[-1].end())
    return f"{_path(frame)}:{frame['line']} in {frame['name']}" + (f": {kind[1]}" if kind else "")


def _path(frame: re.Match[str]) -> str:
    return os.path.expanduser(frame["path"])


def _tell_attempt(attempt: ExampleRun, console: Console) -> None:
    is_error = attempt.result.is_error
    word = console.paint("FAILED" if is_error else "ok", fg="red" if is_error else "green")
    gap = " " * (2 if is_error else 6)
    arguments = shorten(_as_text(attempt.arguments), _SHOWN_LENGTH)
    shown = one_line(f"{attempt.tool} {arguments} ({attempt.seconds * 1000:,.0f} ms)")
    console.out(f"{word}{gap}{shown}")
    for line in visible(attempt.result.text).splitlines() if is_error else ():
        console.out(f"        {line}")
    if attempt.location:
        console.out(f"        {one_line(relative(attempt.location))}")


def _as_text(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def _sum_up(outcome: PluginTestResult, console: Console) -> None:
    untried = sum(item.fix == _EXAMPLES for item in outcome.left_out)
    parts = [f"{count(len(outcome.attempts), 'call')}, {len(outcome.failures)} failed"]
    if untried:
        parts.append(f"{count(untried, 'tool')} without examples")
    if others := len(outcome.left_out) - untried:
        parts.append(f"{count(others, 'tool')} left out")
    if not outcome.plugin.is_served:
        parts.append("the plugin did not load")
    if outcome.is_interrupted:
        parts.append("interrupted")
    console.say(one_line(f"{outcome.plugin.name}: {', '.join(parts)}"))
