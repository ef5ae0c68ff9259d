"""Serve the pages of `satchel dev`: all routes, the checks before them, and the server."""

import asyncio
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress

from starlette.applications import Starlette
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from satchel.errors import SatchelError
from satchel.files.atomic_write import write_atomic
from satchel.files.file_reader import UnreadableFileError, read_regular
from satchel.files.state_files import state_folder
from satchel.http.listen_address import Address
from satchel.http.quiet_server import QuietServer
from satchel.web import (
    catalog_page,
    plugins_page,
    problems_page,
    prompt_page,
    servers_page,
    session_page,
    skill_page,
    timeline_page,
    tool_page,
)
from satchel.web.page_routes import Act, PageRoutes
from satchel.web.page_security import PageKeys, secured
from satchel.web.workbench import Workbench

_SESSION = "/sessions/{number:int}"
_PAGES = {
    "/": catalog_page.catalog,
    "/prompt": prompt_page.prompt,
    "/problems": problems_page.problems,
    "/tools/{name:path}": tool_page.tool,
    f"{_SESSION}/steps/{{step:int}}": session_page.step,
    _SESSION: session_page.session,
    "/skills/{name:path}": skill_page.skill,
    "/timeline": timeline_page.timeline,
    "/servers": servers_page.servers,
    "/plugins": plugins_page.plugins,
}
_FILES = {
    "/calls/{call_id}/blocks/{number:int}": tool_page.media,
    f"{_SESSION}/recording.jsonl": session_page.recording,
}
_ACTIONS: dict[str, Act] = {
    "/calls": tool_page.call,
    "/calls/{call_id}/cancel": tool_page.cancel,
    "/sessions": session_page.new_session,
    f"{_SESSION}/groups": session_page.switch_group,
    f"{_SESSION}/skills": session_page.load_skill,
    f"{_SESSION}/steps": session_page.take_step,
    f"{_SESSION}/check": session_page.check_plan,
    f"{_SESSION}/run": session_page.run_plan,
    f"{_SESSION}/turn": session_page.new_turn,
    f"{_SESSION}/state": session_page.restore_state,
    f"{_SESSION}/replay": session_page.replay_recording,
    "/lint": skill_page.lint,
    "/save": skill_page.save,
    "/approvals": servers_page.approve,
    "/logins": servers_page.begin_login,
    "/logins/{server}/redirect": servers_page.take_redirect,
    "/logins/{server}/cancel": servers_page.cancel_login,
}


def dev_app(workbench: Workbench, keys: PageKeys, address: Address) -> ASGIApp:
    """Return the application for one address."""
    pages = PageRoutes(workbench, keys.csrf)
    app = Starlette(
        routes=[
            Mount("/static", StaticFiles(packages=[("satchel.web", "static")])),
            Route("/events", workbench.stream),
            Route("/catalog", RedirectResponse("/")),
            *(route for path, make in _PAGES.items() for route in pages.page(path, make)),
            *(pages.file(path, make) for path, make in _FILES.items()),
            *(pages.action(path, act) for path, act in _ACTIONS.items()),
        ],
        exception_handlers={404: pages.not_found},
    )
    app.router.redirect_slashes = False
    return secured(app, keys, address, read_only=workbench.options.read_only)


SHORTEST_TOKEN = 16
_TOKEN_BYTES = 32


def kept_token(port: int) -> str:
    """Return the random token of a port; the next start there has the same.

    So a page that is open finds the server again. Only the user can read its file. Port 0 stands
    for any port, so its token is not kept.
    """
    if not port:
        return secrets.token_urlsafe(_TOKEN_BYTES)
    path = f"{state_folder()}/dev/{port}.token"
    with suppress(UnreadableFileError, UnicodeDecodeError):
        token = read_regular(path, 1_000)[0].decode().strip()
        if len(token) >= SHORTEST_TOKEN:
            return token
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with suppress(SatchelError):  # then the next start has another one
        write_atomic(path, token.encode(), private=True)
    return token


async def serve_dev(
    workbench: Workbench,
    listening: socket.socket,
    address: Address,
    token: str,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve on a socket that listens at an address, and follow the sources."""
    keys = PageKeys(token, address.port)
    server = QuietServer(dev_app(workbench, keys, address))
    following = asyncio.create_task(workbench.follow())
    running = asyncio.create_task(server.serve([listening]))
    ready()
    try:
        await asyncio.wait((asyncio.shield(running), following), return_when="FIRST_COMPLETED")
    finally:
        workbench.stream.close()
        server.stop()
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await running
