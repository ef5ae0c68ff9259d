"""Receive the redirect of a browser after a login, on a port of this machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from secrets import compare_digest
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from satchel.errors import SatchelError
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
    waiting: list[LoopbackRedirect] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await waiting[0].respond(reader, writer)

    try:
        server = await asyncio.start_server(
            respond, parts.hostname, parts.port or 0, limit=_LONGEST
        )
    except OSError as problem:
        raise SatchelError(
            f"cannot listen at the redirect address: {problem.strerror or problem}",
            where=address,
            fix="end the program that uses the port, or configure another redirect",
        ) from None
    port = server.sockets[0].getsockname()[1]
    waiting.append(LoopbackRedirect(address or f"http://127.0.0.1:{port}{_PATH}", name))
    async with server:
        yield waiting[0]
