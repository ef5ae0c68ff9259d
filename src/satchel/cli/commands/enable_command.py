"""`satchel enable`: enable skills, tools, groups or plugins in `satchel.toml`."""

import click

from satchel.cli.base_command import CatalogCommand, Sources, force_option
from satchel.cli.console import Console
from satchel.cli.selection_editor import Change, change_and_print, enable_name

_HELP = """{title} skills, tools, groups or plugins.

NAME is a name, an address SOURCE:NAME, a source, or a glob pattern for these. The prefix
KIND: limits it to one kind, as in tool:delete_*. The change is written to your own
satchel.toml, with --project to that of the current folder. A name that nothing has is refused,
and so is a pattern that matches nothing.
"""


def selection_command(name: str, change: Change) -> click.Command:
    """Return the command `enable` or `disable`."""

    @click.command(name, cls=CatalogCommand, help=_HELP.format(title=name.capitalize()))
    @click.argument("names", metavar="NAME...", nargs=-1, required=True)
    @force_option("Write a name that nothing has now.")
    def run(
        console: Console, *, names: tuple[str, ...], force: bool, sources: Sources, as_json: bool
    ) -> None:
        change_and_print(console, names, sources, change, as_json=as_json, force=force)

    return run


command = selection_command("enable", enable_name)
