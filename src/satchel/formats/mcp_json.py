"""mcp.json: the MCP servers of an open plugin, as Agent Plugins 1.0.0 has them."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any

from satchel.formats.frozen_values import frozen
from satchel.formats.json_reader import JsonDocument, JsonPath, JsonValue, json_type_name, read_json
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.settings import Limits

MCP_SCHEMAS: Mapping[str, str] = MappingProxyType(
    {"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json": "1.0.0"}
)
"""The version of the format that each known schema of `mcp.json` stands for."""

PLUGIN_ROOT = "PLUGIN_ROOT"
"""The variable that names the folder of a plugin to its servers."""

PLUGIN_DATA = "PLUGIN_DATA"
"""The variable that names the folder in which a plugin's servers may keep things."""

_TOP = ("$schema", "mcpServers")
_REMOTE = ("type", "url", "headers")
_FIELDS = {
    "stdio": ("type", "command", "args", "env", "cwd"),
    "streamable-http": _REMOTE,
    "sse": _REMOTE,
}
_CWD = re.compile(r"\./.*|\$\{PLUGIN_(?:ROOT|DATA)\}(?:/.*)?", re.DOTALL)
_BARE_COMMAND = re.compile(r"(?!\.\.?\Z)[^\s/\\\x00-\x1f\x7f]+")
_LABEL = "[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
# Every reader must see the same host, so nothing is left to a lenient one.
_URL = re.compile(
    rf"""(?P<scheme>https?)://
    (?:(?P<name>{_LABEL}(?:\.{_LABEL})*)|\[(?P<six>[0-9a-f:.]+)\])
    (?::(?P<port>[0-9]{{0,5}}))?
    (?:[/?][a-z0-9\-._~:/?\[\]@!$&'()*+,;=%]*)?""",
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)
_USER = re.compile(r"https?://[^/?]*@", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"(?:[!-~\x80-\xff](?:[ \t!-~\x80-\xff]*[!-~\x80-\xff])?)?")

_LAST_PORT = 65_535
_SIX = 6

_CODE = "mcp-server-invalid"


def no_pairs() -> Mapping[str, Any]:
    """Return a mapping without anything in it."""
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerManifest:
    """One MCP server as a plugin declares it; its placeholders are not yet filled in.

    `transport` is `stdio`, which has a command, or `streamable-http` or `sse`, which have a URL.
    """

    name: str
    transport: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=no_pairs, hash=False)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=no_pairs, hash=False)
    of_claude: bool = False
    """Whether it is of a Claude bundle, whose placeholders may name any variable."""
    lines: Mapping[str, int | None] = field(default_factory=no_pairs, compare=False, repr=False)
    """The lines of its keys, where they are known."""


def read_mcp(
    data: bytes, path: str, limits: Limits, spec: str
) -> ReadResult[tuple[McpServerManifest, ...]]:
    """Read the mcp.json of a plugin that is written for a version of the format.

    A server that cannot be used is left out; there is no value where none of them can.
    """
    problems = DiagnosticCollector(path)
    read = read_json(data, path, "mcp-invalid", limits)
    document = read.value
    if document is None:
        return ReadResult(None, read.diagnostics)
    servers = _servers_of(document, spec, problems)
    if len(problems):
        return ReadResult(None, problems.found)
    twice: dict[str, list[JsonPath]] = {}
    for path_there in document.twice:
        twice.setdefault(path_there[1], []).append(path_there[2:])
    found = [
        _server(name, value, twice.get(name, ()), document, problems)
        for name, value in servers.items()
    ]
    return ReadResult(tuple(server for server in found if server is not None), problems.found)


