"""Entry point of the command line; imports little, so that `satchel --help` is fast."""

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from satchel.claimed_streams import claim_stdout
from satchel.cli.console import leave, show_in_colour

COMMANDS = {
    "list": "List skills, tools, groups, plugins or contracts.",
    "show": "Show everything about one skill, tool, group or plugin.",
    "search": "Find tools and skills by words.",
    "prompt": "Print the system prompt for a model.",
    "schema": "Print the tool schemas for a model.",
    "validate": "Check skills and plugins against their formats.",
    "trust": "Show what a project would run, and ask how far to trust it.",
    "scan": "Look for lures in skills and plugins of others.",
    "doctor": "Find problems, and print the commands that fix them.",
    "watch": "Print what is loaded, then every change.",
    "test": "Call the tools of a plugin with their examples.",
    "new": "Create a skill or plugin from a template.",
    "call": "Call a tool as a model would.",
    "replay": "Compare a recorded conversation with what a model would see now.",
    "dev": "Show skills, tools and the prompt in a browser, live.",
    "serve": "Serve tools and skills to MCP clients.",
    "worker": "Run the tools of plugins for hosts on other machines.",
    "enable": "Enable skills, tools, groups or plugins.",
    "disable": "Disable skills, tools, groups or plugins.",
    "install": "Install a plugin: a folder, a project or a package.",
    "uninstall": "Remove an installed plugin.",
    "add": "Add skills and plugins from a repository, archive or folder.",
    "update": "Bring what was added to the newest version of its source.",
    "remove": "Remove a skill or plugin that was added.",
    "lock": "Write down what is loaded, and find what differs later.",
    "mcp": "List MCP servers and what they offer; call and approve tools.",
    "config": "Show and change the configuration of plugins.",
    "completion": "Complete commands in your shell when you press Tab.",
}
"""Each command with its line of help; its code is in `satchel.cli.commands`."""


# Names that users try as commands; the error then suggests `satchel list NAME`.
_LISTABLE = ("skills", "tools", "groups", "plugins", "contracts")

_PLUGIN = "satchel.plugin"
"""The key in `Context.meta` of the plugin whose command is run."""


class LazyGroup(click.Group):
    """A group that imports the module of a command only when that command is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the command names in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"satchel.cli.commands.{cmd_name}_command").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an exception of a plugin's command becomes one line."""
        try:
            return super().invoke(ctx)
        except click.ClickException as problem:
            # Click has no other hook for how an error looks.
            problem.show = partial(show_in_colour, problem.show)  # type: ignore[method-assign]
            raise
        except (
            click.exceptions.Exit,
            click.Abort,
            EOFError,
            BrokenPipeError,
        ):
            raise
        except Exception as problem:
            if ctx.params.get("debug") or _PLUGIN not in ctx.meta:
                raise
            # Lazy: imports much, and is only needed for an error.
            from satchel.cli.plugin_commands import error_text

            raise click.ClickException(error_text(ctx.meta[_PLUGIN], problem)) from problem

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command of Satchel or of a plugin. Raises `click.UsageError` with a suggestion."""
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        # Lazy: imports much, and is only needed for commands of plugins.
        from satchel.cli.plugin_commands import plugin_commands
        from satchel.names import near_misses

        commands = plugin_commands()
        if name not in commands:
            near = near_misses(name, {*COMMANDS, *commands})
            hint = f" Did you mean {', '.join(near)}?" if near else ""
            if name in _LISTABLE:
                hint = f" Did you mean list {name}?"
            ctx.fail(f"No such command {name!r}.{hint}")
        (owner, command), *others = commands[name]
        if others:
            owners = " and ".join(plugin.name for plugin, _ in commands[name])
            ctx.fail(f"{name!r} is a command of {owners}; disable one with 'satchel disable'.")
        ctx.meta[_PLUGIN] = owner
        return name, command, args[1:]


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an unexpected error.")
@click.version_option(
    package_name="satchel", message="satchel %(version)s", help="Print the version and exit."
)
def cli(debug: bool) -> None:
    """Manage an agent's skills and tools.

    Data goes to stdout, messages go to stderr. The exit code is 0 for success, 1 for a problem,
    2 for wrong usage, and 3 if you were asked and did not agree.
    """


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout = TextIOWrapper(claim_stdout(), encoding=encoding, errors="backslashreplace")
    code: Any = 1
    try:
        cli.main(args, prog_name="satchel")
    except SystemExit as end:
        code = end.code
    except BaseException:
        # Only with --debug. Python would call `sys.excepthook` too late, after `leave`.
        sys.excepthook(*sys.exc_info())
    leave(code if isinstance(code, int) else int(code is not None))
