"""`satchel replay`: compare a recorded conversation with what a model would see now."""

import asyncio
from dataclasses import asdict

import click

from satchel.cli.base_command import CatalogCommand, Sources
from satchel.cli.console import Console
from satchel.cli.rendering import summary
from satchel.reports.short_texts import count
from satchel.text import visible


@click.command("replay", cls=CatalogCommand)
@click.argument("recording", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--calls", is_flag=True,
    help="Make all recorded calls again, with their effects, not only those of built-in tools.",
)  # fmt: skip
def command(
    console: Console, *, recording: str, calls: bool, sources: Sources, as_json: bool
) -> int:
    """Replay the conversation in the file RECORDING; print what is not as it was.

    Prompts and tools are compared. Enabled plugins are imported, as in an application. Exit code 1
    means that something differs.
    """
    # Lazy: not needed for `--help`.
    from satchel.session.conversation_replay import replay
    from satchel.session.recording import Recording

    recorded = Recording.load(recording)
    app = sources.open(run_code=True, servers=True)
    differences = asyncio.run(replay(recorded, app.session(), run=calls))
    if as_json:
        console.json([asdict(it) for it in differences])
    else:
        for it in differences:
            console.out(visible(f"{it.entry}: {it.kind}: {it.message}"))
            if it.diff:
                console.out(visible(it.diff))
    entries = "entry" if len(recorded) == 1 else "entries"
    console.say(f"{len(recorded):,} {entries}, {count(len(differences), 'difference')}")
    summary(app.catalog, console)
    return 1 if differences else 0
