"""`satchel mcp`: the remote servers that are carried, and what they offer."""

import os
import re
from collections.abc import Sequence
from typing import Any

import click

import satchel
from satchel.catalog import SkillEntry, ToolEntry
from satchel.cli.base_command import Sources, View
from satchel.cli.call_output import Arguments, call_and_show, takes_arguments
from satchel.cli.console import Console
from satchel.cli.rendering import count, status_label, table
from satchel.cli.serializer import listed, remote_tool_json, server_json
from satchel.cli.terminal import Terminal
from satchel.diagnostics import Diagnostic
from satchel.errors import NotFoundError, SatchelError
from satchel.mcp_servers import DeclaredServer, HttpServer, RemoteTool, StdioServer
from satchel.mcp_servers.pin_store import PinStore, ServerOrigin
from satchel.names import near_misses
from satchel.sources.selection import CHOICES_FILE
from satchel.sources.state_files import make_folder, state_folder
from satchel.text import one_line, visible

_state = click.option(
    "--state",
    default="",
    metavar="DIR",
    help="Where it is remembered what servers said first, if a program has it elsewhere.",
)


@click.group("mcp")
def command() -> None:
    """List MCP servers, their tools and skills; call and approve tools.

    They are those of enabled plugins, and the [mcp.NAME] tables of satchel.toml. Listing reaches
    none of them; the other commands reach the one that is named, and run no plugin code.
    """


@command.command("list", cls=View)
def list_(console: Console, sources: Sources, as_json: bool) -> None:
    """List the servers; none is started or connected to."""
    app = sources.open(run_code=False)
    servers = app.declared_mcp_servers
    _tell_problems(app, console)
    if as_json:
        console.json([server_json(name, item, _transport(item)) for name, item in servers.items()])
        return
    table(
        [
            (name, _transport(item), str(item.server), item.owner or item.path)
            for name, item in servers.items()
        ],
        console,
    )
    console.say(count(len(servers), "server"))


@command.command("tools", cls=View)
@click.argument("name", metavar="SERVER")
@_state
def tools(console: Console, name: str, state: str, sources: Sources, as_json: bool) -> None:
    """List the tools of SERVER, also those that are held."""
    app, _ = _reached(name, sources, state)
    entries = app.catalog.all_tools
    if as_json:
        console.json([_tool_json(entry) for entry in entries])
    else:
        _list("tool", entries, console)
    _tell_problems(app, console)


@command.command("skills", cls=View)
@click.argument("name", metavar="SERVER")
@_state
def skills(console: Console, name: str, state: str, sources: Sources, as_json: bool) -> None:
    """List the skills of SERVER; none of their files is read."""
    app, _ = _reached(name, sources, state)
    if as_json:
        console.json(listed(app.catalog, "skill"))
    else:
        _list("skill", app.catalog.all_skills, console)
    _tell_problems(app, console)


@command.command("call", cls=View)
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
    given: str | None,
    state: str,
    sources: Sources,
    as_json: bool,
) -> int:
    """Call TOOL of SERVER, as 'satchel call' does."""
    arguments = Arguments.of(values, given)
    app, _ = _reached(name, sources, state)
    entry = _tool_of(app, tool)
    if not entry.is_served:
        problem = entry.diagnostics[0]
        raise SatchelError(problem.message, fix=problem.fix)
    session = app.session()
    session.activate(entry.group)
    return call_and_show(console, session, entry, arguments, as_json=as_json)


@command.command("approve", cls=View)
@click.argument("name", metavar="SERVER")
@click.argument("names", nargs=-1, metavar="[TOOL]...")
@click.option("--digest", help="Accept one TOOL as 'mcp tools' told it, without a look at it now.")
@click.option("--yes", is_flag=True, help="Ask nobody.")
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
    """Accept the tools of SERVER as they are now, or only each TOOL.

    What differs from what was first seen is shown, and you are asked. Until then such tools are
    held. With --digest the server is not reached, so it may be one that only a program knows.
    """
    if digest is not None:
        _accept(name, names, digest, sources, state)
        approved: tuple[str, ...] = names
    else:
        app, _ = _reached(name, sources, state)
        digests = _shown_odd(console, app, names)
        if digests and not yes:
            _require_consent(console, len(digests))
        only = tuple(digests) if names else ()
        approved = app.approve_mcp_tools(name, *only, digests=digests)
    if as_json:
        console.json({"server": name, "approved": list(approved)})
        return
    for tool in approved:
        # Perhaps there is no such tool: with a digest nobody looked.
        console.out(one_line(f"approved {tool}" + (f" when it is {digest}" if digest else "")))
    if not approved:
        console.say("all is as it was approved")


