"""The base classes of commands, with their shared options and error handling."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

import satchel
from satchel.cli.console import console, log_to_stderr
from satchel.errors import SatchelError
from satchel.lazy_dataclass import dataclass
from satchel.text import one_line

Body = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources that the options name; by default the conventional folders in the home folder."""

    skills: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    project: bool = False
    claude: bool = False
    find_folders: int | None = None
    no_cache: bool = False

    def open(self, *, run_code: bool, servers: bool = False, **options: Any) -> "satchel.Satchel":
        """Return a `Satchel` of these sources; it is closed when the command ends.

        Plugins are imported only with `run_code`. With `servers`, the declared MCP servers are
        connected first.
        """
        if run_code:
            log_to_stderr()
        app = satchel.Satchel(
            self.skills,
            self.plugins,
            self.entry_points,
            roots=self._conventional_roots(),
            project="." if self.project else None,
            run_code=run_code,
            settings=satchel.Settings(
                mcp_servers=servers, limits=self._limits(), cache=not self.no_cache
            ),
            **options,
        )
        click.get_current_context().call_on_close(app.close)
        if servers:
            app.wait_for_mcp_servers()
        return app

    def _limits(self) -> "satchel.Limits":
        most = self.find_folders
        return satchel.Limits() if most is None else satchel.Limits(find_folders=most)

    def _conventional_roots(self) -> list["satchel.SearchRoot"]:
        """Return the conventional folders; if folders are named, only those of the project."""
        roots = satchel.conventional_roots("." if self.project else None, claude=self.claude)
        has_folders = bool(self.skills or self.plugins)
        return [root for root in roots if root.scope.name == "PROJECT" or not has_folders]


class Command(click.Command):
    """A command whose function takes a `console` and returns an exit code or `None` for 0.

    Errors are printed to stderr as one line.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Add the shared options of the class after those of the command."""
        super().__init__(*args, **kwargs)
        self.params += self.options()

    def options(self) -> list[click.Option]:
        """Return the options that all commands of this class have."""
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
            except Exception as problem:
                if ctx.find_root().params.get("debug"):
                    raise
                text = one_line(f"{type(problem).__name__}: {problem}")
                raise click.ClickException(
                    f"unexpected {text} (run 'satchel --debug {ctx.info_name} ...' for details)"
                ) from problem
            finally:
                # Here, so that what plugins print at shutdown goes to stderr as well.
                ctx.close()


class SourcesCommand(Command):
    """A command with the options that select sources; its function takes `sources`."""

    def options(self) -> list[click.Option]:
        """Return the options that select sources."""
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
                help="Also read, and trust, the conventional folders of the current folder.",
            ),
            click.Option(
                ["--claude"], is_flag=True, help="Count .claude/skills as a conventional folder."
            ),
            click.Option(
                ["--find-folders"], type=click.IntRange(1), metavar="N",
                help="Search at most N folders in each folder of skills; default 50,000.",
            ),
            click.Option(
                ["--no-cache"], is_flag=True,
                help="Read every skill again, and keep nothing for the next start.",
            ),
        ]  # fmt: skip

    def invoke(self, ctx: click.Context) -> None:
        """Run the command."""
        values = {item.name: ctx.params.pop(item.name) for item in fields(Sources)}
        ctx.params["sources"] = Sources(**values)
        super().invoke(ctx)


class CatalogCommand(SourcesCommand):
    """A command with sources and `--json`; its function takes that as `as_json`."""

    def options(self) -> list[click.Option]:
        """Return the options that select sources, and `--json`."""
        json = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")
        return [*super().options(), json]


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
run_code = click.option("--run", is_flag=True, help="Also import the enabled plugins.")


def repeatable(
    option: str, name: str, metavar: str, text: str, **more: Any
) -> Callable[[Body], Body]:
    """Return an option that may be repeated; its values are passed as `name`."""
    text = f"{text} Repeatable."
    return click.option(option, name, multiple=True, metavar=metavar, help=text, **more)


activates_groups = repeatable("--group", "groups", "NAME", "Activate a group.")


def plugin_argument(function: Body) -> Body:
    """Add the argument PLUGIN, which is passed as `name`."""
    return click.argument("name", metavar="PLUGIN")(function)


def force_option(text: str) -> Callable[[Body], Body]:
    """Return the option `--force`, which writes what would be refused."""
    return click.option("--force", is_flag=True, help=text)


def set_option(text: str) -> Callable[[Body], Body]:
    """Return the option `--set KEY=VALUE`, which may be repeated."""
    return repeatable("--set", "values", "KEY=VALUE", f"{text}; '-' reads the value from stdin.")
