"""The application behind `satchel dev`: all routes, and the checks before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

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
from satchel.web.page_routes import PageRoutes
from satchel.web.page_security import PageKeys, secured

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from satchel.http.listen_address import Address
    from satchel.web.workbench import Workbench

_PAGES = (
    catalog_page,
    prompt_page,
    problems_page,
    tool_page,
    session_page,
    skill_page,
    timeline_page,
    servers_page,
    plugins_page,
)


def dev_app(workbench: Workbench, keys: PageKeys, address: Address) -> ASGIApp:
    """Return the application for one address."""
    pages = PageRoutes(workbench, keys.csrf)
    routes = [route for module in _PAGES for route in module.routes(pages, workbench)]
    app = Starlette(
        routes=[
            Mount("/static", StaticFiles(packages=[("satchel.web", "static")])),
            Route("/events", workbench.stream),
            *routes,
        ]
    )
    app.router.redirect_slashes = False
    return secured(app, keys, address, read_only=workbench.options.read_only)
