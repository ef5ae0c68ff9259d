"""Read mcp.json, the MCP servers of an open plugin (Agent Plugins 1.0.0)."""

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from satchel.formats.frozen_values import frozen
from satchel.formats.json_fields import JsonFields, read_object
from satchel.formats.json_reader import JsonPath, JsonValue, json_type_name
from satchel.formats.mcp_json import (
    MCP_SCHEMAS,
    PLUGIN_DATA,
    PLUGIN_ROOT,
    McpServerManifest,
    is_header,
    is_loopback,
)
from satchel.formats.read_result import ReadResult, quoted
from satchel.formats.server_table import HEADERS, URL
from satchel.formats.table_model import LIST, TABLE, TEXT, Expected, TableModel, checked, validated
from satchel.settings import Limits

_TOP = ("$schema", "mcpServers")
_CWD = re.compile(r"\./.*|\$\{PLUGIN_(?:ROOT|DATA)\}(?:/.*)?", re.DOTALL)
_WORD = r"[^\s/\\\x00-\x1f\x7f]+"
_BARE_COMMAND = re.compile(rf"(?!\.\.?\Z){_WORD}")
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
_LAST_PORT = 65_535
_IPV6 = 6


def read_mcp(
    data: bytes, path: str, limits: Limits, spec: str
) -> ReadResult[tuple[McpServerManifest, ...]]:
    """Read the mcp.json of a plugin written for version `spec` of the format.

    Invalid servers are left out. The value is `None` if the file itself is invalid.
    """

    def read(top: JsonFields) -> tuple[McpServerManifest, ...] | None:
        servers = _servers_of(top, spec)
        if len(top.collector):
            return None
        duplicates: dict[str, list[JsonPath]] = {}
        for duplicate in top.document.duplicates:
            duplicates.setdefault(duplicate[1], []).append(duplicate[2:])
        manifests = (
            _server(name, value, duplicates.get(name, ()), top) for name, value in servers.items()
        )
        return tuple(filter(None, manifests))

    return read_object(data, path, "mcp-invalid", limits, read)


def _servers_of(top: JsonFields, spec: str) -> Mapping[str, JsonValue]:
    """Return the servers by name, and report everything wrong at the top level."""

    def report(key: str, message: str, fix: str) -> None:
        top.report("mcp-invalid", key, message, fix)

    schema, servers = top.values.get("$schema"), top.values.get("mcpServers")
    expected = next(url for url, version in MCP_SCHEMAS.items() if version == spec)
    if not isinstance(schema, str) or schema not in MCP_SCHEMAS:
        actual = quoted(schema) if isinstance(schema, str) else json_type_name(schema)
        message = f"'$schema' is {actual}" if "$schema" in top.values else "no '$schema' is given"
        report("$schema", f"{message}, so its version is not known", f'Write "{expected}".')
    elif MCP_SCHEMAS[schema] != spec:
        message = f"it is written for version {MCP_SCHEMAS[schema]}, plugin.json for {spec}"
        report("$schema", message, f'Write "{expected}".')
    if not isinstance(servers, dict):
        actual = f"is {json_type_name(servers)}" if "mcpServers" in top.values else "is missing"
        report("mcpServers", f"'mcpServers' {actual}, not an object", "Write an object.")
    for key in top.values:
        if key not in _TOP:
            report(key, f"{quoted(key)} is not a field of mcp.json", "Remove it.")
    for path in top.document.duplicates:
        if len(path) == 1:
            report(path[0], f"{quoted(path[0])} is given twice", "Keep one.")
    return servers if isinstance(servers, dict) else {}


