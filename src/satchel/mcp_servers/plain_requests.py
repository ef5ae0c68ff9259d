"""Send requests whose responses are read as plain JSON objects."""

from collections.abc import AsyncIterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp import Client


@cache
def _json_object() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(dict[str, Any])


async def send_plain(client: "Client", request: Any, on_progress: Any = None) -> dict[str, Any]:
    """Send a request, and return its response. Raises `MCPError` and `ValueError`."""
    response: dict[str, Any] = await client.session.send_request(
        request, _json_object(), progress_callback=on_progress
    )
    return response


async def pages_of(client: "Client", method: str, most: int) -> AsyncIterator[dict[str, Any]]:
    """Yield the pages of a list, at most `most`. Raises `MCPError` and `ValueError`."""
    from mcp_types import PaginatedRequestParams, Request

    cursor, cursors = None, set[str]()
    for _ in range(most):
        request = Request[PaginatedRequestParams, str](
            method=method, params=PaginatedRequestParams(cursor=cursor)
        )
        page = await send_plain(client, request)
        yield page
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or cursor in cursors:
            return
        cursors.add(cursor)
