"""`satchel worker`: run the tools of plugins for hosts elsewhere."""

import asyncio
import logging
import os

import click

from satchel.cli.base_command import Sources, SourcesCommand, activates_groups
from satchel.cli.console import Console
from satchel.cli.signal_handling import run_until_stopped
from satchel.errors import SatchelError, install_hint
from satchel.reports.short_texts import count

_KEY = "SATCHEL_REMOTE_KEY"


@click.command("worker", cls=SourcesCommand)
@click.option("--redis", "url", required=True, metavar="URL", help="redis:// or rediss://.")
@click.option("--name", default="satchel", show_default=True, help="That of the hosts.")
@click.option(
    "--key-file",
    type=click.Path(exists=True, dir_okay=False),
    help=f"The key that hosts and workers share; else the variable {_KEY}.",
)
@click.option("--concurrency", default=10, show_default=True, help="Calls of a plugin at once.")
@activates_groups
def command(
    console: Console,
    *,
    url: str,
    name: str,
    key_file: str | None,
    concurrency: int,
    groups: tuple[str, ...],
    sources: Sources,
) -> None:
    """Run the tools of plugins for hosts elsewhere, until Ctrl-C.

    With --group, only the tools of these groups. Needs `pip install 'satchel[remote]'`.
    """
    try:
        from satchel.remote import ToolWorker
    except ImportError as problem:
        message = "satchel worker needs the extra remote"
        raise SatchelError(message, fix=install_hint("remote")) from problem
    app = sources.open(run_code=True)
    key = os.environ.get(_KEY, "")
    if key_file is not None:
        with open(key_file, encoding="utf-8") as file:
            key = file.read()
    logging.getLogger("docket").setLevel(logging.ERROR)  # it repeats that redis is away
    worker = ToolWorker(app, url, key=key, name=name, groups=groups, concurrency=concurrency)

    async def run() -> None:
        announcing = asyncio.create_task(announce())
        try:
            await worker.run()
        finally:
            announcing.cancel()

    async def announce() -> None:
        await worker.ready.wait()
        console.say(f"ready: {count(len(worker.digests), 'plugin')}, press Ctrl-C to stop")

    run_until_stopped(run())
