"""Parse the address that a server listens at."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from satchel.formats.mcp_json import is_loopback
from satchel.lazy_dataclass import dataclass

HTTP_PORT = 80
_USUAL_PORTS = {"http": HTTP_PORT, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> "Address":
        """Read `HOST:PORT`, `[::1]:PORT` or only a port. Raises `ValueError`."""
        host, _, port = text.rpartition(":")
        if not (port.isascii() and port.isdecimal() and int(port) < 1 << 16):
            raise ValueError("write HOST:PORT, such as 127.0.0.1:8000")
        host = host.removeprefix("[").removesuffix("]")
        return cls(host or "127.0.0.1", int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def is_every(self) -> bool:
        """Whether it is every address of this machine."""
        return is_number(self.host) and ip_address(self.host).is_unspecified

    @property
    def root_url(self) -> str:
        """Return the URL of the server, without a path."""
        host = "127.0.0.1" if self.is_every else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def url(self) -> str:
        """Return what a client of MCP connects to."""
        return f"{self.root_url}/mcp"

    def url_by(self, name: str) -> str:
        """Return the URL for clients on other machines.

        A loopback address is reached through a proxy, which uses TLS.
        """
        return f"https://{name}/mcp" if self.is_loopback else f"http://{name}:{self.port}/mcp"


def origin_of(page: str) -> str:
    """Return the origin of a web page, as browsers send it. Raises `ValueError`."""
    parts = urlsplit(page.lower())
    usual, name, port = _USUAL_PORTS.get(parts.scheme), parts.hostname, parts.port
    if not (usual and name) or parts.username is not None:
        raise ValueError("write https://NAME, such as https://app.example.com")
    shown = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{shown}" + ("" if port in {None, usual} else f":{port}")


def is_number(name: str) -> bool:
    """Return whether a host is an IP address."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
