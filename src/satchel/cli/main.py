"""Where the command line begins; light, so that `satchel --help` answers at once."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from satchel.cli.console import claim_stdout, leave

COMMANDS = {
    "list": "List skills, tools, groups, plugins or contracts.",
    "show": "Show everything about one skill, tool, group or plugin.",
    "search": "Find the tools and skills that tell of something.",
    "prompt": "Print the system prompt that a model would get.",
    "schema": "Print the schemas of the tools that a model would get.",
    "validate": "Hold skills and plugins to the letter of their format.",
    "doctor": "Say what is off, why, and the command that mends it.",
    "watch": "Print what is loaded, then a line for every change.",
    "test": "Call the tools of a plugin with their own examples.",
    "new": "Write a new skill or plugin to start from.",
    "call": "Call a tool as a model would.",
    "serve": "Serve what is loaded to MCP clients.",
    "enable": "Switch skills, tools, groups or plugins on again.",
    "disable": "Switch skills, tools, groups or plugins off.",
    "install": "Install a plugin: a folder, a project or a package.",
    "uninstall": "Remove a plugin that was installed.",
    "mcp": "List MCP servers, their tools and skills; call and approve tools.",
    "config": "Show and change what plugins are configured with.",
}
"""Each command with its one line of help; its code is in `satchel.cli.commands`."""


_LISTS = ("skills", "tools", "groups", "plugins", "contracts")

_PLUGIN = "satchel.plugin"
"""Where the context keeps the plugin whose command is run."""


class LazyGroup(click.Group):
    """A group that imports the module of a command when that command is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"satchel.cli.commands.{cmd_name}_command").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the help from the table, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what one of a plugin raises is one line."""
        try:
            return super().invoke(ctx)
        except (
            click.ClickException,
            click.exceptions.Exit,
            click.Abort,
            EOFError,
            BrokenPipeError,
        ):
            raise
        except Exception as fault:
            if ctx.params.get("debug") or _PLUGIN not in ctx.meta:
                raise
            # Lazy: needed for a fault only.
            from satchel.cli.plugin_commands import fault_of

            raise click.ClickException(fault_of(ctx.meta[_PLUGIN], fault)) from fault

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, of Satchel or of a plugin, or say which was perhaps meant."""
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        # Lazy: needed for what is not Satchel's own only.
        from satchel.cli.plugin_commands import plugin_commands
        from satchel.names import near_misses

        found = plugin_commands()
        if name not in found:
            near = near_misses(name, {*COMMANDS, *found})
            hint = f" Did you mean {', '.join(near)}?" if near else ""
            if name in _LISTS:
                hint = f" Did you mean list {name}?"
            ctx.fail(f"No such command {name!r}.{hint}")
        (owner, command), *others = found[name]
        if others:
            owners = " and ".join(supply.name for supply, _ in found[name])
            ctx.fail(f"{name!r} is a command of {owners}; 'satchel disable' one of them.")
        ctx.meta[_PLUGIN] = owner
        return name, command, args[1:]


def _version(ctx: click.Context, _option: click.Parameter, wanted: Any) -> None:
    if wanted and not ctx.resilient_parsing:
        # Lazy: it parses the metadata of an installed package.
        from importlib.metadata import version

        click.echo(f"satchel {version('satchel')}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of a fault in Satchel itself.")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
    help="Print the version and exit.",
)  # fmt: skip
def cli(debug: bool) -> None:
    """Carry an agent's skills and tools.

    Data goes to stdout, talk to stderr. The exit code is 0 when all is well, 1 when something
    is wrong, 2 when the command was used wrongly.
    """


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.stdout = claim_stdout()
    code: Any = 1
    try:
        cli.main(args, prog_name="satchel")
    except SystemExit as end:
        code = end.code
    except BaseException:
        # Only with --debug; `sys.excepthook` would run too late, after `leave`.
        sys.excepthook(*sys.exc_info())
    leave(code if isinstance(code, int) else int(code is not None))
