"""`satchel plugins`: every plugin with what it brings, and what it costs."""

from typing import TYPE_CHECKING, Any

import click

from satchel.cli.base_command import Command, Sources, as_json, pass_console, reads_sources
from satchel.cli.console import Console
from satchel.cli.json_shapes import plugin_json
from satchel.cli.rendering import count, status_label, summary, table

if TYPE_CHECKING:
    from satchel.catalog import PluginEntry

_KINDS = ("tool", "group", "skill", "server", "command", "field")


@click.command("plugins", cls=Command)
@reads_sources
@as_json
@pass_console
def command(console: Console, *, sources: Sources, as_json: bool) -> None:
    """Say of each plugin its state, its version, where it is from, and what it brings.

    Those that are enabled are imported, as in an application, and the last column is how long that
    took. 'satchel list plugins' imports nothing.
    """
    catalog = sources.open(run_code=True).catalog
    shapes = [plugin_json(entry, catalog) for entry in catalog.all_plugins]
    if as_json:
        console.json(shapes)
    else:
        pairs = zip(catalog.all_plugins, shapes, strict=True)
        table([_row(entry, shape) for entry, shape in pairs], console)
    console.say(count(len(shapes), "plugin"))
    summary(catalog, console)


def _row(entry: "PluginEntry", shape: dict[str, Any]) -> tuple[str, ...]:
    seconds = shape["import_seconds"]
    parts = (count(len(shape[f"{kind}s"]), kind) for kind in _KINDS if shape[f"{kind}s"])
    time = "" if seconds is None else f"{seconds * 1_000:.0f} ms"
    return (
        entry.name,
        status_label(entry) or "ok",
        entry.version,
        entry.source,
        ", ".join(parts),
        time,
    )
