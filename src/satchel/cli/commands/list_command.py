"""`satchel list`: list all entries of the catalog, including failed ones."""

import os
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.base_command import CatalogCommand, Sources, run_code
from satchel.cli.console import Console
from satchel.cli.contract_lines import NOT_LOADED, contract_lines, contract_size
from satchel.cli.rendering import diagnostic_line, say_untrusted, summary, table
from satchel.reports.serializer import KINDS, contracts, entries_of, listed, plugin_in_full
from satchel.reports.short_texts import (
    count,
    count_units,
    has_code_not_run,
    is_not_enabled,
    joined_names,
    short_path,
    status_label,
)
from satchel.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import Entry
    from satchel.mcp_servers.server_options import ServerConfig

_CONTRACTS = "contracts"
_SECTIONS = ("skills", "tools", "groups", "plugins", _CONTRACTS)
_LONG_SOURCE = 16
_PLUGIN_PARTS = ("tool", "group", "skill", "server", "command", "field")


@click.command("list", cls=CatalogCommand)
@click.argument("section", required=False, type=click.Choice(_SECTIONS))
@click.option("--long", is_flag=True, help="Also show the state, version, path and contents.")
@run_code
def command(
    console: Console, *, section: str | None, long: bool, run: bool, sources: Sources, as_json: bool
) -> None:
    """List skills, tools, groups, plugins or contracts, including failed ones.

    No plugin code is run without --run. Tools are then read from the source of plugins with a
    manifest, so tools that code creates, or that the hooks of a package return, are missing.
    Contracts are only known with --run.
    """
    app = sources.open(run_code=run)
    catalog = app.catalog
    if section == _CONTRACTS:
        _list_contracts(catalog, console, long=long, as_json=as_json)
        if not (run or say_untrusted(catalog, console)):
            console.say(f"contracts are {NOT_LOADED}")
    else:
        kinds = (section.removesuffix("s"),) if section else KINDS
        if as_json:
            records = {f"{kind}s": _records(kind, catalog, long=long) for kind in kinds}
            console.json(records[section] if section else records)
        else:
            roots = _short_roots(catalog, kinds)
            for kind in kinds:
                _section(kind, catalog, console, roots, with_title=section is None, long=long)
            for path, label in roots.items():
                console.out(f"{label} is {one_line(short_path(path))}")
        console.say(", ".join(_size(kind, entries_of(catalog, kind)) for kind in kinds))
        number = sum(map(has_code_not_run, catalog.plugins.values()))
        if number and not run and {"tool", "plugin"} & {*kinds}:
            console.say(
                f"not run: list reads the code of {count(number, 'plugin')} but does not run it; "
                "add --run to run it"
            )
        if {"tool", "plugin"} & {*kinds}:
            say_untrusted(catalog, console)
            _say_servers(app.declared_mcp_servers, console)
    summary(catalog, console, ran_code=run)


def _say_servers(servers: "Mapping[str, ServerConfig]", console: Console) -> None:
    """Write which servers have tools that are not listed, and why some would not start."""
    problems = {name: server.start_problem() for name, server in servers.items()}
    if names := joined_names(name for name, problem in problems.items() if problem is None):
        console.say(f"not listed: tools of MCP servers, which list does not start: {names}")
    for problem in filter(None, problems.values()):
        console.say(diagnostic_line(problem))


def _size(kind: str, entries: "Sequence[Entry]") -> str:
    if kind not in {"skill", "plugin"}:
        return count(len(entries), kind)
    not_enabled = sum(map(is_not_enabled, entries))
    return count_units(entries, kind) + (f" and {not_enabled} not enabled" if not_enabled else "")


def _records(kind: str, catalog: "Catalog", *, long: bool) -> list[dict[str, Any]]:
    if long and kind == "plugin":
        return [plugin_in_full(plugin, catalog) for plugin in catalog.all_plugins]
    return listed(catalog, kind)


def _short_roots(catalog: "Catalog", kinds: Iterable[str]) -> dict[str, str]:
    """Return a short name for each source that is a long path, so that it is written once."""
    sources = dict.fromkeys(entry.source for kind in kinds for entry in entries_of(catalog, kind))
    paths = [source for source in sources if os.sep in source and len(source) > _LONG_SOURCE]
    names = [os.path.basename(path.rstrip(os.sep)) for path in paths]
    return {
        path: name
        for path, name in zip(paths, names, strict=True)
        if name and names.count(name) == 1 and name not in sources
    }


def _section(
    kind: str,
    catalog: "Catalog",
    console: Console,
    roots: "Mapping[str, str]",
    *,
    with_title: bool,
    long: bool,
) -> None:
    entries = entries_of(catalog, kind)
    if not entries:
        return
    header: tuple[str, ...] = ("name", "status", "source", "description")
    same = Counter((entry.name, entry.source) for entry in entries)
    rows: list[tuple[str, ...]] = [
        (
            entry.name,
            status_label(entry),
            # Copies of one root differ only in their paths.
            short_path(entry.path)
            if same[entry.name, entry.source] > 1
            else roots.get(entry.source, entry.source),
            entry.description,
        )
        for entry in entries
    ]
    if long:
        header, row = _LONG_ROWS.get(kind, (_LONG_HEADER, _long_row))
        rows = list(map(row, entries, _records(kind, catalog, long=True)))
    if with_title:
        console.out(console.paint(f"{kind}s", underline=True))
    table(rows, console, header)
    if with_title:
        console.out()


def _long_row(entry: "Entry", record: dict[str, Any]) -> tuple[str, ...]:
    groups, path = ", ".join(record["groups"]), short_path(entry.path)
    return entry.name, status_label(entry), entry.source, groups, path, entry.description


def _group_row(entry: "Entry", record: dict[str, Any]) -> tuple[str, ...]:
    active = "active" if record["active"] else "inactive"
    parts = count(len(record["tools"]), "tool"), count(len(record["skills"]), "skill")
    state = status_label(entry)
    return entry.name, state, entry.source, active, *parts, entry.description


def _plugin_row(entry: "Entry", record: dict[str, Any]) -> tuple[str, ...]:
    seconds = record["import_seconds"]
    sizes = ((len(record[f"{part}s"]), part) for part in _PLUGIN_PARTS)
    contents = ", ".join(count(size, part) for size, part in sizes if size)
    return (
        entry.name,
        status_label(entry),
        record["version"],
        entry.source,
        contents,
        "" if seconds is None else f"{seconds * 1_000:.0f} ms",
    )


_LONG_HEADER = ("name", "status", "source", "groups", "path", "description")
_LONG_ROWS = {
    "group": (
        ("name", "status", "source", "active", "tools", "skills", "description"),
        _group_row,
    ),
    "plugin": (("name", "status", "version", "source", "contents", "import"), _plugin_row),
}


def _list_contracts(catalog: "Catalog", console: Console, *, long: bool, as_json: bool) -> None:
    """Write the tools that have a contract, with its size, or with `long` all of it."""
    records = contracts(catalog)
    if as_json:
        console.json(records)
    elif long:
        for record in records:
            console.out(console.paint(record["tool"], bold=True))
            console.labelled(contract_lines(record))
    else:
        tools = [tool for tool in catalog.all_tools if tool.contract]
        table(
            [
                (tool.name, status_label(tool), tool.source, contract_size(record))
                for tool, record in zip(tools, records, strict=True)
            ],
            console,
            ("tool", "status", "source", "contract"),
        )
    console.say(count(len(records), "contract"))
