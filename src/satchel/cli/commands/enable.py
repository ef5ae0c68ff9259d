"""`satchel enable`: switch skills, tools, groups or plugins on again, in `satchel.toml`."""

import click

from satchel.cli.choosing import choose, switch_on
from satchel.cli.command import Command, Sources, as_json, pass_console, reads_sources
from satchel.cli.console import Console


@click.command("enable", cls=Command)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@reads_sources
@as_json
@pass_console
def command(console: Console, names: tuple[str, ...], sources: Sources, as_json: bool) -> None:
    """Switch skills, tools, groups or plugins on again.

    NAME is a name, an address SOURCE:NAME, a source, or a glob of these; KIND: before it means
    one kind only, as in tool:delete_*. The choice is written into your own satchel.toml, with
    --project into that of the current folder.
    """
    choose(console, names, sources, switch_on, as_json=as_json)
