"""`satchel mcp`: the declared MCP servers, with their tools and skills."""

import re
from collections.abc import Sequence
from dataclasses import replace

import click

import satchel
from satchel.catalog.catalog_entries import SkillEntry, ToolEntry
from satchel.cli.base_command import CatalogCommand, Sources, is_said_once
from satchel.cli.call_output import Arguments, call_and_show, takes_arguments
from satchel.cli.console import Console
from satchel.cli.mcp_login import log_in, log_out
from satchel.cli.rendering import diagnostic_line, table
from satchel.cli.terminal import Terminal
from satchel.diagnostics import Diagnostic
from satchel.errors import NotFoundError, SatchelError
from satchel.files.state_files import make_folder, state_folder
from satchel.loader.trust_gate import project_parts
from satchel.mcp_servers.pin_store import PinStore, ServerOrigin, pin_files
from satchel.mcp_servers.server_addresses import HttpServer, RemoteServer
from satchel.mcp_servers.server_instructions import INSTRUCTIONS
from satchel.mcp_servers.server_options import ServerConfig
from satchel.names import near_misses
from satchel.reports.serializer import listed, remote_tool_json, server_json, server_name_of
from satchel.reports.short_texts import count, status_label
from satchel.text import one_line, visible

_ABOUT_SERVERS = ("mcp-", "choices-un", "code-", "project-", "trust-")
"""The beginnings of codes that explain why a server is missing."""
_NOT_CONNECTED = ("mcp-server-down", "mcp-server-starting", "mcp-login-needed", "code-held")
"""The codes that say why a server has no connection."""

_state = click.option(
    "--state",
    default="",
    metavar="DIR",
    help="The folder of approved tools, if your program uses another than the default.",
)


@click.group("mcp")
def command() -> None:
    """List MCP servers, their tools and skills; log in, call and approve tools.

    Enabled plugins declare servers, and so do the [mcp.NAME] tables of satchel.toml. 'list'
    connects to no server; the other commands connect to the named one. No plugin code is run.
    """


@command.command("list", cls=CatalogCommand)
def list_(console: Console, sources: Sources, as_json: bool) -> None:
    """List the servers without starting or connecting to them."""
    app = sources.open(run_code=False)
    servers = app.declared_mcp_servers
    _say_diagnostics(app, console)
    records = []
    for name, item in servers.items():
        if problem := item.start_problem():
            console.say(diagnostic_line(problem))
        records.append({**server_json(name, item), "held": problem is not None})
    if as_json:
        console.json(records)
        return
    rows = []
    for record in records:
        state = "held" if record["held"] else record["transport"]
        rows.append((record["name"], state, record["where"], record["plugin"] or record["path"]))
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
        console.json([remote_tool_json(entry) for entry in entries])
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
        digests = _show_changes(console, app, name, names)
        if digests:
            question = f"Approve {count(len(digests), 'tool')}?"
            Terminal(console).require_agreement(question, yes=yes)
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


@command.command("login", cls=CatalogCommand)
@click.argument("name", metavar="SERVER|URL")
@click.option("--no-browser", is_flag=True, help="Only print the address to open.")
@click.option(
    "--wait",
    type=click.FloatRange(min=1),
    default=300,
    metavar="SECONDS",
    help="How long to wait for the login; 300 by default.",
)
@_state
def login(
    console: Console,
    *,
    name: str,
    no_browser: bool,
    wait: float,
    state: str,
    sources: Sources,
    as_json: bool,
) -> None:
    """Log in to SERVER with a browser, as the server's authorization server asks.

    The tokens are kept in the keyring of the system if the package keyring is installed, or else
    in a file that only you can read. A running program uses them at once. Name a server that only
    your program declares by its URL.
    """
    name, server = _network_server(name, sources)
    tools = log_in(console, name, server, state_folder(state), browser=not no_browser, seconds=wait)
    if as_json:
        console.json({"server": name, "tools": tools})
    else:
        console.out(one_line(f"logged in to {name}, which has {count(tools, 'tool')}"))


@command.command("logout", cls=CatalogCommand)
@click.argument("name", metavar="SERVER|URL")
@_state
def logout(console: Console, *, name: str, state: str, sources: Sources, as_json: bool) -> None:
    """Remove the login to SERVER, and end it at its authorization server if that is possible."""
    name, server = _network_server(name, sources)
    was_there, is_revoked = log_out(server, state_folder(state))
    if as_json:
        console.json({"server": name, "removed": was_there, "revoked": is_revoked})
    elif was_there:
        ended = "" if is_revoked else "; its authorization server was not informed"
        console.out(one_line(f"logged out of {name}{ended}"))
    else:
        console.say(f"there is no login to {name}")


