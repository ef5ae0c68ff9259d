"""Remote MCP servers: how they are reached, kept, and called."""

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
    server_contributions,
)
from satchel.mcp_servers.server_declarations import DeclaredServer
from satchel.mcp_servers.server_pool import ServerHandle, ServerPool
from satchel.mcp_servers.server_skills import ServerSkills, collect_server_skills
from satchel.mcp_servers.server_supervisor import ServerSnapshot
from satchel.mcp_servers.tool_definitions import ToolDefinition, ToolList

__all__ = [
    "DeclaredServer",
    "HttpServer",
    "Pin",
    "RemoteClient",
    "RemoteServer",
    "RemoteSkillReader",
    "RemoteTool",
    "ServerConfig",
    "ServerContribution",
    "ServerHandle",
    "ServerOffer",
    "ServerPool",
    "ServerSkills",
    "ServerSnapshot",
    "SseServer",
    "StdioServer",
    "ToolDefinition",
    "ToolList",
    "WorkerServer",
    "collect_server_skills",
    "server_contributions",
]
