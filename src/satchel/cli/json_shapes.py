"""The JSON shapes of entries; they are an interface, described in docs/reference/json.md."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # The command line stays light: whoever has an entry has loaded its room.
    from satchel.catalog import Catalog, Entry, GroupEntry, PluginEntry, SkillEntry, ToolEntry
    from satchel.formats import DeclaredContract, McpServerManifest

KINDS = ("skill", "tool", "group", "plugin")


def entries_of(catalog: "Catalog", kind: str) -> "tuple[Entry, ...]":
    """Return every entry of a kind, whatever its state."""
    found: tuple[Entry, ...] = getattr(catalog, f"all_{kind}s")
    return found


def listed_json(catalog: "Catalog", kind: str) -> list[dict[str, Any]]:
    """Return what `list` prints of one kind."""
    return [_LISTED[kind](entry) for entry in entries_of(catalog, kind)]


def _entry(entry: "Entry") -> dict[str, Any]:
    return {
        "name": entry.name,
        "description": entry.description,
        "path": entry.path,
        "source": entry.source,
        "state": str(entry.state),
        "generation": entry.generation,
        "diagnostics": [item.as_dict() for item in entry.diagnostics],
    }


def _tool(tool: "ToolEntry") -> dict[str, Any]:
    return {**_entry(tool), "group": tool.group, "groups": list(tool.groups)}


def _skill(skill: "SkillEntry") -> dict[str, Any]:
    return {**_entry(skill), "groups": list(skill.groups)}


def _group(group: "GroupEntry") -> dict[str, Any]:
    return {
        **_entry(group),
        "notes": group.notes,
        "active": group.active,
        "tools": list(group.tools),
        "skills": list(group.skills),
        "missing": list(group.missing),
    }


def _plugin(plugin: "PluginEntry") -> dict[str, Any]:
    return {**_entry(plugin), "version": plugin.version}


_LISTED: dict[str, Callable[[Any], dict[str, Any]]] = {
    "skill": _skill,
    "tool": _tool,
    "group": _group,
    "plugin": _plugin,
}


def entry_json(kind: str, entry: "Entry", signature: str | None) -> dict[str, Any]:
    """Return what `show` prints of one entry."""
    return {"kind": kind, **_LISTED[kind](entry), **_MORE[kind](entry, signature)}


def _more_of_skill(skill: "SkillEntry", _signature: str | None) -> dict[str, Any]:
    from satchel.formats import to_plain

    manifest = skill.manifest
    return {
        "license": manifest.license if manifest else None,
        "compatibility": manifest.compatibility if manifest else None,
        "allowed_tools": list(manifest.allowed_tools) if manifest else [],
        "metadata": to_plain(manifest.metadata) if manifest else {},
        "files": [{"name": file.name, "size": file.size} for file in skill.files],
        "body": manifest.body if manifest else "",
    }


def _more_of_tool(tool: "ToolEntry", signature: str | None) -> dict[str, Any]:
    return {"signature": signature, "contract": contract(tool)}


def contract(tool: "ToolEntry") -> dict[str, Any] | None:
    """Return what is known of a tool's contract, if it has one."""
    declared = tool.declared
    if declared is None:
        return None
    owner = {"tool": tool.name, "source": tool.source, "state": str(tool.state)}
    return {**owner, **_contract(declared)}


def _contract(declared: "DeclaredContract") -> dict[str, Any]:
    return {
        "description": declared.description,
        "arguments": declared.arguments,
        "rules": [
            {"id": item.id, "rule": item.rule, "corrects": item.corrects} for item in declared.rules
        ],
        "config": [
            {"key": item.key, "default": item.default, "normalized": item.is_normalized}
            for item in declared.config
        ],
        "reads": [
            {"key": item.key, "default": item.default, "required": item.is_required}
            for item in declared.reads
        ],
        "effects": [
            {
                "key": item.key,
                "type": item.type,
                "merge": item.merge,
                "preserved": item.is_preserved,
                "variable": item.variable,
            }
            for item in declared.effects
        ],
        "unread": list(declared.unread),
        "path": declared.path,
        "line": declared.line or None,
    }


def _more_of_group(_group: "GroupEntry", _signature: str | None) -> dict[str, Any]:
    return {}


def _more_of_plugin(plugin: "PluginEntry", _signature: str | None) -> dict[str, Any]:
    supply = plugin.supply
    return {
        "groups": _names(supply.groups),
        "tools": _names(supply.tools),
        "skill_folders": list(supply.skills),
        "servers": [_server(server) for server in plugin.servers],
    }


def _server(server: "McpServerManifest") -> dict[str, Any]:
    """Return a server as it is declared; a remote one has no command, a local one no URL."""
    shape: dict[str, Any] = {"name": server.name, "type": server.transport}
    if server.transport == "stdio":
        env = dict(server.env)
        return shape | {
            "command": server.command,
            "args": list(server.args),
            "env": env,
            "cwd": server.cwd,
        }
    return shape | {"url": server.url, "headers": dict(server.headers)}


def _names(things: Iterable[Any]) -> list[str]:
    return [thing.name for thing in things]


_MORE: dict[str, Callable[[Any, str | None], dict[str, Any]]] = {
    "skill": _more_of_skill,
    "tool": _more_of_tool,
    "group": _more_of_group,
    "plugin": _more_of_plugin,
}


def plugin_json(plugin: "PluginEntry", catalog: "Catalog") -> dict[str, Any]:
    """Return what `plugins` prints of one plugin."""
    supply = plugin.supply
    skills = [entry.name for entry in catalog.all_skills if entry.source == plugin.name]
    return {
        **_plugin(plugin),
        "tools": _names(supply.tools),
        "groups": _names(supply.groups),
        "skills": skills if plugin.is_served else [],
        "servers": _names(plugin.servers),
        "commands": _names(supply.commands),
        "fields": _names(supply.config),
        "import_seconds": supply.code.seconds if supply.code else None,
    }
