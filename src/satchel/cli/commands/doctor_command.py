"""`satchel doctor`: find problems, and print the commands that fix them."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, groupby
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.base_command import CatalogCommand, Sources, run_code
from satchel.cli.console import HANG, Console
from satchel.cli.machine_checks import MachineCheck, environment
from satchel.cli.rendering import COLOURS, say_untrusted, table
from satchel.diagnostics import RULES, Diagnostic, Severity
from satchel.reports.doctor_cases import DoctorCase, doctor_cases
from satchel.reports.listing_report import listing_report
from satchel.reports.repair_advice import advice
from satchel.reports.serializer import case_json, check_json
from satchel.reports.short_texts import (
    count,
    has_code_not_run,
    location_text,
    short_path,
    status_label,
)
from satchel.text import one_line

if TYPE_CHECKING:
    import satchel

_SEVERITIES = tuple(Severity)
_PATIENCE = 60.0
"""Seconds to wait for MCP servers."""
_MOST_EXAMPLES = 3
_VALUES = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
_GAP = 2
_LEAST_TEXT = 30
"""The least width of the last column, even if a narrower terminal then wraps it."""


Finding = tuple[DoctorCase, Diagnostic]


@click.command("doctor", cls=CatalogCommand)
@run_code
@click.option("-v", "--verbose", is_flag=True, help="Print warnings and infos in full, too.")
@click.option("--code", "codes", multiple=True, metavar="CODE", help="Only this code, in full.")
@click.option(
    "--severity",
    type=click.Choice([str(severity) for severity in _SEVERITIES]),
    help="Only this severity, in full.",
)
def command(
    console: Console,
    *,
    run: bool,
    verbose: bool,
    codes: tuple[str, ...],
    severity: str | None,
    sources: Sources,
    as_json: bool,
) -> int:
    """Find problems, and print the commands that fix them.

    No plugin code is run without --run, and no MCP server is started. With it, failed imports,
    failed startups, missing values and servers that do not start are found as well.
    """
    from satchel.names import near_misses

    for code in codes:
        if code not in RULES:
            near = near_misses(code, RULES)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise click.UsageError(f"there is no code {code!r}{hint}")
    app = sources.open(run_code=run, servers=run, patience=_PATIENCE)
    checks, all_cases = [*environment(), *_listing(app)], doctor_cases(app.catalog)
    checks += [] if run else _held_servers(app)
    cases = _only(all_cases, lambda item: _is_wanted(item, codes, severity))
    if as_json:
        findings = [_with_options(record, console) for case in cases for record in case_json(case)]
        console.json({"checks": [*map(check_json, checks)], "findings": findings})
    else:
        is_limited = bool(codes or severity)
        if not is_limited:
            _write_checks(checks, console)
        _write(cases, console, in_full=verbose or is_limited)
    severities = [check.severity for check in checks]
    severities += [item.severity for case in all_cases for item in case.diagnostics]
    errors, warnings = severities.count(Severity.ERROR), severities.count(Severity.WARNING)
    if not run and (number := sum(map(has_code_not_run, app.catalog.plugins.values()))):
        console.say(f"the code of {count(number, 'plugin')} was not run; --run runs it")
    say_untrusted(app.catalog, console)
    if not run and (servers := app.declared_mcp_servers):
        console.say(one_line(f"MCP servers that only --run starts: {', '.join(servers)}"))
    console.say(f"{count(errors, 'error')}, {count(warnings, 'warning')}")
    return 1 if errors or warnings else 0


def _is_wanted(item: Diagnostic, codes: Sequence[str], severity: str | None) -> bool:
    return (not codes or item.code in codes) and severity in {None, str(item.severity)}


def _with_options(record: dict[str, Any], console: Console) -> dict[str, Any]:
    """Complete the command of a finding, as in text."""
    command = record["command"]
    return {**record, "command": command and console.completed(command)}


def _only(cases: Sequence[DoctorCase], accepts: Callable[[Diagnostic], bool]) -> list[DoctorCase]:
    kept = (
        DoctorCase(case.kind, case.entry, tuple(filter(accepts, case.diagnostics)))
        for case in cases
    )
    return [case for case in kept if case.diagnostics]


def _held_servers(app: "satchel.Satchel") -> list[MachineCheck]:
    """Return the servers that would not start because files changed that they may use."""
    held = (problem for it in app.declared_mcp_servers.values() if (problem := it.start_problem()))
    return [
        MachineCheck(
            name="MCP server", severity=Severity.WARNING, message=f"{it.message} ({it.fix})"
        )
        for it in held
    ]


def _listing(app: "satchel.Satchel") -> list[MachineCheck]:
    """Return the form of the skill listing, and names of `[skills] first` that nothing has."""
    from satchel.catalog.entry_filter import unmatched_patterns

    session, name = app.session(), "skill listing"
    listing = session.step().skill_listing
    checks: list[MachineCheck] = []
    if report := listing_report(session):
        message = report.removeprefix(f"{name}: ")
        is_ok = listing.described == listing.total and listing.cut_at is None
        checks.append(MachineCheck(name=name, message=message, is_ok=is_ok))
    for problem in unmatched_patterns(app.catalog.first_skills, app.catalog):
        message = f"[skills] first in satchel.toml: {problem}"
        checks.append(MachineCheck(name=name, severity=Severity.WARNING, message=message))
    return checks


# ---- text --------------------------------------------------------------------------------------


def _write_checks(checks: Sequence[MachineCheck], console: Console) -> None:
    for check in checks:
        is_ok = check.severity is Severity.INFO and check.is_ok
        label = "ok" if is_ok else str(check.severity)
        lines = console.fitting(f"{label} {check.name}: {one_line(check.message)}")
        console.out(console.paint(label, fg=COLOURS[label]) + lines.removeprefix(label))
        _write_command(check.command, "", console)


def _write(cases: Sequence[DoctorCase], console: Console, *, in_full: bool) -> None:
    """Write a table of the codes, the errors in full, and each code of warnings once."""
    findings = _by_code(cases)
    if findings and not in_full:
        _write_table(findings, console)
    similar = [] if in_full else _similar_errors(findings)
    grouped = {item for group in similar for _, item in group}
    errors = _only(cases, lambda it: it.severity is Severity.ERROR and it not in grouped)
    for case in cases if in_full else errors:
        _write_case(case, console)
    if in_full:
        return
    warnings = [group for group in findings if group[0][1].severity is Severity.WARNING]
    for group in (*similar, *warnings):
        _write_group(group, console)
    if any(group[0][1].severity is not Severity.ERROR for group in findings):
        console.out("\nTo see all of them, use -v, --code CODE or --severity SEVERITY.")


def _by_code(cases: Iterable[DoctorCase]) -> list[list[Finding]]:
    """Return the findings of each code, worst first, then the most frequent."""
    findings = [(case, item) for case in cases for item in case.diagnostics]
    findings.sort(key=lambda finding: finding[1].code)
    groups = [list(group) for _, group in groupby(findings, key=lambda finding: finding[1].code)]
    return sorted(groups, key=lambda group: (_SEVERITIES.index(group[0][1].severity), -len(group)))


def _similar_errors(findings: Iterable[list[Finding]]) -> list[list[Finding]]:
    """Return groups of many errors that differ only in numbers and in the names that they quote."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for case, item in chain.from_iterable(findings):
        if item.severity is Severity.ERROR:
            groups.setdefault((item.code, _VALUES.sub("", item.message)), []).append((case, item))
    return [group for group in groups.values() if len(group) > _MOST_EXAMPLES]


