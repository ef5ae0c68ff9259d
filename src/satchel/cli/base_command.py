"""The base classes of commands, with their shared options and error handling."""

import os
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

import satchel
from satchel.cli.console import console, log_to_stderr
from satchel.errors import SatchelError
from satchel.lazy_dataclass import dataclass
from satchel.text import one_line

if TYPE_CHECKING:
    from satchel.sources.selection import SelectionFile

Body = Callable[..., Any]

_EMPTY = "source-empty"
_WRITTEN_LINES = "satchel.written-lines"
"""The key in `Context.meta` of the lines that were written already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources that the options name; by default those of `satchel.toml` and the home folder."""

    skills: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    project: bool = False
    claude: bool = False
    find_folders: int | None = None
    no_cache: bool = False

    def open(
        self, *, run_code: bool, servers: bool = False, wait: bool = True, **options: Any
    ) -> "satchel.Satchel":
        """Return a `Satchel` of these sources; it is closed when the command ends.

        Plugins are imported only with `run_code`. With `servers`, the declared MCP servers are
        connected first, or with `wait=False` in the background.
        """
        if run_code:
            log_to_stderr()
        roots = self._roots()
        app = satchel.Satchel(
            self.skills,
            self.plugins,
            self.enabled_entry_points,
            roots=roots,
            project="." if self.project else None,
            run_code=run_code,
            settings=satchel.Settings(
                mcp_servers=servers, limits=self._limits(), cache=not self.no_cache
            ),
            **options,
        )
        click.get_current_context().call_on_close(app.close)
        if servers and wait:
            app.wait_for_mcp_servers()
        _write_unread_folders(self, app, {root.path for root in roots})
        return app

    @property
    def enabled_entry_points(self) -> tuple[str, ...]:
        """Return the installed plugins that the options name, else those of the user's file."""
        return self.entry_points or tuple(
            name for file in self._files() for name in file.sources.get("entry-points", ())
        )

    def require_folders(self) -> None:
        """Raise `click.BadParameter` for a named folder that does not exist."""
        for option, folders in (("--skills", self.skills), ("--plugins", self.plugins)):
            for folder in folders:
                if not os.path.isdir(os.path.expanduser(folder)) and folder.strip():
                    is_there = os.path.lexists(os.path.expanduser(folder))
                    fault = "is not a folder" if is_there else "does not exist"
                    message = one_line(f"the folder {folder!r} {fault}")
                    raise click.BadParameter(message, param_hint=option)

    def _limits(self) -> "satchel.Limits":
        most = self.find_folders
        return satchel.Limits() if most is None else satchel.Limits(find_folders=most)

    def _roots(self) -> list["satchel.SearchRoot"]:
        """Return the folders of `satchel.toml` and the conventional ones.

        If the options name folders, only those of the project.
        """
        roots = [root for file in self._files() for root in file.roots]
        roots += satchel.conventional_roots("." if self.project else None, claude=self.claude)
        has_folders = bool(self.skills or self.plugins)
        return [root for root in roots if root.scope.name == "PROJECT" or not has_folders]

    def _files(self) -> "tuple[SelectionFile, ...]":
        """Return the files `satchel.toml` in use; the `Satchel` reports their problems."""
        # Lazy: not needed for `--help`.
        from satchel.sources.selection import project_selection_path, read_selection, selection_path

        project = project_selection_path(".") if self.project else ""
        return read_selection(selection_path(), project).files


def _write_unread_folders(sources: Sources, app: "satchel.Satchel", read: set[str]) -> None:
    """Write to stderr, once a command, which folders bring nothing and which are not read."""
    from satchel.cli.rendering import diagnostic_line

    lines = [diagnostic_line(item) for item in app.catalog.diagnostics if item.code == _EMPTY]
    if not (sources.project or sources.skills or sources.plugins):
        lines += _unread_folders(read, claude=sources.claude)
    written = click.get_current_context().meta.setdefault(_WRITTEN_LINES, set())
    for line in lines:
        if line not in written:
            click.echo(line, err=True)
    written.update(lines)


def _unread_folders(read: set[str], *, claude: bool) -> list[str]:
    """Return a line about the conventional folders of the current folder, if there are any."""
    if os.path.realpath(".") == os.path.realpath(os.path.expanduser("~")):
        return []  # they are read as those of the user
    roots = satchel.conventional_roots(".", claude=claude)
    found = [
        f"./{root.source}"
        for root in roots
        if root.scope.name == "PROJECT" and root.path not in read and os.path.isdir(root.path)
    ]
    if not found:
        return []
    return [f"not read: {', '.join(found)}; --project reads, and trusts, the folders found here"]


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
        ctx.params["sources"] = sources = Sources(**values)
        sources.require_folders()
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
