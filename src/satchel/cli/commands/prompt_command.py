"""`satchel prompt`: print the system prompt for a model."""

import click

import satchel
from satchel.cli.base_command import CatalogCommand, Sources, activates_groups
from satchel.cli.console import Console
from satchel.cli.rendering import summary
from satchel.prompt.skill_prompt import DEFAULT_BUDGET
from satchel.prompt.token_estimate import about_tokens
from satchel.reports.listing_report import listing_report
from satchel.reports.serializer import listing_json
from satchel.reports.short_texts import count, joined_names
from satchel.text import visible

_CHARACTERS_PER_TOKEN = 4
_PATIENCE = 15.0
"""Seconds to wait for MCP servers; only their skills and instructions are in the prompt."""


@click.command("prompt", cls=CatalogCommand)
@activates_groups
@click.option(
    "--budget",
    type=click.IntRange(min=0),
    metavar="N",
    help="The longest skill listing, in characters; 16,000 by default.",
)
@click.option("--tokens", is_flag=True, help="Estimate tokens instead; the default is then 4,000.")
def command(
    console: Console,
    *,
    groups: tuple[str, ...],
    budget: int | None,
    tokens: bool,
    sources: Sources,
    as_json: bool,
) -> None:
    """Print the system prompt for a model: the skills, and the notes of active groups.

    Enabled plugins are imported, as in an application.
    """
    if budget is None:
        budget = DEFAULT_BUDGET // _CHARACTERS_PER_TOKEN if tokens else DEFAULT_BUDGET
    style = satchel.SkillPrompt(budget=budget, measure=about_tokens if tokens else len)
    app = sources.open(run_code=True, servers=True, patience=_PATIENCE, skill_style=style)
    session = app.session()
    session.activate(*groups)
    prompt = session.prompt()
    if as_json:
        parts = {
            "skills": session.skill_prompt(),
            "notes": session.activated_notes(),
            "sections": session.prompt_sections(),
        }
        listing = listing_json(session.step().skill_listing)
        console.json({**parts, "prompt": prompt, "listing": listing})
    elif prompt:
        console.out(visible(prompt))
    if tokens:
        console.say(f"about {count(about_tokens(prompt), 'token')}")
    else:
        console.say(count(len(prompt), "character"))
    if inactive := _inactive_groups(app, session):
        text = f"not in it, because they are not active (--group NAME): {joined_names(inactive)}"
        console.say(text)
    if report := listing_report(session):
        console.say(report)
    summary(app.catalog, console)


def _inactive_groups(app: satchel.Satchel, session: satchel.Session) -> list[str]:
    """Return the groups whose notes or skills would be in the prompt if they were active."""
    active = session.active_groups
    groups = app.catalog.groups.values()
    return [it.name for it in groups if (it.notes or it.skills) and it.name not in active]
