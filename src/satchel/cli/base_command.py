"""What all commands share: the console, the sources they read, and how they fail."""

from dataclasses import dataclass, fields
from typing import Any

import click

import satchel
from satchel.cli.console import console, log_visibly
from satchel.errors import SatchelError
from satchel.text import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the user asked to be read; without anything, the places under their home."""

    skills: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    project: bool = False
    claude: bool = False

    def open(self, *, run_code: bool, servers: bool = False, **more: Any) -> "satchel.Satchel":
        """Read the sources; plugins are imported only with `run_code`.

        With `servers` the MCP servers that they name are reached, too, and waited for.
        """
        if run_code:
            log_visibly()
        app = satchel.Satchel(
            self.skills,
            self.plugins,
            self.entry_points,
            places=self._places(),
            project="." if self.project else None,
            run_code=run_code,
            settings=satchel.Settings(mcp_servers=servers),
            **more,
        )
        click.get_current_context().call_on_close(app.close)
        if servers:
            app.wait_for_mcp_servers()
        return app

    def _places(self) -> list["satchel.SearchRoot"]:
        """Return the well-known places: once folders are named, only those of the project."""
        known = satchel.conventional_roots("." if self.project else None, claude=self.claude)
        named = bool(self.skills or self.plugins)
        return [place for place in known if place.scope.name == "PROJECT" or not named]


class Command(click.Command):
    """A command whose function gets a `console`, and returns the exit code unless that is 0.

    A failure is one line on stderr.
    """

    def __init__(self, *args: Any, **given: Any) -> None:
        """Make a command as click does, with the options that all of its kind have."""
        super().__init__(*args, **given)
        self.params += self.options()

    def options(self) -> list[click.Option]:
        """Return the options beside those that the command declares itself; they come last."""
        return []

    def invoke(self, ctx: click.Context) -> None:
        """Run the command."""
        with console() as ctx.params["console"]:
            try:
                if code := super().invoke(ctx):
                    ctx.exit(code)
            except SatchelError as problem:
                raise click.ClickException(one_line(str(problem))) from problem
            except (click.ClickException, click.exceptions.Exit, click.Abort):
                raise
            except Exception as fault:
                if ctx.find_root().params.get("debug"):
                    raise
                told = one_line(f"{type(fault).__name__}: {fault}")
                raise click.ClickException(
                    f"unexpected {told} ('satchel --debug {ctx.info_name} ...' shows where)"
                ) from fault
            finally:
                # What plugins print while they are shut down is no data either.
                ctx.close()


class SourcesCommand(Command):
    """A command with the options that say what to read; its function gets them as `sources`."""

    def options(self) -> list[click.Option]:
        """Return the options that say what to read."""
        return [
            click.Option(
                ["--skills"], multiple=True, metavar="DIR",
                help="Read the skills in this folder. Repeatable.",
            ),
            click.Option(
                ["--plugins"], multiple=True, metavar="DIR",
                help="Read the plugins in this folder. Repeatable.",
            ),
            click.Option(
                ["--entry-points"], multiple=True, metavar="NAME|all|none",
                help="Enable an installed plugin. Repeatable; none is the default.",
            ),
            click.Option(
                ["--project"], is_flag=True,
                help="Read the well-known places of the current folder too; trust it.",
            ),
            click.Option(
                ["--claude"], is_flag=True, help="Count .claude/skills as a well-known place."
            ),
        ]  # fmt: skip

    def invoke(self, ctx: click.Context) -> None:
        """Run the command."""
        given = {item.name: ctx.params.pop(item.name) for item in fields(Sources)}
        ctx.params["sources"] = Sources(**given)
        super().invoke(ctx)


class View(SourcesCommand):
    """A command that also has `--json`; its function gets that as `to_json_value`."""

    def options(self) -> list[click.Option]:
        """Return the options that say what to read, and `--json`."""
        json = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")
        return [*super().options(), json]


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
run_code = click.option("--run", is_flag=True, help="Import the plugins that are enabled, too.")
activates_groups = click.option(
    "--group", "groups", multiple=True, metavar="NAME", help="Activate a group."
)
