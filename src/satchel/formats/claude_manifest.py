"""Read the parts of Claude bundles that Satchel supports: plugin.json and .mcp.json.

Reading is lenient, because the format belongs to another client.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from math import inf
from types import MappingProxyType
from typing import Any

from satchel.formats.json_reader import JsonDocument, JsonValue, json_type_name
from satchel.formats.mcp_json import McpServerManifest
from satchel.formats.open_plugin_manifest import JsonFields, read_object
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.lazy_dataclass import dataclass
from satchel.names import plugin_name_fault
from satchel.settings import Limits

_TEXTS = ("version", "description", "homepage", "license")
_READ = ("name", *_TEXTS, "author", "keywords", "skills", "commands", "mcpServers")
_DESCRIPTIVE = ("$schema", "repository", "displayName", "category", "tags")
"""Fields that only describe the bundle; leaving them out loses nothing."""

_PACKED = (".mcpb", ".dxt")
"""Suffixes of files that pack a server together with its code."""

_LOOPBACK = ("http://localhost:", "http://127.0.0.1:")

_ISSUER_FIX = (
    "declare the server in satchel.toml, with client-secret and its issuer in [mcp.NAME.oauth]"
)

_TRANSPORTS = {"http": "streamable-http", "streamable-http": "streamable-http", "sse": "sse"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeManifest:
    """The plugin.json of a Claude bundle."""

    name: str
    version: str
    description: str
    author: str
    homepage: str
    license: str
    keywords: tuple[str, ...]
    skills: tuple[str, ...]
    """Skill folders in addition to `skills`, relative to the bundle."""
    commands: tuple[str, ...]
    """Files and folders of commands in addition to `commands`, relative to the bundle."""
    server_files: tuple[str, ...]
    """Server files in addition to `.mcp.json`, relative to the bundle."""
    servers: tuple[McpServerManifest, ...]
    """The servers declared in the manifest itself."""
    ignored: tuple[str, ...]
    """Fields and packed servers that Claude uses and Satchel does not."""
    lines: Mapping[str, int | None] = field(default_factory=dict, compare=False, repr=False)


def read_claude_plugin(data: bytes, path: str, limits: Limits) -> ReadResult[ClaudeManifest]:
    """Read the plugin.json of a Claude bundle; diagnostics show `path`."""
    collector = DiagnosticCollector(path)
    top = read_object(data, path, "plugin-json-invalid", limits, collector)
    if top is None:
        return ReadResult(None, collector.diagnostics)
    manifest = claude_manifest(top)
    return ReadResult(None if collector.fatal else manifest, collector.diagnostics)


def claude_manifest(top: JsonFields) -> ClaudeManifest:
    """Read the fields of a plugin, in its plugin.json or in the entry of a marketplace."""
    author = top.values.get("author")
    servers = _parts(top, "mcpServers", dict)
    files = _texts(servers)
    packed = [file for file in files if "://" in file or file.endswith(_PACKED)]
    return ClaudeManifest(
        name=_name(top),
        **{key: top.text(key) for key in _TEXTS},
        author=str(author.get("name", "")) if isinstance(author, dict) else _text(author),
        keywords=tuple(_texts(_listed(top.values.get("keywords")))),
        skills=tuple(_texts(_parts(top, "skills"))),
        commands=tuple(_texts(_parts(top, "commands"))),
        server_files=tuple(file for file in files if file not in packed),
        servers=tuple(
            server
            for part in servers
            if isinstance(part, dict)
            for server in _servers(part, top.document, top.collector)
        ),
        ignored=(*(key for key in top.values if key not in (*_READ, *_DESCRIPTIVE)), *packed),
        lines={key: top.document.line((*top.at, key)) for key in top.values},
    )


def read_claude_servers(
    data: bytes, path: str, limits: Limits
) -> ReadResult[tuple[McpServerManifest, ...]]:
    """Read a `.mcp.json`; the servers may be below `mcpServers` or at the top level."""
    collector = DiagnosticCollector(path)
    top = read_object(data, path, "mcp-invalid", limits, collector)
    if top is None:
        return ReadResult(None, collector.diagnostics)
    servers = top.values.get("mcpServers", top.values)
    if not isinstance(servers, Mapping):
        message = f"'mcpServers' is {json_type_name(servers)}, not an object"
        top.report("mcp-invalid", "mcpServers", message, "Write an object.")
        return ReadResult(None, collector.diagnostics)
    return ReadResult(tuple(_servers(servers, top.document, collector)), collector.diagnostics)


def _name(top: JsonFields) -> str:
    name = top.text("name")
    if "name" not in top.values:
        top.report("plugin-field-missing", "name", "no name is given", "Add a name.")
    elif isinstance(top.values["name"], str) and (fault := plugin_name_fault(name)):
        message = f"the name {quoted(name)} {fault}"
        top.report("plugin-name-shape", "name", message, "Choose another name.")
    return name


def _parts(top: JsonFields, key: str, *kinds: type) -> list[JsonValue]:
    """Return the paths of a field, one or several, and its values of the other `kinds`."""
    parts = []
    for item in _listed(top.values.get(key)):
        if isinstance(item, (str, *kinds)):
            parts.append(item)
        else:
            message = f"{quoted(key)} is given {json_type_name(item)}, not a path; it is ignored"
            top.report("plugin-field-unknown", key, message, "Write a path inside the bundle.")
    return parts


def _servers(
    values: Mapping[str, JsonValue], document: JsonDocument, collector: DiagnosticCollector
) -> Iterable[McpServerManifest]:
    """Yield the servers that can be used; the others become diagnostics."""
    for name, entry in values.items():
        line = document.line(("mcpServers", name)) or document.line((name,))
        try:
            if isinstance(entry, dict) and _is_disabled(entry):
                off = f"server {quoted(name)} is disabled in this file"
                collector.add("mcp-disabled", off, "Remove 'disabled' to use it.", line)
                continue
            server = _server(name, entry)
            if server.url and _has_client_secret(entry):
                ignored = f"the 'clientSecret' of server {quoted(name)} is not used"
                collector.add("mcp-secret-unused", ignored, _ISSUER_FIX, line)
            if others := _not_used(entry, server):
                message = f"server {quoted(name)}: not used: {', '.join(map(quoted, others))}"
                collector.add("plugin-field-unknown", message, _OTHERS_FIX, line)
            yield server
        except _InvalidServerError as fault:
            message = f"server {quoted(name)} has {fault}"
            collector.add("mcp-server-invalid", message, "Fix or remove it.", line)


_SERVER_FIELDS = frozenset(
    {
        *("type", "command", "args", "env", "cwd", "url", "httpUrl", "headers", "oauth"),
        *("disabled", "includeTools", "excludeTools", "timeout", "description"),
    }
)
"""The fields of a server, in the words of Claude Code and Gemini CLI."""
_OTHERS_FIX = "Remove them, unless another client uses them."


class _InvalidServerError(Exception):
    """A server cannot be used; the message follows "server NAME has"."""


def _is_disabled(entry: Mapping[str, JsonValue]) -> bool:
    value = entry.get("disabled") or False
    if not isinstance(value, bool):
        raise _InvalidServerError(f"{json_type_name(value)} for 'disabled', not true or false")
    return value


def _server(name: str, entry: JsonValue) -> McpServerManifest:
    fields = entry if isinstance(entry, dict) else {}
    command, url = _text(fields.get("command")), _text(fields.get("url"))
    kind = _text(fields.get("type")) or ("stdio" if command else "http")
    if kind == "stdio" and command:
        given = fields.get("args")
        if not isinstance(given, list | None):
            raise _InvalidServerError(f"{json_type_name(given)} for 'args', not a list")
        args = tuple(_as_text("args", item) for item in given or ())
        env, cwd = _pairs(fields, "env"), _text(fields.get("cwd"))
        return McpServerManifest(
            name=name,
            transport="stdio",
            command=command,
            args=args,
            env=env,
            cwd=cwd,
            **_tool_choice(fields),
            timeout=_seconds(fields.get("timeout")),
            of_claude=True,
        )
    if kind in _TRANSPORTS and url:
        headers = _pairs(fields, "headers")
        return McpServerManifest(
            name=name,
            transport=_TRANSPORTS[kind],
            url=url,
            headers=headers,
            **_oauth(fields.get("oauth")),
            **_tool_choice(fields),
            timeout=_seconds(fields.get("timeout")),
            or_sse="type" not in fields,
            of_claude=True,
        )
    raise _InvalidServerError("neither a command nor a URL of a known type")


def _not_used(entry: JsonValue, server: McpServerManifest) -> list[str]:
    """Return the fields that say nothing to us; a time limit may be invalid."""
    fields = entry if isinstance(entry, dict) else {}
    is_limited = server.timeout is not None or fields.get("timeout") is None
    return sorted(fields.keys() - (_SERVER_FIELDS if is_limited else _SERVER_FIELDS - {"timeout"}))


def _has_client_secret(entry: JsonValue) -> bool:
    """Return whether a server has a secret, which is not used: the format names no issuer."""
    oauth = entry.get("oauth") if isinstance(entry, dict) else None
    return isinstance(oauth, dict) and bool(oauth.get("clientSecret"))


def _oauth(value: JsonValue) -> dict[str, Any]:
    """Return as which OAuth client to log in, without its secret."""
    fields = value if isinstance(value, dict) else {}
    port, scopes = fields.get("callbackPort"), _listed(fields.get("scopes"))
    redirect = _text(fields.get("redirectUri"))  # the word of Gemini CLI
    if isinstance(port, float):  # as every number in JSON
        redirect = f"http://localhost:{port:.0f}/callback"
    return {
        "client_id": _text(fields.get("clientId")),
        "redirect": redirect if redirect.startswith(_LOOPBACK) else "",
        "scopes": tuple(scope for text in _texts(scopes) for scope in text.split()),
    }


def _tool_choice(fields: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Return which tools to use, in the words of Gemini CLI; what is after a `(` is for its own."""
    given = {
        key: tuple(name.partition("(")[0] for name in _texts(_listed(fields.get(word))))
        for key, word in (("enable", "includeTools"), ("disable", "excludeTools"))
    }
    return given if fields.get("includeTools") is not None else {**given, "enable": None}


def _seconds(value: JsonValue) -> float | None:
    """Return a time limit, which the format gives in milliseconds; `None` if it is invalid."""
    return value / 1000 if isinstance(value, float) and 0 < value < inf else None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _listed(value: JsonValue) -> list[JsonValue]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _texts(values: Iterable[JsonValue]) -> list[str]:
    return [item for item in values if isinstance(item, str)]


def _pairs(fields: Mapping[str, JsonValue], key: str) -> Mapping[str, str]:
    value = fields.get(key) or {}
    if not isinstance(value, dict):
        raise _InvalidServerError(f"{json_type_name(value)} for {quoted(key)}, not an object")
    given = {name: item for name, item in value.items() if item is not None}
    return MappingProxyType({name: _as_text(key, item) for name, item in given.items()})


def _as_text(key: str, value: JsonValue) -> str:
    """Convert a value to text: processes and requests take nothing else."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return str(int(value) if value.is_integer() else value)
    raise _InvalidServerError(f"{json_type_name(value)} among its {quoted(key)}, not text")
