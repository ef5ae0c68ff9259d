"""The base classes of commands, with their shared options and error handling."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

import satchel
from satchel.cli.console import (
    complain,
    console,
    log_to_stderr,
    remember_options,
)
from satchel.errors import SatchelError
from satchel.formats.lock_file import LOCK_FILE
from satchel.lazy_dataclass import dataclass
from satchel.reports.printed_commands import completed
from satchel.reports.short_texts import count
from satchel.text import one_line

if TYPE_CHECKING:
    from satchel.configuration.projects import TrustLevel
    from satchel.configuration.selection import Selection, SelectionFile

Body = Callable[..., Any]

_SAID_ONCE = frozenset(
    {
        *("source-empty", "project-untrusted", "trust-unreadable", "code-held"),
        "choices-unreadable",
    }
)
_STEP, _CALM_STEP = 0.01, 0.05
"""Seconds that a watch collects events, and one that may be a little late."""
_IS_MISSING = "satchel.is-missing"
"""The key in `Context.meta` of whether a folder that the user named does not exist."""
_ENDLESS = frozenset({"watch", "serve", "dev", "worker"})
_MOST_NAMES = 10
_SHORT_WAIT = 1.0
"""Seconds after which is said what is waited for."""
_WRITTEN_LINES = "satchel.written-lines"
"""The key in `Context.meta` of the lines that were written already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources that the options name.

    By default those of `satchel.toml`, the home folder, and the current folder if it is trusted.
    """

    skills: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    project: bool = False
    trust: str | None = None
    """How far the project is trusted in this command, instead of the user's record."""
    variables: tuple[str, ...] = ()
    """The environment variables that files of the project may use, besides the recorded ones."""
    claude: bool = False
    find_folders: int | None = None
    no_cache: bool = False
    locked: bool = False
    frozen: bool = False

    def open(
        self,
        *,
        run_code: bool,
        servers: bool = False,
        wait: bool = True,
        patience: float | None = None,
        plugins_too: bool = False,
        is_quiet: bool = False,
        limits: Mapping[str, Any] | None = None,
        is_unhurried: bool = False,
        writes_lock: bool = False,
        **options: Any,
    ) -> "satchel.Satchel":
        """Return a `Satchel` of these sources; it is closed when the command ends.

        Plugins are imported only with `run_code`. With `servers`, the declared MCP servers are
        connected first, or with `wait=False` in the background. `patience` is how many seconds
        servers are waited for, and plugins if `plugins_too`; by default, until each is there or
        has failed. With `is_quiet`, nothing is written about folders that bring nothing or are not
        read. With `is_unhurried`, a watch sees edits a little later, and costs much less while
        there are none. `writes_lock` is for a command that makes a lock file.
        """
        require_at_most_one({"locked": self.locked, "frozen": self.frozen})
        if run_code:
            log_to_stderr()
        self.remember()
        began = time.monotonic()
        has_lock = writes_lock or self.locked or self.frozen
        roots, project = self._roots(), self._project(with_untrusted=has_lock)
        most = {} if self.find_folders is None else {"find_folders": self.find_folders}
        app = satchel.Satchel(
            self.skills,
            self.plugins,
            self.enabled_entry_points,
            roots=roots,
            project=project,
            run_code=run_code,
            settings=satchel.Settings(
                mcp_servers=servers,
                # As in `serve`: a server may list more tools to a client that answers it, and
                # what is listed to another command first is what is pinned.
                ask_mcp_clients=servers,
                limits=satchel.Limits(**{**(limits or {}), **most}),
                plugin_wait=patience if plugins_too else None,
                pace=satchel.WatchTimings(step=_CALM_STEP if is_unhurried else _STEP),
                cache=not self.no_cache,
            ),
            locked=LOCK_FILE if self.locked or self.frozen else None,
            frozen=self.frozen,
            **options,
        )
        click.get_current_context().call_on_close(app.close)
        if servers and wait:
            spent = time.monotonic() - began if plugins_too else 0.0
            _wait_for_servers(app, None if patience is None else max(0.0, patience - spent))
            app.require_locked()
        if not is_quiet:
            _write_unread_folders(self, app, project)
        return app

    @property
    def project_here(self) -> "satchel.Project | None":
        """The project in the current folder, if an option or the user's trust says to read it."""
        return self._project()

    def _project(self, *, with_untrusted: bool = False) -> "satchel.Project | None":
        here = satchel.Project(".", trust=self.trust, variables=self.variables, claude=self.claude)
        if self.project or self.trust:
            return here
        if self.skills or self.plugins or _is_home():
            return None
        # Lazy: not needed for `--help`.
        from satchel.loader.trust_gate import project_parts
        from satchel.trust.trust_record import TrustStore

        is_read = TrustStore().read(here.folder).record or (with_untrusted and project_parts(here))
        return here if is_read else None

    @property
    def project_level(self) -> "TrustLevel":
        """Return how far the current folder is trusted in this command."""
        from satchel.loader.trust_gate import open_gate  # lazy: not needed for `--help`

        here = satchel.Project(".", trust=self.trust)
        return open_gate((here,), satchel.Settings()).grants[here.folder].level

    def selection(self) -> "Selection":
        """Return the files `satchel.toml` in use; that of a project as far as it is trusted."""
        # Lazy: not needed for `--help`.
        from satchel.configuration.selection import (
            Selection,
            project_selection_path,
            selection_path,
        )
        from satchel.configuration.selection_reader import read_selection
        from satchel.loader.trust_gate import open_gate

        if (project := self.project_here) is None:
            return read_selection(selection_path())
        read = read_selection(selection_path(), project_selection_path(project.folder))
        return open_gate((project,), satchel.Settings()).limited(read, Selection())

    @property
    def enabled_entry_points(self) -> tuple[str, ...]:
        """Return the installed plugins that the options name, else those of the user's file."""
        return self.entry_points or tuple(
            name for file in self._files() for name in file.sources.get("entry-points", ())
        )

    @property
    def named_plugins(self) -> tuple[str, ...]:
        """Return the sources and names of the plugins that the options and `satchel.toml` name."""
        roots = [path.rstrip("/") or "/" for path in self.plugins]
        roots += [root.source for file in self._files() for root in file.roots]
        return (*roots, *self.enabled_entry_points)

    def values(self, *left_out: str) -> dict[str, Any]:
        """Return the values of the options by their names."""
        names = (item.name for item in fields(Sources) if item.name not in left_out)
        return {name: getattr(self, name) for name in names}

    def as_options(self) -> list[str]:
        """Return the options that select these sources in another command."""
        return as_arguments(_source_options(), self.values("no_cache", "locked", "frozen"))

    def remember(self) -> None:
        """Let the commands in messages of the running command read these sources, too."""
        remember_options(as_arguments(_source_options(), self.values("no_cache")))

    def require_folders(self) -> None:
        """Raise `click.BadParameter` for a folder of an option that does not exist.

        A missing one of `satchel.toml` is a diagnostic: the others are served.
        """
        for option, folders in (("--skills", self.skills), ("--plugins", self.plugins)):
            for folder in folders:
                if not os.path.isdir(os.path.expanduser(folder)) and folder.strip():
                    fault = f"{folder!r} is not a folder"
                    if not os.path.lexists(os.path.expanduser(folder)):
                        fault = f"the folder {folder!r} does not exist"
                    message = one_line(fault)
                    raise click.BadParameter(message, param_hint=option)

    def _roots(self) -> list["satchel.SearchRoot"]:
        """Return the user's folders: of `satchel.toml` and the conventional ones.

        If the options name folders, none of these.
        """
        if self.skills or self.plugins:
            return []
        roots = [root for file in self._files() for root in file.roots]
        return [*roots, *satchel.conventional_roots(claude=self.claude)]

    def _files(self) -> "tuple[SelectionFile, ...]":
        """Return the user's `satchel.toml`; the `Satchel` reports its problems."""
        # Lazy: not needed for `--help`.
        from satchel.configuration.selection import selection_path
        from satchel.configuration.selection_reader import read_selection

        return read_selection(selection_path()).files


