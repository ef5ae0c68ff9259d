"""`satchel doctor`: what is off, why, and the one command that mends it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import Sources, View, run_code
from satchel.cli.console import Console
from satchel.cli.fix_commands import command_for
from satchel.cli.machine_checks import MachineCheck, environment
from satchel.cli.rendering import COLOURS, count, location_text, relative, worst_first
from satchel.cli.serializer import KINDS, case_json, check_json, entries_of
from satchel.diagnostics import Diagnostic, Severity
from satchel.text import one_line

if TYPE_CHECKING:
    from satchel.catalog import Catalog, Entry

_SEVERITIES = tuple(Severity)


@dataclass(frozen=True, slots=True)
class DoctorCase:
    """What is wrong with one entry, or with the sources themselves, the worst first."""

    kind: str
    entry: "Entry | None"
    findings: tuple[Diagnostic, ...]

    @property
    def title(self) -> str:
        """Return what the person knows it as."""
        if self.entry is None:
            return "sources"
        return one_line(f"{self.kind} {self.entry.name} ({self.entry.source})")

    def command_for(self, item: Diagnostic) -> str | None:
        """Return the command that fixes a finding, if there is one."""
        return command_for(item, self.entry)


@click.command("doctor", cls=View)
@run_code
def command(console: Console, *, run: bool, sources: Sources, as_json: bool) -> int:
    """Say what is off, why, and the command that mends it.

    No plugin code is run unless you say --run; then what fails at an import or a startup is told,
    and which values the tools miss.
    """
    checks = environment()
    cases = _cases(sources.open(run_code=run).catalog)
    if as_json:
        findings = [shape for case in cases for shape in case_json(case)]
        console.json({"checks": [*map(check_json, checks)], "findings": findings})
    else:
        _write(checks, cases, console)
    severities = [check.severity for check in checks]
    severities += [item.severity for case in cases for item in case.findings]
    errors, warnings = severities.count(Severity.ERROR), severities.count(Severity.WARNING)
    console.say(f"{count(errors, 'error')}, {count(warnings, 'warning')}")
    return 1 if errors or warnings else 0


def _cases(catalog: "Catalog") -> list[DoctorCase]:
    """Gather the findings by what they are about, the worst cases first."""
    cases = [DoctorCase("source", None, tuple(worst_first(catalog.source_diagnostics)))]
    # Plugins first: their trouble explains that of what they bring.
    cases += [
        DoctorCase(kind, entry, tuple(worst_first(entry.diagnostics)))
        for kind in reversed(KINDS)
        for entry in entries_of(catalog, kind)
    ]
    found = [case for case in cases if case.findings]
    return sorted(found, key=lambda case: _SEVERITIES.index(case.findings[0].severity))


def _write(checks: Sequence[MachineCheck], cases: Sequence[DoctorCase], console: Console) -> None:
    for check in checks:
        mark = "ok" if check.severity is Severity.INFO else str(check.severity)
        colour = "green" if mark == "ok" else COLOURS[mark]
        console.out(f"{console.paint(mark, fg=colour)} {check.name}: {one_line(check.message)}")
        _write_command(check.command, "", console)
    for case in cases:
        state = f": {case.entry.state}" if case.entry else ""
        console.out(f"\n{console.paint(case.title, bold=True)}{state}")
        if case.entry and case.entry.path:
            console.out(f"  {one_line(relative(case.entry.path))}")
        for item in case.findings:
            severity = console.paint(item.severity, fg=COLOURS[item.severity])
            console.out(f"  {severity}[{item.code}] {location_text(item)}")
            console.out(f"    {one_line(item.message)}")
            _write_command(case.command_for(item), item.fix, console)


def _write_command(command: str | None, fix: str, console: Console) -> None:
    """Write the command that mends a finding, or else the sentence that says how."""
    if command:
        console.out(f"    $ {console.paint(command, bold=True)}")
    elif fix:
        console.out(f"    -> {one_line(fix)}")
