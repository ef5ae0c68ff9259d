"""`satchel search`: find tools and skills by words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import CatalogCommand, Sources
from satchel.cli.console import Console
from satchel.cli.rendering import summary, table
from satchel.reports.serializer import hit_json

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import SkillEntry, ToolEntry
    from satchel.search.search_index import SearchHit


@click.command("search", cls=CatalogCommand)
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--kind", type=click.Choice(["tool", "skill"]), help="Find only tools, or only skills."
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=10, metavar="N",
    help="The number of results; 10 by default.",
)  # fmt: skip
def command(
    console: Console,
    *,
    words: tuple[str, ...],
    kind: str | None,
    limit: int,
    sources: Sources,
    as_json: bool,
) -> int:
    """Find tools and skills that contain any of the WORDS, best match first.

    Searches names, descriptions, keywords, groups, the parameters of tools and the start of a
    skill's instructions. A skill is also found by the skills in its folders, which are then named.
    Without a match it finds similar names. No plugin code is run.
    """
    # Lazy: not needed for `--help`.
    from satchel.search.search_documents import documents_of, matching_inner_skills
    from satchel.search.search_index import SearchIndex

    catalog = sources.open(run_code=False).catalog
    index = SearchIndex()
    index.bring_up_to_date(documents_of(catalog))
    query = " ".join(words)
    hits = index.search(query, kind, limit)
    inside = [
        matching_inner_skills(catalog.skills[hit.name], query) if hit.kind == "skill" else []
        for hit in hits
    ]
    results = [(hit, _entry(hit, catalog), names) for hit, names in zip(hits, inside, strict=True)]
    if as_json:
        console.json([hit_json(*result) for result in results])
    else:
        table([_row(*result) for result in results], console)
    if not hits:
        console.say(f"no {kind or 'tool or skill'} matches; 'satchel list' shows everything")
    summary(catalog, console, ran_code=False)
    return 0 if hits else 1


def _entry(hit: "SearchHit", catalog: "Catalog") -> "ToolEntry | SkillEntry":
    return catalog.tools[hit.name] if hit.kind == "tool" else catalog.skills[hit.name]


def _row(
    hit: "SearchHit", entry: "ToolEntry | SkillEntry", inside: Sequence[str]
) -> tuple[str, ...]:
    reason = f"(contains {', '.join(inside)}) " if inside else ""
    return hit.name, hit.kind, getattr(entry, "group", entry.source), reason + entry.description
