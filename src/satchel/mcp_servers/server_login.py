"""Whether one server needs a login of its user, and how its requests are authorized."""

from typing import Any

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import ToolError
from satchel.files.state_files import state_folder
from satchel.mcp_servers.server_addresses import HttpServer, RemoteServer, SseServer
from satchel.mcp_servers.token_store import TokenStore

_RETRY = 300.0
"""Seconds after which a server that refused the login is asked again in any case."""


class ServerLogin:
    """The login to one server. Use it on the servers' event loop only."""

    def __init__(self, name: str, server: HttpServer | SseServer, folder: str) -> None:
        self._name, self._server = name, server
        self._store = TokenStore(folder, server)
        self._auth: Any = None
        self.why = self._fix = ""
        """Why the server refuses requests, and what the user does about it; `""` if it does not."""
        self._scope = ""
        """The scopes that only some of its tools need, or `""` if nothing works without a login."""
        self._stamp = self._store.stamp

    @classmethod
    def of(cls, name: str, server: RemoteServer, folder: str) -> "ServerLogin | None":
        """Return the login to a server on the network, `None` for a process."""
        if not isinstance(server, HttpServer | SseServer):
            return None
        return cls(name, server, folder or state_folder())

    def begin(self) -> None:
        """Begin a connection: what the last one needed counts no more."""
        self.why, self._stamp = "", self._store.stamp

    @property
    def auth(self) -> Any:
        """Return what authorizes the requests, for the HTTP client."""
        if self._auth is not None:
            return self._auth
        # Lazy: it loads the SDK.
        from satchel.mcp_servers import login_auth

        server, client, store = self._server, self._server.oauth, self._store
        if server.has_credentials:
            self._auth = login_auth.ConfiguredAuth(server, self._refuse)
        elif client is not None and client.grant == "client-credentials":
            self._auth = login_auth.ClientCredentialsAuth(server, client, self._refuse)
        else:
            self._auth = login_auth.StoredLoginAuth(server, store, self._refuse)
        return self._auth

    def _refuse(self, why: str, *, scope: str = "", fix: str = "") -> None:
        self.why, self._scope, self._fix = why, scope, fix

    @property
    def blocks(self) -> bool:
        """Return whether nothing works without a login."""
        return bool(self.why) and not self._scope

    @property
    def _command(self) -> str:
        return f"satchel mcp login {self._name}"

    def diagnostic(self) -> Diagnostic:
        """Return the diagnostic for a server that needs a login."""
        return make_diagnostic(
            "mcp-login-needed",
            Where(str(self._server)),
            f"MCP server {self._name!r} {self.why}; its tools are revoked",
            self._fix or self._command,
        )

    def take_error(self) -> ToolError | None:
        """Return the error for a call that failed for want of a login; `None` for other calls."""
        if not (why := self.why):
            return None
        if self._scope:  # of this call only
            self.why = ""
        advice = "tell the user" if self._fix else f"ask the user to run '{self._command}'"
        return ToolError(f"the server {self._name!r} {why}; {advice}, or continue without it")

    async def until_changed(self) -> None:
        """Wait until the stored login is another than before, or for some minutes."""
        await self._store.until_changed(self._stamp, _RETRY)
