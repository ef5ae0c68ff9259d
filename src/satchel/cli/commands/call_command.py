"""`satchel call`: call a tool as a model would."""

from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import CatalogCommand, Sources, activates_groups
from satchel.cli.call_output import Arguments, as_object, call_and_show, takes_arguments
from satchel.cli.console import Console
from satchel.cli.missing_tools import may_be_of_a_server, missing_tool
from satchel.errors import NotFoundError, SatchelError
from satchel.reports.short_texts import status_label

if TYPE_CHECKING:
    import satchel
    from satchel.catalog.catalog_entries import ToolEntry


_PATIENCE = 5.0
"""Seconds that slow plugins are waited for, unless the tool may be theirs."""


@click.command("call", cls=CatalogCommand)
@click.argument("tool")
@takes_arguments
@click.option("--state", metavar="JSON", help="The state of the session, as one JSON object.")
@activates_groups
def command(
    console: Console,
    *,
    tool: str,
    values: tuple[str, ...],
    json_text: str | None,
    state: str | None,
    groups: tuple[str, ...],
    sources: Sources,
    as_json: bool,
) -> int:
    """Call a tool; its group is activated for the call.

    The output of the tool is printed as it arrives. The command waits for a background tool.

    A VALUE is text if the tool takes text, otherwise JSON if it is valid JSON. KEY=VALUE has
    precedence over --args.
    """
    arguments, initial_state = Arguments.of(values, json_text), as_object(state, "--state")
    app = sources.open(run_code=True, patience=_PATIENCE, plugins_too=True)
    if tool not in app.catalog.tools and app.is_importing:
        app.refresh()  # It may be a tool of a slow plugin, so wait for all of them.
    if may_be_of_a_server(app, tool):
        # Only if needed: connecting to servers takes long.
        app = sources.open(run_code=True, servers=True)
    entry = _callable(app, tool)
    session = app.session()
    session.activate(entry.group, *groups)
    session.state.update(initial_state)
    return call_and_show(console, session, entry, arguments, as_json=as_json)


def _callable(app: "satchel.Satchel", name: str) -> "ToolEntry":
    """Return the served tool of that name. Raises `SatchelError` with the reason if none is."""
    try:
        entry = app.catalog.tool(name)
    except NotFoundError as problem:
        raise missing_tool(app, problem, starts_servers=True) from None
    if entry.diagnostics and entry.state in {"held", "failed", "disabled"}:
        last = entry.diagnostics[-1]
        raise SatchelError(_about(name, last.message), where=str(last.where), fix=last.fix)
    if app.catalog.tools.get(entry.name) is not entry:
        held = [it.name for it in app.catalog.all_plugins if status_label(it) == "held"]
        if entry.source in held:
            raise SatchelError(f"tool {name!r} of {entry.source} is held", fix="see above")
        server = app.catalog.plugin(entry.source)
        if server.is_server and server.diagnostics:
            down = server.diagnostics[0]
            fix = f"{down.fix}; 'satchel mcp tools {server.unit}' tries it and says why"
            message = f"tool {name!r} cannot be called: {down.message}"
            raise SatchelError(message, where=str(down.where), fix=fix)
        fix = "run 'satchel doctor --run' for the reason"
        raise SatchelError(f"tool {name!r} is {entry.state}", fix=fix)
    return entry


def _about(name: str, message: str) -> str:
    """Return a message that says which tool it is about."""
    subject = f"tool {name!r}"
    return message if message.startswith(subject) else f"{subject}: {message}"
