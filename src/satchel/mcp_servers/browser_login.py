"""Log in to a server with the user's browser."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

from satchel.errors import SatchelError
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.connection_errors import first_error, reason
from satchel.mcp_servers.loopback_redirect import LoopbackRedirect, listening_for_redirect
from satchel.mcp_servers.oauth_client import may_carry_tokens
from satchel.mcp_servers.server_addresses import HttpServer, RemoteServer, SseServer
from satchel.mcp_servers.server_connection import connect
from satchel.mcp_servers.token_store import TokenStore
from satchel.settings import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginDialog:
    """How a login talks to its user."""

    show: Callable[[str], None]
    """Shows the address to open."""
    open: Callable[[str], bool]
    """Opens an address in a browser. Returns whether there is one."""
    read_line: Callable[[], str] | None = None
    """Reads the address that a browser elsewhere was sent to; `None` without a terminal."""


async def log_in(
    name: str,
    server: RemoteServer,
    folder: str,
    dialog: LoginDialog,
    *,
    limits: Limits,
    seconds: float,
) -> int:
    """Log in to a server, save the login, and return the number of its tools.

    The user has `seconds`. Raises `SatchelError`.
    """
    server = require_login(name, server)
    # Lazy: it loads the SDK.
    from satchel.mcp_servers.login_auth import BrowserLoginAuth

    redirect_address = server.oauth.redirect if server.oauth else ""
    async with listening_for_redirect(redirect_address, name) as redirect:

        async def open_address(address: str) -> None:
            redirect.state = parse_qs(urlsplit(address).query)["state"][0]
            dialog.show(address)
            if not dialog.open(address) and dialog.read_line is not None:
                _read_pasted(dialog.read_line, redirect)

        patient = replace(limits, mcp_connect=seconds)
        try:
            auth = BrowserLoginAuth(
                server,
                TokenStore(folder, server),
                redirect=redirect.address,
                open_address=open_address,
                wait_for_redirect=redirect.wait,
            )
            async with connect(name, server, patient, auth=auth) as connection:
                return len((await connection.tools()).tools)
        except BaseException as problem:
            if isinstance(problem, KeyboardInterrupt | asyncio.CancelledError):
                raise
            error = first_error(problem, SatchelError)
            why, fix = (error.message, error.fix) if error else (reason(problem), "")
            if redirect.is_awaited:
                why, fix = f"has no login: no login within {seconds:g} s", ""
            raise SatchelError(f"MCP server {name!r} {why}", where=str(server), fix=fix) from None


def require_login(name: str, server: RemoteServer) -> HttpServer | SseServer:
    """Return the server if a person can log in to it. Raises `SatchelError`."""
    if not isinstance(server, HttpServer | SseServer):
        raise SatchelError(f"MCP server {name!r} is a program on this machine; it needs no login")
    if server.has_credentials:
        raise SatchelError(
            f"MCP server {name!r} has credentials in its URL or headers, which are used in place "
            "of a login",
            fix="remove them to log in",
        )
    if server.oauth is not None and server.oauth.grant == "client-credentials":
        raise SatchelError(f"MCP server {name!r} uses client credentials; there is no login for it")
    if not may_carry_tokens(server.url):
        raise SatchelError(
            f"MCP server {name!r} is not reached over https, so its tokens would be readable",
            fix="use its https:// URL",
        )
    return server


def _read_pasted(read_line: Callable[[], str], redirect: LoopbackRedirect) -> None:
    """Take the address that a user pastes: the browser may be on another machine."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        with suppress(Exception):  # the input or the loop is closed
            while line := read_line():
                loop.call_soon_threadsafe(redirect.take, line.strip())

    # A daemon: reading cannot be interrupted, and must not keep the process.
    threading.Thread(target=read, name="satchel-login", daemon=True).start()


def open_in_browser(address: str) -> bool:
    """Open an address in the user's browser. Return whether there is one."""
    import webbrowser  # lazy: few programs log in

    is_unix = sys.platform not in {"win32", "darwin"}
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if is_unix and not any(os.environ.get(name) for name in screens):
        return False  # a browser in the terminal would take it over
    try:
        return webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False
