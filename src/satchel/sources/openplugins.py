"""Open plugins: folders with a plugin.json, as Agent Plugins 1.0.0 has them.

What is written for Satchel alone (tools in Python, groups and their notes) lies in the folder that
bears our namespace, so the same folder is a plugin for every other client.
"""

import os
from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, has_error, report
from satchel.manifests import (
    McpServer,
    OpenManifest,
    PluginManifest,
    read_mcp,
    read_open_plugin,
    read_plugin,
    resolved,
)
from satchel.manifests.reading import shown
from satchel.names import plugin_name_fault
from satchel.settings import Limits
from satchel.sources.files import is_inside
from satchel.sources.findings import (
    MANIFEST_FILE,
    NAMESPACE,
    Format,
    PluginFinding,
    silent,
    unreadable,
)
from satchel.sources.parts import is_code, too_large, with_part

MCP_FILE = "mcp.json"
SKILLS_FOLDER = "skills"

_NOTES = (".md", ".txt")

# Nobody made the folder for data yet; what matters is only that it is not inside the plugin.
_DATA = f"{os.sep}plugin-data"


def is_wanted(name: str) -> bool:
    """Tell whether a file of an open plugin is read, by its path inside the plugin."""
    if name.startswith(f"{NAMESPACE}/"):
        return is_code(name.removeprefix(f"{NAMESPACE}/")) or name.endswith(_NOTES)
    return name in (Format.OPEN, MCP_FILE)


def judge_open(found: PluginFinding, limits: Limits) -> PluginFinding:
    """Read the manifest, the servers, and what is written for us; nothing of it is run."""
    path = os.path.join(found.path, Format.OPEN)
    file = found.folder.get(Format.OPEN)
    if file is None or file.data is None:
        return replace(found, diagnostics=(unreadable(found, Format.OPEN),))
    reading = read_open_plugin(file.data, path, limits)
    if reading.value is None:
        return replace(found, diagnostics=reading.diagnostics)
    servers, of_servers = _servers(found, reading.value.spec, limits)
    extended, of_extension = _extension(found, reading.value, limits)
    return replace(
        extended,
        servers=servers,
        skills=(os.path.join(found.path, SKILLS_FOLDER),),
        diagnostics=(*reading.diagnostics, *of_servers, *of_extension, *_misplaced(found)),
    )


# ---- servers ------------------------------------------------------------------------------


def _servers(
    found: PluginFinding, spec: str, limits: Limits
) -> tuple[tuple[McpServer, ...], tuple[Diagnostic, ...]]:
    if MCP_FILE not in found.names:
        return (), ()
    path = os.path.join(found.path, MCP_FILE)
    file = found.folder.get(MCP_FILE)
    if file is None or file.data is None:
        return (), (unreadable(found, MCP_FILE, "mcp-invalid"),)
    reading = read_mcp(file.data, path, limits, spec)
    root = os.path.realpath(found.path)
    faults = {server.name: _escape(server, root) for server in reading.value or ()}
    escapes = tuple(
        report(
            "mcp-server-invalid",
            Where(path),
            f"server {shown(name)} has a '{what}' that leads out of the folder it belongs to",
            "keep to files of the plugin",
        )
        for name, what in faults.items()
        if what
    )
    inside = tuple(server for server in reading.value or () if not faults[server.name])
    return inside, (*reading.diagnostics, *escapes)


def _escape(server: McpServer, root: str) -> str:
    """Return the field of a server whose path leads out of where it must stay, `""` if none."""
    filled = resolved(server, root, _DATA, {})
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
    # A folder with tools and nothing to say about them needs no toolkit.yaml.
    data = file.data if file is not None and file.data is not None else b"{}"
    reading = read_plugin(data, core.name, path, limits, extends=core.name)
    manifest = _with_core(reading.value or silent(core.name), core)
    problems = [*_inline(found, core), *reading.diagnostics]
    if file is None and MANIFEST_FILE in _names_in(found.code_path):
        problems.append(unreadable(found, f"{NAMESPACE}/{MANIFEST_FILE}"))
    if found.code and (fault := plugin_name_fault(core.name)):
        message = f"the name {core.name!r} {fault}, so its tools are not used"
        where = Where(os.path.join(found.path, Format.OPEN))
        problems.append(report("plugin-name-shape", where, message, "choose another name"))
    if (large := too_large(found, limits.plugin_source)) is not None:
        problems.append(large)
    if manifest is None or has_error(problems):
        return replace(found, manifest=manifest), tuple(problems)
    extended, of_part = with_part(found, manifest, limits)
    return extended, (*problems, *of_part)


def _with_core(manifest: PluginManifest | None, core: OpenManifest) -> PluginManifest | None:
    """Let plugin.json have the last word on what it tells."""
    return manifest and replace(
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
        report(
            "plugin-field-unknown",
            Where(os.path.join(found.path, Format.OPEN)),
            f"'extensions' has data for {NAMESPACE!r}, and nobody reads it there",
            f"write it into {NAMESPACE}/{MANIFEST_FILE}",
        ),
    )


def _misplaced(found: PluginFinding) -> tuple[Diagnostic, ...]:
    """Report a toolkit.yaml of ours where the open format gives it no place."""
    if MANIFEST_FILE not in found.names:
        return ()
    return (
        report(
            "plugin-toolkit-ignored",
            Where(os.path.join(found.path, MANIFEST_FILE)),
            "is not read, because plugin.json makes the folder an open plugin",
            f"move it and the code into {NAMESPACE}/",
        ),
    )