def _accept(name: str, names: tuple[str, ...], digest: str, sources: Sources, state: str) -> None:
    """Approve what a digest names. Raises `SatchelError`."""
    if len(names) != 1 or not re.fullmatch("[0-9a-f]{32}", digest):
        raise SatchelError(
            "a digest is that of one tool, 32 letters long", fix="copy the line of 'mcp tools'"
        )
    item = sources.open(run_code=False).declared_mcp_servers.get(name)
    origin = item.origin if item else ServerOrigin("", name)
    PinStore(state_folder(state), name, origin).accept(names[0], digest)


def _shown_odd(console: Console, app: "satchel.Satchel", names: tuple[str, ...]) -> dict[str, str]:
    """Show all that is not as it was approved, and return the digests of what was shown."""
    entries = [_tool_of(app, tool) for tool in names] or app.catalog.all_tools
    digests: dict[str, str] = {}
    for entry in entries:
        tool = entry.tool
        if isinstance(tool, RemoteTool) and tool.odd is not None:
            digests[tool.definition.name] = tool.odd.digest
            for item in entry.diagnostics:
                console.say(one_line(item.message))
            for line in tool.odd.change.splitlines():
                console.say(f"  {visible(line)}")
    return digests


def _require_consent(console: Console, number: int) -> None:
    if not Terminal(console, no_input=False).is_there:
        raise SatchelError(
            "nobody is there to be asked", fix="give --yes, or one TOOL and its --digest"
        )
    if not click.confirm(f"Approve {count(number, 'tool')}?", err=True):
        raise click.Abort


def _list(kind: str, entries: Sequence[ToolEntry | SkillEntry], console: Console) -> None:
    table([(entry.name, status_label(entry), entry.description) for entry in entries], console)
    console.say(count(len(entries), kind))


def _reached(name: str, sources: Sources, state: str) -> tuple["satchel.Satchel", DeclaredServer]:
    """Reach one server alone. Raises `SatchelError` if it is unknown or down."""
    named = sources.open(run_code=False)
    servers = named.declared_mcp_servers
    if (item := servers.get(name)) is None:
        raise _missing(name, named, sources)
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
    for problem in app.catalog.diagnostics:
        if problem.code == "mcp-server-down":
            raise SatchelError(problem.message, where=str(problem.where), fix=problem.fix)
    return app, item


def _missing(name: str, named: "satchel.Satchel", sources: Sources) -> SatchelError:
    """Return the error for a server that there is not; perhaps it is one that is broken."""
    if near := near_misses(name, named.declared_mcp_servers):
        return NotFoundError("MCP server", name, near)
    told = f"there is no MCP server named {name!r}"
    if odd := _problems(named):
        problem = next((item for item in odd if f"server {name!r}" in item.message), odd[0])
        told, where = f"{told}: {problem.message}", str(problem.where)
        return SatchelError(told, where=where, fix=problem.fix)
    if not sources.project and os.path.isfile(CHOICES_FILE):
        fix = f"give --project to read the {CHOICES_FILE} of this folder"
        return SatchelError(told, fix=fix)
    return SatchelError(told, fix="'satchel mcp list' shows those that there are")


def _tell_problems(app: "satchel.Satchel", console: Console) -> None:
    for problem in _problems(app):
        console.say(one_line(str(problem)))


def _problems(app: "satchel.Satchel") -> list[Diagnostic]:
    """Return what is wrong with servers, and with the files that name them."""
    return [
        item
        for item in app.catalog.diagnostics
        if item.code.startswith(("mcp-", "choices-")) and item.code != "mcp-not-started"
    ]


def _tool_of(app: "satchel.Satchel", name: str) -> ToolEntry:
    """Return a tool by its name here or at its server."""
    entries = [entry for entry in app.catalog.all_tools if isinstance(entry.tool, RemoteTool)]
    for entry in entries:
        if name in {entry.name, _own_name(entry)}:
            return entry
    raise NotFoundError("tool", name, near_misses(name, [entry.name for entry in entries]))


def _own_name(entry: ToolEntry) -> str:
    """Return what the server calls a tool."""
    return entry.tool.definition.name if isinstance(entry.tool, RemoteTool) else entry.name


def _transport(item: DeclaredServer) -> str:
    if isinstance(item.server, StdioServer):
        return "stdio"
    return "streamable-http" if isinstance(item.server, HttpServer) else "sse"


def _tool_json(entry: ToolEntry) -> dict[str, Any]:
    odd = entry.tool.odd if isinstance(entry.tool, RemoteTool) else None
    return remote_tool_json(entry, _own_name(entry), odd.digest if odd else None)