_BY_URL = "name a server that only your program declares by its URL"


def _network_server(name: str, sources: Sources) -> tuple[str, RemoteServer]:
    """Return the name and the address of a declared server, or of one that a URL names."""
    if name.startswith(("https://", "http://")):
        server = HttpServer(name)
        return server.name, server
    try:
        return name, _declared(name, sources).server
    except SatchelError as problem:
        fix = "; ".join(filter(None, [problem.fix, _BY_URL]))
        raise SatchelError(problem.message, where=problem.where, fix=fix) from None


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
    console: Console, app: "satchel.Satchel", server: str, names: tuple[str, ...]
) -> dict[str, str]:
    """Print how tools differ from their approved version, and return the new digests."""
    drift = app.mcp_drift(server)
    server_names = [
        one if one == INSTRUCTIONS else server_name_of(_tool_of(app, one)) for one in names
    ]
    digests: dict[str, str] = {}
    for name, change in drift.items():
        if server_names and name not in server_names:
            continue
        digests[name] = change.digest
        for item in app.catalog.diagnostics:
            if change.digest in item.fix:
                console.say(one_line(item.message))
        for line in change.change.splitlines():
            console.say(f"  {visible(line)}")
    return digests


def _list(kind: str, entries: Sequence[ToolEntry | SkillEntry], console: Console) -> None:
    table([(entry.name, status_label(entry), entry.description) for entry in entries], console)
    console.say(count(len(entries), kind))


def _connect(name: str, sources: Sources, state: str) -> "satchel.Satchel":
    """Return a `Satchel` of one server alone. Raises `SatchelError` if it is unknown or down."""
    item = _declared(name, sources)
    if item.data:
        make_folder(item.data)
    app = satchel.Satchel(
        settings=satchel.Settings(mcp_servers=False, ask_mcp_clients=True, state_folder=state)
    )
    click.get_current_context().call_on_close(app.close)
    app.register_mcp_server(
        item,
        name=name,
        enable=item.enable,
        disable=item.disable,
        timeout=item.timeout,
        pin=item.pin,
        options=replace(item.options, lazy=False),
    )
    for down in app.catalog.diagnostics:
        if down.code in _NOT_CONNECTED:
            raise SatchelError(down.message, where=str(down.where), fix=down.fix)
    return app


def _declared(name: str, sources: Sources) -> ServerConfig:
    declaring = sources.open(run_code=False)
    item = declaring.declared_mcp_servers.get(name)
    if item is None:
        raise _not_declared(name, declaring, sources)
    return item


def _not_declared(name: str, app: "satchel.Satchel", sources: Sources) -> SatchelError:
    """Return the error for an unknown server, with the likely reason."""
    called = (f"server {name!r}", f"server {name} (")  # the latter by a lock file
    own = [it for it in app.catalog.diagnostics if any(words in it.message for words in called)]
    if not own and (near := near_misses(name, app.declared_mcp_servers)):
        return NotFoundError("MCP server", name, near)
    message = f"there is no MCP server named {name!r}"
    if diagnostics := own or _diagnostics(app):
        first = min(diagnostics, key=lambda item: item.code != "code-held")
        return SatchelError(f"{message}: {first.message}", where=str(first.where), fix=first.fix)
    if sources.project_here is None and project_parts(satchel.Project(".")):
        return SatchelError(message, fix="'satchel trust' shows what this folder has, and asks")
    return SatchelError(message, fix="'satchel mcp list' shows all servers")


def _say_diagnostics(app: "satchel.Satchel", console: Console) -> None:
    for item in _diagnostics(app):
        if not is_said_once(item):  # else it is written already
            console.say(one_line(str(item)))


def _diagnostics(app: "satchel.Satchel") -> list[Diagnostic]:
    """Return the diagnostics of servers, and of the files that declare them."""
    return [
        item
        for item in app.catalog.diagnostics
        if item.code.startswith(_ABOUT_SERVERS) and item.code != "mcp-not-started"
    ]


def _tool_of(app: "satchel.Satchel", name: str) -> ToolEntry:
    """Return a tool by its name in Satchel or by its name at the server."""
    entries = [entry for entry in app.catalog.all_tools if entry.tool and entry.tool.is_remote]
    for entry in entries:
        if name in {entry.name, server_name_of(entry)}:
            return entry
    raise NotFoundError("tool", name, near_misses(name, [entry.name for entry in entries]))
