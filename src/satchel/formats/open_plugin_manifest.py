"""plugin.json: the manifest of an open plugin, as Agent Plugins 1.0.0 has it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from satchel.formats.json_reader import JsonDocument, JsonPath, JsonValue, json_type_name, read_json
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.names import near_misses
from satchel.settings import Limits

PLUGIN_SCHEMAS: Mapping[str, str] = MappingProxyType(
    {"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json": "1.0.0"}
)
"""The version of the format that each known schema of `plugin.json` stands for."""

_NAME = re.compile(r"(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?")
_TEXTS = ("version", "description", "homepage", "repository", "license")
_AUTHOR = ("name", "email", "url")
_FIELDS = ("$schema", "name", *_TEXTS, "author", "keywords", "extensions")


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote a plugin; what is not told is empty."""

    name: str = ""
    email: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenManifest:
    """What a plugin.json says; `spec` is the version of the format that it is written for."""

    spec: str
    name: str
    version: str
    description: str
    author: Author
    homepage: str
    repository: str
    license: str
    keywords: tuple[str, ...]
    namespaces: tuple[str, ...]
    """The clients that it has extension data for; what the data says is theirs to read."""
    document: JsonDocument | None = field(default=None, compare=False, repr=False)

    def line(self, *at: str) -> int | None:
        """Return the line of a field, or of the nearest that it lies in."""
        return self.document.line(at) if self.document else None


