"""`satchel disable`: disable skills, tools, groups or plugins in `satchel.toml`."""

import click

from satchel.cli.base_command import CatalogCommand, Sources, force_option
from satchel.cli.console import Console
from satchel.cli.selection_editor import change_and_print, disable_name


@click.command("disable", cls=CatalogCommand)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@force_option("Write a name that nothing has now.")
def command(
    console: Console, *, names: tuple[str, ...], force: bool, sources: Sources, as_json: bool
) -> None:
    """Disable skills, tools, groups or plugins.

    NAME is a name, an address SOURCE:NAME, a source, or a glob pattern for these. The prefix
    KIND: limits it to one kind, as in tool:delete_*. The change is written to your own
    satchel.toml, with --project to that of the current folder. A name that nothing has is refused,
    and so is a pattern that matches nothing.
    """
    change_and_print(console, names, sources, disable_name, as_json=as_json, force=force)
