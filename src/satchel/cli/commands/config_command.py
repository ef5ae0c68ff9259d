"""`satchel config`: show and change the configuration of a plugin."""

import os
import tempfile
from collections.abc import Mapping

import click

from satchel.cli.base_command import (
    CatalogCommand,
    Sources,
    SourcesCommand,
    force_option,
    plugin_argument,
)
from satchel.cli.console import Console
from satchel.cli.key_value_pairs import parse_pairs, with_stdin
from satchel.cli.plugin_config import PluginConfigView, as_texts, ask_for, open_plugin
from satchel.cli.rendering import diagnostic_line, table
from satchel.cli.terminal import Terminal
from satchel.configuration.configuration import configuration_path
from satchel.configuration.env_file import (
    change_env,
    changed_env,
    env_text,
    parse_env,
    replace_env,
    write_env,
)
from satchel.diagnostics import has_error
from satchel.errors import SatchelError
from satchel.formats.config_fields import FIELD_NAME
from satchel.reports.config_rows import config_rows
from satchel.reports.short_texts import short_path
from satchel.text import one_line


@click.group("config")
def command() -> None:
    """Show and change the configuration of plugins.

    Each plugin has one file of values in your configuration folder, which only you can read.
    Environment variables have precedence over it. No plugin code is run.
    """


@command.command("show", cls=CatalogCommand)
@plugin_argument
def show(console: Console, name: str, sources: Sources, as_json: bool) -> None:
    """Show each field of PLUGIN, its value, and the origin of the value.

    Secrets are masked, and so are values that no manifest declares.
    """
    plugin = open_plugin(name, sources)
    plugin.require_known()
    rows = config_rows(plugin.config)
    if as_json:
        console.json(rows)
        return
    table(
        [(row["name"], row["value"] or "", row["origin"], row["problem"]) for row in rows],
        console,
    )
    if not rows:
        console.say(one_line(f"{name} declares no fields, and nothing is configured"))
    for item in plugin.diagnostics():
        console.say(diagnostic_line(item))


@command.command("set", cls=SourcesCommand)
@plugin_argument
@click.argument("pairs", metavar="KEY [VALUE] | KEY=VALUE...", nargs=-1, required=True)
@force_option("Write for an unknown plugin, or a field that it does not declare.")
def set_(
    console: Console, *, name: str, pairs: tuple[str, ...], force: bool, sources: Sources
) -> None:
    """Set fields of PLUGIN.

    The VALUE '-' is read from stdin. Without a VALUE you are asked for it. Secrets are hidden
    while you type, so they appear in no shell history and no process list.
    """
    texts_by_key = _parse_values(pairs)
    for key in texts_by_key:
        _require_key(key)
    plugin = open_plugin(name, sources)
    if not force:
        plugin.refuse_unknown(texts_by_key)
    plugin.warn_if_unknown(console, texts_by_key)
    texts = {
        key: ask_for(plugin, key) if value is None else value for key, value in texts_by_key.items()
    }
    if None not in texts_by_key.values():
        texts = with_stdin(texts)
    values = as_texts(name, plugin.config.fields, texts, any_key=True)
    path = plugin.config.path
    verb = "set" if change_env(path, values) else "unchanged"
    for key in values:
        console.out(one_line(f"{verb} {key} ({short_path(path)})"))
        if plugin.config.origins.get(key.lower()) == "environment":
            variable = plugin.config.variable(key)
            console.say(f"warning: the environment variable {variable} has precedence")


