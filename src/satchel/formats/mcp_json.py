"""Read mcp.json, the MCP servers of an open plugin (Agent Plugins 1.0.0)."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any

from satchel.formats.frozen_values import frozen
from satchel.formats.json_reader import JsonDocument, JsonPath, JsonValue, json_type_name, read_json
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits

MCP_SCHEMAS: Mapping[str, str] = MappingProxyType(
    {"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json": "1.0.0"}
)
"""The known schemas of `mcp.json`, each with its version of the format."""

PLUGIN_ROOT = "PLUGIN_ROOT"
"""The variable with the plugin's folder, for its servers."""

PLUGIN_DATA = "PLUGIN_DATA"
"""The variable with the folder where a plugin's servers can store data."""

_TOP = ("$schema", "mcpServers")
_REMOTE = ("type", "url", "headers")
_FIELDS = {
    "stdio": ("type", "command", "args", "env", "cwd"),
    "streamable-http": _REMOTE,
    "sse": _REMOTE,
}
CWD = re.compile(r"\./.*|\$\{PLUGIN_(?:ROOT|DATA)\}(?:/.*)?", re.DOTALL)
BARE_COMMAND = re.compile(r"(?!\.\.?\Z)[^\s/\\\x00-\x1f\x7f]+")
_LABEL = "[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
# Strict, so that every URL parser sees the same host.
_URL = re.compile(
    rf"""(?P<scheme>https?)://
    (?:(?P<name>{_LABEL}(?:\.{_LABEL})*)|\[(?P<six>[0-9a-f:.]+)\])
    (?::(?P<port>[0-9]{{0,5}}))?
    (?:[/?][a-z0-9\-._~:/?\[\]@!$&'()*+,;=%]*)?""",
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)
_USER = re.compile(r"https?://[^/?]*@", re.IGNORECASE)
HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
HEADER_VALUE = re.compile(r"(?:[!-~\x80-\xff](?:[ \t!-~\x80-\xff]*[!-~\x80-\xff])?)?")

_LAST_PORT = 65_535
_IPV6 = 6

_CODE = "mcp-server-invalid"


def no_pairs() -> Mapping[str, Any]:
    """Return an empty read-only mapping."""
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerManifest:
    """One MCP server that a plugin declares, with its placeholders not yet filled in.

    `transport` is `stdio`, with a command, or `streamable-http` or `sse`, with a URL.
    """

    name: str
    transport: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=no_pairs, hash=False)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=no_pairs, hash=False)
    client_id: str = ""
    """The OAuth client as which to log in, if the server wants that."""
    redirect: str = ""
    """The registered redirect address of that client."""
    scopes: tuple[str, ...] = ()
    """OAuth scopes to ask for."""
    or_sse: bool = False
    """Whether no transport is named, so that `sse` is tried if the server refuses the other."""
    of_claude: bool = False
    """Whether a Claude bundle declares it; its placeholders may name any variable."""
    lines: Mapping[str, int | None] = field(default_factory=no_pairs, compare=False, repr=False)
    """The lines of its keys, if known."""


def read_mcp(
    data: bytes, path: str, limits: Limits, spec: str
) -> ReadResult[tuple[McpServerManifest, ...]]:
    """Read the mcp.json of a plugin written for version `spec` of the format.

    Invalid servers are left out. The value is `None` if the file itself is invalid.
    """
    collector = DiagnosticCollector(path)
    parsed = read_json(data, path, "mcp-invalid", limits)
    document = parsed.value
    if document is None:
        return ReadResult(None, parsed.diagnostics)
    servers = _servers_of(document, spec, collector)
    if len(collector):
        return ReadResult(None, collector.diagnostics)
    duplicates: dict[str, list[JsonPath]] = {}
    for duplicate in document.duplicates:
        duplicates.setdefault(duplicate[1], []).append(duplicate[2:])
    manifests = [
        _server(name, value, duplicates.get(name, ()), document, collector)
        for name, value in servers.items()
    ]
    return ReadResult(tuple(filter(None, manifests)), collector.diagnostics)


def _servers_of(
    document: JsonDocument, spec: str, collector: DiagnosticCollector
) -> Mapping[str, JsonValue]:
    """Return the servers by name, and report everything wrong at the top level."""

    def report(key: str, message: str, fix: str) -> None:
        collector.add("mcp-invalid", message, fix, document.line((key,)))

    top = document.value
    if not isinstance(top, dict):
        report("", f"the top level is {json_type_name(top)}, not an object", "Write an object.")
        return {}
    schema, servers = top.get("$schema"), top.get("mcpServers")
    expected = next(url for url, version in MCP_SCHEMAS.items() if version == spec)
    if not isinstance(schema, str) or schema not in MCP_SCHEMAS:
        given = quoted(schema) if isinstance(schema, str) else json_type_name(schema)
        message = f"'$schema' is {given}" if "$schema" in top else "no '$schema' is given"
        report("$schema", f"{message}, so its version is not known", f'Write "{expected}".')
    elif MCP_SCHEMAS[schema] != spec:
        message = f"it is written for version {MCP_SCHEMAS[schema]}, plugin.json for {spec}"
        report("$schema", message, f'Write "{expected}".')
    if not isinstance(servers, dict):
        given = f"is {json_type_name(servers)}" if "mcpServers" in top else "is missing"
        report("mcpServers", f"'mcpServers' {given}, not an object", "Write an object.")
    for key in top:
        if key not in _TOP:
            report(key, f"{quoted(key)} is not a field of mcp.json", "Remove it.")
    for path in document.duplicates:
        if len(path) == 1:
            report(path[0], f"{quoted(path[0])} is given twice", "Keep one.")
    return servers if isinstance(servers, dict) else {}


