"""Convert records to JSON. The fields are an interface, described in docs/reference/json.md."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from satchel.reports.short_texts import state_of
from satchel.trust.server_outline import (
    MASK,
    address_outline,
    command_outline,
    server_outline,
)

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import Entry, PluginEntry, SkillEntry, ToolEntry
    from satchel.formats.mcp_json import McpServerManifest
    from satchel.mcp_servers.server_options import ServerConfig
    from satchel.prompt.skill_listing import PromptListing
    from satchel.reports.doctor_cases import DoctorCase
    from satchel.search.search_index import SearchHit
    from satchel.tools import ToolResult

Json = dict[str, Any]

KINDS = ("skill", "tool", "group", "plugin")


def entries_of(catalog: "Catalog", kind: str) -> "tuple[Entry, ...]":
    """Return every entry of a kind, whatever its state."""
    entries: tuple[Entry, ...] = getattr(catalog, f"all_{kind}s")
    return entries


def listed(catalog: "Catalog", kind: str) -> list[Json]:
    """Return the JSON of `list` for one kind."""
    return [entry_json(kind, entry) for entry in entries_of(catalog, kind)]


def entry_json(kind: str, entry: "Entry") -> Json:
    """Return the JSON of `list` for one entry."""
    return {
        **_pick(entry, "name", "description", "path", "source"),
        "state": state_of(entry),
        "generation": entry.generation,
        "diagnostics": _diagnostics(entry),
        **_pick(entry, *_FIELDS_OF_KIND[kind]),
    }


_FIELDS_OF_KIND: Mapping[str, tuple[str, ...]] = {
    "skill": ("groups",),
    "tool": ("group", "groups"),
    "group": ("notes", "active", "tools", "skills", "missing"),
    "plugin": ("version",),
}


def shown(
    kind: str, entry: Any, signature: str | None = None, parameters: Sequence[Json] = ()
) -> Json:
    """Return the JSON of `show` for one entry; the last two are of a tool."""
    record = {"kind": kind, **entry_json(kind, entry)}
    if kind == "skill":
        record |= _skill_details(entry)
    elif kind == "tool":
        record |= {
            "signature": signature,
            "parameters": [*parameters],
            "contract": contract_of(entry),
        }
    elif kind == "plugin":
        contribution = entry.contribution
        record |= {
            "digest": contribution.digest,
            "groups": _names(contribution.groups),
            "tools": _names(contribution.tools),
            "skill_folders": list(contribution.skills),
            "servers": [_declared_server(server) for server in entry.servers],
        }
    return record


def _skill_details(skill: "SkillEntry") -> Json:
    # Lazy: imports the package of manifests.
    from satchel.formats.frozen_values import to_plain

    manifest = skill.manifest
    return {
        "license": manifest.license if manifest else None,
        "compatibility": manifest.compatibility if manifest else None,
        "allowed_tools": list(manifest.allowed_tools) if manifest else [],
        "metadata": to_plain(manifest.metadata) if manifest else {},
        "files": _files(skill),
        "body": manifest.body if manifest else "",
    }


def _files(skill: "SkillEntry") -> list[Json]:
    files = [_pick(file, "name", "size") for file in skill.files]
    # The path of a command is its only file, which the model would read as SKILL.md.
    if not skill.folder and skill.path.endswith((".md", ".toml")):
        files = [{**file, "name": os.path.basename(skill.path)} for file in files]
    return files


def contract_of(tool: "ToolEntry") -> Json | None:
    """Return a tool's contract, or `None` if it has none or its code was not loaded."""
    if tool.contract is None:
        return None
    # Lazy: only a tool whose code was loaded has a contract.
    from satchel.contracts.contract_description import contract_json

    owner = {"tool": tool.name, **_pick(tool, "source", "state", "path")}
    return owner | contract_json(tool.contract)


def contracts(catalog: "Catalog") -> list[Json]:
    """Return the contracts of all tools that have one."""
    return [record for tool in catalog.all_tools if (record := contract_of(tool))]


def plugin_in_full(plugin: "PluginEntry", catalog: "Catalog") -> Json:
    """Return the JSON of `list plugins --long` for one plugin."""
    contribution = plugin.contribution
    skills = [entry.name for entry in catalog.all_skills if entry.source == plugin.name]
    return {
        **entry_json("plugin", plugin),
        "tools": _names(contribution.tools),
        "groups": _names(contribution.groups),
        "skills": skills if plugin.is_served else [],
        "servers": _names(plugin.servers),
        "commands": _names(contribution.commands),
        "fields": _names(contribution.config),
        "import_seconds": contribution.code.seconds if contribution.code else None,
    }


