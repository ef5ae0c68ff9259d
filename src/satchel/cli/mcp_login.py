"""What `satchel mcp login` and `logout` do."""

import asyncio
import sys

import satchel
from satchel.cli.console import Console
from satchel.errors import SatchelError
from satchel.mcp_servers.server_addresses import RemoteServer
from satchel.text import visible


def log_in(
    console: Console,
    name: str,
    server: RemoteServer,
    folder: str,
    *,
    browser: bool,
    seconds: float,
) -> int:
    """Log in with the user's browser. Return the number of the server's tools."""
    # Lazy: they load what only a login needs.
    from satchel.mcp_servers import browser_login, server_pool

    def show(address: str) -> None:
        console.say(f"To log in to {name}, open this address in a browser:")
        console.say(f"  {visible(address)}")
        if can_paste:
            console.say("If that browser is on another machine, paste the address where it ends:")

    can_paste = not browser and sys.stdin is not None and sys.stdin.isatty()
    dialog = browser_login.LoginDialog(
        show=show,
        open=browser_login.open_in_browser if browser else lambda _: False,
        read_line=sys.stdin.readline if can_paste else None,
    )
    limits = satchel.Limits()
    server_pool.load_sdk()
    return asyncio.run(
        browser_login.log_in(name, server, folder, dialog, limits=limits, seconds=seconds)
    )


def log_out(server: RemoteServer, folder: str) -> tuple[bool, bool]:
    """Remove the login. Return whether there was one, and whether the server ended it, too."""
    if isinstance(server, satchel.StdioServer):
        raise SatchelError("the server is a program on this machine; it has no login")
    # Lazy: it loads the SDK.
    from satchel.mcp_servers import login_auth, token_store

    store = token_store.TokenStore(folder, server)
    try:
        is_revoked = asyncio.run(login_auth.revoke(store))
    except SatchelError:  # unreadable: it is removed all the same
        is_revoked = False
    return store.delete(), is_revoked