def _write_table(findings: Sequence[list[Finding]], console: Console) -> None:
    header = ("code", "severity", "count", "meaning", "first")
    rows = [
        (
            group[0][1].code,
            str(group[0][1].severity),
            f"{len(group):,}",
            RULES[group[0][1].code].meaning.rstrip("."),
            location_text(group[0][1]),
        )
        for group in findings
    ]
    console.out()
    *widths, longest_meaning, longest_place = (
        max(map(len, column)) for column in zip(header, *rows, strict=True)
    )
    start = sum(widths) + len(widths) * _GAP
    width = max((console.columns or sys.maxsize) - start, _LEAST_TEXT)
    if longest_meaning + _GAP + longest_place <= width:
        table(rows, console, header)
        return
    # The last columns share one: what a code means, and below it the place.
    cells = [(*row[:3], *wrap(row[3], width), row[4]) for row in rows]
    for code, severity, number, *lines in ((*header[:3], "meaning and first place"), *cells):
        label = console.paint(severity.ljust(widths[1]), fg=COLOURS.get(severity))
        code_cell = console.paint(code.ljust(widths[0]), bold=True)
        console.out(f"{code_cell}  {label}  {number:{widths[2]}}  {lines[0]}")
        for line in filter(None, lines[1:]):
            # A place is never cut; a longer one begins further left.
            console.out((" " * start if len(line) <= width else HANG) + line)