@command.command("unset", cls=SourcesCommand)
@plugin_argument
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
def unset(console: Console, name: str, keys: tuple[str, ...], sources: Sources) -> None:
    """Remove values of PLUGIN from its file."""
    for key in keys:
        _require_key(key)
    plugin = open_plugin(name, sources)
    path = plugin.config.path
    values, _ = parse_env(env_text(path), path)
    if absent := [key for key in keys if key.lower() not in values]:
        plugin.warn_if_unknown(console, absent)
    change_env(path, dict.fromkeys(keys))
    for key in keys:
        text = f"{key} is not set" if key in absent else f"unset {key}"
        console.out(one_line(f"{text} ({short_path(path)})"))
    for row in config_rows(open_plugin(name, sources).config):
        if row["name"].lower() in {key.lower() for key in keys} and row["origin"] != "missing":
            console.say(one_line(f"{row['name']} still has a value, from: {row['origin']}"))


@command.command("edit", cls=SourcesCommand)
@plugin_argument
def edit(console: Console, name: str, sources: Sources) -> None:
    """Open the file of PLUGIN in your editor, $VISUAL or $EDITOR.

    You edit a copy, which replaces the file once every line and every value is valid. Relative
    paths are then made absolute.
    """
    plugin = open_plugin(name, sources)
    plugin.warn_if_unknown(console)
    path = plugin.config.path
    before = env_text(path)
    text = _edited(console, plugin, before)
    if text != before and not replace_env(path, before, text):
        # A private folder: the copy may hold secrets.
        copy = os.path.join(tempfile.mkdtemp(prefix="satchel-"), f"{name}.env")
        write_env(copy, text)
        message = "was changed by another program; your changes were not saved"
        raise SatchelError(message, where=path, fix=f"your version is in {copy}")
    verb = "unchanged" if text == before else "written"
    console.out(one_line(f"{verb} ({short_path(path)})"))


@command.command("validate", cls=CatalogCommand)
@plugin_argument
def validate(console: Console, name: str, sources: Sources, as_json: bool) -> int:
    """Check the values of PLUGIN; the exit code is 1 if there is an error."""
    plugin = open_plugin(name, sources)
    plugin.require_known()
    diagnostics = plugin.diagnostics()
    if as_json:
        console.json([item.as_dict() for item in diagnostics])
    else:
        for item in diagnostics:
            console.wrapped(diagnostic_line(item))
    return 1 if has_error(diagnostics) else 0


@command.command("path", cls=SourcesCommand)
@plugin_argument
def path(console: Console, name: str, sources: Sources) -> None:
    """Print the path of PLUGIN's file, even if it does not exist."""
    open_plugin(name, sources).warn_if_unknown(console)
    console.out(configuration_path(name))


def _parse_values(pairs: tuple[str, ...]) -> Mapping[str, str | None]:
    """Return the value of each key, or `None` for a key whose value must be asked for."""
    match pairs:
        case (key,) if "=" not in key:
            return {key: None}
        case (key, value) if "=" not in key:
            return {key: value}
    return parse_pairs(pairs, ignore_case=True)


def _require_key(key: str) -> None:
    if not FIELD_NAME.fullmatch(key):
        fault = "a key has only letters, digits and '_'"
        raise click.BadParameter(fault, param_hint="KEY")


def _edited(console: Console, plugin: PluginConfigView, text: str) -> str:
    """Let the user edit a text until it is valid. Raises `SatchelError` if they give up."""
    path, editor = plugin.config.path, os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise SatchelError("neither VISUAL nor EDITOR is set", fix=f"edit {path}")
    while True:
        try:
            text = click.edit(text, editor, require_save=False, extension=".env") or ""
        except (OSError, ValueError):
            raise SatchelError("the editor left no text file; nothing was changed") from None
        values, diagnostics = parse_env(text, path)
        for item in diagnostics:
            console.say(diagnostic_line(item))
        try:
            texts = as_texts(plugin.name, plugin.config.fields, values, any_key=True)
        except SatchelError as problem:
            console.say(one_line(str(problem)))
        else:
            if not diagnostics:
                return changed_env(text, texts, path)
        terminal = Terminal(console)
        if not (terminal.is_there and terminal.agrees("Edit it again?")):
            raise SatchelError("nothing was changed", where=path)
