"""Put a skill or plugin of a source in its place, and record where it came from."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from satchel.cli.console import Console
from satchel.cli.installer import Installer, print_installed
from satchel.cli.marketplace_choice import files_of_choice
from satchel.cli.terminal import Terminal
from satchel.errors import SatchelError
from satchel.lazy_dataclass import dataclass
from satchel.setup.artefact_signatures import recorded, time_of
from satchel.setup.folder_placement import Placement, removed, staged_copy
from satchel.setup.install_lock import exclusive_change
from satchel.setup.source_fetch import FetchedSource
from satchel.setup.source_records import AddedFolder, SourceRecord
from satchel.setup.source_units import SourceUnit
from satchel.text import one_line
from satchel.trust.tree_digest import folder_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPlacer:
    """Places units below one folder; an error leaves what was there before."""

    console: Console
    folder: AddedFolder

    def place(self, unit: SourceUnit, source: FetchedSource) -> None:
        """Place a unit and record it. Raises `SatchelError`."""
        require_valid(unit)
        self.folder.require_own()
        target = self.folder.target(unit.kind, unit.name)
        with as_placed(unit) as copy:
            digest = folder_digest(copy)  # a setup may write into the folder later
        if unit.plugin is not None and not self.folder.is_project:
            # It may need values, and have a setup: that is what the installer is for.
            terminal = Terminal(self.console, no_input=False)
            base = "" if source.address.kind == "folder" else source.top
            installer = Installer(
                console=self.console, terminal=terminal, values={}, agrees=True, base=base
            )
            installed = installer.install_folder(unit.plugin)
            print_installed(self.console, installed, as_json=False)
        else:
            verb = "updated" if os.path.lexists(target) else "added"
            with exclusive_change(target, self.console.say):
                staged = staged_copy(unit.folder, target, files_of(unit), unit.chosen)
                try:
                    with Placement(staged, target) as placement:
                        placement.keep()
                finally:
                    removed(staged)
            shown = f"{self.folder.shown}/{unit.kind}s/{unit.name}"
            self.console.out(one_line(f"{verb} {unit.kind} {unit.name} ({shown})"))
        self.folder.keep(
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
        target = os.path.join(above, "unit")
        yield staged_copy(unit.folder, target, files_of(unit), unit.chosen)


def files_of(unit: SourceUnit) -> dict[str, str]:
    """Return the files that a plugin of a marketplace needs to be used alone."""
    return dict(files_of_choice(unit.plugin)) if unit.plugin is not None else {}