def _server(
    name: str, value: JsonValue, duplicates: Iterable[JsonPath], top: JsonFields
) -> McpServerManifest | None:
    """Read one server strictly, or report everything that is wrong with it.

    `duplicates` are the paths of duplicate keys in it; the empty path is the server itself.
    """
    before = len(top.collector)

    def line_of(key: str) -> int | None:
        return top.document.line(("mcpServers", name, key))

    def report(key: str, message: str) -> None:
        message = f"server {quoted(name)} {message}"
        top.collector.add("mcp-server-invalid", message, "Fix or remove it.", line_of(key))

    for path in duplicates:
        report(
            path[0] if path else "", f"has {quoted(path[-1])} twice" if path else "is given twice"
        )
    if not isinstance(value, dict):
        report("", f"is {json_type_name(value)}, not an object")
        return None
    kind: type[TableModel] = LocalEntry if value.get("type") == "stdio" else RemoteEntry
    entry, faults = validated(kind, value)
    # The type decides what the other keys mean.
    for key in ["type"] if "type" in faults else faults:
        report(key, f"is invalid: its {faults[key]}")
    if entry is None or len(top.collector) > before:
        return None
    lines = {key: line_of(key) for key in ("command", "cwd")}
    table = {key: item for key, item in entry if item and key != "type"}
    if isinstance(entry, RemoteEntry):
        table["transport"] = entry.type
    return McpServerManifest(name=name, table=frozen(table), lines=lines)


def _command_fault(command: str) -> str:
    is_valid = command.startswith("./") or _BARE_COMMAND.fullmatch(command)
    return "" if is_valid else f"is {quoted(command)}; write one name, or a path ./"


def _cwd_fault(cwd: str) -> str:
    return "" if _CWD.fullmatch(cwd) else f"is {quoted(cwd)}; begin with ./ or ${{PLUGIN_ROOT}}"


def _env_fault(env: Mapping[str, str]) -> str:
    return next((f"sets {key}, which is reserved" for key in _RESERVED if key in env), "")


def _headers_fault(headers: Mapping[str, str]) -> str:
    for header, value in headers.items():
        if not is_header(header, value):
            return f"has {quoted(header)}, which is not a valid HTTP header"
    is_unique = len({header.lower() for header in headers}) == len(headers)
    return "" if is_unique else "has a header twice; upper and lower case are the same"


def _url_fault(url: str) -> str:
    """Return what is wrong with a URL, or `""`."""
    if "#" in url:
        return "has a fragment"
    if _USER.match(url):
        return "contains a user name"
    parts = _URL.fullmatch(url)
    if not parts or int(parts["port"] or 0) > _LAST_PORT or not _is_host(parts):
        return "is not an absolute HTTP or HTTPS URL"
    if parts["scheme"].lower() == "http" and not is_loopback(parts["name"] or parts["six"]):
        return "is not HTTPS; only this machine may be reached by HTTP"
    return ""


def _is_host(parts: re.Match[str]) -> bool:
    try:
        return bool(parts["name"]) or ip_address(parts["six"]).version == _IPV6
    except ValueError:
        return False


_RESERVED = (PLUGIN_ROOT, PLUGIN_DATA)


class LocalEntry(TableModel):
    """A server that is a program on this machine."""

    type: Literal["stdio"] = Field(description="A program on this machine.")
    command: Annotated[str, checked(_command_fault), TEXT] = Field(
        description="The program: a name on the PATH, or a path that begins with ./",
        json_schema_extra={"pattern": rf"^(?:\./.*|(?!\.\.?$){_WORD})$"},
    )
    args: Annotated[list[str], LIST] = Field([], description="Its arguments.")
    env: Annotated[dict[str, str], checked(_env_fault), TABLE] = Field(
        {},
        description="Its environment variables.",
        json_schema_extra={"propertyNames": {"not": {"enum": [*_RESERVED]}}},
    )
    cwd: Annotated[str, checked(_cwd_fault), TEXT] = Field(
        "",
        description="Its working folder: ./..., ${PLUGIN_ROOT} or ${PLUGIN_DATA}.",
        json_schema_extra={"pattern": f"^(?:{_CWD.pattern})$"},
    )


class RemoteEntry(TableModel):
    """A server at an address."""

    type: Annotated[
        Literal["streamable-http", "sse"], Expected("must be stdio, streamable-http or sse")
    ] = Field(description="The protocol.")
    url: Annotated[str, checked(_url_fault), TEXT] = Field(
        description="The address.", json_schema_extra={"pattern": f"^(?:{URL})$"}
    )
    headers: Annotated[dict[str, str], WithJsonSchema(HEADERS), checked(_headers_fault), TABLE] = (
        Field({}, description="Headers of each request.")
    )
