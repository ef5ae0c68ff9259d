"""The prompts and resources of plugins: list them, and make them on request."""

import logging
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from satchel.errors import ToolError
from satchel.mcp.own_task import run_in_task
from satchel.mcp.protocol_validation import Described, require_valid
from satchel.mcp.result_encoding import encode_block
from satchel.mcp.tool_client import KEY, ToolClient
from satchel.runtime.call_task import prepare_call
from satchel.settings import Limits
from satchel.text import visible
from satchel.tools import (
    Audio,
    Block,
    Image,
    McpPrompt,
    McpResource,
    Text,
    Tool,
    ToolCall,
    ToolContext,
    ToolResult,
)

_LOG = logging.getLogger("satchel.mcp")
_WRONG_ARGUMENTS = "invalid_arguments"


def described_offer(offer: McpPrompt | McpResource) -> Described:
    """Return the description of a prompt or resource, `None` for an invalid one."""
    try:
        if isinstance(offer, McpPrompt):
            return require_valid("prompts/list", _described_prompt(offer), offer.mcp_fields)
        method = "resources/templates/list" if offer.is_template else "resources/list"
        return require_valid(method, _described_resource(offer), offer.mcp_fields)
    except Exception as problem:
        fault = type(problem).__name__
        _LOG.warning("%r of a plugin is not served over MCP: %s", offer.name, fault)
        return None


def _described_prompt(prompt: McpPrompt) -> dict[str, Any]:
    schema = prompt.tool.parameters
    required = schema.get("required", ())
    return {
        "name": prompt.name,
        "description": visible(prompt.tool.description),
        "arguments": [
            {
                "name": name,
                "required": name in required,
                **({"description": visible(text)} if (text := about.get("description")) else {}),
            }
            for name, about in schema.get("properties", {}).items()
        ],
    }


def _described_resource(resource: McpResource) -> dict[str, Any]:
    kind = {"mimeType": resource.mime_type} if resource.mime_type else {}
    return {
        "uriTemplate" if resource.is_template else "uri": resource.uri,
        "name": resource.name,
        "description": visible(resource.tool.description),
        **kind,
    }


async def run_offer(
    tool: Tool, name: str, arguments: Mapping[str, str], client: ToolClient, limits: Limits
) -> ToolResult:
    """Make a prompt or a resource. Raises `MCPError` for the client if that fails."""
    context = ToolContext(metadata={KEY: client})
    call = ToolCall(
        name=name,
        arguments=dict(arguments),
        id=str(client.sdk.request_id),
        tool=tool,
        context=context,
    )
    run = prepare_call(call, tool, limits)
    try:
        result = await run_in_task(run.result())
    except ToolError as problem:
        raise MCPError(types.INTERNAL_ERROR, str(problem)) from problem
    if not result.is_error:
        return result
    if client.outcome is not None:
        raise client.outcome
    is_of_client = result.error_code == _WRONG_ARGUMENTS
    raise MCPError(types.INVALID_PARAMS if is_of_client else types.INTERNAL_ERROR, result.text)


def messages_of(prompt: McpPrompt, result: ToolResult) -> list[dict[str, Any]]:
    """Return a result as messages: those of a server as they are, blocks as those of a user."""
    if prompt.server:
        messages: list[dict[str, Any]] = (result.structured or {}).get("messages", [])
        return messages
    return [{"role": "user", "content": encode_block(block)} for block in result.content]


def contents_of(uri: str, resource: McpResource, result: ToolResult) -> list[dict[str, Any]]:
    """Return a result as the contents of a resource."""
    contents = [_content(uri, resource.mime_type, block) for block in result.content]
    if resource.prefix:
        return [{**item, "uri": f"{resource.prefix}{item['uri']}"} for item in contents]
    return contents


def _content(uri: str, kind: str | None, block: Block) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"uri": uri, "mimeType": kind or "text/plain", "text": block.text}
    if isinstance(block, Image | Audio):
        data = block.to_dict()["data"]
        return {"uri": uri, "mimeType": block.mime_type, "blob": data}
    content: dict[str, Any] = encode_block(block).get("resource", {"uri": uri, "text": block.uri})
    return content
