"""`satchel serve`: serve tools and skills over MCP until the client disconnects or Ctrl-C."""

import gc
import os
import re
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from satchel.claimed_streams import claim_stdin
from satchel.cli.base_command import (
    Sources,
    SourcesCommand,
    as_arguments,
    is_written,
    repeatable,
)
from satchel.cli.console import Console
from satchel.cli.mcp_client_config import (
    CLIENTS,
    TOKEN_VARIABLE,
    McpClient,
    to_connect,
    to_start,
)
from satchel.cli.new_problems import LateProblems
from satchel.cli.rendering import summary
from satchel.cli.sdk_log import SdkLog
from satchel.cli.served_report import served_report
from satchel.cli.signal_handling import run_until_stopped
from satchel.errors import SatchelError
from satchel.garbage_collection import paused_collector
from satchel.http.listen_address import Address, is_number, origin_of
from satchel.lazy_dataclass import dataclass
from satchel.mcp.bearer_tokens import BearerTokens
from satchel.mcp.sdk_check import require_sdk
from satchel.mcp.served_selection import ServedSelection
from satchel.mcp_servers.server_addresses import is_nested
from satchel.text import one_line

if TYPE_CHECKING:
    import satchel

_ALL = "all"
_NAME = "satchel"
"""The name of the server in the configuration of clients."""
_PATIENCE = 2.0
"""Seconds to wait at the start for slow plugins and servers, which are served later then."""
_SERVERS = "mcp"
"""The source of MCP servers in the catalog."""
_DEFAULT_RATE, _MAX_RATE = 100, 1_000_000

Texts = tuple[str, ...]


def _check_hosts(_context: click.Context, _option: click.Parameter, hosts: Texts) -> Texts:
    if all(is_number(host) or re.fullmatch(r"[\w.-]+", host) for host in hosts):
        return hosts
    raise click.BadParameter("give only a name, such as tools.example.com")


def _check_origins(_context: click.Context, _option: click.Parameter, urls: Texts) -> Texts:
    try:
        return tuple(map(origin_of, urls))
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from problem


def _enter(_context: click.Context, _option: click.Parameter, folder: str | None) -> str | None:
    if folder is None:
        return None
    try:
        os.chdir(folder)
    except OSError as problem:
        raise click.BadParameter(one_line(f"{problem.strerror}: {folder}")) from problem
    return os.getcwd()


_HTTP_OPTIONS = {
    "token_file": "--token-file",
    "hosts": "--allow-host",
    "origins": "--allow-origin",
    "rate": "--rate",
}


@click.command("serve", cls=SourcesCommand)
@repeatable("--group", "groups", "NAME|all", "Activate a group.")
@repeatable("--enable-tool", "enable", "PATTERN", "Serve only tools that match.")
@repeatable("--disable-tool", "disable", "PATTERN", "Do not serve tools that match.")
@click.option(
    "--directory", metavar="DIR", callback=_enter, help="Serve as if started in this folder.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Fail if something that you named cannot be served.")
