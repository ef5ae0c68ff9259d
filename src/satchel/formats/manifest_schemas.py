"""JSON Schemas of the files that people write, for editors.

`satchel schema --manifest` prints them. Those of MCP servers come from the models that read them.
For the rest the readers are the authority: a schema has their fields and patterns, and takes what
they take without a diagnostic. What concerns two fields, such as a name given twice, only the
readers find.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from satchel.formats.config_fields import FIELD_NAME, TYPES
from satchel.formats.mcp_json import MCP_SCHEMAS
from satchel.formats.mcp_json_reader import LocalEntry, RemoteEntry
from satchel.formats.open_plugin_manifest import OPEN_NAME, PLUGIN_SCHEMAS
from satchel.formats.server_table import ServerTable
from satchel.formats.table_model import table_schema
from satchel.formats.toolkit_manifest import DIGEST, ISOLATIONS, REQUIREMENT
from satchel.formats.worker_table import WorkerTable
from satchel.names import BASIC_GROUP, PLUGIN_NAME, TOOL_NAME

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]{0,63}"
_MODULE = rf"{_IDENTIFIER}(?:\.{_IDENTIFIER})*"
_REFERENCE = rf"(?:{_MODULE}:)?{_IDENTIFIER}"
_NAME_RULE = f"A name is letters and digits, with . _ - between them, and is not {BASIC_GROUP}."
_INSIDE = r"(?!/)(?!(?:.*/)?\.\.(?:/|$))[^\s\\:](?:[^\\:]*[^\s\\:])?"


def toolkit_schema() -> Schema:
    """Return the schema of a toolkit.yaml."""
    group = _object(
        {
            "name": _name("The group's name, in a list of groups."),
            "description": _scalar("What the group is for; the model sees it."),
            "notes": _scalar("How to use the group, or the name of a .md or .txt file with that."),
            "active": _switch("Whether the group is active in a new session."),
            "tools": _words("Names of the plugin's tools."),
            "skills": _words("Names of the plugin's skills."),
            "requires": _words("Configuration keys without which it is unavailable."),
            "runner": _scalar("The host's runner for its tools, such as remote."),
        }
    )
    tool = _object(
        {
            "name": _shaped("The name that the model sees.", TOOL_NAME),
            "function": _shaped("NAME or module:NAME of a function or a Tool.", _REFERENCE),
            "contract": _shaped("module:NAME of its contract.", _REFERENCE),
            "runner": _scalar("The host's runner for it, such as remote."),
        }
    )
    served = {
        "type": "array",
        "items": {
            "anyOf": [
                _shaped("A tool's name.", TOOL_NAME),
                {**tool, "anyOf": [{"required": ["name"]}, {"required": ["function"]}]},
            ]
        },
    }
    contract = _shaped("module:NAME of a contract.", _REFERENCE)
    contracts = _shaped("The same, with commas.", rf"{_REFERENCE}(?:\s*,\s*{_REFERENCE})*")
    requirement = _shaped("A requirement, such as httpx>=0.28.", REQUIREMENT)
    digest = rf"\s*(?:{DIGEST.pattern})?\s*"
    schema = _top(
        "toolkit.yaml",
        {
            "name": _name("The plugin's name. A package has that of its entry point."),
            "version": _scalar("The plugin's version."),
            "description": _scalar("What the plugin is for."),
            "author": _scalar("Who wrote it."),
            "license": _scalar("Its license, such as MIT."),
            "homepage": _scalar("Where to read more."),
            "keywords": _words("Words to find it by."),
            "notes": _scalar("How to use the plugin, or the name of a .md or .txt file with that."),
            "runner": _scalar("The host's runner for its tools, such as remote."),
            "compatible-with": _any_of(
                "Digests of versions whose calls it may answer on a worker.",
                _shaped("Digests, with commas.", rf"{digest}(?:,{digest})*"),
                {"type": "array", "items": _shaped("A digest.", digest)},
                _NOTHING,
            ),
            "active": _switch("Whether the plugin's own group is active in a new session."),
            "groups": _named("group", _group_name(), "Tool groups, by name."),
            "tools": _any_of(
                "The module with the tools, or a list of the tools to serve.",
                _shaped("The module.", _MODULE),
                served,
                _NOTHING,
            ),
            "skills": _any_of(
                "The folder with the skills; `skills` without it.",
                _shaped("A folder inside this one.", _INSIDE),
                _NOTHING,
            ),
            "config": _named("field", _whole(FIELD_NAME), "Fields of the configuration, by name."),
            "isolation": _choice("Where its code runs.", *ISOLATIONS, None),
            "dependencies": {
                "type": ["array", "null"],
                "items": requirement,
                "description": "Requirements, such as httpx>=0.28, for its own process.",
            },
            "contract": _any_of(
                "module:NAME of one contract, or a list of them.",
                contracts,
                {"type": "array", "items": contract},
                _NOTHING,
            ),
            "setup": _any_of(
                "The module whose setup(ctx) runs at installation.",
                _shaped("A module of this folder.", _MODULE),
                _NOTHING,
            ),
            "requires": {"description": "Reserved for later versions."},
        },
    )
    return {
        **schema,
        "$defs": {"group": group, "field": _config_field()},
        "if": {"properties": {"dependencies": {"type": "array"}}, "required": ["dependencies"]},
        "then": {"properties": {"isolation": {"const": "process"}}, "required": ["isolation"]},
    }


def selection_schema() -> Schema:
    """Return the schema of a satchel.toml."""
    patterns = "Names, source:name, sources or globs; skill:, tool:, group: or plugin: before one."
    reached = [{"required": ["command"]}, {"required": ["url"]}]
    folders = {"type": "array", "items": {"type": "string", "pattern": r"\S"}}
    return _top(
        "satchel.toml",
        {
            "enable": _list(f"What to enable. {patterns}"),
            "disable": _list(f"What to disable. {patterns}"),
            "skills": _object(
                {"first": _list(f"Skills that the prompt describes first. {patterns}")}
            ),
            "sources": _object(
                {
                    "skills": {**folders, "description": "Folders of skills."},
                    "plugins": {
                        **folders,
                        "description": "Folders of plugins; only in your own file.",
                    },
                    "entry-points": {
                        **folders,
                        "description": "Installed plugins; only in your own file.",
                    },
                }
            ),
            "find_folders": {
                "type": "integer",
                "minimum": 1,
                "description": "How many folders of skills are searched; only in your own file.",
            },
            "plugin_import": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "Seconds of processor time to import a plugin; your own file only.",
            },
            "worker": {
                **table_schema(WorkerTable),
                "description": "What satchel worker does without options; your own file only.",
            },
            "mcp": {
                "type": "object",
                "propertyNames": {"pattern": _group_name()},
                "additionalProperties": {**table_schema(ServerTable), "oneOf": reached},
                "description": "MCP servers, by name.",
            },
            "config": {
                "type": "object",
                "additionalProperties": {"type": "object"},
                "description": "Values of plugins, by plugin and key; only in a project's file.",
            },
        },
    )


def open_plugin_schema() -> Schema:
    """Return the schema of a plugin.json, as far as Satchel reads it (Agent Plugins 1.0.0)."""
    author = _object({name: _text(f"The author's {name}.") for name in ("name", "email", "url")})
    schema = _top(
        "plugin.json",
        {
            "$schema": _choice("The version of the format.", *PLUGIN_SCHEMAS),
            "name": _shaped("The plugin's name.", OPEN_NAME),
            "version": _text("The plugin's version."),
            "description": _text("What the plugin is for."),
            "homepage": _text("Where to read more."),
            "repository": _text("Where its sources are."),
            "license": _text("Its license, such as MIT."),
            "author": author,
            "keywords": _list("Words to find it by."),
            "extensions": {
                "type": "object",
                "additionalProperties": {"type": "object"},
                "description": "Data for single clients, by client.",
            },
        },
    )
    return {**schema, "required": ["$schema", "name"]}


def mcp_schema() -> Schema:
    """Return the schema of the mcp.json of an open plugin (Agent Plugins 1.0.0)."""
    servers = {"anyOf": [table_schema(LocalEntry), table_schema(RemoteEntry)]}
    schema = _top(
        "mcp.json",
        {
            "$schema": _choice("The version of the format.", *MCP_SCHEMAS),
            "mcpServers": {
                "type": "object",
                "additionalProperties": servers,
                "description": "The servers, by name.",
            },
        },
    )
    return {**schema, "required": ["$schema", "mcpServers"]}


MANIFEST_SCHEMAS: Mapping[str, Callable[[], Schema]] = MappingProxyType(
    {
        "toolkit": toolkit_schema,
        "satchel": selection_schema,
        "plugin": open_plugin_schema,
        "mcp": mcp_schema,
    }
)
"""What makes each schema, by the name on the command line."""


def _config_field() -> Schema:
    """Return the schema of a field; which keys and values its type allows, its reader says."""
    option = {"type": ["string", "number", "boolean"], "pattern": r"[^\s,]"}
    options = {**option, "type": ["array", *option["type"]], "items": option, "minItems": 1}
    number = {"type": "number"}
    return _object(
        {
            "name": _shaped("The key, in a list of fields.", FIELD_NAME),
            "type": _choice("What its values are; text without it.", *TYPES, None),
            "description": _scalar("What it is for."),
            "required": _switch("Whether a missing value is an error."),
            "default": _scalar("The value if none is given."),
            "min": {**number, "description": "The smallest number, or the fewest characters."},
            "max": {**number, "description": "The largest number, or the most characters."},
            "options": {**options, "description": "The values of a choice."},
            "must_exist": _switch("Whether a path must exist."),
        }
    )


# ---- parts of schemas ----------------------------------------------------------------------------


def _top(title: str, properties: Schema) -> Schema:
    return {"$schema": _DIALECT, "title": title, **_object(properties)}


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _portable(pattern: str | re.Pattern[str]) -> str:
    """Return a pattern for JavaScript, which has neither possessive quantifiers nor `Z`."""
    text = pattern if isinstance(pattern, str) else pattern.pattern
    return re.sub(r"(\\[sS][*+])\+", r"\1", text).replace(r"\Z", "$")


def _whole(pattern: str | re.Pattern[str]) -> str:
    return f"^(?:{_portable(pattern)})$"


def _shaped(description: str, pattern: str | re.Pattern[str]) -> Schema:
    # Editors show the last text in place of the pattern.
    return {
        "type": "string",
        "pattern": _whole(pattern),
        "description": description,
        "patternErrorMessage": f"It is not valid here. Expected: {description}",
    }


def _group_name() -> str:
    return f"^(?!{BASIC_GROUP}$){_portable(PLUGIN_NAME)}$"


def _name(description: str) -> Schema:
    return {
        "type": "string",
        "pattern": _group_name(),
        "description": description,
        "patternErrorMessage": _NAME_RULE,
    }


def _scalar(description: str) -> Schema:
    """Return the schema of a text in YAML, which may look like a number, or of nothing."""
    return {"type": ["string", "number", "boolean", "null"], "description": description}


def _switch(description: str) -> Schema:
    return {"enum": [True, False, "yes", "no", "on", "off", None], "description": description}


def _choice(description: str, *options: str | None) -> Schema:
    return {"enum": [*options], "description": description}


def _list(description: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _words(description: str) -> Schema:
    """Return the schema of a list of texts in YAML, or of one text with commas, or of nothing."""
    item = {"type": ["string", "number", "boolean"]}
    return {
        "type": ["array", "string", "number", "boolean", "null"],
        "items": item,
        "description": description,
    }


def _any_of(description: str, *schemas: Schema) -> Schema:
    return {"anyOf": [*schemas], "description": description}


def _named(kind: str, names: str, description: str) -> Schema:
    """Return the schema of a mapping by name, of a list of items with a name, or of nothing.

    The schema of an item is in the `$defs`.
    """
    item = {"$ref": f"#/$defs/{kind}"}
    nullable = {"anyOf": [item, _NOTHING]}
    listed = {"allOf": [item], "required": ["name"]}
    return _any_of(
        description,
        {
            "type": "object",
            "propertyNames": {"pattern": names},
            "additionalProperties": nullable,
        },
        {"type": "array", "items": listed},
        _NOTHING,
    )


_NOTHING: Schema = {"type": "null"}
