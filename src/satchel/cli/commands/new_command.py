"""`satchel new`: a skill or a plugin to start from."""

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
from satchel.names import plugin_name_fault, skill_name_fault
from satchel.settings import Limits
from satchel.sources import normalized
from satchel.text import one_line

_DEFAULT = "Says what {name} does. Use when a task mentions {name}."


@click.group("new")
def command() -> None:
    """Write a new skill or plugin to start from."""


@command.command("skill", cls=Command)
@click.argument("name")
@click.option("--dir", "parent", default="skills", show_default=True, help="Where to put it.")
@click.option("--description", help="What it does, and when to use it.")
def skill(console: Console, name: str, parent: str, description: str | None) -> None:
    """Write a skill: a folder with a SKILL.md."""
    _require("skill", name, skill_name_fault(name))
    folder = os.path.join(parent, name)
    _write(folder, skill_files(name, _described(name, description)), console, "validate")


@command.command("plugin", cls=Command)
@click.argument("name")
@click.option(
    "--dir", "parent", help="Where to put it; plugins, and for a package the current folder."
)
@click.option("--description", help="What it is for.")
@click.option("--package", is_flag=True, help="Write a package for pip, with tests.")
def plugin(
    console: Console, name: str, parent: str | None, description: str | None, *, package: bool
) -> None:
    """Write a plugin: a folder with toolkit.yaml, tools.py and a skill, or a package."""
    _require("plugin", name, plugin_name_fault(name))
    texts = (_described(name, description), _described(short_name(name), None))
    if package:
        taken = _taken()
        files = package_files(name, *texts, taken)
        if (named := distribution_name(name, taken)) != name:
            console.say(one_line(f"the distribution is {named!r}: {name!r} is somebody else's"))
    else:
        files = plugin_files(name, *texts)
    parent = ("." if package else "plugins") if parent is None else parent
    folder = os.path.normpath(os.path.join(parent, name))
    _write(folder, files, console, "validate", "test")


def _require(kind: str, name: str, fault: str) -> None:
    if fault:
        raise SatchelError(f"the name {name!r} {fault}", where=f"new {kind}")


def _taken() -> frozenset[str]:
    """Return the names of everything that is installed, in the form of `normalized`."""
    # Lazy: it reads what every distribution says of itself.
    from importlib.metadata import packages_distributions

    names = packages_distributions().items()
    return frozenset(normalized(name) for module, owners in names for name in (module, *owners))


def _described(name: str, description: str | None) -> str:
    """Return a description on one line. Raises `SatchelError` for one that would not pass."""
    text = one_line(_DEFAULT.format(name=name) if description is None else description)
    most = Limits().description_shown
    if not text or len(text) > most:
        raise SatchelError(f"a description has 1 to {most} characters, this one {len(text)}")
    return text


def _write(folder: str, files: Mapping[str, str], console: Console, *checks: str) -> None:
    """Write the files of a folder that does not exist yet, and say what to do next."""
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
        raise SatchelError(
            "exists already; nothing was written", where=str(problem.filename)
        ) from None
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise SatchelError(f"cannot be written: {reason}", where=str(problem.filename)) from None
    quoted = shlex.quote(one_line(folder))
    commands = " && ".join(f"satchel {check} {quoted}" for check in checks)
    console.say(f"next: edit it, then run: {commands}")
