"""Claude bundles: `.claude-plugin/plugin.json` and `.mcp.json`, as far as they are read here.

Nothing is held to the letter: the format is another client's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from satchel.manifests.freezing import frozen
from satchel.manifests.jsontext import JsonText, JsonValue, kind_of_json, read_json
from satchel.manifests.mcp import McpServer
from satchel.manifests.openplugin import Fields
from satchel.manifests.reading import Problems, Reading, shown
from satchel.names import plugin_name_fault
from satchel.settings import Limits

_TEXTS = ("version", "description", "homepage", "license")
_READ = ("name", *_TEXTS, "author", "keywords", "skills", "mcpServers")
_TOLD = ("$schema", "repository", "displayName", "category", "tags")
"""Fields that say something about the bundle, and that nobody misses."""

_TRANSPORTS = {"http": "streamable-http", "streamable-http": "streamable-http", "sse": "sse"}


@dataclass(frozen=True, slots=True)
class ClaudeManifest:
    """What the plugin.json of a Claude bundle says."""

    name: str
    version: str
    description: str
    author: str
    homepage: str
    license: str
    keywords: tuple[str, ...]
    skills: tuple[str, ...]
    """Folders beside `skills`, relative to the bundle."""
    server_files: tuple[str, ...]
    """Files beside `.mcp.json`, relative to the bundle."""
    servers: tuple[McpServer, ...]
    """Those that stand in the manifest itself."""
    ignored: tuple[str, ...]
    """The fields that mean something to Claude and nothing here."""


def read_claude_plugin(data: bytes, path: str, limits: Limits) -> Reading[ClaudeManifest]:
    """Read the plugin.json of a Claude bundle; `path` is what diagnostics print."""
    read = read_json(data, path, "plugin-json-invalid", limits)
    if read.value is None:
        return Reading(None, read.diagnostics)
    problems = Problems(path)
    if not isinstance(read.value.value, dict):
        message = f"the top level is {kind_of_json(read.value.value)}, not an object"
        problems.add("plugin-json-invalid", message, "Write an object.", 1)
        return Reading(None, problems.found)
    top = Fields(read.value.value, (), read.value, problems)
    author = top.values.get("author")
    servers = _listed(top.values.get("mcpServers"))
    manifest = ClaudeManifest(
        name=_name(top),
        **{key: top.text(key) for key in _TEXTS},
        author=str(author.get("name", "")) if isinstance(author, dict) else _text(author),
        keywords=tuple(_texts(top.values.get("keywords"))),
        skills=tuple(_texts(top.values.get("skills"))),
        server_files=tuple(_texts(servers)),
        servers=tuple(
            server for part in servers for server in _servers(part, read.value, problems)
        ),
        ignored=tuple(key for key in top.values if key not in (*_READ, *_TOLD)),
    )
    return Reading(None if problems.fatal else manifest, problems.found)


def read_claude_servers(data: bytes, path: str, limits: Limits) -> Reading[tuple[McpServer, ...]]:
    """Read a `.mcp.json`, with or without `mcpServers` around the servers."""
    read = read_json(data, path, "mcp-invalid", limits)
    if read.value is None:
        return Reading(None, read.diagnostics)
    problems, top = Problems(path), read.value.value
    if not isinstance(top, dict):
        message = f"the top level is {kind_of_json(top)}, not an object"
        problems.add("mcp-invalid", message, "Write an object.", 1)
        return Reading(None, problems.found)
    inner = top.get("mcpServers", top)
    if not isinstance(inner, dict):
        message = f"'mcpServers' is {kind_of_json(inner)}, not an object"
        problems.add("mcp-invalid", message, "Write an object.", read.value.line(("mcpServers",)))
        return Reading(None, problems.found)
    servers = tuple(_servers(inner, read.value, problems))
    return Reading(servers, problems.found)


def _name(top: Fields) -> str:
    name = top.text("name")
    if "name" not in top.values:
        top.note("plugin-field-missing", "name", "no name is given", "Add a name.")
    elif isinstance(top.values["name"], str) and (fault := plugin_name_fault(name)):
        message = f"the name {shown(name)} {fault}"
        top.note("plugin-name-shape", "name", message, "Choose another name.")
    return name


def _servers(value: JsonValue, document: JsonText, problems: Problems) -> Iterable[McpServer]:
    """Read servers by name; one that is of no known kind is left out."""
    for name, entry in value.items() if isinstance(value, dict) else ():
        server = _server(name, entry) if isinstance(entry, dict) else None
        if server is not None:
            yield server
            continue
        line = document.line(("mcpServers", name)) or document.line((name,))
        message = f"server {shown(name)} has neither a command nor a URL of a kind that is known"
        problems.add("mcp-server-invalid", message, "Mend or remove it.", line)


def _server(name: str, entry: Mapping[str, JsonValue]) -> McpServer | None:
    command, url = _text(entry.get("command")), _text(entry.get("url"))
    kind = _text(entry.get("type")) or ("stdio" if command else "http")
    if kind == "stdio" and command:
        args, cwd = tuple(_texts(entry.get("args"))), _text(entry.get("cwd"))
        env = frozen(_pairs(entry.get("env")))
        return McpServer(name, "stdio", command, args, env, cwd, of_claude=True)
    if kind in _TRANSPORTS and url:
        headers = frozen(_pairs(entry.get("headers")))
        return McpServer(name, _TRANSPORTS[kind], url=url, headers=headers, of_claude=True)
    return None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _listed(value: JsonValue) -> list[JsonValue]:
    """Return a list as it is, and what stands alone in a list of its own."""
    return value if isinstance(value, list) else [value]


def _texts(value: JsonValue) -> Iterable[str]:
    return (item for item in _listed(value) if isinstance(item, str))


def _pairs(value: JsonValue) -> dict[str, str]:
    items = value.items() if isinstance(value, dict) else ()
    return {key: item for key, item in items if isinstance(item, str)}