def _servers_of(
    document: JsonDocument, spec: str, problems: DiagnosticCollector
) -> Mapping[str, JsonValue]:
    """Return the servers by name, after a look at everything around them."""

    def note(key: str, message: str, fix: str) -> None:
        problems.add("mcp-invalid", message, fix, document.line((key,)))

    top = document.value
    if not isinstance(top, dict):
        note("", f"the top level is {json_type_name(top)}, not an object", "Write an object.")
        return {}
    schema, servers = top.get("$schema"), top.get("mcpServers")
    known = next(url for url, version in MCP_SCHEMAS.items() if version == spec)
    if not isinstance(schema, str) or schema not in MCP_SCHEMAS:
        given = quoted(schema) if isinstance(schema, str) else json_type_name(schema)
        message = f"'$schema' is {given}" if "$schema" in top else "no '$schema' is given"
        note("$schema", f"{message}, so its version is not known", f'Write "{known}".')
    elif MCP_SCHEMAS[schema] != spec:
        message = f"it is written for version {MCP_SCHEMAS[schema]}, plugin.json for {spec}"
        note("$schema", message, f'Write "{known}".')
    if not isinstance(servers, dict):
        given = f"is {json_type_name(servers)}" if "mcpServers" in top else "is missing"
        note("mcpServers", f"'mcpServers' {given}, not an object", "Write an object.")
    for key in top:
        if key not in _TOP:
            note(key, f"{quoted(key)} is no field of mcp.json", "Remove it.")
    for path in document.twice:
        if len(path) == 1:
            note(path[0], f"{quoted(path[0])} is given twice", "Keep one.")
    return servers if isinstance(servers, dict) else {}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One server as it is written, with a way to say what is wrong with it."""

    values: Mapping[str, JsonValue]
    note: Callable[[str, str], None]
    """Takes the key that is wrong, and what is wrong."""

    def text(self, key: str, *, required: bool = False) -> str:
        value = self.values.get(key)
        if key not in self.values:
            if required:
                self.note(key, f"has no '{key}'")
            return ""
        if not isinstance(value, str):
            self.note(key, f"has {json_type_name(value)} for '{key}', not text")
            return ""
        if required and not value:
            self.note(key, f"has an empty '{key}'")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key, [])
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(map(str, value))
        self.note(key, f"needs a list of texts for '{key}'")
        return ()

    def mapping(self, key: str) -> dict[str, str]:
        value = self.values.get(key, {})
        if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
            return {name: str(item) for name, item in value.items()}
        self.note(key, f"needs an object of texts for '{key}'")
        return {}


def _server(
    name: str,
    value: JsonValue,
    twice: Iterable[JsonPath],
    document: JsonDocument,
    problems: DiagnosticCollector,
) -> McpServerManifest | None:
    """Read one server by the letter, or say everything that is wrong with it.

    `twice` are the keys in it that are given twice; an empty one is the server itself.
    """
    before = len(problems)

    def note(key: str, message: str) -> None:
        line = document.line(("mcpServers", name, key))
        problems.add(_CODE, f"server {quoted(name)} {message}", "Mend or remove it.", line)

    for path in twice:
        note(
            path[0] if path else "", f"gives {quoted(path[-1])} twice" if path else "is given twice"
        )
    if not isinstance(value, dict):
        note("", f"is {json_type_name(value)}, not an object")
        return None
    entry = _Entry(value, note)
    transport = entry.text("type", required=True)
    if transport and transport not in _FIELDS:
        note("type", f"has the unknown type {quoted(transport)}")
    if transport not in _FIELDS:
        return None
    for key in value:
        if key not in _FIELDS[transport]:
            note(key, f"has the field {quoted(key)}, which is none of type {transport}")
    server = _stdio(name, entry) if transport == "stdio" else _remote(name, transport, entry)
    lines = {key: document.line(("mcpServers", name, key)) for key in ("command", "cwd")}
    return replace(server, lines=lines) if len(problems) == before else None


def _stdio(name: str, entry: _Entry) -> McpServerManifest:
    command, cwd = entry.text("command", required=True), entry.text("cwd")
    if command and not command.startswith("./") and not _BARE_COMMAND.fullmatch(command):
        entry.note("command", f"has {quoted(command)} for 'command'; write one name, or a path ./")
    if "cwd" in entry.values and not _CWD.fullmatch(cwd):
        entry.note("cwd", f"has {quoted(cwd)} for 'cwd'; begin with ./ or ${{PLUGIN_ROOT}}")
    env = entry.mapping("env")
    for reserved in (PLUGIN_ROOT, PLUGIN_DATA):
        if reserved in env:
            entry.note("env", f"sets {reserved}, which is not its to set")
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
        entry.note("url", f"has a URL that {fault}")
    for header, value in headers.items():
        if not is_header(header, value):
            entry.note("headers", f"has {quoted(header)}, which is no header of HTTP")
    if len({header.lower() for header in headers}) < len(headers):
        entry.note("headers", "gives a header twice; upper and lower case are the same")
    return McpServerManifest(name=name, transport=transport, url=url, headers=frozen(headers))


def is_header(name: str, value: str) -> bool:
    """Tell whether HTTP has such headers."""
    return bool(_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value))


def _url_fault(url: str) -> str:
    """Say why a URL cannot be connected to, or `""` if it can."""
    if "#" in url:
        return "has a fragment"
    if _USER.match(url):
        return "names a user"
    found = _URL.fullmatch(url)
    if not found or int(found["port"] or 0) > _LAST_PORT or not _is_host(found):
        return "is no absolute URL of HTTP or HTTPS"
    if found["scheme"].lower() == "http" and not _is_loopback(found["name"] or found["six"]):
        return "is not HTTPS, which all but this machine must be"
    return ""


def _is_host(found: re.Match[str]) -> bool:
    try:
        return bool(found["name"]) or ip_address(found["six"]).version == _SIX
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
