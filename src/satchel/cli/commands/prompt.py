"""`satchel prompt`: the system prompt that a model would get."""

import click

import satchel
from satchel.cli.command import Command, Sources, as_json, pass_console, reads_sources
from satchel.cli.console import Console
from satchel.cli.render import count, summary
from satchel.text import visible


@click.command("prompt", cls=Command)
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Activate a group.")
@click.option("--budget", type=click.IntRange(min=0), help="Longest skill prompt, in characters.")
@reads_sources
@as_json
@pass_console
def command(
    console: Console,
    groups: tuple[str, ...],
    budget: int | None,
    sources: Sources,
    as_json: bool,
) -> None:
    """Print the system prompt that a model would get: the skills, and the notes of active groups.

    Plugins are imported, as they are in an application.
    """
    bag = sources.open(run_code=True, skill_style=satchel.SkillPrompt(budget=budget))
    session = bag.session()
    session.activate(*groups)
    prompt = session.prompt()
    if as_json:
        skills, notes = session.skill_prompt(), session.activated_notes()
        console.json({"skills": skills, "notes": notes, "prompt": prompt})
    elif prompt:
        console.out(visible(prompt))
    console.say(count(len(prompt), "character"))
    summary(bag.catalog, console)
