"""`satchel list`: what there is, also what failed."""

from typing import TYPE_CHECKING, Any

import click

from satchel.cli.base_command import Sources, View, run_code
from satchel.cli.console import Console
from satchel.cli.contract_lines import NOT_LOADED, contract_lines, counted
from satchel.cli.rendering import count, relative, status_label, summary, table
from satchel.cli.serializer import KINDS, contracts, entries_of, listed, plugin_in_full

if TYPE_CHECKING:
    from satchel.catalog import Catalog, Entry, PluginEntry

_CONTRACTS = "contracts"
_BROUGHT = ("tool", "group", "skill", "server", "command", "field")


@click.command("list", cls=View)
@click.argument(
    "what", required=False, type=click.Choice([*(f"{kind}s" for kind in KINDS), _CONTRACTS])
)
@click.option("--long", is_flag=True, help="Say more of each: state, version, place, contents.")
@run_code
def command(
    console: Console, *, what: str | None, long: bool, run: bool, sources: Sources, as_json: bool
) -> None:
    """List skills, tools, groups, plugins or contracts, also what failed.

    No plugin code is run unless you say --run. Without it tools are read from the source of a
    plugin with a manifest, so what the code makes while it runs, and what the hooks of a package
    return, is not listed; contracts are known only once their code was loaded.
    """
    catalog = sources.open(run_code=run).catalog
    if what == _CONTRACTS:
        _list_contracts(catalog, console, long=long, as_json=as_json)
        if not run:
            console.say(f"a contract is {NOT_LOADED}")
    else:
        kinds = (what.removesuffix("s"),) if what else KINDS
        if as_json:
            shapes = {f"{kind}s": _shapes(kind, catalog, long=long) for kind in kinds}
            console.json(shapes[what] if what else shapes)
        else:
            for kind in kinds:
                _section(kind, catalog, console, titled=what is None, long=long)
        console.say(", ".join(count(len(entries_of(catalog, kind)), kind) for kind in kinds))
    summary(catalog, console)


def _shapes(kind: str, catalog: "Catalog", *, long: bool) -> list[dict[str, Any]]:
    if long and kind == "plugin":
        return [plugin_in_full(plugin, catalog) for plugin in catalog.all_plugins]
    return listed(catalog, kind)


def _section(kind: str, catalog: "Catalog", console: Console, *, titled: bool, long: bool) -> None:
    """Write the table of one kind."""
    entries = entries_of(catalog, kind)
    if titled and entries:
        console.out(console.paint(f"{kind}s", underline=True))
    row = _long_row if long else _row
    table([row(kind, entry, catalog) for entry in entries], console)
    if titled and entries:
        console.out()


def _row(_kind: str, entry: "Entry", _catalog: "Catalog") -> tuple[str, ...]:
    return entry.name, status_label(entry), entry.source, entry.description


def _long_row(kind: str, entry: Any, catalog: "Catalog") -> tuple[str, ...]:
    if kind == "plugin":
        return _plugin_row(entry, catalog)
    state = status_label(entry) or "ok"
    if kind == "group":
        parts = count(len(entry.tools), "tool"), count(len(entry.skills), "skill")
        active = "active" if entry.active else "inactive"
        return entry.name, state, entry.source, active, *parts, entry.description
    groups = ", ".join(entry.groups)
    return entry.name, state, entry.source, groups, relative(entry.path), entry.description


def _plugin_row(plugin: "PluginEntry", catalog: "Catalog") -> tuple[str, ...]:
    shape = plugin_in_full(plugin, catalog)
    seconds = shape["import_seconds"]
    parts = (count(len(shape[f"{kind}s"]), kind) for kind in _BROUGHT if shape[f"{kind}s"])
    return (
        plugin.name,
        status_label(plugin) or "ok",
        plugin.version,
        plugin.source,
        ", ".join(parts),
        "" if seconds is None else f"{seconds * 1_000:.0f} ms",
    )


def _list_contracts(catalog: "Catalog", console: Console, *, long: bool, as_json: bool) -> None:
    """Write the tools that have a contract, and how much it says, or all of it."""
    shapes = contracts(catalog)
    if as_json:
        console.json(shapes)
    elif long:
        for shape in shapes:
            console.out(console.paint(shape["tool"], bold=True))
            console.labelled(contract_lines(shape))
    else:
        tools = [tool for tool in catalog.all_tools if tool.contract]
        table(
            [
                (tool.name, status_label(tool), tool.source, counted(shape))
                for tool, shape in zip(tools, shapes, strict=True)
            ],
            console,
        )
    console.say(count(len(shapes), "contract"))
