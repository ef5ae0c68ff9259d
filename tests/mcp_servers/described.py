"""What the tests of remote servers say again and again."""

from pathlib import Path

from satchel import Satchel, Settings
from satchel.mcp_servers.remote_client import RemoteClient
from satchel.settings import Limits

PLAIN = str(Path(__file__).with_name("plain.py"))
"""A server that is written by hand, and up at once."""

PATIENT = Limits(mcp_connect=60)
"""A busy machine is no fault of the code."""


def described(name, **parts):
    """Describe a tool as a server does."""
    return {"name": name, "description": f"{name}.", "inputSchema": {"type": "object"}, **parts}


def client_of(server, **options):
    return RemoteClient(server, **{"limits": PATIENT, **options})


def satchel_of(**limits):
    return Satchel(settings=Settings(limits=Limits(**{"mcp_connect": 60, **limits})))
