"""`satchel serve`: what is loaded, as an MCP server, until its client leaves or Ctrl-C."""

import asyncio
import os
import re
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.base_command import Sources, SourcesCommand
from satchel.cli.console import Console
from satchel.cli.mcp_client_config import (
    CLIENTS,
    TOKEN_VARIABLE,
    McpClient,
    absolute,
    mcp_client,
    to_connect,
    to_start,
)
from satchel.cli.rendering import count, summary
from satchel.errors import SatchelError
from satchel.mcp.bearer_tokens import BearerTokens
from satchel.mcp.listen_address import Address, is_number, origin_of
from satchel.mcp.sdk_check import require_sdk
from satchel.mcp.served_selection import ServedSelection
from satchel.mcp_servers.server_addresses import CARRIED
from satchel.names import SESSION_TOOLS, fits

if TYPE_CHECKING:
    import satchel

_EVERY = "all"
_NAME = "satchel"
"""What clients call the server."""
_RATE, _FASTEST = 100, 1_000_000


def _number(_context: click.Context, _option: click.Parameter, given: float | None) -> float | None:
    if given is not None and not given >= 0:  # no bound stops NaN
        raise click.BadParameter("it is no number")
    return given


def _names(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    if all(is_number(name) or re.fullmatch(r"[\w.-]+", name) for name in given):
        return given
    raise click.BadParameter("write a name alone, such as tools.example.com")


def _origins(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    try:
        return tuple(map(origin_of, given))
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from problem


_OF_HTTP = {
    "token_file": "--token-file",
    "hosts": "--allow-host",
    "origins": "--allow-origin",
    "rate": "--rate",
}


@click.command("serve", cls=SourcesCommand)
@click.option(
    "--group", "groups", multiple=True, metavar="NAME|all", help="Activate a group. Repeatable."
)
@click.option(
    "--enable-tool",
    "enable",
    multiple=True,
    metavar="PATTERN",
    help="Serve only tools of such names. Repeatable.",
)
@click.option(
    "--disable-tool",
    "disable",
    multiple=True,
    metavar="PATTERN",
    help="Serve no tools of such names. Repeatable.",
)
@click.option("--no-skill-tools", is_flag=True, help="Serve no load_skill and read_skill_file.")
@click.option("--http", metavar="HOST:PORT", help="Serve over streamable HTTP, at /mcp.")
@click.option(
    "--token-file",
    metavar="FILE",
    help="Let in who bears a token of this file; needed unless HOST is a loopback address.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    callback=_names,
    help="A name of the server. Repeatable.",
)
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="URL",
    callback=_origins,
    help="A web page that may connect from a browser. Repeatable.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, max=_FASTEST),
    callback=_number,
    metavar="N",
    help=f"Requests a second by one token or address; {_RATE} by default, 0 for no limit.",
)
@click.option(
    "--print-config",
    "client",
    type=click.Choice(sorted(CLIENTS)),
    help="Print what this client wants in its configuration, and exit.",
)
def command(
    console: Console,
    *,
    groups: tuple[str, ...],
    enable: tuple[str, ...],
    disable: tuple[str, ...],
    no_skill_tools: bool,
    http: str | None,
    client: str | None,
    sources: Sources,
    **web: Any,
) -> None:
    """Serve what is loaded over MCP: its tools, its skills, and prompts.

    One client is served on stdin and stdout, or with --http many. Edits on disk are told while it
    runs. What carried servers offer is served on.
    """
    choice = ServedSelection(
        groups=frozenset(groups) - {_EVERY},
        every_group=_EVERY in groups,
        enable=enable,
        disable=disable,
        skill_tools=not no_skill_tools,
    )
    unused = [_OF_HTTP[name] for name in _OF_HTTP if web[name] not in {None, ()}]
    if http is None and unused:
        raise click.UsageError(f"{', '.join(unused)}: only with --http")
    if client is not None:
        _print_config(mcp_client(client), http, choice, sources, console, **web)
        return
    if http is None:
        _serve_stdio(choice, sources, console)
    else:
        _serve_http(http, choice, sources, console, **web)


def _print_config(
    client: McpClient,
    http: str | None,
    choice: ServedSelection,
    sources: Sources,
    console: Console,
    **web: Any,
) -> None:
    """Print what starts this very server, or connects to it, and say on stderr where it goes."""
    if http is not None:
        address, hosts, token_file = (
            _address(http, web["token_file"]),
            web["hosts"],
            web["token_file"],
        )
        if token_file:
            BearerTokens(token_file)
        url = address.url_by(hosts[0]) if hosts else address.url
        console.out(to_connect(client, _NAME, url, with_token=bool(token_file)))
        if token_file and client.is_toml:
            console.say(f"it reads the token from the variable {TOKEN_VARIABLE}")
        if address.is_every and not hosts:
            console.say("from elsewhere it has another name, which --allow-host tells")
        console.say(f"put it into {client.remote_file or client.file}")
    else:
        groups = (*sorted(choice.groups), *([_EVERY] if choice.every_group else []))
        options = [
            *(("--skills", path) for path in sources.skills),
            *(("--plugins", path) for path in sources.plugins),
            *(("--entry-points", name) for name in sources.entry_points),
            *(("--group", name) for name in groups),
            *(("--enable-tool", pattern) for pattern in choice.enable),
            *(("--disable-tool", pattern) for pattern in choice.disable),
        ]
        switches = {
            "--project": sources.project,
            "--claude": sources.claude,
            "--no-skill-tools": not choice.skill_tools,
        }
        given = absolute(options, ("--skills", "--plugins"))
        given += [name for name, is_on in switches.items() if is_on]
        console.out(to_start(client, _NAME, ["serve", *given]))
        if sources.project:
            console.say("--project reads the folder in which the client starts it")
        console.say(f"put it into {client.file}")


def _serve_stdio(choice: ServedSelection, sources: Sources, console: Console) -> None:
    require_sdk()
    from satchel.mcp.mcp_server import SatchelServer
    from satchel.mcp.stdio_server import claim_stdin, serve_stdio

    # Before plugins are imported, which might read what the client says.
    stdin = claim_stdin()
    app = sources.open(run_code=True, servers=CARRIED not in os.environ)
    _tell(app, choice, console)
    stdout = console.stream.buffer  # the protocol is UTF-8, whatever the locale says
    _run(app, lambda: serve_stdio(SatchelServer(app, choice, single=True), stdin, stdout))


def _serve_http(
    where: str,
    choice: ServedSelection,
    sources: Sources,
    console: Console,
    *,
    token_file: str | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    rate: float | None,
) -> None:
    address = _address(where, token_file)
    tokens = BearerTokens(token_file) if token_file else None
    require_sdk()
    from satchel.mcp.http_server import listen, serve_http

    try:
        listening = listen(address)
    except OSError as problem:
        raise SatchelError(f"cannot listen at {where}: {problem.strerror}") from problem
    with listening:
        address = replace(address, port=listening.getsockname()[1])
        app = sources.open(run_code=True, servers=CARRIED not in os.environ)
        _tell(app, choice, console)

        def serve() -> Coroutine[Any, Any, None]:
            return serve_http(
                app,
                choice,
                listening,
                address,
                tokens=tokens,
                hosts=hosts,
                origins=origins,
                per_second=_RATE if rate is None else rate,
                ready=lambda: console.say(f"at {address.url}, Ctrl-C ends"),
            )

        _run(app, serve)


def _address(where: str, token_file: str | None) -> Address:
    """Return where to listen, if that is safe."""
    try:
        address = Address.of(where)
    except ValueError as problem:
        raise click.BadParameter(str(problem), param_hint="--http") from problem
    if not (address.is_loopback or token_file):
        told = f"{address.host} can be reached from elsewhere, so --token-file is needed"
        raise click.UsageError(told)
    return address


def _run(app: "satchel.Satchel", serve: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Serve and watch until the end, which a signal may bring."""

    async def watched() -> None:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError, RuntimeError, ValueError):  # on Windows
                loop.add_signal_handler(number, task.cancel)
        async with app.watch():
            await serve()

    with suppress(asyncio.CancelledError, KeyboardInterrupt):
        asyncio.run(watched())


def _tell(app: "satchel.Satchel", choice: ServedSelection, console: Console) -> None:
    """Say on stderr what is served, and which options fit nothing."""
    catalog = app.catalog
    for name in sorted(choice.groups - catalog.groups.keys()):
        console.say(f"there is no group {name!r} yet")
    for name in sorted(choice.groups & catalog.groups.keys()):
        if missing := catalog.groups[name].missing:
            console.say(f"group {name!r} is unavailable: it requires {', '.join(missing)}")
    names = (*SESSION_TOOLS, *(tool.name for tool in catalog.tools.values()))
    for pattern in (*choice.enable, *choice.disable):
        if not any(fits(name, (pattern,)) for name in names):
            console.say(f"no tool fits {pattern!r} yet")
    active = choice.active_in(catalog)
    tools = [
        tool
        for tool in catalog.tools.values()
        if choice.lets(tool.name) and not active.isdisjoint(tool.groups)
    ]
    told = f"{count(len(tools), 'tool')}, {count(len(catalog.skills), 'skill')}"
    console.say(f"serving {told} of {', '.join(sorted(active))}")
    summary(catalog, console)
    if CARRIED in os.environ and app.declared_mcp_servers:
        console.say("it is carried by another satchel, so it carries no servers itself")
