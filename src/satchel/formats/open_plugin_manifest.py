"""Read plugin.json, the manifest of an open plugin (Agent Plugins 1.0.0)."""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType

from satchel.formats.json_fields import JsonFields, read_object
from satchel.formats.json_reader import JsonDocument, json_type_name
from satchel.formats.read_result import ReadResult, quoted
from satchel.lazy_dataclass import dataclass
from satchel.names import near_misses
from satchel.settings import Limits

PLUGIN_SCHEMAS: Mapping[str, str] = MappingProxyType(
    {"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json": "1.0.0"}
)
"""The known schemas of `plugin.json`, each with its version of the format."""

OPEN_NAME = re.compile(r"(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?")
_TEXTS = ("version", "description", "homepage", "repository", "license")
_AUTHOR = ("name", "email", "url")
_FIELDS = ("$schema", "name", *_TEXTS, "author", "keywords", "extensions")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenManifest:
    """A plugin.json; `spec` is the version of the format that it is written for."""

    spec: str
    name: str
    version: str
    description: str
    author: str
    """The name of its author."""
    homepage: str
    repository: str
    license: str
    keywords: tuple[str, ...]
    extensions: Mapping[str, tuple[str, ...]]
    """The names of the extension data that it has for each client; the data is not read."""
    document: JsonDocument | None = field(default=None, compare=False, repr=False)

    def line(self, *at: str) -> int | None:
        """Return the line of a field, or of the nearest field around it."""
        return self.document.line(at) if self.document else None


def read_open_plugin(data: bytes, path: str, limits: Limits) -> ReadResult[OpenManifest]:
    """Read a plugin.json; diagnostics show `path`. Schemas are never fetched."""
    return read_object(data, path, "plugin-json-invalid", limits, _manifest)


def _manifest(top: JsonFields) -> OpenManifest | None:
    spec = _spec(top)
    if spec is None:
        # The meaning of the other fields is unknown.
        return None
    _report_duplicates(top)
    manifest = OpenManifest(
        spec=spec,
        name=top.name(_name_fault),
        **{key: top.text(key) for key in _TEXTS},
        author=_author(top),
        keywords=top.texts("keywords"),
        extensions=_extensions(top),
        document=top.document,
    )
    _report_unknown(top)
    return manifest


def _spec(top: JsonFields) -> str | None:
    """Return the version that the manifest is written for, `None` if it is unknown.

    A manifest without one is read as the newest version, to find all of its errors.
    """
    newest = list(PLUGIN_SCHEMAS.values())[-1]
    if "$schema" not in top.values:
        fix = f'Add "$schema": "{list(PLUGIN_SCHEMAS)[-1]}".'
        top.report("plugin-field-missing", "$schema", "no '$schema' is given", fix)
        return newest
    schema = top.values["$schema"]
    if not isinstance(schema, str):
        top.report_invalid("$schema", "text")
        return newest
    if schema not in PLUGIN_SCHEMAS:
        message = f"'$schema' is {quoted(schema)}, an unknown version of the format"
        fix = f"Write one of: {', '.join(PLUGIN_SCHEMAS)}"
        top.report("plugin-schema-unknown", "$schema", message, fix)
        return None
    return PLUGIN_SCHEMAS[schema]


def _name_fault(name: str) -> str:
    if OPEN_NAME.fullmatch(name):
        return ""
    return (
        "must be 1 to 64 lowercase letters, digits, '-' or '.', with a letter or digit at each "
        "end, without '--' or '..'"
    )


def _author(top: JsonFields) -> str:
    """Return the name of the author; its other fields are only checked."""
    value = top.values.get("author")
    if not isinstance(value, dict):
        if "author" in top.values:
            top.report_invalid("author", "an object")
        return ""
    author = replace(top, values=value, at=("author",))
    for key in value:
        if key not in _AUTHOR:
            message = f"{quoted(key)} is not a field of an author"
            author.report("plugin-field-type", key, message, f"Use only {', '.join(_AUTHOR)}.")
    texts = {key: author.text(key) for key in _AUTHOR}
    return texts["name"]


def _extensions(top: JsonFields) -> dict[str, tuple[str, ...]]:
    """Return the clients that have extension data, with its names, without reading the data."""
    value = top.values.get("extensions")
    if not isinstance(value, dict):
        if "extensions" in top.values:
            message = f"'extensions' is {json_type_name(value)}, not an object; it is ignored"
            fix = "Write an object with a namespace for each client."
            top.report("plugin-field-unknown", "extensions", message, fix)
        return {}
    extensions = replace(top, values=value, at=("extensions",))
    for namespace, data in value.items():
        if not isinstance(data, dict):
            extensions.report_invalid(namespace, "an object")
    return {name: tuple(data) if isinstance(data, dict) else () for name, data in value.items()}


def _report_unknown(top: JsonFields) -> None:
    unknown = [key for key in top.values if key not in _FIELDS]
    unused = [name for name in _FIELDS if name not in top.values]
    for key in unknown:
        # Very many unknown keys are not typing errors, and comparing all of them is slow.
        near = near_misses(key, unused, most=1) if len(unknown) <= len(_FIELDS) else ()
        fix = f'Write "{near[0]}".' if near else "Remove it, or move it below 'extensions'."
        message = f"{quoted(key)} is not a field of plugin.json; it is ignored"
        top.report("plugin-field-unknown", key, message, fix)


def _report_duplicates(top: JsonFields) -> None:
    """Refuse duplicate keys: two clients might read two different plugins.

    A client whose extension data is given twice is only a warning, because the data is not read
    here. Duplicates inside the data and in unknown fields are not reported.
    """
    for path in top.document.duplicates:
        first, *below = path
        if first not in _FIELDS or (first == "extensions" and below[1:]):
            continue
        is_extension = first == "extensions" and bool(below)
        code = "plugin-field-unknown" if is_extension else "plugin-json-invalid"
        message = f"{quoted('.'.join(path))} is given twice"
        top.collector.add(code, message, "Keep one.", top.document.line(path))
