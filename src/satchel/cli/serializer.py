"""Records as JSON. The shapes are an interface, described in docs/reference/json.md."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # The command line stays light: who has a record has loaded its package.
    from satchel.catalog import Catalog, Entry, GroupEntry, PluginEntry, SkillEntry, ToolEntry
    from satchel.cli.commands.doctor_command import DoctorCase
    from satchel.cli.commands.test_command import PluginTestResult
    from satchel.cli.installer import Installed
    from satchel.cli.machine_checks import MachineCheck
    from satchel.formats import McpServerManifest
    from satchel.mcp_servers import DeclaredServer
    from satchel.search import SearchHit
    from satchel.tools import ToolResult

Json = dict[str, Any]

KINDS = ("skill", "tool", "group", "plugin")


def entries_of(catalog: "Catalog", kind: str) -> "tuple[Entry, ...]":
    """Return every entry of a kind, whatever its state."""
    entries: tuple[Entry, ...] = getattr(catalog, f"all_{kind}s")
    return entries


def listed(catalog: "Catalog", kind: str) -> list[Json]:
    """Return what `list` prints of one kind."""
    return [entry_json(kind, entry) for entry in entries_of(catalog, kind)]


def entry_json(kind: str, entry: "Entry") -> Json:
    """Return an entry of a list."""
    shape = _picked(entry, "name", "description", "path", "source", "state", "generation")
    shape["diagnostics"] = [item.as_dict() for item in entry.diagnostics]
    return shape | _picked(entry, *_LISTED[kind])


_LISTED: Mapping[str, tuple[str, ...]] = {
    "skill": ("groups",),
    "tool": ("group", "groups"),
    "group": ("notes", "active", "tools", "skills", "missing"),
    "plugin": ("version",),
}
"""What a list tells beside what all kinds have in common."""


def shown(kind: str, entry: "Entry", signature: str | None) -> Json:
    """Return what `show` prints of one entry."""
    return {"kind": kind, **entry_json(kind, entry), **_SHOWN[kind](entry, signature)}


def _shown_skill(skill: "SkillEntry", _signature: str | None) -> Json:
    # Lazy: it brings the package of manifests.
    from satchel.formats import to_plain

    manifest = skill.manifest
    return {
        "license": manifest.license if manifest else None,
        "compatibility": manifest.compatibility if manifest else None,
        "allowed_tools": list(manifest.allowed_tools) if manifest else [],
        "metadata": to_plain(manifest.metadata) if manifest else {},
        "files": [_picked(file, "name", "size") for file in skill.files],
        "body": manifest.body if manifest else "",
    }


def _shown_tool(tool: "ToolEntry", signature: str | None) -> Json:
    return {"signature": signature, "contract": contract_of(tool)}


def _shown_group(_group: "GroupEntry", _signature: str | None) -> Json:
    return {}


def _shown_plugin(plugin: "PluginEntry", _signature: str | None) -> Json:
    return {
        "groups": _names(plugin.supply.groups),
        "tools": _names(plugin.supply.tools),
        "skill_folders": list(plugin.supply.skills),
        "servers": [_declared_server(server) for server in plugin.servers],
    }


_SHOWN: Mapping[str, Callable[[Any, str | None], Json]] = {
    "skill": _shown_skill,
    "tool": _shown_tool,
    "group": _shown_group,
    "plugin": _shown_plugin,
}


def contract_of(tool: "ToolEntry") -> Json | None:
    """Return a tool's contract, or `None` if it has none or its code was not loaded."""
    if tool.contract is None:
        return None
    # Lazy: only a tool that was loaded has a contract.
    from satchel.contracts import contract_json

    owner = {"tool": tool.name, **_picked(tool, "source", "state", "path")}
    return owner | contract_json(tool.contract)


def contracts(catalog: "Catalog") -> list[Json]:
    """Return the contracts of all tools that have one."""
    return [shape for tool in catalog.all_tools if (shape := contract_of(tool))]