def read_open_plugin(data: bytes, path: str, limits: Limits) -> ReadResult[OpenManifest]:
    """Read a plugin.json; `path` is what diagnostics print. No schema is ever fetched."""
    problems = DiagnosticCollector(path)
    top = read_object(data, path, "plugin-json-invalid", limits, problems)
    if top is None:
        return ReadResult(None, problems.found)
    spec = _spec(top)
    if spec is None:
        # Nobody knows what the other fields would mean.
        return ReadResult(None, problems.found)
    _report_twice(top)
    manifest = OpenManifest(
        spec=spec,
        name=_name(top),
        **{key: top.text(key) for key in _TEXTS},
        author=_author(top),
        keywords=top.texts("keywords"),
        namespaces=_namespaces(top),
        document=top.document,
    )
    _report_unknown(top)
    return ReadResult(None if problems.fatal else manifest, problems.found)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFields:
    """One object of a manifest, read key by key.

    What does not fit is noted, and the reading goes on with a default to find the next problem.
    """

    values: Mapping[str, JsonValue]
    at: JsonPath
    document: JsonDocument
    problems: DiagnosticCollector

    def note(self, code: str, key: str, message: str, fix: str) -> None:
        """Note a problem on the line of `key`, or of the object where it is not given."""
        self.problems.add(code, message, fix, self.document.line((*self.at, key)))

    def misfit(self, key: str, expected: str) -> None:
        """Note that a value is not of the type that is expected."""
        name = quoted(".".join((*self.at, key)))
        message = f"{name} is {json_type_name(self.values[key])}, not {expected}"
        self.note("plugin-field-type", key, message, f"Write {expected}, or remove the field.")

    def text(self, key: str) -> str:
        """Return a text, empty where none is given."""
        value = self.values.get(key)
        if isinstance(value, str):
            return value
        if key in self.values:
            self.misfit(key, "text")
        return ""

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty where none is given."""
        value = self.values.get(key)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(map(str, value))
        if key in self.values:
            self.misfit(key, "a list of texts")
        return ()


def read_object(
    data: bytes, path: str, code: str, limits: Limits, problems: DiagnosticCollector
) -> JsonFields | None:
    """Read JSON that must be an object; `code` notes why it cannot be."""
    read = read_json(data, path, code, limits)
    problems.extend(read.diagnostics)
    if read.value is None:
        return None
    if isinstance(read.value.value, dict):
        return JsonFields(values=read.value.value, at=(), document=read.value, problems=problems)
    message = f"the top level is {json_type_name(read.value.value)}, not an object"
    problems.add(code, message, "Write an object.", 1)
    return None


def _spec(top: JsonFields) -> str | None:
    """Return the version that the manifest is written for, `None` for one that is not known.

    A manifest without one is read on as the newest, to find what else is wrong with it.
    """
    newest = list(PLUGIN_SCHEMAS.values())[-1]
    if "$schema" not in top.values:
        fix = f'Add "$schema": "{list(PLUGIN_SCHEMAS)[-1]}".'
        top.note("plugin-field-missing", "$schema", "no '$schema' is given", fix)
        return newest
    schema = top.values["$schema"]
    if not isinstance(schema, str):
        top.misfit("$schema", "text")
        return newest
    if schema not in PLUGIN_SCHEMAS:
        message = f"'$schema' is {quoted(schema)}, a version of the format that is not known here"
        fix = f"Write one of: {', '.join(PLUGIN_SCHEMAS)}"
        top.note("plugin-schema-unknown", "$schema", message, fix)
        return None
    return PLUGIN_SCHEMAS[schema]


def _name(top: JsonFields) -> str:
    if "name" not in top.values:
        top.note("plugin-field-missing", "name", "no name is given", "Add a name.")
        return ""
    name = top.text("name")
    if isinstance(top.values["name"], str) and not _NAME.fullmatch(name):
        message = (
            f"the name {quoted(name)} must be 1 to 64 lowercase letters, digits, '-' or '.', "
            "with a "
            "letter or digit at each end, without '--' or '..'"
        )
        top.note("plugin-name-shape", "name", message, "Choose another name.")
    return name


def _author(top: JsonFields) -> Author:
    value = top.values.get("author")
    if not isinstance(value, dict):
        if "author" in top.values:
            top.misfit("author", "an object")
        return Author()
    author = JsonFields(values=value, at=("author",), document=top.document, problems=top.problems)
    for key in value:
        if key not in _AUTHOR:
            message = f"{quoted(key)} is no field of an author"
            author.note("plugin-field-type", key, message, f"Keep to {', '.join(_AUTHOR)}.")
    return Author(*(author.text(key) for key in _AUTHOR))


def _namespaces(top: JsonFields) -> tuple[str, ...]:
    """Return the clients that have extension data; what it says is not looked at."""
    value = top.values.get("extensions")
    if not isinstance(value, dict):
        if "extensions" in top.values:
            message = f"'extensions' is {json_type_name(value)}, not an object; it is ignored"
            fix = "Write an object with a namespace for each client."
            top.note("plugin-field-unknown", "extensions", message, fix)
        return ()
    extensions = JsonFields(
        values=value, at=("extensions",), document=top.document, problems=top.problems
    )
    for namespace, data in value.items():
        if not isinstance(data, dict):
            extensions.misfit(namespace, "an object")
    return tuple(value)


def _report_unknown(top: JsonFields) -> None:
    unknown = [key for key in top.values if key not in _FIELDS]
    free = [name for name in _FIELDS if name not in top.values]
    for key in unknown:
        # Whoever has very many has not mistyped them, and comparing takes its time.
        meant = near_misses(key, free, most=1) if len(unknown) <= len(_FIELDS) else ()
        fix = f'Write "{meant[0]}".' if meant else "Remove it, or move it below 'extensions'."
        message = f"{quoted(key)} is no field of plugin.json; it is ignored"
        top.note("plugin-field-unknown", key, message, fix)


def _report_twice(top: JsonFields) -> None:
    """Refuse a key that is given twice: two clients might read two plugins.

    Clients whose data is given twice are only told of, since nobody here goes by it. What the data
    says is theirs to judge, and so are unknown fields.
    """
    for path in top.document.twice:
        first, *below = path
        if first not in _FIELDS or (first == "extensions" and below[1:]):
            continue
        is_of_others = first == "extensions" and bool(below)
        code = "plugin-field-unknown" if is_of_others else "plugin-json-invalid"
        message = f"{quoted('.'.join(path))} is given twice"
        top.problems.add(code, message, "Keep one.", top.document.line(path))
