"""Remote MCP servers: how they are reached, kept, and called."""

from satchel.remote.carriedskills import FoundSkills, found_skills
from satchel.remote.client import RemoteClient
from satchel.remote.declared import Declared
from satchel.remote.definitions import Definition, Listing
from satchel.remote.fleet import Fleet, Member
from satchel.remote.reading import RemoteFiles
from satchel.remote.servers import (
    HttpServer,
    RemoteServer,
    SseServer,
    StdioServer,
    WorkerServer,
)
from satchel.remote.supervising import Offer
from satchel.remote.supplying import Carried, Made, Offered, Pin, supplied
from satchel.remote.tool import RemoteTool

__all__ = [
    "Carried",
    "Declared",
    "Definition",
    "Fleet",
    "FoundSkills",
    "HttpServer",
    "Listing",
    "Made",
    "Member",
    "Offer",
    "Offered",
    "Pin",
    "RemoteClient",
    "RemoteFiles",
    "RemoteServer",
    "RemoteTool",
    "SseServer",
    "StdioServer",
    "WorkerServer",
    "found_skills",
    "supplied",
]
