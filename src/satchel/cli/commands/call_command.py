"""`satchel call`: call a tool as a model would."""

from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import CatalogCommand, Sources, activates_groups
from satchel.cli.call_output import Arguments, as_object, call_and_show, takes_arguments
from satchel.cli.console import Console
from satchel.cli.disabled_plugins import of_disabled_plugin
from satchel.diagnostics import Severity
from satchel.errors import NotFoundError, SatchelError

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
    if tool not in app.catalog.tools and app.declared_mcp_servers:
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
        if error := of_disabled_plugin(app.catalog, problem):
            raise error from None
        # The tool may belong to a plugin that failed to load, or else to another broken source.
        failed = [
            item
            for plugin in app.catalog.all_plugins
            if plugin.state == "failed"
            for item in plugin.diagnostics
        ]
        errors = [
            item for item in (*failed, *app.catalog.diagnostics) if item.severity is Severity.ERROR
        ]
        if problem.near or not errors:
            raise
        message = f"{problem.message}, but there are errors; the first is {errors[0].message!r}"
        raise SatchelError(message, where=str(errors[0].where), fix=errors[0].fix) from None
    if entry.diagnostics and entry.state in {"held", "failed", "disabled"}:
        last = entry.diagnostics[-1]
        raise SatchelError(_about(name, last.message), where=str(last.where), fix=last.fix)
    if app.catalog.tools.get(entry.name) is not entry:
        fix = "run 'satchel doctor' for the reason"
        raise SatchelError(f"tool {name!r} is {entry.state}", fix=fix)
    return entry


def _about(name: str, message: str) -> str:
    """Return a message that says which tool it is about."""
    subject = f"tool {name!r}"
    return message if message.startswith(subject) else f"{subject}: {message}"
