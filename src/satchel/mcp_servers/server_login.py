"""Whether one server needs a login of its user, and how its requests are authorized."""

from typing import Any

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import ToolError
from satchel.files.state_files import state_folder
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.server_addresses import HttpServer, RemoteServer, SseServer
from satchel.mcp_servers.token_store import TokenStore

_RETRY = 300.0
"""Seconds after which a server that refused the login is asked again in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginNeed:
    """Why a server needs a login, and what the user does about it."""

    why: str
    fix: str
    is_command: bool = True
    """Whether the fix is a command to run."""
    scope: str = ""
    """The scopes that only some of its tools need, or `""` if nothing works without a login."""


class ServerLogin:
    """The login to one server. Use it on the servers' event loop only."""

    def __init__(self, name: str, server: HttpServer | SseServer, folder: str) -> None:
        self._name, self._server = name, server
        self._store = TokenStore(folder, server)
        self._auth: Any = None
        self.need: LoginNeed | None = None
        """Set while the server refuses requests."""
        self._stamp = self._store.stamp

    @classmethod
    def of(cls, name: str, server: RemoteServer, folder: str) -> "ServerLogin | None":
        """Return the login to a server on the network, `None` for a process."""
        if not isinstance(server, HttpServer | SseServer):
            return None
        return cls(name, server, folder or state_folder())

    def begin(self) -> None:
        """Begin a connection: what the last one needed counts no more."""
        self.need, self._stamp = None, self._store.stamp

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
            self._auth = login_auth.ClientCredentialsAuth(server, client, store, self._refuse)
        else:
            self._auth = login_auth.StoredLoginAuth(server, store, self._refuse)
        return self._auth

    def _refuse(self, why: str, *, scope: str = "", fix: str = "") -> None:
        command = f"satchel mcp login {self._name}"
        self.need = LoginNeed(why=why, scope=scope, fix=fix or command, is_command=not fix)

    @property
    def blocks(self) -> bool:
        """Return whether nothing works without a login."""
        return self.need is not None and not self.need.scope

    def diagnostic(self) -> Diagnostic:
        """Return the diagnostic for a server that needs a login."""
        assert self.need is not None
        return make_diagnostic(
            "mcp-login-needed",
            Where(str(self._server)),
            f"MCP server {self._name!r} {self.need.why}; its tools are revoked",
            self.need.fix,
        )

    def take_error(self) -> ToolError | None:
        """Return the error for a call that failed for want of a login; `None` for other calls."""
        need = self.need
        if need is None:
            return None
        if need.scope:  # of this call only
            self.need = None
        advice = f"ask the user to run '{need.fix}'" if need.is_command else "tell the user"
        return ToolError(f"the server {self._name!r} {need.why}; {advice}, or continue without it")

    async def until_changed(self) -> None:
        """Wait until the stored login is another than before, or for some minutes."""
        await self._store.until_changed(self._stamp, _RETRY)
