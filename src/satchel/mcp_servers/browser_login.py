"""Log in to a server with the user's browser."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from html import escape
from secrets import compare_digest
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from satchel.errors import SatchelError
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.connection_errors import first_error, reason
from satchel.mcp_servers.oauth_client import may_carry_tokens
from satchel.mcp_servers.server_addresses import HttpServer, RemoteServer, SseServer
from satchel.mcp_servers.server_connection import connect
from satchel.mcp_servers.token_store import TokenStore
from satchel.settings import Limits
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    from mcp.client.auth import AuthorizationCodeResult


_PATH = "/callback"
_LONGEST = 16 * 1024
"""Bytes of a request that are read at most."""

_PATIENCE = 10.0
"""Seconds that a browser has to send its request."""

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Satchel</title>
<body style="font-family: sans-serif; margin: 3em"><p>{text}</p></body></html>
"""


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


def _read_pasted(read_line: Callable[[], str], redirect: "LoopbackRedirect") -> None:
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


# ---- the redirect of the browser ---------------------------------------------------------------


class LoopbackRedirect:
    """Waits for the browser at one address. Requests with another state are refused."""

    def __init__(self, address: str, name: str) -> None:
        self.address, self._name = address, name
        self.state = ""
        """The state that the login sent to the authorization server."""
        loop = asyncio.get_running_loop()
        self._outcome: asyncio.Future[AuthorizationCodeResult] = loop.create_future()

    @property
    def is_awaited(self) -> bool:
        """Return whether the user was asked, and has not responded."""
        has_responded = self._outcome.done() and not self._outcome.cancelled()
        return bool(self.state) and not has_responded

    async def wait(self) -> "AuthorizationCodeResult":
        """Wait for the redirect. Raises `SatchelError` if the login was refused."""
        return await self._outcome

    def take(self, target: str) -> str:
        """Take the address that the browser was sent to. Return a text for its user, or `""`.

        Without effect, and `""`, if it is not the redirect of this login.
        """
        parts = urlsplit(target)
        if parts.path != urlsplit(self.address).path:
            return ""
        values = {name: value[0] for name, value in parse_qs(parts.query).items()}
        state = values.get("state", "")
        # Anything on this machine, and any page in the browser, can send a request to this port.
        if not self.state or not compare_digest(state.encode(), self.state.encode()):
            return ""
        if "code" in values:
            from mcp.client.auth import AuthorizationCodeResult  # lazy: it loads the SDK

            if not self._outcome.done():
                self._outcome.set_result(
                    AuthorizationCodeResult(code=values["code"], state=state, iss=values.get("iss"))
                )
            return f"Satchel has the login to {self._name}. You can close this page."
        why = shorten(one_line(values.get("error", "no reason given")), 100)
        if not self._outcome.done():
            self._outcome.set_exception(SatchelError(f"refused the login: {why}"))
        return f"The login to {self._name} was refused. You can close this page."

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond to one request of a browser."""
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n")
                method, target, *_ = head.decode("latin-1").split(" ")
                text = self.take(target) if method == "GET" else ""
                status = "200 OK" if text else "400 Bad Request"
                page = _PAGE.format(text=escape(text or "This is not the login that was begun."))
                body = page.encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                    f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\n"
                    f"Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (ValueError, OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            pass  # not a browser
        finally:
            writer.close()


@asynccontextmanager
async def listening_for_redirect(address: str, name: str) -> AsyncIterator[LoopbackRedirect]:
    """Listen at a redirect address, or without one at a free port, until the block ends.

    Raises `SatchelError` if the port is taken.
    """
    parts = urlsplit(address or f"http://127.0.0.1:0{_PATH}")
    redirect = LoopbackRedirect(address, name)
    try:
        server = await asyncio.start_server(
            redirect.respond, parts.hostname, parts.port or 0, limit=_LONGEST
        )
    except OSError as problem:
        raise SatchelError(
            f"cannot listen at the redirect address: {problem.strerror or problem}",
            where=address,
            fix="end the program that uses the port, or configure another redirect",
        ) from None
    port = server.sockets[0].getsockname()[1]
    redirect.address = address or f"http://127.0.0.1:{port}{_PATH}"
    async with server:
        yield redirect
