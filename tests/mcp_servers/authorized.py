"""A server of MCP that needs a login, beside the SDK's own authorization server.

`authorized.py PORT` runs it alone; the tests run it in a thread, and change `Authority` meanwhile.
"""

import asyncio
import secrets
import socket
import sys
import threading
import time

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken
from starlette.requests import Request
from starlette.responses import JSONResponse


class Authority:
    """Gives tokens to everybody who asks; a test says what it refuses."""

    def __init__(self):
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}
        self.expires_in = 3600
        self.refuses_refresh = self.is_broken = self.is_released = False
        self.asked_scopes, self.refreshed, self.issued = [], 0, []

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        self.asked_scopes.append(params.scopes or [])
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        self.codes.pop(authorization_code.code)
        return self.give(client.client_id, authorization_code.scopes, authorization_code.resource)

    def give(self, client_id, scopes, resource=None):
        access, refresh = (f"{kind}-{secrets.token_urlsafe(24)}" for kind in ("acc", "ref"))
        self.issued += [access, refresh]
        kept = {"client_id": client_id, "scopes": scopes, "resource": resource}
        self.access[access] = AccessToken(token=access, **kept)
        self.refresh[refresh] = RefreshToken(token=refresh, **kept)
        return OAuthToken(
            access_token=access,
            refresh_token=refresh,
            expires_in=self.expires_in,
            scope=" ".join(scopes),
        )

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        if self.is_broken:
            raise RuntimeError("broken")
        if self.refuses_refresh:
            raise TokenError("invalid_grant", "that is used up")
        self.refreshed += 1
        self.refresh.pop(refresh_token.token)  # rotated
        resource = getattr(refresh_token, "resource", None)  # in SDKs from 2.2 on
        return self.give(client.client_id, refresh_token.scopes, resource)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        self.access.clear()
        self.refresh.clear()


def served(authority, port, *, scopes=(), auth=True):
    """Return the application: the server, the authorization server, and a tool that echoes."""
    address = f"http://127.0.0.1:{port}"
    settings = AuthSettings(
        issuer_url=address,
        resource_server_url=f"{address}/mcp",
        required_scopes=list(scopes),
        validate_token_resource=False,
        client_registration_options=ClientRegistrationOptions(enabled=True),
        revocation_options=RevocationOptions(enabled=True),
    )
    options = {"auth": settings, "auth_server_provider": authority} if auth else {}
    server = MCPServer("authorized", instructions="Say it kindly.", **options)

    @server.tool()
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.tool()
    async def write(text: str) -> str:
        """Write, which needs another scope."""
        return "written"

    @server.tool()
    async def hold() -> str:
        """Take as long as the test wants."""
        while not authority.is_released:
            await asyncio.sleep(0.02)
        return "held"

    @server.custom_route("/credentials", methods=["POST"])
    async def credentials(request: Request):
        form = dict(await request.form())
        authority.asked_scopes.append(form.get("scope", "").split())
        # secret: "hush", as basic authentication of the client "agent"
        if request.headers.get("authorization") != "Basic YWdlbnQ6aHVzaA==":
            return JSONResponse({"error": "invalid_client"}, status_code=401)
        token = authority.give("agent", form.get("scope", "").split())
        return JSONResponse(token.model_dump(exclude={"refresh_token"}))

    return server.streamable_http_app(host="127.0.0.1")


class NeedsScope:
    """Refuses calls of `write` with a 403 unless the token has the scope `write`."""

    def __init__(self, app, authority):
        self.app, self.authority = app, authority

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["path"] != "/mcp" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        body, is_open = b"", True
        while is_open:
            message = await receive()
            body, is_open = body + message.get("body", b""), message.get("more_body", False)
        bearer = dict(scope["headers"]).get(b"authorization", b"").decode().partition(" ")[2]
        token = self.authority.access.get(bearer)
        if b'"write"' in body and token is not None and "write" not in token.scopes:
            response = JSONResponse(
                {"error": "insufficient_scope"},
                status_code=403,
                headers={
                    "www-authenticate": 'Bearer error="insufficient_scope", scope="read write"'
                },
            )
            await response(scope, receive, send)
            return
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def again():
            return parts.pop() if parts else await receive()

        await self.app(scope, again, send)


class WithMetadata:
    """Says something else in the metadata of the authorization server."""

    def __init__(self, app, issuer, extra):
        self.app, self.metadata = (
            app,
            {
                "issuer": issuer,
                "authorization_endpoint": f"{issuer}/authorize",
                "token_endpoint": f"{issuer}/token",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                **extra,
            },
        )

    async def __call__(self, scope, receive, send):
        is_asked = scope.get("path", "") == "/.well-known/oauth-authorization-server"
        app = JSONResponse(self.metadata) if is_asked else self.app
        await app(scope, receive, send)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Running:
    """The server, in a thread of its own."""

    def __init__(self, *, scopes=(), auth=True, metadata=None):
        self.authority, self.port = Authority(), free_port()
        self.requests = []
        app = NeedsScope(
            served(self.authority, self.port, scopes=scopes, auth=auth), self.authority
        )
        self.app = app if metadata is None else WithMetadata(app, self.issuer, metadata)
        config = uvicorn.Config(
            self._counted,
            port=self.port,
            log_level="critical",
            interface="asgi3",
            timeout_graceful_shutdown=1,
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    async def _serve(self):
        await self.server.serve()
        # uvicorn leaves a connection open that it accepted while it was told to stop
        for connection in tuple(self.server.server_state.connections):
            connection.transport.abort()

    @property
    def issuer(self):
        return f"http://127.0.0.1:{self.port}"

    def for_programs(self):
        """Say that tokens for programs are at another address."""
        self.app = WithMetadata(
            self.app, self.issuer, {"token_endpoint": f"{self.issuer}/credentials"}
        )
        return self

    @property
    def url(self):
        return f"{self.issuer}/mcp"

    async def _counted(self, scope, receive, send):
        if scope["type"] == "http":
            self.requests.append((scope["method"], scope["path"]))
        await self.app(scope, receive, send)

    def stop(self):
        self.server.should_exit = True
        self.thread.join(30)


if __name__ == "__main__":
    uvicorn.run(served(Authority(), int(sys.argv[1])), port=int(sys.argv[1]), log_level="error")
