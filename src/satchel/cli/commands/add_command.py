"""`satchel add`: add skills and plugins from a repository, an archive or a folder."""

import os
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial

import click

from satchel.cli.base_command import Command, repeatable
from satchel.cli.console import Console
from satchel.cli.signer_options import signer_options
from satchel.cli.source_unit_steps import (
    as_placed,
    needs_trust,
    place_unit,
    require_valid,
    say_units,
    unit_lines,
)
from satchel.cli.terminal import Terminal
from satchel.errors import NotFoundError, SatchelError
from satchel.formats.marketplace_manifest import ListedPlugin
from satchel.lazy_dataclass import dataclass
from satchel.names import near_misses
from satchel.reports.short_texts import count
from satchel.setup.artefact_signatures import Signer, require_signer
from satchel.setup.folder_placement import require_outside
from satchel.setup.source_addresses import SourceAddress, read_address
from satchel.setup.source_copies import CopyBudget, CopyLimitError
from satchel.setup.source_fetch import FetchedSource, address_of_entry, fetched
from satchel.setup.source_records import AddedFolder
from satchel.setup.source_units import SourceUnit, SourceUnits, find_units
from satchel.text import one_line
from satchel.trust.trust_record import TrustStore

yes_option = click.option("--yes", is_flag=True, help="Do not ask; for scripts.")
project_option = click.option(
    "--project", is_flag=True, help="Use ./.satchel instead of ~/.satchel."
)


@click.command("add", cls=Command)
@click.argument("source")
@repeatable("--only", "only", "NAME", "Add this skill or plugin of the source.")
@project_option
@yes_option
@click.option("--full", is_flag=True, help="Print all files in full before the question.")
@signer_options
def command(
    console: Console,
    *,
    source: str,
    only: tuple[str, ...],
    project: bool,
    yes: bool,
    full: bool,
    signer: Signer | None,
) -> None:
    """Add skills and plugins from somewhere else.

    SOURCE is git+https://...[@REV][#subdirectory=PATH], github:OWNER/REPO[/PATH][@REV], an archive,
    a folder, or a marketplace in any of them. What it contains is shown, with --full in full, and
    nothing is placed or run before you agree: exit code 3 means that you did not. It is copied to
    ~/.satchel/skills or ~/.satchel/plugins, and recorded with its commit in
    ~/.satchel/sources.toml, for 'satchel update'. Signatures of sigstore beside an archive are
    verified, and who signed it is shown; one that does not verify is an error.
    """
    folder = AddedFolder(is_project=project)
    folder.require_own()
    folder.records()  # What cannot be recorded is not placed.
    adder = _Adder(terminal=Terminal(console), folder=folder, signer=signer, agrees=yes, full=full)
    try:
        address = read_address(source)
    except SatchelError as problem:
        raise click.UsageError(str(problem)) from None
    adder.add(address, only)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Adder:
    terminal: Terminal
    folder: AddedFolder
    signer: Signer | None
    agrees: bool
    full: bool

    def add(self, address: SourceAddress, only: tuple[str, ...]) -> None:
        with fetched(address, partial(self.terminal.progress, address.name)) as source:
            require_signer(self.signer, source.signers, address.text)
            with self.terminal.working(f"reading {address.name}"):
                contents = find_units(source.content_folder, source.folder)
            for text in contents.left_out:
                if not only or any(name in text for name in only):
                    self._say_left_out(text)
            units, elsewhere = _chosen(contents, only)
            with ExitStack() as copies:
                if units:
                    usable = self._usable(source, units, copies, is_named=bool(only))
                    self._add_units(source, usable)
        if not only:
            self._name_elsewhere(contents.elsewhere, is_local=address.is_local)
        for entry in elsewhere:
            self.add(address_of_entry(entry, is_local=address.is_local), ())

    def _say_left_out(self, reason: object) -> None:
        self.terminal.say(one_line(f"left out: {reason}"))

    def _name_elsewhere(self, entries: Iterable[ListedPlugin], *, is_local: bool) -> None:
        names: list[str] = []
        for entry in entries:
            try:
                address_of_entry(entry, is_local=is_local)
                names.append(entry.name)
            except SatchelError as problem:
                self._say_left_out(problem)
        if names:
            text = f"at other addresses, to be added with --only NAME: {', '.join(names)}"
            self.terminal.say(one_line(text))

    def _usable(
        self,
        source: FetchedSource,
        units: Iterable[SourceUnit],
        copies: ExitStack,
        *,
        is_named: bool,
    ) -> list[SourceUnit]:
        """Return copies of the units that can be added, which `copies` removes.

        Raises `SatchelError` for one that was named, if there is none, or if all together are too
        large.
        """
        usable: list[SourceUnit] = []
        broken: list[SatchelError] = []
        there: list[SatchelError] = []
        budget = CopyBudget()
        for unit in units:
            problems = broken
            try:
                require_valid(unit)
                problems = there
                _require_free(self.folder, unit, source.address)
                problems = broken
                require_outside(self.folder.target(unit.kind, unit.name), unit.folder)
                usable.append(copies.enter_context(as_placed(unit, source, budget)))
            except CopyLimitError as problem:
                raise source.with_source_path(problem) from None
            except SatchelError as problem:
                problems.append(source.with_source_path(problem))
        # All that could be added is there: the broken ones are not the cause.
        reasons = [*there, *broken]
        if reasons and (is_named or not usable):
            raise reasons[0]
        for reason in reasons:
            self._say_left_out(reason)
        return usable

    def _add_units(self, source: FetchedSource, units: list[SourceUnit]) -> None:
        say_units(units, source, self.terminal)
        for unit in units if self.full else ():
            for line in unit_lines(unit):
                self.terminal.say(line, as_is=True)
        if not (self.full or self.agrees):
            self.terminal.say("read all of it with --full")
        kinds = [unit.kind for unit in units]
        parts = [count(kinds.count(kind), kind) for kind in dict.fromkeys(kinds)]
        question = f"Add {' and '.join(parts)} to {self.folder.shown}?"
        self.terminal.require_agreement(question, yes=self.agrees)
        failures = 0
        for unit in units:
            try:
                place_unit(unit, source, self.folder, self.terminal)
            except SatchelError as problem:
                problem = source.with_source_path(problem)
                if len(units) == 1:
                    raise problem from None
                failures += 1
                self._say_left_out(f"{unit.kind} {unit.name}: {problem}")
        if failures:
            raise SatchelError(f"{failures} of {len(units)} were not added")
        if self.folder.is_project and not TrustStore().read(".").record:
            self.terminal.say("next: satchel trust, since nothing of a project is used before")
        elif self.folder.is_project and any(map(needs_trust, units)):
            self.terminal.say("next: satchel trust, for its code; its text is used already")