@click.option(
    "--plugin-import",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Processor time to import a plugin; 10 by default.",
)
@click.option("--verbose", is_flag=True, help="Also write the log of the MCP SDK to stderr.")
@click.option("--no-skill-tools", is_flag=True, help="Do not serve load_skill, read_skill_file.")
@click.option("--http", metavar="HOST:PORT", help="Serve over streamable HTTP, at /mcp.")
@click.option(
    "--token-file",
    metavar="FILE",
    help="Require a token from this file; needed unless HOST is a loopback address.",
)
@repeatable("--allow-host", "hosts", "NAME", "A host name of the server.", callback=_check_hosts)
@repeatable(
    "--allow-origin", "origins", "URL", "The origin of a web page that may connect.",
    callback=_check_origins,
)  # fmt: skip
@click.option(
    "--rate",
    type=click.FloatRange(min=0, max=_MAX_RATE),
    metavar="N",
    help=f"Requests per second and token or address; {_DEFAULT_RATE} by default, 0 for no limit.",
)
@click.option(
    "--print-config", "client", type=click.Choice(sorted(CLIENTS)),
    help="Print the configuration for this client, and exit.",
)  # fmt: skip
def command(
    console: Console,
    *,
    groups: Texts,
    enable: Texts,
    disable: Texts,
    directory: str | None,
    strict: bool,
    plugin_import: float | None,
    verbose: bool,
    no_skill_tools: bool,
    http: str | None,
    client: str | None,
    sources: Sources,
    **web: Any,
) -> None:
    """Serve tools, skills and prompts over MCP.

    Serves one client on stdin and stdout, or many with --http. Clients are notified when files
    change. Tools and skills of connected MCP servers are served too. Clients that can switch
    groups see all groups. For others, --group names the groups; without it, those of declared
    servers and of plugins that you named are active. What is not served is written to stderr.
    """
    selection = ServedSelection(
        groups=frozenset(groups) - {_ALL},
        every_group=_ALL in groups,
        named=frozenset() if groups else frozenset((_SERVERS, *sources.named_plugins)),
        enable=enable,
        disable=disable,
        skill_tools=not no_skill_tools,
    )
    unused = [option for name, option in _HTTP_OPTIONS.items() if web[name] not in {None, ()}]
    if http is None and unused:
        raise click.UsageError(f"{', '.join(unused)}: only with --http")
    if client is not None and (sources.trust or sources.variables):
        # Whatever folder the client starts in would be trusted, each time.
        message = "a configuration cannot have --trust or --variable"
        fix = "run 'satchel trust' in the folder, and print the configuration without them"
        raise click.UsageError(f"{message}: {fix}")
    start = _Start(
        sources=sources,
        selection=selection,
        console=console,
        is_strict=strict,
        import_limit=plugin_import,
        verbose=verbose,
    )
    if client is not None and http is not None:
        _print_http_config(
            McpClient(**CLIENTS[client]), http, web["hosts"], web["token_file"], console
        )
    elif client is not None:
        _print_stdio_config(McpClient(**CLIENTS[client]), sources, directory, console)
    elif http is not None:
        _serve_http(http, start, **web)
    else:
        _serve_stdio(start)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """What is served, and how it is started."""

    sources: Sources
    selection: ServedSelection
    console: Console
    is_strict: bool
    import_limit: float | None
    verbose: bool

    def open(self) -> "tuple[satchel.Satchel, LateProblems]":
        """Load everything and print what is served.

        Return the Satchel, and the printer of later problems.

        Raises `SatchelError` if not all is served.
        """
        log = SdkLog(verbose=self.verbose)
        # A client waits for its first answer meanwhile.
        patience = None if self.is_strict else _PATIENCE
        limits = {} if self.import_limit is None else {"plugin_import": self.import_limit}
        app = self.sources.open(
            run_code=True,
            servers=not is_nested(),
            patience=patience,
            plugins_too=True,
            limits=limits,
        )
        log.know(app)
        catalog = app.catalog
        report = served_report(catalog, app.declared_mcp_servers, self.selection)
        # The first one is in the error of `--strict`.
        missing = report.missing[1:] if self.is_strict else report.missing
        for line in (*missing, *report.others, report.served):
            if not is_written(line):
                self.console.say(line)
        summary(catalog, self.console, names_missing=False)
        if self.is_strict and report.missing:
            first, number = report.missing[0], len(report.missing)
            repeated = f" ({number - 1} more above)" if number > 1 else ""
            raise SatchelError(f"not everything that you named is served: {first}{repeated}")
        return app, LateProblems(app, catalog, self.console, self.selection)


