"""`satchel show`: print everything about one entry."""

import ast
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import click

import satchel
from satchel.cli.base_command import CatalogCommand, Sources, run_code
from satchel.cli.console import Console
from satchel.cli.contract_lines import NOT_LOADABLE, NOT_LOADED, contract_lines
from satchel.cli.missing_tools import missing_tool
from satchel.cli.rendering import COLOURS, diagnostic_line
from satchel.errors import NotFoundError
from satchel.formats.python_source import Function, arguments_of, statements_of, texts_in
from satchel.names import near_misses
from satchel.reports.serializer import KINDS, entries_of, shown
from satchel.reports.short_texts import count, short_path, status_label
from satchel.text import one_line, visible
from satchel.tools.docstrings import read_docstring
from satchel.tools.signatures import CONTEXT_NAMES

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import Entry, ToolEntry

_MAX_FILES = 20
Parameter = dict[str, Any]


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
    entries = _entries_named(app, name, (kind,) if kind else KINDS)
    records = [_record(kind, entry) for kind, entry in entries]
    if as_json:
        console.json(records)
        return
    for (_, entry), record in zip(entries, records, strict=True):
        _write(entry, record, console, was_run=run)


def _entries_named(
    app: satchel.Satchel, name: str, kinds: tuple[str, ...]
) -> "list[tuple[str, Entry]]":
    """Return each kind with its entry of this name. Raises `NotFoundError` if there is none."""
    catalog = app.catalog
    entries: list[tuple[str, Entry]] = []
    for kind in kinds:
        with suppress(NotFoundError):
            entries.append((kind, getattr(catalog, kind)(name)))
    if not entries:
        names = {entry.name for kind in kinds for entry in entries_of(catalog, kind)}
        kind_text = kinds[0] if len(kinds) == 1 else "skill, tool, group or plugin"
        problem = NotFoundError(kind_text, name, near_misses(name, names))
        raise missing_tool(app, problem, starts_servers=False) if "tool" in kinds else problem
    return entries


def _record(kind: str, entry: "Entry") -> dict[str, Any]:
    """Return the JSON of an entry; the signature of a tool is read from its source."""
    if kind != "tool":
        return shown(kind, entry)
    # Lazy: only a tool has a signature.
    from satchel.files.file_reader import UnreadableFileError, read_regular
    from satchel.formats.declared_tools import declared_tools

    source, declared = b"", None
    if entry.path.endswith(".py"):
        with suppress(UnreadableFileError):
            source, _ = read_regular(entry.path, satchel.Limits().plugin_source)
        tools = declared_tools(source, entry.path).value or ()
        declared = next((tool for tool in tools if tool.name == entry.name), None)
    parameters = _parameters_of(
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
        if entry.state != "ok":
            unknown = f"unknown, because the tool is {entry.state}"
        console.labelled(contract if is_loaded else [("contract", unknown)])
    for item in entry.diagnostics:
        console.wrapped(f"  {diagnostic_line(item)}", fg=COLOURS[item.severity])
    for text in (record.get("notes"), record.get("body")):
        if text and text.strip():
            console.out(f"\n{visible(text).strip()}")
    console.out()


def _write_parameters(parameters: Iterable[dict[str, Any]], console: Console) -> None:
    lines = [_parameter_line(parameter) for parameter in parameters]
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


# ---- the parameters of a tool ----------------------------------------------------------------


def _parameters_of(entry: "ToolEntry", source: bytes, function: str) -> list[Parameter]:
    """Return what is known of each parameter, in order; `source` counts if no code was run."""
    if entry.tool is not None:
        return _from_schema(entry.tool)
    functions = (node for node in statements_of(source) or () if isinstance(node, Function))
    # As in the module's namespace, a later definition replaces an earlier one.
    same_name = [node for node in functions if node.name == function]
    return _from_source(same_name[-1]) if same_name else []


def _parameter_line(parameter: Parameter) -> tuple[str, str]:
    """Return the name of a parameter, and what `show` prints about it."""
    facts = [parameter["type"], "required" if parameter["required"] else "optional"]
    if parameter["hidden"]:
        facts[1] = "hidden from the model"
    about = f": {parameter['description']}" if parameter["description"] else ""
    return parameter["name"], ", ".join(filter(None, facts)) + about


def _from_schema(tool: Any) -> list[Parameter]:
    try:
        schema = tool.parameters
        properties, required = schema.get("properties", {}), schema.get("required", ())
        shown = [
            _parameter(
                name,
                _type_of(part),
                str(part.get("description", "")) if isinstance(part, dict) else "",
                is_required=name in required,
            )
            for name, part in properties.items()
        ]
    except Exception:  # the tool's class may raise anything
        return []
    hidden = sorted(getattr(tool, "hidden", ()))
    return [*shown, *(_parameter(name, "", "", is_required=True, hidden=True) for name in hidden)]


def _type_of(schema: Any) -> str:
    if not isinstance(schema, dict):
        return ""
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if options := schema.get("anyOf"):
        return " or ".join(dict.fromkeys(filter(None, map(_type_of, options))))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    kind = schema.get("type", "")
    if kind == "array" and (item := _type_of(schema.get("items"))):
        return f"array of {item}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _from_source(function: Function) -> list[Parameter]:
    _, about = read_docstring(ast.get_docstring(function))
    hidden = _hidden_names(function)
    return [
        _parameter(
            argument.arg,
            ast.unparse(argument.annotation) if argument.annotation else "",
            about.get(argument.arg, ""),
            is_required=not has_default,
            hidden=argument.arg in hidden,
        )
        for argument, has_default in arguments_of(function)
    ]


def _hidden_names(function: Function) -> set[str]:
    """Return the parameters that the model does not see: state fields, presets and the context."""
    calls = (node for node in function.decorator_list if isinstance(node, ast.Call))
    keywords = [keyword for call in calls for keyword in call.keywords]
    listed = (item.value for item in keywords if item.arg in {"state", "presets"})
    contexts = (
        argument.arg
        for argument, _ in arguments_of(function)
        if (
            ast.unparse(argument.annotation).endswith("ToolContext")
            if argument.annotation
            else argument.arg in CONTEXT_NAMES
        )
    )
    return {name for value in listed for name in texts_in(value)}.union(contexts)


def _parameter(
    name: str, kind: str, description: str, *, is_required: bool, hidden: bool = False
) -> Parameter:
    return {
        "name": name,
        "type": kind,
        "description": " ".join(description.split()),
        "required": is_required,
        "hidden": hidden,
    }
