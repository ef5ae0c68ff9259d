"""Remote MCP servers: how they are reached, kept, and called."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.mcp_servers.oauth_client import OAuthClient
    from satchel.mcp_servers.remote_client import RemoteClient
    from satchel.mcp_servers.remote_tool import RemoteTool
    from satchel.mcp_servers.resource_reader import RemoteSkillReader
    from satchel.mcp_servers.server_addresses import (
        HttpServer,
        RemoteServer,
        SseServer,
        StdioServer,
        WorkerServer,
    )
    from satchel.mcp_servers.server_contributions import (
        Pin,
        ServerConfig,
        ServerContribution,
        ServerOffer,
    )
    from satchel.mcp_servers.server_options import ServerOptions
    from satchel.mcp_servers.server_pool import ServerHandle, ServerPool
    from satchel.mcp_servers.server_skills import collect_server_skills
    from satchel.mcp_servers.tool_definitions import ServerSnapshot, ToolDefinition
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "oauth_client": "OAuthClient",
            "remote_client": "RemoteClient",
            "remote_tool": "RemoteTool",
            "resource_reader": "RemoteSkillReader",
            "server_addresses": "HttpServer RemoteServer SseServer StdioServer WorkerServer",
            "server_contributions": "Pin ServerConfig ServerContribution ServerOffer",
            "server_options": "ServerOptions",
            "server_pool": "ServerHandle ServerPool",
            "server_skills": "collect_server_skills",
            "tool_definitions": "ServerSnapshot ToolDefinition",
        },
    )
