"""`satchel new`: create a skill or a plugin from a template."""

import os
import shlex
from collections.abc import Mapping

import click

from satchel.cli.base_command import Command
from satchel.cli.console import Console
from satchel.cli.new_templates import (
    distribution_name,
    package_files,
    plugin_files,
    short_name,
    skill_files,
)
from satchel.errors import SatchelError
from satchel.importing.distributions import normalized
from satchel.names import plugin_name_fault, skill_name_fault
from satchel.settings import Limits
from satchel.text import one_line

_DEFAULT = "Says what {name} does. Use when a task mentions {name}."


@click.group("new")
def command() -> None:
    """Create a skill or plugin from a template."""


@command.command("skill", cls=Command)
@click.argument("name")
@click.option("--dir", "parent", default="skills", show_default=True, help="The parent folder.")
@click.option("--description", help="What it does, and when to use it.")
def skill(console: Console, name: str, parent: str, description: str | None) -> None:
    """Create a skill: a folder with a SKILL.md."""
    _require("skill", name, skill_name_fault(name))
    folder = os.path.join(parent, name)
    _write(folder, skill_files(name, _description(name, description)), console, "validate")


@command.command("plugin", cls=Command)
@click.argument("name")
@click.option(
    "--dir", "parent", help="The parent folder; plugins, or for a package the current folder."
)
@click.option("--description", help="What it does.")
@click.option("--package", is_flag=True, help="Create a package for pip, with tests.")
def plugin(
    console: Console, name: str, parent: str | None, description: str | None, *, package: bool
) -> None:
    """Create a plugin: a folder with toolkit.yaml, tools.py and a skill, or a package."""
    _require("plugin", name, plugin_name_fault(name))
    texts = (_description(name, description), _description(short_name(name), None))
    if package:
        taken = _installed_names()
        files = package_files(name, *texts, taken)
        if (distribution := distribution_name(name, taken)) != name:
            console.say(one_line(f"the distribution is named {distribution!r}: {name!r} is taken"))
    else:
        files = plugin_files(name, *texts)
    parent = ("." if package else "plugins") if parent is None else parent
    folder = os.path.normpath(os.path.join(parent, name))
    _write(folder, files, console, "validate", "test")


def _require(kind: str, name: str, fault: str) -> None:
    if fault:
        raise SatchelError(f"the name {name!r} {fault}", where=f"new {kind}")


def _installed_names() -> frozenset[str]:
    """Return the normalized names of all installed packages and distributions."""
    # Lazy: it reads the metadata of every distribution.
    from importlib.metadata import packages_distributions

    names = packages_distributions().items()
    return frozenset(normalized(name) for module, owners in names for name in (module, *owners))


def _description(name: str, description: str | None) -> str:
    """Return a description on one line. Raises `SatchelError` if it is empty or too long."""
    text = one_line(_DEFAULT.format(name=name) if description is None else description)
    limit = Limits().description_shown
    if not text or len(text) > limit:
        raise SatchelError(f"a description has 1 to {limit} characters, this one has {len(text)}")
    return text


def _write(folder: str, files: Mapping[str, str], console: Console, *checks: str) -> None:
    try:
        os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)
        os.mkdir(folder)
        for name, text in files.items():
            path = os.path.join(folder, *name.split("/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
            console.out(one_line(path))
    except FileExistsError as problem:
        message = "already exists; nothing was written"
        raise SatchelError(message, where=str(problem.filename)) from None
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise SatchelError(f"cannot write: {reason}", where=str(problem.filename)) from None
    quoted = shlex.quote(one_line(folder))
    commands = " && ".join(f"satchel {check} {quoted}" for check in checks)
    console.say(f"next: edit it, then run: {commands}")
