"""`satchel show`: everything about one entry."""

from typing import TYPE_CHECKING, Any

import click

import satchel
from satchel.cli.base_command import Sources, View, run_code
from satchel.cli.console import Console
from satchel.cli.contract_lines import NOT_LOADED, contract_lines
from satchel.cli.rendering import COLOURS, count, diagnostic_line, relative
from satchel.cli.serializer import KINDS, entries_of, shown
from satchel.errors import NotFoundError
from satchel.names import near_misses
from satchel.text import one_line, visible

if TYPE_CHECKING:
    from satchel.catalog import Catalog, Entry

_MOST_FILES = 20


@click.command("show", cls=View)
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), help="Show only what is of this kind.")
@run_code
def command(
    console: Console, *, name: str, kind: str | None, run: bool, sources: Sources, as_json: bool
) -> None:
    """Show everything about a skill, tool, group or plugin.

    NAME may also be SOURCE:NAME, for one that is shadowed by another of its name.
    No plugin code is run unless you say --run; a tool's contract is known only then.
    """
    catalog = sources.open(run_code=run).catalog
    found = _found(catalog, name, (kind,) if kind else KINDS)
    shapes = [shown(kind, entry, _signature(kind, entry)) for kind, entry in found]
    if as_json:
        console.json(shapes)
        return
    for (_, entry), shape in zip(found, shapes, strict=True):
        _write(entry, shape, console)


def _found(catalog: "Catalog", name: str, kinds: tuple[str, ...]) -> "list[tuple[str, Entry]]":
    """Return the entry of each kind that has this name. Raises `NotFoundError` if there is none."""
    found: list[tuple[str, Entry]] = []
    for kind in kinds:
        try:
            found.append((kind, getattr(catalog, kind)(name)))
        except NotFoundError:
            continue
    if not found:
        known = {entry.name for kind in kinds for entry in entries_of(catalog, kind)}
        what = kinds[0] if len(kinds) == 1 else "skill, tool, group or plugin"
        raise NotFoundError(what, name, near_misses(name, known))
    return found


def _signature(kind: str, entry: "Entry") -> str | None:
    """Return a tool's signature as its source says it, read and not run."""
    if kind != "tool" or not entry.path.endswith(".py"):
        return None
    # Lazy: only a tool has a signature.
    from satchel.formats import declared_tools
    from satchel.sources.file_reader import UnreadableFileError, read_regular

    try:
        source, _ = read_regular(entry.path, satchel.Limits().plugin_source)
    except UnreadableFileError:
        return None
    declared = declared_tools(source, entry.path).value or ()
    return next((tool.signature for tool in declared if tool.name == entry.name), None)


def _write(entry: "Entry", shape: dict[str, Any], console: Console) -> None:
    state = console.paint(entry.state, fg=COLOURS[entry.state])
    console.out(f"{shape['kind']} {console.paint(one_line(entry.name), bold=True)}: {state}")
    console.labelled(_facts(shape))
    if shape["kind"] == "tool":
        # A tool that was only read may have a contract.
        is_loaded = getattr(entry, "tool", None) is not None
        contract = contract_lines(shape["contract"]) if shape["contract"] else ()
        console.labelled(contract if is_loaded else [("contract", NOT_LOADED)])
    for item in entry.diagnostics:
        console.out(f"  {console.paint(diagnostic_line(item), fg=COLOURS[item.severity])}")
    for text in (shape.get("notes"), shape.get("body")):
        if text and text.strip():
            console.out(f"\n{visible(text).strip()}")
    console.out()


def _facts(shape: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what is told in a line each; what is empty is not told."""
    files = [file["name"] for file in shape.get("files", ())]
    more = f" and {count(len(files) - _MOST_FILES, 'more file')}" if files[_MOST_FILES:] else ""
    metadata = shape.get("metadata", {})
    return [
        ("description", shape["description"]),
        ("signature", f"{shape['name']}{shape['signature']}" if shape.get("signature") else ""),
        ("path", relative(shape["path"])),
        ("source", shape["source"]),
        ("version", shape.get("version", "")),
        ("group", shape.get("group", "")),
        ("active", _yes_or_no(shape.get("active"))),
        ("groups", ", ".join(shape.get("groups", ()))),
        ("tools", ", ".join(shape.get("tools", ()))),
        ("servers", ", ".join(server["name"] for server in shape.get("servers", ()))),
        ("license", shape.get("license") or ""),
        ("compatibility", shape.get("compatibility") or ""),
        ("allowed tools", ", ".join(shape.get("allowed_tools", ()))),
        ("metadata", ", ".join(f"{key}: {value}" for key, value in metadata.items())),
        ("files", ", ".join(files[:_MOST_FILES]) + more),
    ]


def _yes_or_no(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no, until a session activates it"