def _write_case(case: DoctorCase, console: Console) -> None:
    state = f": {status_label(case.entry)}" if case.entry else ""
    folder = case.entry.path if case.entry else ""
    console.out(f"\n{console.paint(case.title, bold=True)}{state}")
    if folder:
        console.out(f"  {one_line(short_path(folder))}")
    for item in case.diagnostics:
        severity = console.paint(item.severity, fg=COLOURS[item.severity])
        console.out(f"  {severity}[{item.code}] {_inside(folder, location_text(item))}".rstrip())
        console.wrapped(f"    {one_line(item.message)}")
        _write_command(case.command_for(item), advice(item), console)


def _write_group(group: Sequence[Finding], console: Console) -> None:
    """Write one code: the first place in full, and where others are, with what differs there."""
    first = group[0][1]
    label = console.paint(first.severity, fg=COLOURS[first.severity])
    times = "" if len(group) == 1 else f" ({len(group):,} times)"
    start, message, fix = f"\n{label}[{first.code}]{times}", "", ""
    shown, hidden_texts = _examples(group)
    for case, item in shown:
        console.out(f"{start} {location_text(item)}")
        if item.message != message:
            console.wrapped(f"    {one_line(item.message)}")
        if (own_fix := _fix(case, item)) != fix:
            _write_command(case.command_for(item), advice(item), console)
        start, message, fix = "    also", item.message, own_fix
    if rest := len(group) - len(shown):
        others = f" ({hidden_texts:,} with another text or fix)" if hidden_texts else ""
        console.out(f"    and {count(rest, 'more place')}{others}")


def _examples(group: Iterable[Finding]) -> tuple[list[Finding], int]:
    """Return findings to show, equal ones together, and how many other texts are not shown."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for case, item in group:
        key = (_VALUES.sub("", item.message), _fix(case, item))
        alike.setdefault(key, []).append((case, item))
    spare = max(_MOST_EXAMPLES - len(alike), 0)
    first, *others = alike.values()
    shown = [*first[: 1 + spare], *(it[0] for it in others[: _MOST_EXAMPLES - 1])]
    return shown, max(len(alike) - _MOST_EXAMPLES, 0)


def _fix(case: DoctorCase, item: Diagnostic) -> str:
    return case.command_for(item) or advice(item)


def _inside(folder: str, location: str) -> str:
    """Return a location below a folder that was just named; the folder itself is `""`."""
    if not folder:
        return location
    return f"{location}{os.sep}".removeprefix(short_path(folder) + os.sep).rstrip(os.sep)


def _write_command(command: str | None, fix: str, console: Console) -> None:
    """Write the command that fixes a problem, or else the description of the fix."""
    if command:
        console.out(f"    $ {console.paint(console.completed(command), bold=True)}")
    elif fix:
        console.wrapped(f"    -> {one_line(fix)}")
