"""Read a resource of a plugin or of an MCP server for the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satchel.catalog.catalog_offers import CatalogOffers
from satchel.errors import NotFoundError, ToolError
from satchel.names import near_misses
from satchel.runtime.call_task import prepare_call
from satchel.tools import Audio, Image, Resource, Text, ToolCall, ToolContext

if TYPE_CHECKING:
    from satchel.shared import SharedState
    from satchel.tools.content_blocks import Block


async def read_resource(uri: str, shared: SharedState) -> tuple[Resource, ...]:
    """Return the contents of a resource. Raises `NotFoundError` and `ToolError`."""
    offers = CatalogOffers.of(shared.catalog)
    if (match := offers.find(uri)) is None:
        raise NotFoundError("resource", uri, near_misses(uri, offers.resources))
    resource, parts = match
    call = ToolCall(
        name=resource.name, arguments=dict(parts), tool=resource.tool, context=ToolContext()
    )
    result = await prepare_call(call, resource.tool, shared.limits).result()
    if result.is_error:
        raise ToolError(result.text)
    return tuple(_content(block, uri, resource.mime_type) for block in result.content)


def _content(block: Block, uri: str, kind: str | None) -> Resource:
    match block:
        case Resource():
            return block
        case Text():
            return Resource(uri, block.text, kind or "text/plain")
        case Image() | Audio():
            return Resource(uri, block.data, block.mime_type)
        case _:
            return Resource(uri, block.uri, kind)