def plugin_in_full(plugin: "PluginEntry", catalog: "Catalog") -> Json:
    """Return a plugin with what it brings."""
    supply = plugin.supply
    skills = [entry.name for entry in catalog.all_skills if entry.source == plugin.name]
    return {
        **entry_json("plugin", plugin),
        "tools": _names(supply.tools),
        "groups": _names(supply.groups),
        "skills": skills if plugin.is_served else [],
        "servers": _names(plugin.servers),
        "commands": _names(supply.commands),
        "fields": _names(supply.config),
        "import_seconds": supply.code.seconds if supply.code else None,
    }


def hit_json(hit: "SearchHit", entry: "Entry") -> Json:
    """Return something that a search found."""
    return {
        "kind": hit.kind,
        "name": hit.name,
        "description": entry.description,
        "group": getattr(entry, "group", None),
        "source": entry.source,
        "score": hit.score,
    }


def check_json(check: "MachineCheck") -> Json:
    """Return one thing about the machine."""
    return _picked(check, "name", "severity", "message", "command")


def case_json(case: "DoctorCase") -> list[Json]:
    """Return what is wrong with one entry, or with the sources."""
    owner = _picked(case.entry, "name", "source", "state") if case.entry else _NO_OWNER
    return [
        {"kind": case.kind, **owner, **item.as_dict(), "command": case.command_for(item)}
        for item in case.findings
    ]


_NO_OWNER = {"name": "", "source": "", "state": ""}


def installed_json(plugin: "Installed") -> Json:
    """Return a plugin that was installed."""
    return {
        **_picked(plugin, "name", "version", "kind", "path"),
        "enabled": plugin.is_enabled,
        "missing": _names(plugin.missing),
    }


def result_json(result: "ToolResult") -> Json:
    """Return the result of a call."""
    return {
        "text": result.text,
        "content": [block.to_dict() for block in result.content],
        **_picked(result, "structured", "is_error", "is_interrupted", "error_code"),
    }


def outcome_json(outcome: "PluginTestResult") -> Json:
    """Return what came of the test of a plugin."""
    plugin = outcome.plugin
    return {
        "plugin": plugin.name,
        **_picked(plugin, "path", "state"),
        "passed": outcome.passed,
        "diagnostics": [item.as_dict() for item in plugin.diagnostics],
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
        "left_out": [_picked(item, "tool", "reason", "fix") for item in outcome.left_out],
    }


def server_json(name: str, server: "DeclaredServer", transport: str) -> Json:
    """Return an MCP server that is declared somewhere."""
    return {
        "name": name,
        "transport": transport,
        "where": str(server.server),
        "plugin": server.owner or None,
        **_picked(server, "path", "pin"),
    }


def remote_tool_json(entry: "ToolEntry", name: str, digest: str | None) -> Json:
    """Return a tool of an MCP server, which calls it by that name."""
    return {
        "name": entry.name,
        "server_name": name,
        **_picked(entry, "state", "description"),
        "digest": digest,
        "parameters": entry.tool.parameters if entry.tool else None,
        "diagnostics": [item.as_dict() for item in entry.diagnostics],
    }


def _declared_server(server: "McpServerManifest") -> Json:
    """Return a server as it is declared; a remote one has no command, a local one no URL."""
    shape = {"name": server.name, "type": server.transport}
    if server.transport == "stdio":
        more = _picked(server, "command", "args")
        return {**shape, **more, "env": dict(server.env), "cwd": server.cwd}
    return {**shape, "url": server.url, "headers": dict(server.headers)}


def _picked(record: Any, *keys: str) -> Json:
    """Return attributes of a record as JSON has them: tuples as lists, enums as text."""
    return {key: _plain(getattr(record, key)) for key in keys}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, str) else value


def _names(records: Iterable[Any]) -> list[str]:
    return [record.name for record in records]
