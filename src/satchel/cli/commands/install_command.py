"""`satchel install`: put a plugin where Satchel finds it, configure it, set it up, enable it."""

import click

from satchel.cli.base_command import Command, as_json
from satchel.cli.console import Console
from satchel.cli.installer import Installer, print_installed
from satchel.cli.key_value_pairs import field_values
from satchel.cli.serializer import installed_json
from satchel.cli.terminal import Terminal


@click.command("install", cls=Command)
@click.argument("what", metavar="PATH|DISTRIBUTION")
@click.option("-e", "--editable", is_flag=True, help="Link to the folder instead of copying it.")
@click.option(
    "--set", "given", metavar="KEY=VALUE", multiple=True,
    help="Give a field its value; '-' reads it from stdin. Repeatable.",
)  # fmt: skip
@click.option("--no-input", is_flag=True, help="Ask nothing.")
@as_json
def command(
    console: Console,
    *,
    what: str,
    editable: bool,
    given: tuple[str, ...],
    no_input: bool,
    as_json: bool,
) -> None:
    """Install a plugin, and enable it.

    PATH is the folder of a plugin, which is copied into ~/.satchel/plugins, or a pip project or a
    wheel; DISTRIBUTION is what pip is to install, such as acme-weather or 'acme-weather>=2'. On a
    terminal you are asked for the values that it requires. Its setup.py is run if it has one:
    install only what you trust.
    """
    terminal = Terminal(console, no_input=no_input)
    installer = Installer(
        console=console, terminal=terminal, values=field_values(given), editable=editable
    )
    done = installer.install(what)
    if as_json:
        console.json([installed_json(item) for item in done])
    for item in done:
        print_installed(console, item, as_json=as_json)
