"""`satchel config`: what a plugin is configured with, and the commands that change it."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping

import click

from satchel.cli.base_command import Sources, SourcesCommand, View
from satchel.cli.console import Console
from satchel.cli.key_value_pairs import parse_pairs, require_distinct, with_stdin
from satchel.cli.plugin_config import PluginConfigView, as_texts, asked_for, open_plugin, rows
from satchel.cli.rendering import diagnostic_line, relative, table
from satchel.diagnostics import has_error
from satchel.errors import SatchelError
from satchel.formats import FIELD_NAME
from satchel.sources.configuration import configuration_path
from satchel.sources.env_file import change_env, env_text, parse_env, replace_env, write_env
from satchel.text import one_line


@click.group("config")
def command() -> None:
    """Show and change what plugins are configured with.

    Values are kept in one file for each plugin in your configuration folder, which only you may
    read. The environment wins over it; no plugin code is run.
    """


@command.command("show", cls=View)
@click.argument("name", metavar="PLUGIN")
def show(console: Console, name: str, sources: Sources, as_json: bool) -> None:
    """Show each field of PLUGIN, its value, and where that comes from.

    Secrets are masked, and so is what no manifest declares.
    """
    plugin = open_plugin(name, sources)
    plugin.require_known()
    found = rows(plugin)
    if as_json:
        console.json(found)
        return
    table(
        [(row["name"], row["value"] or "", row["origin"], row["problem"]) for row in found],
        console,
    )
    if not found:
        console.say(one_line(f"{name} declares no fields, and nothing is configured"))
    _tell(console, plugin)


@command.command("set", cls=SourcesCommand)
@click.argument("name", metavar="PLUGIN")
@click.argument("given", metavar="KEY [VALUE] | KEY=VALUE...", nargs=-1, required=True)
def set_(console: Console, name: str, given: tuple[str, ...], sources: Sources) -> None:
    """Give fields of PLUGIN their values.

    The VALUE '-' is read from stdin. Without a VALUE you are asked for it, and what may be a
    secret is not shown while you type: so it is in no history and no list of processes.
    """
    wanted = _wanted(given)
    for key in wanted:
        _require_key(key)
    plugin = open_plugin(name, sources)
    plugin.warn_if_unknown(console, wanted)
    given_now = {
        key: asked_for(plugin, key) if value is None else value for key, value in wanted.items()
    }
    read = with_stdin(given_now) if None not in wanted.values() else given_now
    values = as_texts(name, plugin.config.fields, read, any_key=True)
    path = plugin.config.path
    word = "set" if change_env(path, values) else "unchanged"
    for key in values:
        console.out(one_line(f"{word} {key} ({relative(path)})"))
        if plugin.config.origins.get(key.lower()) == "environment":
            console.say(f"warning: {plugin.config.variable(key)} in the environment wins over it")


@command.command("unset", cls=SourcesCommand)
@click.argument("name", metavar="PLUGIN")
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
def unset(console: Console, name: str, keys: tuple[str, ...], sources: Sources) -> None:
    """Take values of PLUGIN out of its file."""
    for key in keys:
        _require_key(key)
    plugin = open_plugin(name, sources)
    path = plugin.config.path
    held, _ = parse_env(env_text(path), path)
    if absent := [key for key in keys if key.lower() not in held]:
        plugin.warn_if_unknown(console, absent)
    change_env(path, dict.fromkeys(keys))
    for key in keys:
        done = f"{key} is not set" if key in absent else f"unset {key}"
        console.out(one_line(f"{done} ({relative(path)})"))
    for row in rows(open_plugin(name, sources)):
        if row["name"].lower() in {key.lower() for key in keys} and row["origin"] != "missing":
            console.say(one_line(f"{row['name']} has a value all the same: {row['origin']}"))


@command.command("edit", cls=SourcesCommand)
@click.argument("name", metavar="PLUGIN")
def edit(console: Console, name: str, sources: Sources) -> None:
    """Open the file of PLUGIN in your editor, $VISUAL or $EDITOR.

    You edit a copy; it is taken over when every line can be read and every value is allowed.
    Relative paths are made absolute then.
    """
    plugin = open_plugin(name, sources)
    plugin.warn_if_unknown(console)
    path = plugin.config.path
    before = env_text(path)
    # A folder of its own, which only its owner may enter.
    folder = tempfile.mkdtemp(prefix="satchel-")
    copy, is_lost = os.path.join(folder, f"{name}.env"), False
    try:
        write_env(copy, before)
        _edit(console, plugin, copy)
        text = env_text(copy)
        is_lost = text != before and not replace_env(path, before, text)
    finally:
        if not is_lost:
            shutil.rmtree(folder, ignore_errors=True)
    if is_lost:
        fault = "was changed meanwhile; nothing was taken over"
        raise SatchelError(fault, where=path, fix=f"what you wrote is in {copy}")
    word = "unchanged" if text == before else "written"
    console.out(one_line(f"{word} ({relative(path)})"))


@command.command("validate", cls=View)
@click.argument("name", metavar="PLUGIN")
def validate(console: Console, name: str, sources: Sources, as_json: bool) -> int:
    """Say what is wrong with the values of PLUGIN; exit code 1 if there is an error."""
    plugin = open_plugin(name, sources)
    plugin.require_known()
    problems = plugin.problems()
    if as_json:
        console.json([item.as_dict() for item in problems])
    for item in () if as_json else problems:
        console.out(diagnostic_line(item))
    return 1 if has_error(problems) else 0


@command.command("path", cls=SourcesCommand)
@click.argument("name", metavar="PLUGIN")
def path(console: Console, name: str, sources: Sources) -> None:
    """Print the file of PLUGIN, whether it exists or not."""
    open_plugin(name, sources).warn_if_unknown(console)
    console.out(configuration_path(name))


def _tell(console: Console, plugin: PluginConfigView) -> None:
    """Say on stderr how to mend what is wrong."""
    for item in plugin.problems():
        console.say(diagnostic_line(item))


def _wanted(given: tuple[str, ...]) -> Mapping[str, str | None]:
    """Return the value of each key, `None` where it has to be asked for."""
    match given:
        case (key,) if "=" not in key:
            return {key: None}
        case (key, value) if "=" not in key:
            return {key: value}
    found = parse_pairs(given)
    require_distinct(found)
    return found


def _require_key(key: str) -> None:
    if not FIELD_NAME.fullmatch(key):
        raise click.BadParameter("a key has letters, digits and '_' only", param_hint="KEY")


def _edit(console: Console, plugin: PluginConfigView, copy: str) -> None:
    """Let the user edit a copy until it can be taken over. Raises `SatchelError` if it cannot."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise SatchelError("neither VISUAL nor EDITOR is set", fix=f"edit {plugin.config.path}")
    while True:
        _run(editor, copy)
        if not os.path.lexists(copy):
            raise SatchelError("the editor left no file; nothing was taken over")
        values, odd = parse_env(env_text(copy), plugin.config.path)
        for item in odd:
            console.say(diagnostic_line(item))
        try:
            texts = as_texts(plugin.name, plugin.config.fields, values, any_key=True)
        except SatchelError as problem:
            console.say(one_line(str(problem)))
        else:
            if not odd:
                change_env(copy, texts)
                return
        if not (sys.stdin.isatty() and click.confirm("Edit it again?", err=True)):
            raise SatchelError("nothing was taken over", where=plugin.config.path)


def _run(editor: str, path: str) -> None:
    try:
        done = subprocess.run([*shlex.split(editor), path], check=False)  # noqa: S603
    except (OSError, ValueError) as problem:
        raise SatchelError(f"the editor cannot be run: {problem}") from None
    if done.returncode:
        raise SatchelError("the editor failed; nothing was taken over")
