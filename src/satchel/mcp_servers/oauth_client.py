"""Describe as which OAuth client Satchel logs in to a server."""

from collections.abc import Iterable
from dataclasses import field
from typing import Any, Literal
from urllib.parse import urlsplit

from satchel.errors import DefinitionError
from satchel.formats.mcp_json import is_loopback
from satchel.lazy_dataclass import dataclass

Grant = Literal["authorization-code", "client-credentials"]

GRANTS = ("authorization-code", "client-credentials")


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """The OAuth client as which Satchel logs in to a server.

    Without a `client_id` Satchel registers itself at the server's authorization server. A
    `client_id` that is an https URL is a client ID metadata document. A `client_secret` needs its
    `issuer`, the authorization server that gave it, so that it is sent to no other. `scopes` are
    requested in addition to those that the server names. With the grant `client-credentials` no
    person logs in.
    """

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    redirect: str = ""
    """The registered redirect address on this machine, such as `http://127.0.0.1:8765/callback`."""
    grant: Grant = "authorization-code"

    def __post_init__(self) -> None:
        for key in ("client_id", "client_secret", "issuer", "redirect"):
            if not isinstance(getattr(self, key), str):
                raise DefinitionError(f"the {key} of an OAuth client must be a string")
        scopes: Any = self.scopes
        scopes = scopes.split() if isinstance(scopes, str) else scopes
        scopes = tuple(scopes) if isinstance(scopes, Iterable) else (scopes,)
        if not all(isinstance(scope, str) and scope.split() == [scope] for scope in scopes):
            raise DefinitionError("the scopes of an OAuth client must be strings without spaces")
        object.__setattr__(self, "scopes", scopes)
        if self.grant not in GRANTS:
            raise DefinitionError(
                f"the grant of an OAuth client must be {' or '.join(GRANTS)}, not {self.grant!r}"
            )
        if self.grant == "client-credentials" and not self.client_secret:
            raise DefinitionError("client credentials need a client id, its secret and its issuer")
        if self.client_secret and not (self.client_id and self.issuer):
            raise DefinitionError(
                "an OAuth client secret needs its client id and its issuer",
                fix="name the authorization server that gave the secret; it is sent to no other",
            )
        if self.issuer and urlsplit(self.issuer).scheme not in {"http", "https"}:
            raise DefinitionError("the issuer of an OAuth client must be an https:// URL")
        if self.redirect and not _is_on_loopback(self.redirect):
            raise DefinitionError(
                "the redirect of an OAuth client must be an address of this machine with a port",
                fix="write http://127.0.0.1:PORT/callback",
            )


def _is_on_loopback(address: str) -> bool:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.scheme != "http" or not port or parts.query or parts.fragment:
        return False
    return is_loopback(host)


def may_carry_tokens(url: str) -> bool:
    """Return whether tokens may be sent to a URL: over https, or to this machine."""
    parts = urlsplit(url)
    is_here = parts.scheme == "http" and is_loopback(parts.hostname or "")
    return parts.scheme == "https" or is_here
