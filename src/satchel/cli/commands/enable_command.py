"""`satchel enable`: switch skills, tools, groups or plugins on again, in `satchel.toml`."""

import click

from satchel.cli.base_command import Sources, View
from satchel.cli.console import Console
from satchel.cli.selection_editor import change_and_print, enable_name


@click.command("enable", cls=View)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def command(console: Console, names: tuple[str, ...], sources: Sources, as_json: bool) -> None:
    """Switch skills, tools, groups or plugins on again.

    NAME is a name, an address SOURCE:NAME, a source, or a glob of these; KIND: before it means
    one kind only, as in tool:delete_*. The choice is written into your own satchel.toml, with
    --project into that of the current folder.
    """
    change_and_print(console, names, sources, enable_name, as_json=as_json)
