"""`satchel call`: one call of a tool, as a model would make it."""

from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import Sources, View, activates_groups
from satchel.cli.call_output import Arguments, as_object, call_and_show, takes_arguments
from satchel.cli.console import Console
from satchel.diagnostics import Severity
from satchel.errors import NotFoundError, SatchelError

if TYPE_CHECKING:
    import satchel
    from satchel.catalog import ToolEntry


@click.command("call", cls=View)
@click.argument("tool")
@takes_arguments
@click.option("--state", metavar="JSON", help="What the session's state holds, as one JSON object.")
@activates_groups
def command(
    console: Console,
    *,
    tool: str,
    values: tuple[str, ...],
    given: str | None,
    state: str | None,
    groups: tuple[str, ...],
    sources: Sources,
    as_json: bool,
) -> int:
    """Call a tool; its group is activated for the call.

    What a tool tells while it runs is shown as it comes. A background tool is waited for.

    A VALUE is taken as text where the tool wants text, else as JSON if it is JSON. What is
    given as KEY=VALUE wins over --args.
    """
    arguments, kept = Arguments.of(values, given), as_object(state, "--state")
    app = sources.open(run_code=True)
    if tool not in app.catalog.tools and app.declared_mcp_servers:
        # Only now: reaching servers takes long.
        app = sources.open(run_code=True, servers=True)
    entry = _callable(app, tool)
    session = app.session()
    session.activate(entry.group, *groups)
    session.state.update(kept)
    return call_and_show(console, session, entry, arguments, as_json=as_json)


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
