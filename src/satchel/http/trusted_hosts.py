"""Check the host and the origin of every HTTP request."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from satchel.http.listen_address import HTTP_PORT, Address, is_number, origin_of

_HOST = re.compile(
    r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?", re.ASCII | re.IGNORECASE
)
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


class TrustedHosts:
    """Accept requests with a trusted Host header and, from a browser, a trusted Origin.

    Otherwise a web page could reach a server on this machine through a host name of its own (DNS
    rebinding). `hosts` are further names of this server, `origins` web pages that may use it. With
    `port`, a Host header needs that port; a proxy or a tunnel may use another one.
    """

    def __init__(
        self,
        app: ASGIApp,
        address: Address,
        *,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        port: int | None = None,
    ) -> None:
        self._app, self._port = app, port
        added = frozenset(host.lower() for host in hosts)
        self._hosts = _HERE | {address.host.lower()} | added
        # DNS rebinding needs a host name, so an IP address is safe.
        self._lets_numbers = address.is_every
        # A proxy uses the default port, and need not forward the original Host header.
        shown = [f"[{host}]" if ":" in host else host for host in added]
        of_hosts = (f"{scheme}://{host}" for scheme in ("http", "https") for host in shown)
        self._origins = frozenset(map(origin_of, (*origins, *of_hosts)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] != "http":
            return
        app: ASGIApp = self._refusal(Headers(scope=scope)) or self._app
        await app(scope, receive, send)

    def _refusal(self, headers: Headers) -> Response | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if len(headers.getlist("host")) > 1:
            return PlainTextResponse("More than one Host header", 400)
        name, port = _parts_of(host)
        if self._port not in {None, port}:
            return PlainTextResponse("Invalid port in the Host header", 421)
        if name not in self._hosts and not (self._lets_numbers and is_number(name)):
            return PlainTextResponse("Invalid Host header", 421)
        if origin is not None and not self._is_known(origin, host):
            return PlainTextResponse("Invalid Origin header", 403)
        return None

    def _is_known(self, origin: str, host: str) -> bool:
        try:
            page = origin_of(origin)
            # With a port, nothing is between, so nothing adds TLS.
            scheme = urlsplit(page).scheme if self._port is None else "http"
            return page in self._origins or page == origin_of(f"{scheme}://{host}")
        except ValueError:
            return False


def _parts_of(host: str) -> tuple[str, int]:
    """Return name and port of a Host header; `""` for all but a name with a port."""
    match = _HOST.fullmatch(host)
    if match is None or int(match["port"] or 0) >= 1 << 16:
        return "", 0
    name = match["name"].removeprefix("[").removesuffix("]").lower()
    return name, int(match["port"] or HTTP_PORT)