def require_at_most_one(options: Mapping[str, object]) -> None:
    """Raise `click.UsageError` if several of these options, by their values, are used."""
    used = [f"--{name}" for name, value in options.items() if value]
    if used[1:]:
        raise click.UsageError(f"use one of {', '.join(used[:-1])} and {used[-1]}")


def as_arguments(options: Iterable[click.Parameter], values: Mapping[str, Any]) -> list[str]:
    """Return the arguments that give these values, by their names, to options."""
    arguments: list[str] = []
    for option in options:
        value = values.get(option.name or "")
        if value is True:
            arguments.append(option.opts[0])
        elif value is not None and value is not False:
            items = value if isinstance(value, tuple) else (value,)
            arguments += [part for item in items for part in (option.opts[0], str(item))]
    return arguments


def is_said_once(item: "satchel.Diagnostic") -> bool:
    """Return whether every command writes a diagnostic."""
    # A missing folder is an error only if the user named it.
    is_missing = item.code == "source-missing" and item.severity is satchel.Severity.ERROR
    return is_missing or item.code in _SAID_ONCE


def is_written(line: str) -> bool:
    """Return whether this line about what is not read was written when the sources were opened."""
    return line in click.get_current_context().meta.get(_WRITTEN_LINES, ())


def _write_unread_folders(
    sources: Sources, app: "satchel.Satchel", project: "satchel.Project | None"
) -> None:
    """Write to stderr, once a command, which folders bring nothing and which are not read."""
    from satchel.cli.rendering import diagnostic_line

    diagnostics = [item for item in app.catalog.diagnostics if is_said_once(item)]
    lines = list(map(diagnostic_line, diagnostics))
    if project is None and not (sources.skills or sources.plugins or _is_home()):
        lines += _unread_project()
    if sources.variables:
        lines += _unused_variables(sources, project)
    meta = click.get_current_context().meta
    meta[_IS_MISSING] = any(item.code == "source-missing" for item in diagnostics)
    written = meta.setdefault(_WRITTEN_LINES, set())
    for line in lines:
        if line not in written:
            complain(completed(line, sources.as_options()))
    written.update(lines)


