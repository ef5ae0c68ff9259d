"""Remote MCP servers: how they are reached, kept, and called."""

from satchel.remote.client import RemoteClient
from satchel.remote.definitions import Definition, Listing
from satchel.remote.fleet import Fleet, Member
from satchel.remote.servers import HttpServer, RemoteServer, SseServer, StdioServer
from satchel.remote.supervising import Offer
from satchel.remote.tool import RemoteTool

__all__ = [
    "Definition",
    "Fleet",
    "HttpServer",
    "Listing",
    "Member",
    "Offer",
    "RemoteClient",
    "RemoteServer",
    "RemoteTool",
    "SseServer",
    "StdioServer",
]
