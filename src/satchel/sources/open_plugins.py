"""Open plugins: folders with a plugin.json, as Agent Plugins 1.0.0 has them.

What is written for Satchel alone (tools in Python, groups and their notes) lies in the folder that
bears our namespace, so the same folder is a plugin for every other client.
"""

import os
from collections.abc import Iterable
from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, has_error, make_diagnostic
from satchel.formats import (
    DEFAULT_TOOLS,
    SKILLS_FOLDER,
    McpServerManifest,
    OpenManifest,
    PluginManifest,
    declared_tools,
    fill_placeholders,
    read_mcp,
    read_open_plugin,
    read_plugin,
)
from satchel.formats.read_result import quoted
from satchel.names import plugin_name_fault
from satchel.settings import Limits
from satchel.sources.file_reader import is_inside
from satchel.sources.plugin_findings import CodeParts, PluginFinding, unreadable
from satchel.sources.plugin_formats import MANIFEST_FILE, NAMESPACE, PluginFormat
from satchel.sources.toolkit_parts import parts_of, too_large, with_part

MCP_FILE = "mcp.json"

_TOOLS_FILE = f"{DEFAULT_TOOLS}.py"

# Nobody made the folder for data yet; what matters is only that it is not inside the plugin.
_DATA = f"{os.sep}plugin-data"


def read_open_plugin_folder(found: PluginFinding, limits: Limits) -> PluginFinding:
    """Read the manifest, the servers, and what is written for us; nothing of it is run."""
    path = os.path.join(found.path, PluginFormat.OPEN)
    file = found.folder.get(PluginFormat.OPEN)
    found = replace(found, skills=(os.path.join(found.path, SKILLS_FOLDER),))
    if file is None or file.data is None:
        return replace(found, diagnostics=(unreadable(found, PluginFormat.OPEN),))
    reading = read_open_plugin(file.data, path, limits)
    if reading.value is None:
        return replace(found, diagnostics=reading.diagnostics)
    servers, of_servers = _servers(found, reading.value.spec, limits)
    extended, of_extension = _extension(found, reading.value, limits)
    return replace(
        extended,
        servers=servers,
        diagnostics=(*reading.diagnostics, *of_servers, *of_extension, *_misplaced(found)),
    )


# ---- servers ------------------------------------------------------------------------------


def _servers(
    found: PluginFinding, spec: str, limits: Limits
) -> tuple[tuple[McpServerManifest, ...], tuple[Diagnostic, ...]]:
    if MCP_FILE not in found.names:
        return (), ()
    path = os.path.join(found.path, MCP_FILE)
    file = found.folder.get(MCP_FILE)
    if file is None or file.data is None:
        return (), (unreadable(found, MCP_FILE, "mcp-invalid"),)
    reading = read_mcp(file.data, path, limits, spec)
    root = os.path.realpath(found.path)
    inside, problems = [], list(reading.diagnostics)
    for server in reading.value or ():
        if what := _escape(server, root):
            where = Where(path, server.lines.get(what))
            told = f"server {quoted(server.name)} has a '{what}' that leads out of its folder"
            fix = "keep to files of the plugin"
            problems.append(make_diagnostic("mcp-server-invalid", where, told, fix))
        else:
            inside.append(server)
    return tuple(inside), tuple(problems)


def _escape(server: McpServerManifest, root: str) -> str:
    """Return the field of a server whose path leads out of where it must stay, `""` if none."""
    filled = fill_placeholders(server, root, _DATA, {})
    command = server.command if server.command.startswith("./") else ""
    if not _stays(os.path.join(root, command), root):
        return "command"
    base = _DATA if server.cwd.startswith("${PLUGIN_DATA}") else root
    return "" if _stays(filled.cwd or root, base) else "cwd"


def _stays(path: str, base: str) -> bool:
    return "\0" not in path and is_inside(os.path.realpath(path), os.path.realpath(base))


# ---- what is written for us ---------------------------------------------------------------


