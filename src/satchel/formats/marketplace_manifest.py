"""Read `.claude-plugin/marketplace.json`, a list of plugins.

Reading is lenient, because the format belongs to another client.
"""

import json
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from satchel.formats.claude_manifest import ClaudeManifest, claude_manifest
from satchel.formats.json_fields import JsonFields, read_object
from satchel.formats.json_reader import JsonValue, json_type_name
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits

_CODE = "marketplace-invalid"
_OWN_FIELDS = ("source", "strict")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPlugin:
    """One entry of a marketplace; it may replace or extend the plugin's own manifest."""

    manifest: ClaudeManifest
    source: str
    """The plugin's folder below the marketplace, as written; `""` if it is elsewhere."""
    is_strict: bool
    """Whether the plugin's own manifest counts; otherwise the entry is the whole manifest."""
    line: int | None = field(default=None, compare=False, repr=False)
    text: str = field(default="{}", compare=False, repr=False)
    """The entry as JSON."""

    def listing(self) -> str:
        """Return a marketplace.json for the plugin's folder that lists only this plugin."""
        return json.dumps({"plugins": [json.loads(self.text) | {"source": "./"}]}, indent=2)

    @property
    def name(self) -> str:
        """Return the plugin's name."""
        return self.manifest.name


def read_marketplace(
    data: bytes, path: str, limits: Limits
) -> ReadResult[tuple[ListedPlugin, ...]]:
    """Return the plugins in a marketplace.json; diagnostics show `path`.

    An invalid entry is left out.
    """
    return read_object(data, path, _CODE, limits, _plugins)


def _plugins(top: JsonFields) -> tuple[ListedPlugin, ...] | None:
    entries = top.values.get("plugins")
    if not isinstance(entries, list):
        actual = json_type_name(entries) if "plugins" in top.values else "missing"
        message = f"'plugins' is {actual}; it must be a list"
        top.report(_CODE, "plugins", message, "Write a list of plugins.")
        return None
    metadata = top.values.get("metadata")
    root = metadata.get("pluginRoot") if isinstance(metadata, dict) else None
    return tuple(_entries(top, entries, root if isinstance(root, str) else ""))


def _entries(top: JsonFields, entries: list[JsonValue], root: str) -> Iterable[ListedPlugin]:
    names: set[str] = set()
    for position, values in enumerate(entries):
        at = ("plugins", str(position))
        line = top.document.line(at)
        inner = DiagnosticCollector(top.collector.path)
        fields = replace(top, values=_without_own(values), at=at, collector=inner)
        manifest = claude_manifest(fields)
        if not isinstance(values, dict) or inner.fatal:
            reason = inner.diagnostics[0].message
            if not isinstance(values, dict):
                reason = f"it is {json_type_name(values)}, not an object"
            message = f"entry {position + 1} is left out: {reason}"
            top.collector.add("marketplace-entry-invalid", message, "Fix or remove it.", line)
        elif manifest.name in names:
            message = f"{quoted(manifest.name)} is listed twice; the first entry counts"
            top.collector.add("marketplace-entry-invalid", message, "Remove one.", line)
        else:
            names.add(manifest.name)
            top.collector.extend(inner.diagnostics)
            yield ListedPlugin(
                manifest=replace(manifest, lines={}),
                source=_source(values.get("source"), root),
                is_strict=values.get("strict") is not False,
                line=line,
                text=json.dumps(values),
            )


def _without_own(values: JsonValue) -> Mapping[str, JsonValue]:
    if not isinstance(values, dict):
        return {}
    return {key: value for key, value in values.items() if key not in _OWN_FIELDS}


def _source(source: JsonValue, root: str) -> str:
    """Return the folder of a local plugin; addresses and objects are not local."""
    if not isinstance(source, str) or "://" in source or source.startswith("git@"):
        return ""
    return source if source.startswith((".", "/")) else posixpath.join(root or ".", source)
