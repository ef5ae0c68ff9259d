"""`satchel search`: the tools and skills that tell of something."""

from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import Sources, View
from satchel.cli.console import Console
from satchel.cli.rendering import summary, table
from satchel.cli.serializer import hit_json

if TYPE_CHECKING:
    from satchel.catalog import Catalog, SkillEntry, ToolEntry
    from satchel.search import SearchHit


@click.command("search", cls=View)
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--kind", type=click.Choice(["tool", "skill"]), help="Find only what is of this kind."
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=10, metavar="N", help="Find at most N; 10."
)
def command(
    console: Console,
    *,
    words: tuple[str, ...],
    kind: str | None,
    limit: int,
    sources: Sources,
    as_json: bool,
) -> int:
    """Find the tools and skills that tell of any of the WORDS, the best first.

    Looks in names, descriptions, keywords and groups. When nothing fits, names that look alike are
    found. No plugin code is run.
    """
    # Lazy: the help of a command does without.
    from satchel.search import SearchIndex, documents_of

    catalog = sources.open(run_code=False).catalog
    index = SearchIndex()
    index.bring_up_to_date(documents_of(catalog))
    hits = index.search(" ".join(words), kind, limit)
    if as_json:
        console.json([hit_json(hit, _entry(hit, catalog)) for hit in hits])
    else:
        table([_row(hit, _entry(hit, catalog)) for hit in hits], console)
    if not hits:
        console.say(
            f"no {kind or 'tool or skill'} tells of that; 'satchel list' shows all there is"
        )
    summary(catalog, console)
    return 0 if hits else 1


def _entry(hit: "SearchHit", catalog: "Catalog") -> "ToolEntry | SkillEntry":
    return catalog.tools[hit.name] if hit.kind == "tool" else catalog.skills[hit.name]


def _row(hit: "SearchHit", entry: "ToolEntry | SkillEntry") -> tuple[str, ...]:
    return hit.name, hit.kind, getattr(entry, "group", entry.source), entry.description
