"""`satchel doctor`: find problems, and print the commands that fix them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import CatalogCommand, Sources, run_code
from satchel.cli.console import Console
from satchel.cli.fix_commands import command_for
from satchel.cli.listing_report import listing_report
from satchel.cli.machine_checks import MachineCheck, environment
from satchel.cli.rendering import COLOURS, count, location_text, relative, worst_first
from satchel.cli.serializer import KINDS, case_json, check_json, entries_of
from satchel.diagnostics import Diagnostic, Severity
from satchel.lazy_dataclass import dataclass
from satchel.text import one_line

if TYPE_CHECKING:
    import satchel
    from satchel.catalog import Catalog, Entry

_SEVERITIES = tuple(Severity)


@dataclass(frozen=True, slots=True)
class DoctorCase:
    """The diagnostics of one entry, or of the sources, worst first."""

    kind: str
    entry: "Entry | None"
    diagnostics: tuple[Diagnostic, ...]

    @property
    def title(self) -> str:
        """Return the heading for the user."""
        if self.entry is None:
            return "sources"
        return one_line(f"{self.kind} {self.entry.name} ({self.entry.source})")

    def command_for(self, item: Diagnostic) -> str | None:
        """Return the shell command that fixes a diagnostic, if there is one."""
        return command_for(item, self.entry)


@click.command("doctor", cls=CatalogCommand)
@run_code
def command(console: Console, *, run: bool, sources: Sources, as_json: bool) -> int:
    """Find problems, and print the commands that fix them.

    No plugin code is run without --run. With it, failed imports, failed startups and missing
    values are found as well.
    """
    app = sources.open(run_code=run)
    checks, cases = [*environment(), *_listing(app)], _cases(app.catalog)
    if as_json:
        findings = [record for case in cases for record in case_json(case)]
        console.json({"checks": [*map(check_json, checks)], "findings": findings})
    else:
        _write(checks, cases, console)
    severities = [check.severity for check in checks]
    severities += [item.severity for case in cases for item in case.diagnostics]
    errors, warnings = severities.count(Severity.ERROR), severities.count(Severity.WARNING)
    console.say(f"{count(errors, 'error')}, {count(warnings, 'warning')}")
    return 1 if errors or warnings else 0


def _listing(app: "satchel.Satchel") -> list[MachineCheck]:
    """Return the form of the skill listing as a check that never fails."""
    report = listing_report(app.session())
    message = report.removeprefix("skill listing: ")
    is_ok = MachineCheck(name="skill listing", severity=Severity.INFO, message=message)
    return [is_ok] if report else []


def _cases(catalog: "Catalog") -> list[DoctorCase]:
    """Return the diagnostics by entry, worst case first."""
    cases = [DoctorCase("source", None, tuple(worst_first(catalog.source_diagnostics)))]
    # Plugins first: their problems explain those of their tools and skills.
    cases += [
        DoctorCase(kind, entry, tuple(worst_first(entry.diagnostics)))
        for kind in reversed(KINDS)
        for entry in entries_of(catalog, kind)
    ]
    cases = [case for case in cases if case.diagnostics]
    return sorted(cases, key=lambda case: _SEVERITIES.index(case.diagnostics[0].severity))


def _write(checks: Sequence[MachineCheck], cases: Sequence[DoctorCase], console: Console) -> None:
    for check in checks:
        label = "ok" if check.severity is Severity.INFO else str(check.severity)
        paint = console.paint(label, fg=COLOURS[label])
        console.out(f"{paint} {check.name}: {one_line(check.message)}")
        _write_command(check.command, "", console)
    for case in cases:
        state = f": {case.entry.state}" if case.entry else ""
        console.out(f"\n{console.paint(case.title, bold=True)}{state}")
        if case.entry and case.entry.path:
            console.out(f"  {one_line(relative(case.entry.path))}")
        for item in case.diagnostics:
            severity = console.paint(item.severity, fg=COLOURS[item.severity])
            console.out(f"  {severity}[{item.code}] {location_text(item)}")
            console.out(f"    {one_line(item.message)}")
            _write_command(case.command_for(item), item.fix, console)


def _write_command(command: str | None, fix: str, console: Console) -> None:
    """Write the command that fixes a problem, or else the description of the fix."""
    if command:
        console.out(f"    $ {console.paint(command, bold=True)}")
    elif fix:
        console.out(f"    -> {one_line(fix)}")
