"""Put a skill or plugin of a source in its place, and record where it came from."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from satchel.cli.installed_plugin import print_installed
from satchel.cli.installer import Installer
from satchel.cli.marketplace_choice import files_of_choice
from satchel.cli.terminal import Terminal
from satchel.errors import SatchelError
from satchel.setup.artefact_signatures import recorded, time_of
from satchel.setup.folder_placement import replace_folder, staged_copy
from satchel.setup.install_lock import exclusive_change
from satchel.setup.source_fetch import FetchedSource
from satchel.setup.source_records import AddedFolder, SourceRecord
from satchel.setup.source_units import SourceUnit
from satchel.text import one_line
from satchel.trust.tree_digest import folder_digest


def place_unit(
    unit: SourceUnit, source: FetchedSource, folder: AddedFolder, terminal: Terminal
) -> None:
    """Place a unit below a folder, and record it; an error leaves what was there before.

    Raises `SatchelError`.
    """
    folder.require_own()
    target = folder.target(unit.kind, unit.name)
    with as_placed(unit) as copy:
        digest = folder_digest(copy)  # a setup may write into the folder later
    if unit.plugin is not None and not folder.is_project:
        # It may need values, and have a setup: that is what the installer is for.
        base = "" if source.address.kind == "folder" else source.content_folder
        installer = Installer(terminal=terminal, values={}, agrees=True, base=base)
        print_installed(terminal.console, installer.install_folder(unit.plugin), as_json=False)
    else:
        verb = "updated" if os.path.lexists(target) else "added"
        with exclusive_change(target, terminal.say):
            replace_folder(_staged(unit, target), target)
        shown = f"{folder.shown}/{unit.kind}s/{unit.name}"
        terminal.console.out(one_line(f"{verb} {unit.kind} {unit.name} ({shown})"))
    folder.keep(
        SourceRecord(
            kind=unit.kind,
            name=unit.name,
            source=source.address.text,
            version=source.version,
            digest=digest,
            signer=recorded(source.signers),
            signed=time_of(source.signers),
        )
    )


def require_valid(unit: SourceUnit) -> None:
    """Raise `SatchelError` if a unit cannot be used."""
    if unit.fault:
        raise SatchelError(f"{unit.kind} {unit.name!r} is broken: {one_line(unit.fault)}")


@contextmanager
def as_placed(unit: SourceUnit) -> Iterator[str]:
    """Yield a folder with the files that a unit would have when it is placed."""
    with TemporaryDirectory(prefix="satchel-update-") as above:
        yield _staged(unit, os.path.join(above, "unit"))


def _staged(unit: SourceUnit, target: str) -> str:
    """Copy a unit next to its place, with the files that let a listed plugin be used alone."""
    files = files_of_choice(unit.plugin) if unit.plugin is not None else {}
    return staged_copy(unit.folder, target, files, unit.chosen)
