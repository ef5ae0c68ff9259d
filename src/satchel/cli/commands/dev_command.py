"""`satchel dev`: the catalog in a browser while you build skills and tools."""

import sys
from urllib.parse import quote

import click

from satchel.cli.base_command import Sources, SourcesCommand
from satchel.cli.console import Console
from satchel.cli.rendering import summary
from satchel.cli.signal_handling import run_until_stopped
from satchel.errors import SatchelError, install_hint
from satchel.http.listen_address import Address, is_number

DEFAULT_PORT = 7317
_SHORTEST_TOKEN = 16
_EDITORS = {
    "vscode": "vscode://file{path}:{line}:{column}",
    "cursor": "cursor://file{path}:{line}:{column}",
    "windsurf": "windsurf://file{path}:{line}:{column}",
    "zed": "zed://file{path}:{line}:{column}",
    "idea": "idea://open?file={path}&line={line}&column={column}",
    "sublime": "subl://open?url=file://{path}&line={line}&column={column}",
}


def _check_editor(_context: click.Context, _option: click.Parameter, value: str) -> str:
    address = _EDITORS.get(value, value)
    if "{path}" not in address or ":" not in address.partition("{")[0]:
        raise click.BadParameter(f"give {', '.join(_EDITORS)}, or an address with {{path}}")
    return address


@click.command("dev", cls=SourcesCommand)
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Listen at this address.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, metavar="N",
    help=f"Listen at this port; {DEFAULT_PORT} by default, 0 for any.",
)  # fmt: skip
@click.option("--token", metavar="TOKEN", help="The token of the address; needed with --host.")
@click.option("--read-only", is_flag=True, help="Call no tool and change nothing from the page.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option(
    "--editor", default="vscode", callback=_check_editor, metavar="NAME",
    help=f"The editor of links to files: {', '.join(_EDITORS)}, or an address with {{path}}.",
)  # fmt: skip
def command(
    console: Console,
    *,
    host: str,
    port: int,
    token: str | None,
    read_only: bool,
    no_browser: bool,
    editor: str,
    sources: Sources,
) -> None:
    """Show skills, tools, prompt and problems in a browser, live, and call tools by hand.

    Enabled plugins are imported, as in an application. Who has the printed address can call tools,
    and that runs code.
    """
    address = Address(host, port)
    if not (host == "localhost" or is_number(host)):
        raise click.BadParameter("give an IP address or localhost", param_hint="--host")
    if token is not None and len(token) < _SHORTEST_TOKEN:
        message = f"a token needs {_SHORTEST_TOKEN} characters; openssl rand -hex 32 makes one"
        raise click.BadParameter(message, param_hint="--token")
    if not address.is_loopback:
        if token is None:
            message = f"{host} is reachable from other machines, so --token is required"
            raise click.UsageError(message)
        console.warn(f"{host} is reachable from other machines: who has the token can run tools")
    try:  # lazy: only this command needs a web server
        from satchel.http.quiet_server import listen
        from satchel.web.dev_server import kept_token, serve_dev
        from satchel.web.workbench import DevOptions, Workbench
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] == "satchel":
            raise
        message = f"satchel dev needs {problem.name}"
        raise SatchelError(message, fix=install_hint("web")) from problem
    listening, address = listen(address)
    with listening:
        token = token or kept_token(port)
        # Why a tool failed is for its developer, not for the network.
        errors = "message" if address.is_loopback else "summary"
        app = sources.open(
            run_code=True, servers=True, wait=False, is_unhurried=True, errors=errors
        )
        summary(app.catalog, console)
        workbench = Workbench(
            app,
            DevOptions(
                read_only=read_only,
                editor=editor,
                source_options=tuple(sources.as_options()),
                sources={
                    "skills": [*sources.skills],
                    "plugins": [*sources.plugins],
                    "entry_points": [*sources.enabled_entry_points],
                    "project": "." if sources.project else None,
                },
            ),
        )
        url = f"{address.root_url}/?token={quote(token)}"

        def ready() -> None:
            console.out(url)
            console.say("press Ctrl-C to stop")
            if not no_browser and sys.stdout.isatty():
                click.launch(url)

        run_until_stopped(serve_dev(workbench, listening, address, token, ready))
