"""`satchel remove`: remove a skill or plugin that was added."""

import os
from contextlib import suppress

import click

from satchel.cli.base_command import Command
from satchel.cli.commands.add_command import project_option, yes_option
from satchel.cli.console import Console
from satchel.cli.selection_editor import forget
from satchel.cli.terminal import Terminal
from satchel.errors import NotFoundError, SatchelError
from satchel.names import near_misses
from satchel.setup.folder_placement import exclusive_change, removed
from satchel.setup.source_records import AddedFolder, SourceRecord
from satchel.text import one_line
from satchel.trust.tree_digest import folder_digest


@click.command("remove", cls=Command)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@project_option
@yes_option
def command(console: Console, *, names: tuple[str, ...], project: bool, yes: bool) -> None:
    """Remove skills or plugins that 'satchel add' added.

    NAME may be skill:NAME or plugin:NAME. You are asked only if its files were changed since then.
    The configured values of a plugin stay; 'satchel uninstall NAME --purge' removes them.
    """
    folder = AddedFolder(is_project=project)
    folder.require_own()
    for name in names:
        if len(chosen_records(folder, (name,))) > 1:
            fix = "write skill:NAME or plugin:NAME"
            raise SatchelError(f"{name!r} is a skill and a plugin", fix=fix)
    for record in chosen_records(folder, names):
        target = folder.target(record.kind, record.name)
        if os.path.isdir(target) and folder_digest(target) != record.digest:
            question = f"{record.kind} {record.name} was changed since it was added. Remove it?"
            Terminal(console).require_agreement(question, yes=yes)
        with exclusive_change(target, console.say):
            removed(target)
            with suppress(OSError):  # another one is in it
                os.rmdir(os.path.dirname(target))
        if record.kind == "plugin" and not project:
            forget([record.name])
        folder.forget(record.kind, record.name)
        console.out(one_line(f"removed {record.kind} {record.name}"))


def chosen_records(folder: AddedFolder, names: tuple[str, ...]) -> tuple[SourceRecord, ...]:
    """Return the records with these names, or all. Raises `NotFoundError`."""
    records = folder.records()
    if not names:
        return records
    chosen = []
    for name in names:
        matching = [it for it in records if name in {it.name, f"{it.kind}:{it.name}"}]
        if not matching:
            near = near_misses(name, [it.name for it in records])
            raise NotFoundError("added skill or plugin", name, near)
        chosen += matching
    return tuple(dict.fromkeys(chosen))
