"""JSON Schemas of the files that people write, for editors.

`satchel schema --manifest` prints them. The readers stay the authority: a schema has the same
fields, and describes them.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from satchel.formats.config_fields import TYPES
from satchel.formats.mcp_json import MCP_SCHEMAS
from satchel.formats.open_plugin_manifest import PLUGIN_SCHEMAS

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_OPEN_NAME = "^(?!.*(?:--|\\.\\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?$"
_NAME = "^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$"


def toolkit_schema() -> Schema:
    """Return the schema of a toolkit.yaml."""
    group = _object(
        {
            "name": _name("The group's name, in a list of groups."),
            "description": _text("What the group is for; the model sees it."),
            "notes": _text("How to use the group, or the name of a .md or .txt file with that."),
            "active": _switch("Whether the group is active in a new session."),
            "tools": _texts("Names of the plugin's tools."),
            "skills": _texts("Names of the plugin's skills."),
            "requires": _texts("Configuration keys without which it is unavailable."),
        }
    )
    tool = _object(
        {
            "name": _text("The name that the model sees."),
            "function": _text("NAME or module:NAME of a function or a Tool."),
            "contract": _text("module:NAME of its contract."),
        }
    )
    return _top(
        "toolkit.yaml",
        {
            "name": _name("The plugin's name. A package has that of its entry point."),
            "version": _scalar("The plugin's version."),
            "description": _text("What the plugin is for."),
            "author": _text("Who wrote it."),
            "license": _text("Its license, such as MIT."),
            "homepage": _text("Where to read more."),
            "keywords": _texts("Words to find it by."),
            "notes": _text("How to use the plugin, or the name of a .md or .txt file with that."),
            "active": _switch("Whether the plugin's own group is active in a new session."),
            "groups": _named(group, "Tool groups, by name."),
            "tools": _any_of(
                "The module with the tools, or a list of the tools to serve.",
                {"type": "string"},
                {"type": "array", "items": {"anyOf": [{"type": "string"}, tool]}},
            ),
            "skills": _text("The folder with the skills; `skills` without it."),
            "config": _named(_config_field(), "Fields of the configuration, by name."),
            "isolation": _choice("Where its code runs.", "none", "process"),
            "dependencies": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Requirements, such as httpx>=0.28, for its own process.",
            },
            "contract": _any_of(
                "module:NAME of one contract, or a list of them.",
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}},
            ),
            "setup": _text("The module whose setup(ctx) runs at installation."),
            "requires": {"description": "Reserved for later versions."},
        },
    )


def selection_schema() -> Schema:
    """Return the schema of a satchel.toml."""
    patterns = "Names, source:name, sources or globs; skill:, tool:, group: or plugin: before one."
    server = _object(
        {
            "command": _text("The program of a local server."),
            "args": _texts("Its arguments."),
            "env": _texts_by_name("Its environment variables; ${NAME} stands for one of yours."),
            "cwd": _text("Its working folder."),
            "url": _text("The address of a remote server."),
            "headers": _texts_by_name("Headers of each request; ${NAME} stands for a variable."),
            "transport": _choice("The protocol of a remote server.", "http", "sse"),
            "group": _any_of(
                "The tool groups that its tools are in.",
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}},
            ),
            "enable": _texts("Patterns of the tools to use."),
            "disable": _texts("Patterns of the tools not to use."),
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "Seconds that a call may take.",
            },
            "pin": _choice("What happens when a tool changes.", "hold", "warn", "off"),
        }
    )
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
                    "skills": _list("Folders of skills."),
                    "plugins": _list("Folders of plugins; only in your own file."),
                    "entry-points": _list("Installed plugins; only in your own file."),
                }
            ),
            "find_folders": {
                "type": "integer",
                "minimum": 1,
                "description": "How many folders of skills are searched; only in your own file.",
            },
            "mcp": {
                "type": "object",
                "additionalProperties": server,
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
            "name": {**_text("The plugin's name."), "pattern": _OPEN_NAME},
            "version": _text("The plugin's version."),
            "description": _text("What the plugin is for."),
            "homepage": _text("Where to read more."),
            "repository": _text("Where its sources are."),
            "license": _text("Its license, such as MIT."),
            "author": author,
            "keywords": _list("Words to find it by."),
            "extensions": {"type": "object", "description": "Data for single clients."},
        },
    )
    return {**schema, "required": ["$schema", "name"]}


def mcp_schema() -> Schema:
    """Return the schema of the mcp.json of an open plugin (Agent Plugins 1.0.0)."""
    local = _object(
        {
            "type": _choice("A program on this machine.", "stdio"),
            "command": _text("The program: a name on the PATH, or a path below ${PLUGIN_ROOT}."),
            "args": _list("Its arguments."),
            "env": _texts_by_name("Its environment variables."),
            "cwd": _text("Its working folder: ./..., ${PLUGIN_ROOT} or ${PLUGIN_DATA}."),
        }
    )
    remote = _object(
        {
            "type": _choice("The protocol.", "streamable-http", "sse"),
            "url": _text("The address."),
            "headers": _texts_by_name("Headers of each request."),
        }
    )
    servers = {
        "anyOf": [
            {**local, "required": ["type", "command"]},
            {**remote, "required": ["type", "url"]},
        ]
    }
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
    return _object(
        {
            "name": _text("The key, in a list of fields."),
            "type": _choice("The type of the value; `string` without it.", *TYPES),
            "description": _text("What it is for."),
            "default": _scalar("The value if none is given; a secret has none."),
            "required": _switch("Whether a missing value is an error."),
            "min": _scalar("The smallest number, or the fewest characters."),
            "max": _scalar("The largest number, or the most characters."),
            "options": _texts("The values of a choice."),
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


def _name(description: str) -> Schema:
    return {"type": "string", "pattern": _NAME, "description": description}


def _scalar(description: str) -> Schema:
    return {"type": ["string", "number", "boolean"], "description": description}


def _switch(description: str) -> Schema:
    return {"enum": [True, False, "yes", "no", "on", "off"], "description": description}


def _choice(description: str, *options: str) -> Schema:
    return {"enum": [*options], "description": description}


def _list(description: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _texts(description: str) -> Schema:
    """Return the schema of a list of texts, or of one text with commas."""
    return _any_of(description, {"type": "array", "items": {"type": "string"}}, {"type": "string"})


def _texts_by_name(description: str) -> Schema:
    return {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": description,
    }


def _any_of(description: str, *schemas: Schema) -> Schema:
    return {"anyOf": [*schemas], "description": description}


def _named(item: Schema, description: str) -> Schema:
    """Return the schema of a mapping by name, or of a list of items with a name."""
    nullable = {"anyOf": [item, {"type": "null"}]}
    listed = {**item, "required": ["name"]}
    return _any_of(
        description,
        {"type": "object", "additionalProperties": nullable},
        {"type": "array", "items": listed},
    )
