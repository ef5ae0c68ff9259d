"""Read gemini-extension.json, the manifest of an extension of Gemini CLI.

Reading is lenient, because the format belongs to another client.
"""

import re
from dataclasses import replace

from satchel.formats.claude_manifest import ClaudeManifest, claude_manifest
from satchel.formats.json_fields import JsonFields, read_object
from satchel.formats.json_reader import JsonValue
from satchel.formats.read_result import ReadResult
from satchel.formats.server_entries import listed, texts_in, with_texts
from satchel.settings import Limits

CONTEXT = "contextFileName"
DEFAULT_CONTEXT = "GEMINI.md"
_USED = ("name", "version", "description", "mcpServers")
_READ = (*_USED, CONTEXT, "$schema")
_VARIABLE = re.compile(r"\$\{(extensionPath|/|pathSeparator)\}")
_PLAIN_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_IN_PATHS = {"extensionPath": ".", "/": "/", "pathSeparator": "/"}
_VALUES = _IN_PATHS | {"extensionPath": "${CLAUDE_PLUGIN_ROOT}"}


def read_gemini_extension(data: bytes, path: str, limits: Limits) -> ReadResult[ClaudeManifest]:
    """Read the gemini-extension.json of an extension; diagnostics show `path`."""
    return read_object(data, path, "plugin-json-invalid", limits, _manifest)


def _manifest(top: JsonFields) -> ClaudeManifest:
    used = {key: value for key, value in top.values.items() if key in _USED}
    servers = used.get("mcpServers")
    if isinstance(servers, dict):
        used["mcpServers"] = {name: _as_claude(entry) for name, entry in servers.items()}
    ignored = {key: value for key, value in top.values.items() if key not in _READ}
    manifest = claude_manifest(replace(top, values=used | ignored))
    names = filter(None, texts_in(listed(top.values.get(CONTEXT))))
    contexts = tuple(_VARIABLE.sub(lambda match: _IN_PATHS[match[1]], name) for name in names)
    lines = {**manifest.lines, CONTEXT: top.document.line((CONTEXT,))}
    return replace(manifest, contexts=contexts, lines=lines)


def _as_claude(entry: JsonValue) -> JsonValue:
    entry = with_texts(entry, lambda text: _VARIABLE.sub(lambda match: _VALUES[match[1]], text))
    if not isinstance(entry, dict):
        return entry
    for key in ("env", "headers"):
        # Gemini CLI also has `$NAME`.
        entry[key] = with_texts(entry.get(key), lambda text: _PLAIN_VARIABLE.sub(r"${\1}", text))
    if "command" in entry:
        return entry
    return {"type": "http" if "httpUrl" in entry else "sse", **entry}
