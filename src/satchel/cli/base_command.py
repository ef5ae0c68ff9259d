"""What all commands share: the console, the sources they read, and how they fail."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

import satchel
from satchel.cli.console import Console, console, log_visibly
from satchel.errors import SatchelError
from satchel.text import one_line

Body = Callable[..., Any]


class Command(click.Command):
    """A command that gets a `Console`, and whose failures are one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with console() as ctx.obj:
            try:
                return super().invoke(ctx)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the user asked to be read."""

    skills: tuple[str, ...]
    plugins: tuple[str, ...]
    entry_points: tuple[str, ...]
    project: bool
    claude: bool

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


_SOURCES = (
    click.option(
        "--skills", multiple=True, metavar="DIR", help="Read the skills in this folder. Repeatable."
    ),
    click.option(
        "--plugins",
        multiple=True,
        metavar="DIR",
        help="Read the plugins in this folder. Repeatable.",
    ),
    click.option(
        "--entry-points",
        multiple=True,
        metavar="NAME|all|none",
        help="Enable an installed plugin. Repeatable; none is the default.",
    ),
    click.option(
        "--project",
        is_flag=True,
        help="Read the well-known places of the current folder too; trust it.",
    ),
    click.option("--claude", is_flag=True, help="Count .claude/skills as a well-known place."),
)


def reads_sources(body: Body) -> Body:
    """Add the options that say what to read; the command gets them as one `sources`."""

    @functools.wraps(body)
    def command(
        *args: Any,
        skills: tuple[str, ...],
        plugins: tuple[str, ...],
        entry_points: tuple[str, ...],
        project: bool,
        claude: bool,
        **given: Any,
    ) -> Any:
        sources = Sources(
            skills=skills,
            plugins=plugins,
            entry_points=entry_points,
            project=project,
            claude=claude,
        )
        return body(*args, sources=sources, **given)

    for option in reversed(_SOURCES):
        command = option(command)
    return command


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

pass_console = click.make_pass_decorator(Console)
