"""`satchel mcp`: the declared MCP servers, with their tools and skills."""

import os
import re
from collections.abc import Sequence
from typing import Any

import click

import satchel
from satchel.catalog import SkillEntry, ToolEntry
from satchel.cli.base_command import CatalogCommand, Sources
from satchel.cli.call_output import Arguments, call_and_show, takes_arguments
from satchel.cli.console import Console
from satchel.cli.rendering import count, status_label, table
from satchel.cli.serializer import listed, remote_tool_json, server_json
from satchel.cli.terminal import Terminal
from satchel.diagnostics import Diagnostic
from satchel.errors import NotFoundError, SatchelError
from satchel.mcp_servers import DeclaredServer, HttpServer, RemoteTool, StdioServer
from satchel.mcp_servers.pin_store import PinStore, ServerOrigin, pin_files
from satchel.names import near_misses
from satchel.sources.selection import SELECTION_FILE
from satchel.sources.state_files import make_folder, state_folder
from satchel.text import one_line, visible

_state = click.option(
    "--state",
    default="",
    metavar="DIR",
    help="The folder of approved tools, if your program uses another than the default.",
)


@click.group("mcp")
def command() -> None:
    """List MCP servers, their tools and skills; call and approve tools.

    Enabled plugins declare servers, and so do the [mcp.NAME] tables of satchel.toml. 'list'
    connects to no server; the other commands connect to the named one. No plugin code is run.
    """


@command.command("list", cls=CatalogCommand)
def list_(console: Console, sources: Sources, as_json: bool) -> None:
    """List the servers without starting or connecting to them."""
    app = sources.open(run_code=False)
    servers = app.declared_mcp_servers
    _say_diagnostics(app, console)
    records = [server_json(name, item, _transport(item)) for name, item in servers.items()]
    if as_json:
        console.json(records)
        return
    rows = [(r["name"], r["transport"], r["where"], r["plugin"] or r["path"]) for r in records]
    table(rows, console)
    console.say(count(len(servers), "server"))


@command.command("tools", cls=CatalogCommand)
@click.argument("name", metavar="SERVER")
@_state
def tools(console: Console, name: str, state: str, sources: Sources, as_json: bool) -> None:
    """List the tools of SERVER, including tools that wait for approval."""
    app = _connect(name, sources, state)
    entries = app.catalog.all_tools
    if as_json:
        console.json([_tool_json(entry) for entry in entries])
    else:
        _list("tool", entries, console)
    _say_diagnostics(app, console)


@command.command("skills", cls=CatalogCommand)
@click.argument("name", metavar="SERVER")
@_state
def skills(console: Console, name: str, state: str, sources: Sources, as_json: bool) -> None:
    """List the skills of SERVER without reading their files."""
    app = _connect(name, sources, state)
    if as_json:
        console.json(listed(app.catalog, "skill"))
    else:
        _list("skill", app.catalog.all_skills, console)
    _say_diagnostics(app, console)


@command.command("call", cls=CatalogCommand)
@click.argument("name", metavar="SERVER")
@click.argument("tool")
@takes_arguments
@_state
def call(
    console: Console,
    *,
    name: str,
    tool: str,
    values: tuple[str, ...],
    json_text: str | None,
    state: str,
    sources: Sources,
    as_json: bool,
) -> int:
    """Call TOOL of SERVER, as 'satchel call' does."""
    arguments = Arguments.of(values, json_text)
    app = _connect(name, sources, state)
    entry = _tool_of(app, tool)
    if not entry.is_served:
        first = entry.diagnostics[0]
        raise SatchelError(first.message, fix=first.fix)
    session = app.session()
    session.activate(entry.group)
    return call_and_show(console, session, entry, arguments, as_json=as_json)


@command.command("approve", cls=CatalogCommand)
@click.argument("name", metavar="SERVER")
@click.argument("names", nargs=-1, metavar="[TOOL]...")
@click.option("--digest", help="Approve one TOOL by its digest from 'mcp tools', unseen.")
@click.option("--yes", is_flag=True, help="Approve without asking.")
@_state
def approve(
    console: Console,
    *,
    name: str,
    names: tuple[str, ...],
    digest: str | None,
    yes: bool,
    state: str,
    sources: Sources,
    as_json: bool,
) -> None:
    """Approve the tools of SERVER as they are now, or only each TOOL.

    Tools that changed since they were approved wait for approval. Their changes are shown, and
    you are asked. --digest does not connect to the server, so it also works for a server that
    only your program declares.
    """
    if digest is not None:
        _approve_digest(name, names, digest, sources, state)
        approved: tuple[str, ...] = names
    else:
        app = _connect(name, sources, state)
        digests = _show_changes(console, app, names)
        if digests and not yes:
            _require_consent(console, len(digests))
        only = tuple(digests) if names else ()
        approved = app.approve_mcp_tools(name, *only, digests=digests)
    if as_json:
        console.json({"server": name, "approved": list(approved)})
        return
    for tool in approved:
        # With a digest, nothing checked that the tool exists.
        console.out(one_line(f"approved {tool}" + (f" with digest {digest}" if digest else "")))
    if not approved:
        console.say("no tool has changed since it was approved")


