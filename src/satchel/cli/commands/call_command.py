"""`satchel call`: call a tool as a model would."""

import re
from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import CatalogCommand, Sources, activates_groups
from satchel.cli.call_output import Arguments, as_object, call_and_show, takes_arguments
from satchel.cli.console import Console
from satchel.cli.disabled_plugins import of_disabled_plugin
from satchel.diagnostics import Severity
from satchel.errors import NotFoundError, SatchelError
from satchel.reports.short_texts import status_label

if TYPE_CHECKING:
    import satchel
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import ToolEntry
    from satchel.diagnostics import Diagnostic


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
        raise of_disabled_plugin(app.catalog, problem) or _unknown(app.catalog, problem) from None
    if entry.diagnostics and entry.state in {"held", "failed", "disabled"}:
        last = entry.diagnostics[-1]
        raise SatchelError(_about(name, last.message), where=str(last.where), fix=last.fix)
    if app.catalog.tools.get(entry.name) is not entry:
        held = [it.name for it in app.catalog.all_plugins if status_label(it) == "held"]
        if entry.source in held:
            raise SatchelError(f"tool {name!r} of {entry.source} is held", fix="see above")
        fix = "run 'satchel doctor' for the reason"
        raise SatchelError(f"tool {name!r} is {entry.state}", fix=fix)
    return entry


def _unknown(catalog: "Catalog", problem: NotFoundError) -> SatchelError:
    """Return the error for an unknown tool, with what may be the reason that it is missing."""
    # It may be one of a plugin that failed to load, of servers, or of another broken source.
    failed = [it for it in catalog.all_plugins if it.state == "failed"]
    items = [*(item for plugin in failed for item in plugin.diagnostics), *catalog.diagnostics]
    held = [item for item in items if item.code == "code-held" and _servers_in(item)]
    errors = [item for item in items if item.severity is Severity.ERROR]
    if not held and (problem.near or not errors):
        return problem
    # Names of tools often begin with that of their server.
    start = re.split("[_-]", problem.name)[0]
    reasons = [*held, *errors]
    first = min(reasons, key=lambda it: f" {start}" not in _servers_in(it).replace("'", ""))
    servers = _servers_in(first)
    if first in held:
        return SatchelError(f"{problem.message}, but {servers} is held", fix="see above")
    why = f"the tools of {servers} are missing" if servers else "there are errors; the first"
    message = f"{problem.message}, but {why}: {first.message!r}"
    return SatchelError(message, where=str(first.where), fix=first.fix)


def _servers_in(item: "Diagnostic") -> str:
    """Return the MCP server, or the servers of a file, that a diagnostic is about, or `""`."""
    match = re.match(r"(MCP )?server \S+|what \S+ enables, configures and starts", item.message)
    return match[0] if match else ""


def _about(name: str, message: str) -> str:
    """Return a message that says which tool it is about."""
    subject = f"tool {name!r}"
    return message if message.startswith(subject) else f"{subject}: {message}"
