"""What the modules of the pages have in common: how a page and an action become routes."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from satchel.errors import DefinitionError, NotFoundError, SatchelError
from satchel.web.page_rendering import Page, PageRenderer, json_response
from satchel.web.workbench import Workbench, problem_counts

MakePage = Callable[[Workbench, Request], Page]
"""Returns a page; runs in a thread. `NotFoundError` becomes a page of its own."""

Act = Callable[[Workbench, Mapping[str, Any]], Awaitable[Any]]
"""Does what a button asks for, with the JSON of the request; returns JSON or a response."""

_JSON = ".json"
_NAVIGATION = (
    ("/", "Catalog"),
    ("/prompt", "Prompt"),
    ("/problems", "Problems"),
    ("/sessions/1", "Session"),
    ("/timeline", "Timeline"),
    ("/servers", "Servers"),
    ("/plugins", "Plugins"),
)


class PageRoutes:
    """Makes the routes of one server."""

    def __init__(self, workbench: Workbench, csrf: str) -> None:
        self._workbench, self._csrf = workbench, csrf
        self._renderer = PageRenderer()

    def page(self, path: str, make: MakePage) -> list[Route]:
        """Return the routes of a page and of its JSON."""

        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(self._respond, request, make)

        json_path = "/catalog.json" if path == "/" else path + _JSON
        # A name in the path takes the suffix along.
        suffixed = [] if path.endswith(":path}") else [Route(json_path, endpoint)]
        return [*suffixed, Route(path, endpoint)]

    def action(self, path: str, act: Act) -> Route:
        """Return the route of an action: JSON in, JSON out."""

        async def endpoint(request: Request) -> Response:
            try:
                fields = await _body(request)
                answer = await act(self._workbench, {**fields, **request.path_params})
            except SatchelError as problem:
                status = 404 if isinstance(problem, NotFoundError) else 409
                return json_response({"error": problem.message, "fix": problem.fix}, status)
            return answer if isinstance(answer, Response) else json_response(answer)

        return Route(path, endpoint, methods=["POST"])

    def file(self, path: str, make: Callable[[Workbench, Request], Response]) -> Route:
        """Return the route of a file."""

        async def endpoint(request: Request) -> Response:
            return make(self._workbench, request)

        return Route(path, endpoint)

    def _respond(self, request: Request, make: MakePage) -> Response:
        try:
            page = make(self._workbench, request)
        except NotFoundError as problem:
            page = _missing(problem.message, problem.near)
        return self._rendered(request, page)

    async def not_found(self, request: Request, _problem: Exception) -> Response:
        """Answer a request for an address that does not exist."""
        return self._rendered(request, _missing(f"there is no page {request.url.path}"))

    def _rendered(self, request: Request, page: Page) -> Response:
        if request.url.path.endswith(_JSON):
            return json_response(page.record, page.status)
        return self._renderer.html(page, self._shared(request))

    def _shared(self, request: Request) -> dict[str, Any]:
        options, catalog = self._workbench.options, self._workbench.catalog
        return {
            "navigation": _NAVIGATION,
            "address_now": request.url.path,
            "csrf": self._csrf,
            "read_only": options.read_only,
            "generation_now": catalog.generation,
            "problems_now": self._workbench.derived("counts", lambda: problem_counts(catalog)),
            "newest_problem": self._workbench.newest_problem(),
        }


def _missing(message: str, near: Iterable[str] = ()) -> Page:
    record = {"error": message, "near": list(near)}
    return Page(template="missing.html", title="Not found", record=record, extra={}, status=404)


def name_in(request: Request) -> str:
    """Return the name in the path of a page, without the suffix of its JSON."""
    name: str = request.path_params["name"]
    return name.removesuffix(_JSON)


def text_of(fields: Mapping[str, Any], key: str) -> str:
    """Return a text of a request. Raises `DefinitionError`."""
    value = fields.get(key, "")
    if not isinstance(value, str):
        raise DefinitionError(f"{key!r} must be a text")
    return value


def object_of(fields: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return an object of a request. Raises `DefinitionError`."""
    value = {} if fields.get(key) is None else fields[key]
    if not isinstance(value, dict):
        raise DefinitionError(f"{key!r} must be an object")
    return value


async def _body(request: Request) -> dict[str, Any]:
    try:
        value = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise DefinitionError("the request is not JSON") from None
    if not isinstance(value, dict):
        raise DefinitionError("the request is not an object")
    return value
