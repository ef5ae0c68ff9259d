"""Read the parts of Claude bundles that Satchel supports, as plugin.json names them.

Reading is lenient, because the format belongs to another client.
"""

from collections.abc import Mapping
from dataclasses import field

from satchel.formats.json_fields import JsonFields, read_object
from satchel.formats.json_reader import JsonValue, json_type_name
from satchel.formats.mcp_json import McpServerManifest
from satchel.formats.read_result import ReadResult, quoted
from satchel.formats.server_entries import listed, read_entries, text_of, texts_in
from satchel.lazy_dataclass import dataclass
from satchel.names import plugin_name_fault
from satchel.settings import Limits

_TEXTS = ("version", "description", "homepage", "license")
_READ = ("name", *_TEXTS, "author", "keywords", "skills", "commands", "mcpServers")
_DESCRIPTIVE = ("$schema", "repository", "displayName", "category", "tags")
"""Fields that only describe the bundle; leaving them out loses nothing."""

_PACKED = (".mcpb", ".dxt")
"""Suffixes of files that pack a server together with its code."""


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
    contexts: tuple[str, ...]
    """Context files of a Gemini extension, relative to its folder."""
    lines: Mapping[str, int | None] = field(default_factory=dict, compare=False, repr=False)


def read_claude_plugin(data: bytes, path: str, limits: Limits) -> ReadResult[ClaudeManifest]:
    """Read the plugin.json of a Claude bundle; diagnostics show `path`."""
    return read_object(data, path, "plugin-json-invalid", limits, claude_manifest)


def claude_manifest(top: JsonFields) -> ClaudeManifest:
    """Read the fields of a plugin, in its plugin.json or in the entry of a marketplace."""
    author = top.values.get("author")
    servers = _parts(top, "mcpServers", dict)
    files = texts_in(servers)
    packed = [file for file in files if "://" in file or file.endswith(_PACKED)]
    return ClaudeManifest(
        name=top.name(plugin_name_fault),
        **{key: top.text(key) for key in _TEXTS},
        author=str(author.get("name", "")) if isinstance(author, dict) else text_of(author),
        keywords=tuple(texts_in(listed(top.values.get("keywords")))),
        skills=tuple(texts_in(_parts(top, "skills"))),
        commands=tuple(texts_in(_parts(top, "commands"))),
        server_files=tuple(file for file in files if file not in packed),
        servers=tuple(
            server
            for part in servers
            if isinstance(part, dict)
            for server in read_entries(part, ("mcpServers",), top)
        ),
        ignored=(*(key for key in top.values if key not in (*_READ, *_DESCRIPTIVE)), *packed),
        contexts=(),
        lines={key: top.document.line((*top.at, key)) for key in top.values},
    )


def _parts(top: JsonFields, key: str, *kinds: type) -> list[JsonValue]:
    """Return the paths of a field, one or several, and its values of the other `kinds`."""
    parts = []
    for item in listed(top.values.get(key)):
        if isinstance(item, (str, *kinds)):
            parts.append(item)
        else:
            message = f"{quoted(key)} is given {json_type_name(item)}, not a path; it is ignored"
            top.report("plugin-field-unknown", key, message, "Write a path inside the bundle.")
    return parts
