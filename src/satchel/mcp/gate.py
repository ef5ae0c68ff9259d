"""What every HTTP request passes before anything else looks at it.

The names of Host and Origin are always checked: without that, a page in the user's browser could
speak to a server on this machine by a name of its own (DNS rebinding).
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from satchel.mcp.address import Address, is_number
from satchel.mcp.tokens import Tokens
from satchel.runtime.turns import Turns

CREDENTIAL = "satchel.credential"
"""Where a request's scope says who it is from."""

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


class Gate:
    """Lets through what comes by a known name, from a known page, not too often, from whom it may.

    `hosts` are further names of this server, `origins` pages that may speak to it from a browser.
    """

    def __init__(
        self,
        app: ASGIApp,
        address: Address,
        *,
        tokens: Tokens | None = None,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        per_second: float = 0,
    ) -> None:
        self._app, self._tokens = app, tokens
        self._hosts = _HERE | {address.host.lower()} | {host.lower() for host in hosts}
        # By its number no page can call a server: only names can be bent.
        self._lets_numbers = address.is_every
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        self._turns = Turns(per_second, max(1, round(per_second * 2))) if per_second else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] != "http":
            return
        app: ASGIApp = self._refusal(scope) or self._app
        await app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self._is_ours(_name_of(headers.get("host", ""))):
            return PlainTextResponse("Invalid Host header", 421)
        if not self._is_known_page(headers.get("origin")):
            return PlainTextResponse("Invalid Origin header", 403)
        client = (scope.get("client") or ("",))[0]
        if self._turns is not None and not self._turns.take(client):
            return PlainTextResponse("Too many requests", 429, {"Retry-After": "1"})
        if self._tokens is None:
            return None
        kind, _, token = headers.get("authorization", "").partition(" ")
        bearer = self._tokens.bearer(token.strip()) if kind.lower() == "bearer" else None
        if bearer is None:
            told = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            return PlainTextResponse("A bearer token is required", 401, told)
        scope[CREDENTIAL] = bearer
        # So the SDK lets nobody else use the session that this one opens.
        name = bearer.digest.hex()
        scope["user"] = AuthenticatedUser(AccessToken(token=name, client_id=name, scopes=[]))
        return None

    def _is_ours(self, name: str) -> bool:
        return name in self._hosts or (self._lets_numbers and is_number(name))

    def _is_known_page(self, origin: str | None) -> bool:
        """Tell whether there is no page, or one that this server's own names served."""
        if origin is None or origin.lower() in self._origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in {"http", "https"} and self._is_ours(parts.hostname or "")


def _name_of(host: str) -> str:
    """Return the name in a Host header; `""` for none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
