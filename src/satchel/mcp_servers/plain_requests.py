"""Send requests whose responses are read as plain JSON objects."""

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