@dataclass(frozen=True, slots=True)
class _Entry:
    """The fields of one server."""

    values: Mapping[str, JsonValue]
    report: Callable[[str, str], None]
    """Reports a key and what is wrong with it."""

    def text(self, key: str, *, required: bool = False) -> str:
        value = self.values.get(key)
        if key not in self.values:
            if required:
                self.report(key, f"has no '{key}'")
            return ""
        if not isinstance(value, str):
            self.report(key, f"has {json_type_name(value)} for '{key}', not text")
            return ""
        if required and not value:
            self.report(key, f"has an empty '{key}'")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key, [])
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(map(str, value))
        self.report(key, f"needs a list of texts for '{key}'")
        return ()

    def mapping(self, key: str) -> dict[str, str]:
        value = self.values.get(key, {})
        if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
            return {name: str(item) for name, item in value.items()}
        self.report(key, f"needs an object of texts for '{key}'")
        return {}


def _server(
    name: str,
    value: JsonValue,
    duplicates: Iterable[JsonPath],
    document: JsonDocument,
    collector: DiagnosticCollector,
) -> McpServerManifest | None:
    """Read one server strictly, or report everything that is wrong with it.

    `duplicates` are the paths of duplicate keys in it; the empty path is the server itself.
    """
    before = len(collector)

    def report(key: str, message: str) -> None:
        line = document.line(("mcpServers", name, key))
        collector.add(_CODE, f"server {quoted(name)} {message}", "Fix or remove it.", line)

    for path in duplicates:
        report(
            path[0] if path else "", f"has {quoted(path[-1])} twice" if path else "is given twice"
        )
    if not isinstance(value, dict):
        report("", f"is {json_type_name(value)}, not an object")
        return None
    entry = _Entry(value, report)
    transport = entry.text("type", required=True)
    if transport and transport not in _FIELDS:
        report("type", f"has the unknown type {quoted(transport)}")
    if transport not in _FIELDS:
        return None
    for key in value:
        if key not in _FIELDS[transport]:
            report(key, f"has the field {quoted(key)}, which type {transport} does not have")
    server = _stdio(name, entry) if transport == "stdio" else _remote(name, transport, entry)
    lines = {key: document.line(("mcpServers", name, key)) for key in ("command", "cwd")}
    return replace(server, lines=lines) if len(collector) == before else None


def _stdio(name: str, entry: _Entry) -> McpServerManifest:
    command, cwd = entry.text("command", required=True), entry.text("cwd")
    if command and not command.startswith("./") and not BARE_COMMAND.fullmatch(command):
        entry.report(
            "command", f"has {quoted(command)} for 'command'; write one name, or a path ./"
        )
    if "cwd" in entry.values and not CWD.fullmatch(cwd):
        entry.report("cwd", f"has {quoted(cwd)} for 'cwd'; begin with ./ or ${{PLUGIN_ROOT}}")
    env = entry.mapping("env")
    for reserved in (PLUGIN_ROOT, PLUGIN_DATA):
        if reserved in env:
            entry.report("env", f"sets {reserved}, which is reserved")
    return McpServerManifest(
        name=name,
        transport="stdio",
        command=command,
        args=entry.texts("args"),
        env=frozen(env),
        cwd=cwd,
    )


def _remote(name: str, transport: str, entry: _Entry) -> McpServerManifest:
    url, headers = entry.text("url", required=True), entry.mapping("headers")
    if url and (fault := _url_fault(url)):
        entry.report("url", f"has a URL that {fault}")
    for header, value in headers.items():
        if not is_header(header, value):
            entry.report("headers", f"has {quoted(header)}, which is not a valid HTTP header")
    if len({header.lower() for header in headers}) < len(headers):
        entry.report("headers", "has a header twice; upper and lower case are the same")
    return McpServerManifest(name=name, transport=transport, url=url, headers=frozen(headers))


def is_header(name: str, value: str) -> bool:
    """Return whether this is a valid HTTP header."""
    return bool(HEADER_NAME.fullmatch(name) and HEADER_VALUE.fullmatch(value))


def _url_fault(url: str) -> str:
    """Return what is wrong with a URL, or `""`."""
    if "#" in url:
        return "has a fragment"
    if _USER.match(url):
        return "contains a user name"
    parts = _URL.fullmatch(url)
    if not parts or int(parts["port"] or 0) > _LAST_PORT or not _is_host(parts):
        return "is not an absolute HTTP or HTTPS URL"
    if parts["scheme"].lower() == "http" and not _is_loopback(parts["name"] or parts["six"]):
        return "is not HTTPS; only this machine may be reached by HTTP"
    return ""


def _is_host(parts: re.Match[str]) -> bool:
    try:
        return bool(parts["name"]) or ip_address(parts["six"]).version == _IPV6
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