def _extension(
    found: PluginFinding, core: OpenManifest, limits: Limits
) -> tuple[PluginFinding, tuple[Diagnostic, ...]]:
    """Read our own folder; what is wrong there takes nothing else of the plugin along."""
    path = os.path.join(found.code_path, MANIFEST_FILE)
    file = found.code.get(MANIFEST_FILE)
    problems = list(_inline(found, core))
    # A folder with tools and nothing to say about them needs no toolkit.yaml.
    written: PluginManifest | None = PluginManifest(name=core.name)
    if file is not None and file.data is not None:
        reading = read_plugin(file.data, core.name, path, limits, extends=core.name)
        problems += reading.diagnostics
        written = reading.value or reading.partial
    elif MANIFEST_FILE in _names_in(found.code_path):
        problems.append(unreadable(found, f"{NAMESPACE}/{MANIFEST_FILE}"))
    if written is not None:
        named = parts_of(found.prefix, written).named | found.policy.files
        found = replace(found, parts=CodeParts(named))
    problems += _unfit_name(found, core)
    manifest = _with_core(written or PluginManifest(name=core.name), core)
    if large := tuple(too_large(found, limits.plugin_source)):
        extended, of_part = found, large
    else:
        extended, of_part = with_part(found, manifest, limits)
    problems += of_part
    if has_error(problems):
        # None of it will be served, so nobody hears of groups without their tools.
        silent = replace(manifest, notes="", active=False, groups=())
        return replace(found, manifest=silent), tuple(problems)
    return extended, tuple(problems)


def _unfit_name(found: PluginFinding, core: OpenManifest) -> Iterable[Diagnostic]:
    """Report a name that the open format allows and under which we cannot serve tools."""
    if found.code and (fault := plugin_name_fault(core.name)):
        message = f"the name {quoted(core.name)} {fault}, so its tools are not used"
        where = Where(os.path.join(found.path, PluginFormat.OPEN), core.line("name"))
        yield make_diagnostic("plugin-name-shape", where, message, "choose another name")


def _with_core(manifest: PluginManifest, core: OpenManifest) -> PluginManifest:
    """Let plugin.json have the last word on what it tells."""
    return replace(
        manifest,
        name=core.name,
        version=core.version,
        description=core.description,
        author=core.author.name,
        license=core.license,
        homepage=core.homepage or core.repository,
        keywords=core.keywords,
        skills=SKILLS_FOLDER,
    )


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _inline(found: PluginFinding, core: OpenManifest) -> tuple[Diagnostic, ...]:
    """Report data of ours in plugin.json, which we keep in a file instead."""
    if NAMESPACE not in core.namespaces:
        return ()
    return (
        make_diagnostic(
            "plugin-field-unknown",
            Where(os.path.join(found.path, PluginFormat.OPEN), core.line("extensions", NAMESPACE)),
            f"'extensions' has data for {NAMESPACE!r}, and nobody reads it there",
            f"write it into {NAMESPACE}/{MANIFEST_FILE}",
        ),
    )


def _misplaced(found: PluginFinding) -> Iterable[Diagnostic]:
    """Report what its author meant for us or for every client, where nobody looks for it."""

    def misplaced(code: str, name: str, why: str, fix: str) -> Diagnostic:
        where = Where(os.path.join(found.path, name), 1)
        return make_diagnostic(code, where, f"is not read, because {why}", fix)

    if MANIFEST_FILE in found.names:
        why = "plugin.json makes the folder an open plugin"
        fix = f"move it and the code into {NAMESPACE}/"
        yield misplaced("plugin-toolkit-ignored", MANIFEST_FILE, why, fix)
    elif NAMESPACE not in found.names and _has_tools(found):
        why = f"the code of an open plugin is in {NAMESPACE}/"
        yield misplaced("plugin-toolkit-ignored", _TOOLS_FILE, why, "move it there")
    # Beside the manifest of another client it is that client's.
    hidden = f".{MCP_FILE}"
    if hidden in found.names and not {MCP_FILE, ".claude-plugin"} & found.names:
        why = f"the servers of an open plugin are in {MCP_FILE}"
        yield misplaced("mcp-invalid", hidden, why, f"write them into {MCP_FILE}")


def _has_tools(found: PluginFinding) -> bool:
    file = found.folder.get(_TOOLS_FILE)
    return bool(file and file.data and declared_tools(file.data, _TOOLS_FILE).value)
