"""`satchel worker`: run the tools of plugins for hosts elsewhere."""

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.base_command import Sources, SourcesCommand, repeatable
from satchel.cli.console import Console
from satchel.cli.new_problems import LateProblems
from satchel.cli.rendering import problem_lines, summary
from satchel.cli.served_report import LEFT_OUT, problems_in
from satchel.cli.signal_handling import run_until_stopped
from satchel.errors import DefinitionError, SatchelError, install_hint
from satchel.names import near_misses
from satchel.reports.short_texts import count
from satchel.settings import Limits

if TYPE_CHECKING:
    from satchel.formats.worker_table import WorkerTable

_KEY = "SATCHEL_REMOTE_KEY"


@click.command("worker", cls=SourcesCommand)
@click.option("--redis", "url", metavar="URL", help="redis:// or rediss://.")
@click.option("--name", help="That of the hosts; without it satchel.")
@click.option(
    "--key-file",
    type=click.Path(exists=True, dir_okay=False),
    help=f"The key that hosts and workers share; else the variable {_KEY}.",
)
@click.option(
    "--concurrency", type=click.IntRange(1), help="Calls of a plugin at once; without it 10."
)
@repeatable("--group", "groups", "NAME", "Run only the tools of this group.")
def command(console: Console, *, sources: Sources, **options: Any) -> None:
    """Run the tools of plugins for hosts elsewhere, until Ctrl-C.

    What no option says is taken from [worker] in your satchel.toml. Needs
    `pip install '.[remote]'` in a clone of Satchel. What cannot be run is written to stderr.
    """
    try:
        from satchel.remote import ToolWorker
    except ImportError as problem:
        message = "satchel worker needs the extra remote"
        raise SatchelError(message, fix=install_hint("remote")) from problem
    table = _table({"redis": options.pop("url"), **options})
    app = sources.open(run_code=True, is_unhurried=True, limits=table.limits)
    catalog = app.catalog
    for line in problem_lines(problems_in(catalog), LEFT_OUT):
        console.say(line)
    summary(catalog, console, names_missing=False)
    problems = LateProblems(app, catalog, console)
    logging.getLogger("docket").setLevel(logging.ERROR)  # it repeats that redis is away
    worker = ToolWorker(
        app,
        table.redis,
        key=_key(table.key_file),
        name=table.name,
        groups=table.groups,
        concurrency=table.concurrency,
        group_limits=table.group_limits,
        limits=Limits(**table.limits),  # type: ignore[arg-type] # the table has checked them
    )

    async def run() -> None:
        announcing = asyncio.create_task(announce())
        try:
            async with problems.writing():
                await worker.run()
        finally:
            announcing.cancel()

    async def announce() -> None:
        await worker.ready.wait()
        for group in (*table.groups, *table.group_limits):
            if group not in app.catalog.groups:
                near = near_misses(group, app.catalog.groups)
                console.warn(f"no plugin has the group {group!r}", near)
        console.say(f"ready: {count(len(worker.digests), 'plugin')}, press Ctrl-C to stop")

    run_until_stopped(run(), second_kills=True)


def _table(options: Mapping[str, Any]) -> "WorkerTable":
    """Return what the options say, and the user's file where they say nothing."""
    from satchel.configuration.selection import selection_path
    from satchel.configuration.selection_reader import read_selection
    from satchel.formats.table_model import read_table
    from satchel.formats.worker_table import WorkerTable

    (file,) = read_selection(selection_path()).files
    for item in file.diagnostics if file.is_unreadable else ():
        raise DefinitionError(item.message, where=str(item.where), fix=item.fix)
    folder = os.path.dirname(file.path)
    try:
        table = read_table(WorkerTable, file.worker)
    except DefinitionError as problem:
        raise DefinitionError(f"[worker]: {problem.message}", where=file.path) from None
    own = {key: value for key, value in options.items() if value}
    if table.key_file and "key_file" not in own:
        own["key_file"] = os.path.join(folder, os.path.expanduser(table.key_file))
    table = table.model_copy(update=own)
    if not table.redis:
        fix = f"pass --redis URL, or write redis = 'URL' below [worker] in {file.path}"
        raise DefinitionError("no redis is named", fix=fix)
    return table


def _key(path: str) -> str:
    if not path:
        if key := os.environ.get(_KEY, ""):
            return key
        fix = f"pass --key-file FILE, or set {_KEY}; make one with: openssl rand -hex 32"
        raise DefinitionError("no key is given that the hosts share", fix=fix)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as problem:
        raise SatchelError(f"cannot read the key: {problem}", where=path) from problem