def hit_json(hit: "SearchHit", entry: "Entry", inside: Sequence[str]) -> Json:
    """Return one search result, with the skills inside a skill that are why it was found."""
    return {
        **_pick(hit, "kind", "name"),
        "description": entry.description,
        "group": getattr(entry, "group", None),
        "source": entry.source,
        "score": hit.score,
        "contains": [*inside],
    }


def check_json(check: Any) -> Json:
    """Return the result of one check of the machine."""
    return _pick(check, "name", "severity", "message", "command")


def listing_json(listing: "PromptListing") -> Json:
    """Return the form of the skill listing, without its text."""
    return _pick(listing, "form", "total", "described", "left_out", "cut_at")


def case_json(case: "DoctorCase") -> list[Json]:
    """Return the diagnostics of one entry, or of the sources."""
    owner = _NO_OWNER
    if case.entry:
        owner = {**_pick(case.entry, "name", "source"), "state": state_of(case.entry)}
    return [
        {"kind": case.kind, **owner, **item.as_dict(), "command": case.command_for(item)}
        for item in case.diagnostics
    ]


_NO_OWNER = {"name": "", "source": "", "state": ""}


def installed_json(plugin: Any) -> Json:
    """Return an installed plugin."""
    return {
        **_pick(plugin, "name", "version", "kind", "path"),
        "enabled": plugin.is_enabled,
        "missing": _names(plugin.missing),
    }


def result_json(result: "ToolResult") -> Json:
    """Return the result of a call."""
    return {
        "text": result.text,
        "content": [block.to_dict() for block in result.content],
        **_pick(result, "structured", "is_error", "is_interrupted", "error_code"),
    }


def outcome_json(outcome: Any) -> Json:
    """Return the result of testing a plugin."""
    plugin = outcome.plugin
    return {
        "plugin": plugin.name,
        **_pick(plugin, "path", "state"),
        "passed": outcome.passed,
        "diagnostics": _diagnostics(plugin),
        "calls": [
            {
                "tool": item.tool,
                "arguments": item.arguments,
                "passed": not item.result.is_error,
                "seconds": round(item.seconds, 6),
                "text": item.result.text,
                "error_code": item.result.error_code,
                "location": item.location,
            }
            for item in outcome.attempts
        ],
        "left_out": [_pick(item, "tool", "reason", "fix") for item in outcome.left_out],
    }


def server_json(name: str, server: "ServerConfig") -> Json:
    """Return a declared MCP server."""
    return {
        "name": name,
        "transport": server.server.transport,
        "where": server_outline(server.origin.reached),
        "plugin": server.owner or None,
        **_pick(server, "path", "pin"),
    }


def server_name_of(entry: "ToolEntry") -> str:
    """Return the name that a tool has at its MCP server."""
    return (entry.tool.own_name if entry.tool else "") or entry.name


def remote_tool_json(entry: "ToolEntry") -> Json:
    """Return a tool of an MCP server; its digest if it differs from what was approved."""
    drift = getattr(entry.tool, "drift", None)
    return {
        "name": entry.name,
        "server_name": server_name_of(entry),
        **_pick(entry, "state", "description"),
        "digest": drift.digest if drift else None,
        "parameters": entry.tool.parameters if entry.tool else None,
        "diagnostics": _diagnostics(entry),
    }


def _declared_server(server: "McpServerManifest") -> Json:
    table = server.table
    record: Json = {"name": server.name}
    if not server.is_local:
        record["type"] = table.get("transport", "streamable-http")
        headers = dict.fromkeys(table.get("headers", ()), MASK)
        return record | {"url": address_outline(table["url"]), "headers": headers}
    command, *args = command_outline(table["command"], table.get("args", ()))
    env = dict.fromkeys(table.get("env", ()), MASK)
    cwd = MASK if table.get("cwd") else ""
    return record | {"type": "stdio", "command": command, "args": args, "env": env, "cwd": cwd}


def _pick(record: Any, *keys: str) -> Json:
    """Return attributes of a record: tuples become lists, enums become strings."""
    return {key: _plain(getattr(record, key)) for key in keys}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, str) else value


def _diagnostics(entry: "Entry") -> list[Json]:
    return [item.as_dict() for item in entry.diagnostics]


def _names(records: Iterable[Any]) -> list[str]:
    return [record.name for record in records]
