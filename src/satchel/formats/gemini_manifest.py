"""Read gemini-extension.json, the manifest of an extension of Gemini CLI.

Reading is lenient, because the format belongs to another client.
"""

import re
from dataclasses import replace

from satchel.formats.claude_manifest import ClaudeManifest, claude_manifest
from satchel.formats.json_fields import JsonFields, read_object
from satchel.formats.json_reader import JsonValue
from satchel.formats.read_result import ReadResult
from satchel.formats.server_entries import listed, texts_in
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits

DEFAULT_CONTEXT = "GEMINI.md"
_USED = ("name", "version", "description", "mcpServers")
_READ = (*_USED, "contextFileName", "$schema")
_VARIABLE = re.compile(r"\$\{(extensionPath|/|pathSeparator)\}")
_PLAIN_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_IN_PATHS = {"extensionPath": ".", "/": "/", "pathSeparator": "/"}
_VALUES = _IN_PATHS | {"extensionPath": "${CLAUDE_PLUGIN_ROOT}"}


@dataclass(frozen=True, slots=True)
class GeminiManifest:
    """The gemini-extension.json of an extension."""

    plugin: ClaudeManifest
    """Its fields, in the terms of a Claude bundle; its servers are alike."""
    contexts: tuple[str, ...]
    """The files with the context that it names, relative to the extension."""
    context_line: int | None


def read_gemini_extension(data: bytes, path: str, limits: Limits) -> ReadResult[GeminiManifest]:
    """Read the gemini-extension.json of an extension; diagnostics show `path`."""
    return read_object(data, path, "plugin-json-invalid", limits, _manifest)


def _manifest(top: JsonFields) -> GeminiManifest:
    used = {key: value for key, value in top.values.items() if key in _USED}
    servers = used.get("mcpServers")
    if isinstance(servers, dict):
        used["mcpServers"] = {name: _as_claude(entry) for name, entry in servers.items()}
    ignored = {key: value for key, value in top.values.items() if key not in _READ}
    manifest = claude_manifest(replace(top, values=used | ignored))
    names = filter(None, texts_in(listed(top.values.get("contextFileName"))))
    contexts = tuple(_VARIABLE.sub(lambda match: _IN_PATHS[match[1]], name) for name in names)
    return GeminiManifest(manifest, contexts, top.document.line(("contextFileName",)))


def _as_claude(entry: JsonValue) -> JsonValue:
    entry = _with_variables(entry)
    if not isinstance(entry, dict):
        return entry
    for key in ("env", "headers"):
        if isinstance(values := entry.get(key), dict):
            entry[key] = {name: _named(value) for name, value in values.items()}
    if "command" in entry:
        return entry
    return {"type": "http" if "httpUrl" in entry else "sse", **entry}


def _named(value: JsonValue) -> JsonValue:
    """Return a value with variables as `${NAME}`; Gemini CLI also has `$NAME`."""
    return _PLAIN_VARIABLE.sub(r"${\1}", value) if isinstance(value, str) else value


def _with_variables(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return _VARIABLE.sub(lambda match: _VALUES[match[1]], value)
        case list():
            return [_with_variables(item) for item in value]
        case dict():
            return {key: _with_variables(item) for key, item in value.items()}
    return value
