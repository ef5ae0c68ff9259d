"""Who may open the pages of `satchel dev`, and what these pages may load."""

import hmac
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from satchel.http.listen_address import Address
from satchel.http.trusted_hosts import TrustedHosts

CSRF_HEADER = "x-csrf-token"
LARGEST_BODY = 8 * 1024 * 1024
"""Bytes of a request; a page sends a SKILL.md, arguments or a recording."""

_TOKEN = "token"  # noqa: S105 - the name of a parameter
_READING = ("GET", "HEAD")
_NO_TOKEN = "Open the address that 'satchel dev' printed: it has the token that this page needs.\n"  # noqa: S105
_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class PageKeys:
    """The token of a server, and what is derived from it, so that a restart changes nothing."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token
        # Browsers send the cookies of one host to all its ports.
        self.cookie_name = f"satchel-dev-{port}"
        self.cookie, self.csrf = self._derived("cookie"), self._derived("csrf")

    def is_token(self, text: str) -> bool:
        """Return whether a text is the token."""
        return _is_same(text, self._token)

    def is_cookie(self, header: str) -> bool:
        """Return whether a Cookie header has the cookie that the token was exchanged for."""
        return _is_same(cookie_parser(header).get(self.cookie_name, ""), self.cookie)

    def is_csrf(self, text: str) -> bool:
        """Return whether a text is the token of the forms."""
        return _is_same(text, self.csrf)

    def _derived(self, purpose: str) -> str:
        key = self._token.encode("utf-8", "surrogatepass")
        return hmac.digest(key, purpose.encode(), "sha256").hex()


def _is_same(text: str, secret: str) -> bool:
    """Compare without a hint by the time that it takes."""
    one, other = (item.encode("utf-8", "surrogatepass") for item in (text, secret))
    return hmac.compare_digest(one, other)


def secured(app: ASGIApp, keys: PageKeys, address: Address, *, read_only: bool = False) -> ASGIApp:
    """Return the application behind all checks; every response limits what the page may load."""
    guard = PageGuard(app, keys, read_only=read_only)
    # Nothing between this machine's browser and its loopback address changes the port.
    guarded = TrustedHosts(guard, address, port=address.port if address.is_loopback else None)
    return SecurityHeaders(guarded)


class SecurityHeaders:
    """Adds the headers that keep scripts, frames and sniffing out of every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers)


class PageGuard:
    """Requires the cookie, and for whatever acts also the CSRF token.

    The token in the address becomes the cookie, and leaves the address.
    """

    def __init__(self, app: ASGIApp, keys: PageKeys, *, read_only: bool = False) -> None:
        self._app, self._keys, self._is_read_only = app, keys, read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        app: ASGIApp = self._answer(scope) or self._app
        await app(scope, receive, send)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the answer that replaces the page, or `None` if the request may pass."""
        headers = Headers(scope=scope)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == _TOKEN]
        if tokens and scope["method"] in _READING and self._keys.is_token(tokens[-1]):
            return self._exchange(scope["path"], [item for item in query if item[0] != _TOKEN])
        if not self._keys.is_cookie(headers.get("cookie", "")):
            return PlainTextResponse(_NO_TOKEN, 401)
        return None if scope["method"] in _READING else self._refusal(scope["method"], headers)

    def _exchange(self, path: str, query: list[tuple[str, str]]) -> Response:
        # One slash: a browser takes `//name` for another host.
        target = "/" + path.lstrip("/") + (f"?{urlencode(query)}" if query else "")
        response = RedirectResponse(target, 303)
        response.set_cookie(
            self._keys.cookie_name, self._keys.cookie, httponly=True, samesite="strict", path="/"
        )
        return response

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        if method != "POST":
            return PlainTextResponse("Only GET and POST\n", 405)
        if not self._keys.is_csrf(headers.get(CSRF_HEADER, "")):
            return PlainTextResponse("The CSRF token is missing or wrong; reload the page\n", 403)
        if self._is_read_only:
            return PlainTextResponse("satchel dev runs with --read-only\n", 403)
        length = headers.get("content-length", "")
        if not length.isdecimal():
            return PlainTextResponse("The length of the request is missing\n", 411)
        if int(length) > LARGEST_BODY:
            return PlainTextResponse(f"At most {LARGEST_BODY:,} bytes\n", 413)
        return None
