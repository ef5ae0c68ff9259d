"""Check the token of every HTTP request, and limit their rate."""

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from satchel.mcp.bearer_tokens import BearerTokens, Credential
from satchel.runtime.rate_limiter import RateLimiter

CREDENTIAL = "satchel.credential"
"""The key of the request's scope with its credential."""


class AuthMiddleware:
    """Require a valid token, if there are tokens, and limit the rate of requests.

    Each token has a rate limit of its own; requests without one are limited by address.
    """

    def __init__(
        self, app: ASGIApp, *, tokens: BearerTokens | None = None, per_second: float = 0
    ) -> None:
        self._app, self._tokens = app, tokens
        self._rate_limiter = (
            RateLimiter(per_second, max(1, round(per_second * 2))) if per_second else None
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        app: ASGIApp = self._refusal(scope) or self._app
        await app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        bearer = self._bearer(Headers(scope=scope))
        address = (scope.get("client") or ("",))[0]
        name = address if bearer is None else bearer.digest.hex()
        if self._rate_limiter is not None and not self._rate_limiter.take(name):
            return PlainTextResponse("Too many requests", 429, {"Retry-After": "1"})
        if bearer is not None:
            scope[CREDENTIAL] = bearer
            # The SDK then refuses other principals that use this one's session.
            scope["user"] = AuthenticatedUser(AccessToken(token=name, client_id=name, scopes=[]))
        elif self._tokens is not None:
            challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            return PlainTextResponse("A bearer token is required", 401, challenge)
        return None

    def _bearer(self, headers: Headers) -> Credential | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if self._tokens is None or kind.lower() != "bearer":
            return None
        return self._tokens.bearer(token.strip())
