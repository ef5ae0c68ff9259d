"""`satchel update`: bring what was added to the newest version of its source."""

import os
from collections.abc import Iterable
from functools import partial

import click

from satchel.cli.base_command import Command
from satchel.cli.commands.add_command import project_option, yes_option
from satchel.cli.commands.remove_command import chosen_records
from satchel.cli.console import Console
from satchel.cli.source_unit_steps import (
    as_placed,
    folder_diff,
    link_lines,
    mode_lines,
    place_unit,
    require_valid,
    say_units,
)
from satchel.cli.terminal import NOT_AGREED, NotAgreedError, Terminal
from satchel.errors import SatchelError
from satchel.files.file_reader import is_inside, real_path
from satchel.lazy_dataclass import dataclass
from satchel.reports.short_texts import joined_names
from satchel.setup.artefact_signatures import Signer, recorded, time_of
from satchel.setup.source_addresses import SourceAddress
from satchel.setup.source_copies import CopyBudget
from satchel.setup.source_fetch import FetchedSource, fetched
from satchel.setup.source_records import RECORD_FILE, AddedFolder, SourceRecord
from satchel.setup.source_units import SourceUnit, find_units
from satchel.text import one_line
from satchel.trust.tree_digest import folder_digest


@click.command("update", cls=Command)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@project_option
@yes_option
def command(console: Console, *, names: tuple[str, ...], project: bool, yes: bool) -> int:
    """Update skills and plugins that were added, or only those named.

    The newest version is fetched, and everything that would change is shown before you are asked.
    A broken new version is not used: the old one stays. What was added at a commit stays there.
    If the new version has another signer, none any more, or an older signature, update says so,
    and --yes does not agree to it.
    """
    folder = AddedFolder(is_project=project)
    folder.require_own()
    by_source: dict[str, list[SourceRecord]] = {}
    for record in chosen_records(folder, names):
        by_source.setdefault(record.source, []).append(record)
    updater = _Updater(terminal=Terminal(console), folder=folder, agrees=yes)
    codes = [updater.update_source(source, records) for source, records in by_source.items()]
    if not codes:
        console.say("nothing was added")
    return max(codes, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Updater:
    """Updates what was added to one folder; its methods return the exit code."""

    terminal: Terminal
    folder: AddedFolder
    agrees: bool

    def update_source(self, text: str, records: Iterable[SourceRecord]) -> int:
        progress = partial(self.terminal.progress, text)
        code, titles = 0, ", ".join(map(_title, records))
        try:
            with fetched(self._address(text), progress) as source:
                units = find_units(source.content_folder, source.folder).units
                for record in records:
                    code = max(code, self._update(record, source, units))
        except SatchelError as problem:
            return self._failed(titles, problem)
        return code

    def _address(self, text: str) -> SourceAddress:
        try:
            return self.folder.address_of(text)
        except SatchelError as problem:
            file = f"{self.folder.shown}/{RECORD_FILE}"
            raise SatchelError(f"its source in {file} cannot be used: {problem}") from None

    def _update(
        self, record: SourceRecord, source: FetchedSource, units: Iterable[SourceUnit]
    ) -> int:
        target = self.folder.target(record.kind, record.name)
        title = _title(record)
        try:
            unit = _newest(record, self.folder, units)
            doubt = _doubt(record, source.signers) or self._doubt_of_place(source.address)
            with as_placed(unit, source, CopyBudget()) as new:
                now = folder_digest(target)
                if doubt:
                    self.terminal.say(one_line(f"{title} {doubt}"))
                digest, modes = folder_digest(new.folder), mode_lines(target, new.folder)
                if digest in {now, record.digest} and not (digest == now and modes):
                    self.terminal.console.out(f"{title} is up to date")
                    return 0
                say_units([new], source, self.terminal)
                if now != record.digest:
                    self.terminal.say(
                        "  it was changed here since it was added; these changes would be lost"
                    )
                for line in (*modes, *link_lines(target), *folder_diff(target, new.folder)):
                    self.terminal.say(line, as_is=True)
                self.terminal.require_agreement(f"Replace {title}?", yes=self.agrees and not doubt)
                place_unit(new, source, self.folder, self.terminal)
        except NotAgreedError as refusal:
            self.terminal.say(refusal.format_message())
            return NOT_AGREED
        except SatchelError as problem:
            return self._failed(title, source.with_source_path(problem))
        return 0

    def _doubt_of_place(self, address: SourceAddress) -> str:
        """Return that the record of a project names what is elsewhere on this machine, or `""`."""
        is_inner = address.is_path and is_inside(real_path(address.location), real_path("."))
        if not (self.folder.is_project and address.is_local) or is_inner:
            return ""
        return f"comes from {address.text}, outside of the project, whose own record says so"

    def _failed(self, title: str, problem: SatchelError) -> int:
        self.terminal.say(one_line(f"Error: {title}: {problem}"))
        return 1


def _title(record: SourceRecord) -> str:
    return one_line(f"{record.kind} {record.name}")


def _newest(record: SourceRecord, folder: AddedFolder, units: Iterable[SourceUnit]) -> SourceUnit:
    """Return the new version of what was added. Raises `SatchelError` if there is none."""
    target = folder.target(record.kind, record.name)
    folder.require_own(target)
    if not os.path.isdir(target):
        raise SatchelError(f"is gone; {folder.advice(f'remove {record.name}')}", where=target)
    for unit in units:
        if (unit.kind, unit.name) == (record.kind, record.name):
            require_valid(unit)
            return unit
    message = f"has no {record.kind} {record.name!r} any more; the old version stays"
    names = joined_names(unit.name for unit in units)
    raise SatchelError(message, where=record.source, fix=names and f"it has: {names}")


def _doubt(record: SourceRecord, signers: tuple[Signer, ...]) -> str:
    """Return what is suspicious about the signature of a new version, or `""`."""
    signer, signed = recorded(signers), time_of(signers)
    if record.signer not in {"", signer}:
        now = f"signed by {signer}" if signer else "not signed any more"
        return f"was signed by {record.signer}; now it is {now}"
    if signed < record.signed:  # an old archive in the place of the newest
        return (
            f"comes in an archive that was signed at {signed}, before the one that is here "
            f"({record.signed}); it may be an old one"
        )
    return ""
