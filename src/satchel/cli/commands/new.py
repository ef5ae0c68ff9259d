"""`satchel new`: a skill or a plugin to start from."""

import json
import os
import re
import shlex
from collections.abc import Mapping

import click

from satchel.cli.command import Command, pass_console
from satchel.cli.console import Console
from satchel.errors import SatchelError
from satchel.names import SKILL_NAME_LENGTH, plugin_name_fault, skill_name_fault
from satchel.settings import Limits
from satchel.text import one_line

# To some reader of YAML each of these is no text.
_YAML_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}

_SKILL = """\
---
name: {name}
description: {description}
---

# {title}

1. Say what to do first, as you would to a capable colleague on the first day.
2. Name the command or the file, not the idea of it.
3. Say how to see that it worked.

## When it goes wrong

Name the mistake that everybody makes, and the way out.

Put long tables, templates and scripts into files beside this one and name them here by their
relative path; they are read only when they are needed.
"""

_MANIFEST = """\
name: {name}
version: 0.1.0
description: {description}
active: true
notes: |
  Say here how to use the tools well together. It joins the prompt while the group is active.
"""

_TOOLS = '''\
"""The tools of this plugin: every function with `@tool`."""

from satchel import ToolError, tool


@tool
def {function}(text: str, times: int = 1) -> str:
    """Repeat a text; put the first tool of your own in its place.

    Args:
        text: What to repeat.
        times: How often.
    """
    if times < 1:
        raise ToolError("times must be 1 or more.")
    return " ".join([text] * times)
'''

_DEFAULT = "Says what {name} does. Use when a task mentions {name}."


@click.group("new")
def command() -> None:
    """Write a new skill or plugin to start from."""


@command.command("skill", cls=Command)
@click.argument("name")
@click.option("--dir", "parent", default="skills", show_default=True, help="Where to put it.")
@click.option("--description", help="What it does, and when to use it.")
@pass_console
def skill(console: Console, name: str, parent: str, description: str | None) -> None:
    """Write a skill: a folder with a SKILL.md."""
    _require("skill", name, skill_name_fault(name))
    folder = os.path.join(parent, name)
    _write(folder, {"SKILL.md": _skill(name, description)}, console)


@command.command("plugin", cls=Command)
@click.argument("name")
@click.option("--dir", "parent", default="plugins", show_default=True, help="Where to put it.")
@click.option("--description", help="What it is for.")
@pass_console
def plugin(console: Console, name: str, parent: str, description: str | None) -> None:
    """Write a plugin: a folder with toolkit.yaml, tools.py and a skill."""
    _require("plugin", name, plugin_name_fault(name))
    folder = os.path.join(parent, name)
    # The names of skills and functions are narrower than those of plugins.
    short = re.sub(r"[^a-z0-9]+", "-", name.lower())[:SKILL_NAME_LENGTH].strip("-")
    function = re.sub(r"^(?=\d)", "tool_", short.replace("-", "_"))[:48]
    files = {
        "toolkit.yaml": _MANIFEST.format(
            name=_in_yaml(name), description=_described(name, description)
        ),
        "tools.py": _TOOLS.format(function=f"{function}_repeat"),
        f"skills/{short}/SKILL.md": _skill(short, None),
    }
    _write(folder, files, console)


def _require(kind: str, name: str, fault: str) -> None:
    if fault:
        raise SatchelError(f"the name {name!r} {fault}", where=f"new {kind}")


def _skill(name: str, description: str | None) -> str:
    title = name.replace("-", " ").capitalize()
    described = _described(name, description)
    return _SKILL.format(name=_in_yaml(name), description=described, title=title)


def _in_yaml(name: str) -> str:
    """Return a name as YAML: in quotes where it would mean something else than text."""
    return json.dumps(name) if name.isdigit() or name.casefold() in _YAML_WORDS else name


def _described(name: str, description: str | None) -> str:
    """Return a description as YAML: in quotes, because a user's may hold anything."""
    text = one_line(_DEFAULT.format(name=name) if description is None else description)
    most = Limits().description_shown
    if not text or len(text) > most:
        raise SatchelError(f"a description has 1 to {most} characters, this one {len(text)}")
    return json.dumps(text, ensure_ascii=False)


def _write(folder: str, files: Mapping[str, str], console: Console) -> None:
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
    console.say(f"next: edit it, then run: satchel validate {shlex.quote(one_line(folder))}")
