"""Logins to MCP servers that the user began on a page."""

import asyncio
import queue
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from satchel.errors import ConflictError, SatchelError
from satchel.files.state_files import state_folder
from satchel.mcp_servers.browser_login import LoginDialog, log_in
from satchel.mcp_servers.server_addresses import RemoteServer
from satchel.settings import Limits

_PATIENCE = 300.0
"""Seconds that the user has for a login."""


class ServerLogins:
    """The logins that were begun, by server name; `on_change` notifies the pages."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._logins: dict[str, _Login] = {}

    def record(self, name: str) -> dict[str, str]:
        """Return what a page shows of the login to a server."""
        login = self._logins.get(name)
        return {
            "address": login.address if login else "",
            "problem": login.problem if login else "",
        }

    async def begin(self, name: str, server: RemoteServer) -> str:
        """Begin a login, and return the address to open. Raises `SatchelError`."""
        self.cancel(name)
        login = self._logins[name] = _Login(name, server, self._on_change)
        await login.is_shown_or_over.wait()
        if not login.address:
            raise SatchelError(login.problem or f"{name!r} needed no login", fix="try again")
        return login.address

    def take(self, name: str, address: str) -> None:
        """Take the address at which a browser on another machine ended. Raises `SatchelError`."""
        login = self._logins.get(name)
        if login is None or not login.address:
            raise ConflictError(f"no login to {name!r} is waiting", fix="begin it again")
        if _state_of(address) != _state_of(login.address):
            raise SatchelError(
                "this is not the address at which the login ends",
                fix="paste the whole address of the page that the browser could not open",
            )
        login.pasted.put(address.strip())

    def cancel(self, name: str) -> None:
        """End a login that waits."""
        login = self._logins.pop(name, None)
        if login is not None:
            login.task.cancel()

    def close(self) -> None:
        """End all."""
        for name in tuple(self._logins):
            self.cancel(name)


def _state_of(address: str) -> list[str]:
    """Return the value by which an address belongs to one login."""
    return parse_qs(urlsplit(address.strip()).query).get("state", [])


class _Login:
    def __init__(self, name: str, server: RemoteServer, on_change: Callable[[], None]) -> None:
        self.address = self.problem = ""
        self.pasted: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._on_change, self.is_shown_or_over = on_change, asyncio.Event()
        self.task = asyncio.create_task(self._run(name, server))

    async def _run(self, name: str, server: RemoteServer) -> None:
        dialog = LoginDialog(show=self._show, open=lambda _: False, read_line=self.pasted.get)
        try:
            await log_in(name, server, state_folder(), dialog, limits=Limits(), seconds=_PATIENCE)
        except SatchelError as problem:
            self.problem = str(problem)
        finally:
            self.address = ""
            self.pasted.put("")  # who reads it ends
            self.is_shown_or_over.set()
            self._on_change()

    def _show(self, address: str) -> None:
        # The server chose it: in a link it must not be anything but a page.
        if urlsplit(address).scheme not in {"https", "http"}:
            raise SatchelError("the authorization server has no web address")
        self.address = address
        self.is_shown_or_over.set()
        self._on_change()