def _wait_for_servers(app: "satchel.Satchel", patience: float | None) -> None:
    """Wait for MCP servers; name those that take long, and those that are not there in time."""

    def waiting() -> str:
        names = [state.name for state in app.mcp_server_states if not state.is_known]
        ellipsis = ", ..." if names[_MOST_NAMES:] else ""
        shown = f"{count(len(names), 'MCP server')}: {', '.join(names[:_MOST_NAMES])}{ellipsis}"
        return one_line(shown) if names else ""

    short = _SHORT_WAIT if patience is None else min(_SHORT_WAIT, patience)
    if app.wait_for_mcp_servers(short):
        return
    if text := waiting():
        complain(f"waiting for {text}")
    rest = None if patience is None else patience - short
    if not app.wait_for_mcp_servers(rest) and (text := waiting()):
        complain(f"not waited any longer for {text}")


def _unused_variables(sources: Sources, project: "satchel.Project | None") -> list[str]:
    """Return a warning if variables that an option allows are used by nothing that is read."""
    from satchel.cli.trust_report import unused_variables
    from satchel.configuration.projects import TrustLevel
    from satchel.trust.project_inventory import read_inventory

    if project is None or sources.project_level is not TrustLevel.CODE:
        return ["warning: --variable needs a project whose code is trusted, as by --trust code"]
    warning = unused_variables(sources.variables, read_inventory(project).variables)
    return [f"warning: {warning}"] if warning else []


def _unread_project() -> list[str]:
    """Return a line about what the current folder has, and why its record of trust is not used."""
    from satchel.cli.rendering import diagnostic_line
    from satchel.loader.trust_gate import project_parts
    from satchel.trust.trust_record import TrustStore

    # Many projects have only .claude/skills: it is named also without --claude.
    here = satchel.Project(".", claude=True)
    if not (parts := project_parts(here)):
        return []
    problems = TrustStore().read(here.folder).diagnostics
    how = (
        "name folders with --skills and --plugins, or run 'satchel trust', "
        "which shows everything and asks"
    )
    if "./.claude/skills" in parts:
        how += "; .claude/skills also needs --claude then"
    line = f"not read: {', '.join(parts)}; {how}"
    return [*map(diagnostic_line, problems), line]


def _is_home() -> bool:
    """Return whether the current folder is the home folder, whose folders are the user's own."""
    return os.path.realpath(".") == os.path.realpath(os.path.expanduser("~"))


