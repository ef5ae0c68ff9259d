"""`satchel show`: print everything about one entry."""

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import click

import satchel
from satchel.cli.base_command import CatalogCommand, Sources, run_code
from satchel.cli.console import Console
from satchel.cli.contract_lines import NOT_LOADABLE, NOT_LOADED, contract_lines
from satchel.cli.disabled_plugins import of_disabled_plugin
from satchel.cli.rendering import COLOURS, diagnostic_line
from satchel.errors import NotFoundError
from satchel.names import near_misses
from satchel.reports.serializer import KINDS, entries_of, shown
from satchel.reports.short_texts import count, short_path, status_label
from satchel.text import one_line, visible

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import Entry, ToolEntry

_MAX_FILES = 20


@click.command("show", cls=CatalogCommand)
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), help="Show only an entry of this kind.")
@click.option(
    "--arguments", metavar="TEXT", help="Print a skill as the model reads it after /NAME TEXT."
)
@run_code
def command(
    console: Console,
    *,
    name: str,
    kind: str | None,
    arguments: str | None,
    run: bool,
    sources: Sources,
    as_json: bool,
) -> None:
    """Show everything about a skill, tool, group or plugin.

    NAME may also be SOURCE:NAME, for an entry that is shadowed by another with the same name.
    No plugin code is run without --run; a tool's contract is only known with it.
    """
    app = sources.open(run_code=run)
    if arguments is not None:
        if kind not in {None, "skill"}:
            raise click.UsageError("--arguments is for a skill")
        skill = app.session().load_skill(name, arguments)
        if as_json:
            console.json({"name": skill.name, "text": skill.text})
        else:
            console.out(visible(skill.text))
        return
    entries = _entries_named(app.catalog, name, (kind,) if kind else KINDS)
    records = [_record(kind, entry) for kind, entry in entries]
    if as_json:
        console.json(records)
        return
    for (_, entry), record in zip(entries, records, strict=True):
        _write(entry, record, console, was_run=run)


def _entries_named(
    catalog: "Catalog", name: str, kinds: tuple[str, ...]
) -> "list[tuple[str, Entry]]":
    """Return each kind with its entry of this name. Raises `NotFoundError` if there is none."""
    entries: list[tuple[str, Entry]] = []
    for kind in kinds:
        with suppress(NotFoundError):
            entries.append((kind, getattr(catalog, kind)(name)))
    if not entries:
        names = {entry.name for kind in kinds for entry in entries_of(catalog, kind)}
        kind_text = kinds[0] if len(kinds) == 1 else "skill, tool, group or plugin"
        problem = NotFoundError(kind_text, name, near_misses(name, names))
        raise (of_disabled_plugin(catalog, problem) if "tool" in kinds else None) or problem
    return entries


def _record(kind: str, entry: "Entry") -> dict[str, Any]:
    """Return the JSON of an entry; the signature of a tool is read from its source."""
    if kind != "tool":
        return shown(kind, entry)
    # Lazy: only a tool has a signature.
    from satchel.cli.tool_parameters import parameters_of
    from satchel.formats.declared_tools import declared_tools
    from satchel.sources.file_reader import UnreadableFileError, read_regular

    source, declared = b"", None
    if entry.path.endswith(".py"):
        with suppress(UnreadableFileError):
            source, _ = read_regular(entry.path, satchel.Limits().plugin_source)
        tools = declared_tools(source, entry.path).value or ()
        declared = next((tool for tool in tools if tool.name == entry.name), None)
    parameters = parameters_of(
        cast("ToolEntry", entry), source, declared.function if declared else ""
    )
    return shown(kind, entry, declared.signature if declared else None, parameters)


def _write(entry: "Entry", record: dict[str, Any], console: Console, *, was_run: bool) -> None:
    state = console.paint(status_label(entry), fg=COLOURS[entry.state])
    console.out(f"{record['kind']} {console.paint(one_line(entry.name), bold=True)}: {state}")
    console.labelled(_fields(record))
    _write_parameters(record.get("parameters", ()), console)
    if record["kind"] == "tool":
        # Without its code, a tool may have a contract that is not known.
        is_loaded = getattr(entry, "tool", None) is not None
        contract = contract_lines(record["contract"]) if record["contract"] else ()
        unknown = NOT_LOADABLE if was_run else NOT_LOADED
        if was_run and entry.state != "ok":
            unknown = f"unknown, because the tool is {entry.state}"
        console.labelled(contract if is_loaded else [("contract", unknown)])
    for item in entry.diagnostics:
        console.wrapped(f"  {diagnostic_line(item)}", fg=COLOURS[item.severity])
    for text in (record.get("notes"), record.get("body")):
        if text and text.strip():
            console.out(f"\n{visible(text).strip()}")
    console.out()


def _write_parameters(parameters: Iterable[dict[str, Any]], console: Console) -> None:
    from satchel.cli.tool_parameters import parameter_line  # lazy: only a tool has parameters

    lines = [parameter_line(parameter) for parameter in parameters]
    width = max((len(name) for name, _ in lines), default=0)
    for at, (name, text) in enumerate(lines):
        label = "" if at else "parameters"
        console.out(f"  {label:13} {one_line(name):{width}}  {one_line(text)}")


def _fields(record: dict[str, Any]) -> list[tuple[str, str]]:
    files = [file["name"] for file in record.get("files", ())]
    rest = f" and {count(len(files) - _MAX_FILES, 'more file')}" if files[_MAX_FILES:] else ""
    active = {None: "", True: "yes", False: "no, until a session activates it"}
    metadata = record.get("metadata", {})
    return [
        ("description", record["description"]),
        ("signature", f"{record['name']}{record['signature']}" if record.get("signature") else ""),
        ("path", short_path(record["path"])),
        ("source", record["source"]),
        ("version", record.get("version", "")),
        ("digest", record.get("digest", "")),
        ("group", record.get("group", "")),
        ("active", active[record.get("active")]),
        ("groups", ", ".join(record.get("groups", ()))),
        ("tools", ", ".join(record.get("tools", ()))),
        ("servers", ", ".join(server["name"] for server in record.get("servers", ()))),
        ("license", record.get("license") or ""),
        ("compatibility", record.get("compatibility") or ""),
        ("allowed tools", ", ".join(record.get("allowed_tools", ()))),
        ("metadata", ", ".join(f"{key}: {value}" for key, value in metadata.items())),
        ("files", ", ".join(files[:_MAX_FILES]) + rest),
    ]