def _approve_digest(
    name: str, names: tuple[str, ...], digest: str, sources: Sources, state: str
) -> None:
    if len(names) != 1 or not re.fullmatch("[0-9a-f]{32}", digest):
        raise SatchelError(
            "--digest needs one TOOL and its digest of 32 hexadecimal digits",
            fix="copy the command that 'satchel mcp tools' prints",
        )
    item = sources.open(run_code=False).declared_mcp_servers.get(name)
    folder = state_folder(state)
    origin = item.origin if item else ServerOrigin("", name)
    # The digest says how a server is reached, so it counts for one of several declarations only.
    for file in ([] if item else pin_files(folder, name)) or [""]:
        PinStore(folder, name, origin, file).accept(names[0], digest)


def _show_changes(
    console: Console, app: "satchel.Satchel", names: tuple[str, ...]
) -> dict[str, str]:
    """Print how tools differ from their approved version, and return the new digests."""
    entries = [_tool_of(app, tool) for tool in names] or app.catalog.all_tools
    digests: dict[str, str] = {}
    for entry in entries:
        tool = entry.tool
        if isinstance(tool, RemoteTool) and tool.drift is not None:
            digests[tool.definition.name] = tool.drift.digest
            for item in entry.diagnostics:
                console.say(one_line(item.message))
            for line in tool.drift.change.splitlines():
                console.say(f"  {visible(line)}")
    return digests


def _require_consent(console: Console, number: int) -> None:
    if not Terminal(console, no_input=False).is_there:
        fix = "give --yes, or one TOOL and its --digest"
        raise SatchelError("cannot ask for approval without a terminal", fix=fix)
    if not click.confirm(f"Approve {count(number, 'tool')}?", err=True):
        raise click.Abort


def _list(kind: str, entries: Sequence[ToolEntry | SkillEntry], console: Console) -> None:
    table([(entry.name, status_label(entry), entry.description) for entry in entries], console)
    console.say(count(len(entries), kind))


def _connect(name: str, sources: Sources, state: str) -> "satchel.Satchel":
    """Return a `Satchel` of one server alone. Raises `SatchelError` if it is unknown or down."""
    declaring = sources.open(run_code=False)
    item = declaring.declared_mcp_servers.get(name)
    if item is None:
        raise _not_declared(name, declaring, sources)
    if item.data:
        make_folder(item.data)
    app = satchel.Satchel(settings=satchel.Settings(mcp_servers=False, state_folder=state))
    click.get_current_context().call_on_close(app.close)
    app.register_mcp_server(
        item,
        name=name,
        enable=item.enable,
        disable=item.disable,
        timeout=item.timeout,
        pin=item.pin,
    )
    for down in app.catalog.diagnostics:
        if down.code == "mcp-server-down":
            raise SatchelError(down.message, where=str(down.where), fix=down.fix)
    return app


def _not_declared(name: str, app: "satchel.Satchel", sources: Sources) -> SatchelError:
    """Return the error for an unknown server, with the likely reason."""
    if near := near_misses(name, app.declared_mcp_servers):
        return NotFoundError("MCP server", name, near)
    message = f"there is no MCP server named {name!r}"
    if diagnostics := _diagnostics(app):
        own = [item for item in diagnostics if f"server {name!r}" in item.message]
        first = (own or diagnostics)[0]
        return SatchelError(f"{message}: {first.message}", where=str(first.where), fix=first.fix)
    if not sources.project and os.path.isfile(SELECTION_FILE):
        fix = f"give --project to read the {SELECTION_FILE} of this folder"
        return SatchelError(message, fix=fix)
    return SatchelError(message, fix="'satchel mcp list' shows all servers")


def _say_diagnostics(app: "satchel.Satchel", console: Console) -> None:
    for item in _diagnostics(app):
        console.say(one_line(str(item)))


def _diagnostics(app: "satchel.Satchel") -> list[Diagnostic]:
    """Return the diagnostics of servers, and of the files that declare them."""
    return [
        item
        for item in app.catalog.diagnostics
        if item.code.startswith(("mcp-", "choices-")) and item.code != "mcp-not-started"
    ]


def _tool_of(app: "satchel.Satchel", name: str) -> ToolEntry:
    """Return a tool by its name in Satchel or by its name at the server."""
    entries = [entry for entry in app.catalog.all_tools if isinstance(entry.tool, RemoteTool)]
    for entry in entries:
        if name in {entry.name, _server_name(entry)}:
            return entry
    raise NotFoundError("tool", name, near_misses(name, [entry.name for entry in entries]))


def _server_name(entry: ToolEntry) -> str:
    """Return the name of a tool at its server."""
    return entry.tool.definition.name if isinstance(entry.tool, RemoteTool) else entry.name


def _transport(item: DeclaredServer) -> str:
    if isinstance(item.server, StdioServer):
        return "stdio"
    return "streamable-http" if isinstance(item.server, HttpServer) else "sse"


def _tool_json(entry: ToolEntry) -> dict[str, Any]:
    drift = entry.tool.drift if isinstance(entry.tool, RemoteTool) else None
    return remote_tool_json(entry, _server_name(entry), drift.digest if drift else None)