def _has_folder() -> bool:
    """Return whether the current folder exists."""
    try:
        return bool(os.getcwd())
    except OSError:
        return False


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
                message = ctx.params["console"].completed(one_line(str(problem)))
                raise click.ClickException(message) from problem
            except (click.ClickException, click.exceptions.Exit, click.Abort):
                raise
            except Exception as problem:
                if ctx.find_root().params.get("debug"):
                    raise
                if not _has_folder():
                    message = "the current folder does not exist any more; change to another one"
                    raise click.ClickException(message) from problem
                text = one_line(f"{type(problem).__name__}: {problem}")
                raise click.ClickException(
                    f"unexpected {text} (run 'satchel --debug {ctx.info_name} ...' for details)"
                ) from problem
            finally:
                # Here, so that what plugins print at shutdown goes to stderr as well.
                ctx.close()


def _source_options() -> list[click.Option]:
    """Return the options that select sources, in the order of `Sources`."""

    def folders(name: str) -> click.Option:
        text = f"Read the {name} in this folder. Repeatable."
        return click.Option([f"--{name}"], multiple=True, metavar="DIR", help=text)

    def flag(name: str, text: str) -> click.Option:
        return click.Option([f"--{name}"], is_flag=True, help=text)

    return [
        folders("skills"),
        folders("plugins"),
        click.Option(
            ["--entry-points"], multiple=True, metavar="NAME|all|none",
            help="Enable an installed plugin. Repeatable; none is the default.",
        ),
        flag("project", "Also read the current folder, as far as 'satchel trust' allows it."),
        click.Option(
            ["--trust"], type=click.Choice(["data", "code"]),
            help="Read the current folder, and trust its data, or its data and code.",
        ),
        click.Option(
            ["--variable", "variables"], multiple=True, metavar="NAME",
            help="Let its files use this environment variable. Repeatable.",
        ),
        flag("claude", "Count .claude/skills as a conventional folder."),
        click.Option(
            ["--find-folders"], type=click.IntRange(1), metavar="N",
            help="Search at most N folders in each folder of skills; default 50,000.",
        ),
        flag("no-cache", "Read every skill again, and keep nothing for the next start."),
        flag("locked", "Fail if anything differs from satchel.lock."),
        flag("frozen", "Serve only what is in satchel.lock; fail if something is missing."),
    ]  # fmt: skip


class SourcesCommand(Command):
    """A command with the options that select sources; its function takes `sources`."""

    def options(self) -> list[click.Option]:
        """Return the options that select sources."""
        return _source_options()

    def invoke(self, ctx: click.Context) -> None:
        """Run the command."""
        values = {item.name: ctx.params.pop(item.name, item.default) for item in fields(Sources)}
        ctx.params["sources"] = sources = Sources(**values)
        sources.remember()
        sources.require_folders()
        super().invoke(ctx)
        # A folder of `satchel.toml` is missing. What ends by itself says so by its code, too.
        if ctx.meta.get(_IS_MISSING) and ctx.info_name not in _ENDLESS:
            ctx.exit(2)


class CatalogCommand(SourcesCommand):
    """A command with sources and `--json`; its function takes that as `as_json`."""

    def options(self) -> list[click.Option]:
        """Return the options that select sources, and `--json`."""
        json = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")
        return [*super().options(), json]


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
run_code = click.option("--run", is_flag=True, help="Also import the enabled plugins.")


def repeatable(
    option: str, name: str, metavar: str, text: str, **extra: Any
) -> Callable[[Body], Body]:
    """Return an option that may be repeated; its values are passed as `name`."""
    text = f"{text} Repeatable."
    return click.option(option, name, multiple=True, metavar=metavar, help=text, **extra)


activates_groups = repeatable("--group", "groups", "NAME", "Activate a group.")
variable_option = repeatable(
    "--variable", "variables", "NAME", "Let its files use this environment variable."
)
plugin_argument = click.argument("name", metavar="PLUGIN")


def force_option(text: str) -> Callable[[Body], Body]:
    """Return the option `--force`, which writes what would be refused."""
    return click.option("--force", is_flag=True, help=text)


def set_option(text: str) -> Callable[[Body], Body]:
    """Return the option `--set KEY=VALUE`, which may be repeated."""
    return repeatable("--set", "values", "KEY=VALUE", f"{text}; '-' reads the value from stdin.")
