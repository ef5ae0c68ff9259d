"""`satchel call`: one call of a tool, as a model would make it."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import click

from satchel.cli.base_command import Command, Sources, as_json, pass_console, reads_sources
from satchel.cli.call_output import run_and_print, run_to_end
from satchel.cli.console import Console
from satchel.cli.key_value_pairs import parse_pairs
from satchel.diagnostics import Severity
from satchel.errors import NotFoundError, SatchelError
from satchel.tools import ToolResult

if TYPE_CHECKING:
    import satchel
    from satchel.catalog import ToolEntry


@click.command("call", cls=Command)
@click.argument("tool")
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--args", "given", metavar="JSON", help="The arguments as one JSON object.")
@click.option("--state", metavar="JSON", help="What the session's state holds, as one JSON object.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Activate a group.")
@reads_sources
@as_json
@click.pass_context
@pass_console
def command(
    console: Console,
    ctx: click.Context,
    *,
    tool: str,
    values: tuple[str, ...],
    given: str | None,
    state: str | None,
    groups: tuple[str, ...],
    sources: Sources,
    as_json: bool,
) -> None:
    """Call a tool; its group is activated for the call.

    What a tool tells while it runs is shown as it comes. A background tool is waited for.

    A VALUE is taken as text where the tool wants text, else as JSON if it is JSON. What is
    given as KEY=VALUE wins over --args.
    """
    given_pairs = parse_pairs(values)
    arguments, kept = as_object(given, "--args"), as_object(state, "--state")
    app = sources.open(run_code=True)
    if tool not in app.catalog.tools and app.declared_mcp_servers:
        # Only now: reaching servers takes long.
        app = sources.open(run_code=True, servers=True)
    entry = _callable(app, tool)
    arguments |= typed(given_pairs, entry.tool.parameters if entry.tool else {})
    session = app.session()
    session.activate(entry.group, *groups)
    session.state.update(kept)
    told = None if as_json else console
    result = run_to_end(run_and_print(session, entry.name, arguments, told))
    if as_json:
        console.json(result_shape(result))
    ctx.exit(1 if result.is_error else 0)


def _callable(app: "satchel.Satchel", name: str) -> "ToolEntry":
    """Return the served tool of that name. Raises `SatchelError` that says why there is none."""
    refused = [
        item for item in app.catalog.diagnostics if f"tool {name!r} is left out" in item.message
    ]
    if name not in app.catalog.tools and refused:
        raise SatchelError(refused[0].message, where=str(refused[0].where), fix=refused[0].fix)
    try:
        entry = app.catalog.tool(name)
    except NotFoundError as problem:
        errors = [it for it in app.catalog.diagnostics if it.severity is Severity.ERROR]
        if problem.near or not errors:
            raise
        # It may well be one of what is broken.
        told = f"{problem.message}, but there are errors; the first is {errors[0].message!r}"
        raise SatchelError(told, where=str(errors[0].where), fix=errors[0].fix) from None
    if app.catalog.tools.get(entry.name) is not entry:
        raise SatchelError(
            f"tool {name!r} is {entry.state}", fix="'satchel doctor' with the same options says why"
        )
    return entry


def result_shape(result: ToolResult) -> dict[str, Any]:
    """Return the JSON shape of a result."""
    return {
        "text": result.text,
        "content": [block.to_dict() for block in result.content],
        "structured": result.structured,
        "is_error": result.is_error,
        "is_interrupted": result.is_interrupted,
        "error_code": result.error_code,
    }


def as_object(text: str | None, option: str) -> dict[str, Any]:
    """Return what an option holds as JSON, an empty object if it is not given."""
    value = _from_json(text) if text is not None else {}
    if not isinstance(value, dict):
        raise click.BadParameter("must be one JSON object", param_hint=option)
    return value


def typed(pairs: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Give each value the type that the tool's schema asks for, as far as that is plain."""
    wanted = schema.get("properties", {})
    return {
        key: text if _is_text(wanted.get(key, {})) else _from_json(text)
        for key, text in pairs.items()
    }


def _is_text(schema: Any) -> bool:
    """Tell whether a parameter takes text and, beside null, nothing else."""
    if not isinstance(schema, Mapping):
        return False
    choices = [item for item in schema.get("anyOf", ()) if item.get("type") != "null"]
    if choices:
        return all(map(_is_text, choices))
    return schema.get("type") == "string"


def _from_json(text: str) -> Any:
    """Return what a text is in JSON, or the text itself."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity are Python's, not JSON's