def _print_http_config(
    client: McpClient, where: str, hosts: Texts, token_file: str | None, console: Console
) -> None:
    """Print the configuration to connect to this server; print its file's name to stderr."""
    address = _parse_address(where, token_file)
    if token_file:
        BearerTokens(token_file)
    url = address.url_by(hosts[0]) if hosts else address.url
    console.out(to_connect(client, _NAME, url, with_token=bool(token_file)))
    if token_file and client.is_toml:
        console.say(f"the client reads the token from the environment variable {TOKEN_VARIABLE}")
    if address.is_every and not hosts:
        console.say("for clients on other machines, give the server's name with --allow-host")
    console.say(f"add this to {client.remote_file or client.file}")


def _print_stdio_config(
    client: McpClient, sources: Sources, directory: str | None, console: Console
) -> None:
    """Print the configuration to start this server; print its file's name to stderr."""
    context = click.get_current_context()
    # The client runs it in another folder.
    folders = {
        "skills": tuple(map(os.path.abspath, sources.skills)),
        "plugins": tuple(map(os.path.abspath, sources.plugins)),
    }
    if (sources.locked or sources.frozen) and not sources.project:
        directory = directory or os.getcwd()  # which has the lock file
    values = {**context.params, "client": None, **sources.values(), **folders}
    values["directory"] = directory
    arguments = as_arguments(context.command.params, values)
    console.out(to_start(client, _NAME, ["serve", *arguments]))
    if sources.project and directory is None:
        text = "--project reads the folder in which the client starts the server"
        console.say(f"{text}; --directory names one")
    console.say(f"add this to {client.file}")


def _serve_stdio(start: _Start) -> None:
    with paused_collector():
        require_sdk()
        from satchel.mcp.mcp_server import SatchelServer, StartWait
        from satchel.mcp.stdio_server import serve_stdio

        gc.freeze()  # modules stay, so no later collection needs to look at them

    # Claim stdin before plugins are imported: plugin code could read the client's messages.
    stdin = claim_stdin()
    app, problems = start.open()
    stdout = start.console.stream.buffer  # the protocol is UTF-8 in every locale
    wait = StartWait.from_now()
    server = partial(SatchelServer, app, start.selection, single=True, start_wait=wait)
    _run(app, lambda: serve_stdio(server().server, stdin, stdout), problems)


def _serve_http(
    where: str,
    start: _Start,
    *,
    token_file: str | None,
    hosts: Texts,
    origins: Texts,
    rate: float | None,
) -> None:
    address = _parse_address(where, token_file)
    tokens = BearerTokens(token_file) if token_file else None
    with paused_collector():
        require_sdk()
        from satchel.http.quiet_server import listen
        from satchel.mcp.http_server import serve_http

        gc.freeze()  # modules stay, so no later collection needs to look at them

    listening, address = listen(address)
    with listening:
        app, problems = start.open()
        text = f"serving at {address.url}, press Ctrl-C to stop"
        serve = partial(
            serve_http,
            app,
            start.selection,
            listening,
            address,
            tokens=tokens,
            hosts=hosts,
            origins=origins,
            per_second=_DEFAULT_RATE if rate is None else rate,
            ready=lambda: start.console.say(text),
        )
        _run(app, serve, problems)


def _parse_address(where: str, token_file: str | None) -> Address:
    """Return the address. Raises `click.UsageError` for a public one without a token file."""
    try:
        address = Address.of(where)
    except ValueError as problem:
        raise click.BadParameter(str(problem), param_hint="--http") from problem
    if not (address.is_loopback or token_file):
        message = f"{address.host} is reachable from other machines, so --token-file is required"
        raise click.UsageError(message)
    return address


def _run(
    app: "satchel.Satchel", serve: Callable[[], Coroutine[Any, Any, None]], problems: LateProblems
) -> None:
    """Serve and watch until the client disconnects, or until SIGINT or SIGTERM."""

    async def serve_and_watch() -> None:
        async with app.watch(), problems.writing():
            await serve()

    run_until_stopped(serve_and_watch())