def _chosen(
    contents: SourceUnits, only: tuple[str, ...]
) -> tuple[tuple[SourceUnit, ...], tuple[ListedPlugin, ...]]:
    """Return the units to add, and the entries whose plugins are elsewhere."""
    if not only:
        if not contents.units:
            raise SatchelError(
                "the source has neither a skill nor a plugin",
                fix="name the folder inside it with #subdirectory=PATH, or --only NAME",
            )
        return contents.units, ()
    names = {unit.name for unit in contents.units} | {entry.name for entry in contents.elsewhere}
    for name in only:
        if name not in names:
            for unit in contents.units:
                if name in {skill.name for skill in unit.skills}:
                    message = f"{name!r} is a skill of the plugin {unit.name!r}"
                    raise SatchelError(message, fix=f"add all of it with --only {unit.name}")
            raise NotFoundError("skill or plugin of the source", name, near_misses(name, names))
    units = tuple(unit for unit in contents.units if unit.name in only)
    return units, tuple(entry for entry in contents.elsewhere if entry.name in only)


def _require_free(folder: AddedFolder, unit: SourceUnit, address: SourceAddress) -> None:
    """Refuse to replace what did not come from this source."""
    target = folder.target(unit.kind, unit.name)
    if not os.path.lexists(target):
        return
    for record in folder.records():
        if (record.kind, record.name) == (unit.kind, unit.name):
            if record.source == folder.recorded(address):
                fix = folder.advice(f"update {unit.name}")
                raise SatchelError("was added before", where=target, fix=fix)
            fix = f"{folder.advice(f'remove {unit.name}')} first"
            raise SatchelError(f"was added from {record.source}", where=target, fix=fix)
    raise SatchelError(
        "exists, and was not added by 'satchel add'", where=target, fix="move it away"
    )
