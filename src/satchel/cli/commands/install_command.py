"""`satchel install`: install, configure, set up and enable a plugin."""

import click

from satchel.cli.base_command import Command, as_json, set_option
from satchel.cli.console import Console
from satchel.cli.installed_plugin import print_installed
from satchel.cli.installer import Installer
from satchel.cli.key_value_pairs import field_values
from satchel.cli.signer_options import signer_options
from satchel.cli.terminal import Terminal
from satchel.reports.serializer import installed_json
from satchel.setup.artefact_signatures import Signer


@click.command("install", cls=Command)
@click.argument("target", metavar="PATH|DISTRIBUTION")
@click.option("-e", "--editable", is_flag=True, help="Link to the folder instead of copying it.")
@click.option("--plugin", metavar="NAME", default="", help="Install this plugin of a marketplace.")
@set_option("Set a configuration field")
@click.option("--no-input", is_flag=True, help="Never ask for a value.")
@click.option("--yes", is_flag=True, help="Agree to run what is shown.")
@click.option("--full", is_flag=True, help="Print all code of a folder before the question.")
@signer_options
@as_json
def command(
    console: Console,
    *,
    target: str,
    editable: bool,
    plugin: str,
    values: tuple[str, ...],
    no_input: bool,
    yes: bool,
    full: bool,
    signer: Signer | None,
    as_json: bool,
) -> int:
    """Install a plugin and enable it.

    PATH is the folder of a plugin, which is copied to ~/.satchel/plugins, a pip project, or a
    wheel. Of a marketplace, one plugin is copied: on a terminal you are asked which. DISTRIBUTION
    is a requirement for pip, such as acme-weather or 'acme-weather>=2'. On a terminal you are
    asked for required values.

    It prints what will run: the names of the code, the setup.py, the dependencies, the MCP servers.
    --full prints the code as well, with what is hidden in it written out. Then it asks. Without a
    terminal and without --yes the answer is no, and the exit code 3. With --no-input the exit code
    is 1 if a required value is missing. Signatures of sigstore and attestations beside a wheel, and
    those of an index, are verified, and the signer is shown; one that does not verify is an error.
    """
    installer = Installer(
        terminal=Terminal(console, no_input=no_input),
        values=field_values(values),
        editable=editable,
        plugin=plugin,
        agrees=yes,
        full=full,
        signer=signer,
    )
    plugins = installer.install(target)
    if as_json:
        console.json([installed_json(item) for item in plugins])
    for item in plugins:
        print_installed(console, item, as_json=as_json)
    return int(no_input and any(item.missing for item in plugins))
