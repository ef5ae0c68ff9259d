"""`satchel list`: what there is, also what failed."""

from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import Command, Sources, as_json, pass_console, reads_sources
from satchel.cli.console import Console
from satchel.cli.json_shapes import KINDS, entries_of, listed_json
from satchel.cli.rendering import count, status_label, summary, table

if TYPE_CHECKING:
    from satchel.catalog import Catalog


@click.command("list", cls=Command)
@click.argument("what", required=False, type=click.Choice([f"{kind}s" for kind in KINDS]))
@reads_sources
@as_json
@pass_console
def command(console: Console, what: str | None, sources: Sources, as_json: bool) -> None:
    """List skills, tools, groups and plugins, also what failed.

    No plugin code is run. Tools are read from the source of a plugin with a manifest, so what the
    code makes while it runs, and what the hooks of a package return, is not listed.
    """
    catalog = sources.open(run_code=False).catalog
    kinds = (what.removesuffix("s"),) if what else KINDS
    if as_json:
        shapes = {f"{kind}s": listed_json(catalog, kind) for kind in kinds}
        console.json(shapes[what] if what else shapes)
    else:
        for kind in kinds:
            _section(kind, catalog, console, titled=what is None)
    numbers = [count(len(entries_of(catalog, kind)), kind) for kind in kinds]
    console.say(", ".join(numbers))
    summary(catalog, console)


def _section(kind: str, catalog: "Catalog", console: Console, *, titled: bool) -> None:
    """Write the table of one kind."""
    entries = entries_of(catalog, kind)
    if titled and entries:
        console.out(console.paint(f"{kind}s", underline=True))
    table(
        [(entry.name, status_label(entry), entry.source, entry.description) for entry in entries],
        console,
    )
    if titled and entries:
        console.out()
