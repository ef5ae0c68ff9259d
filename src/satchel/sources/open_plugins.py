"""Read open plugins: folders with a plugin.json (Agent Plugins 1.0.0).

Tools in Python, groups and notes are for Satchel only. They are in the folder `dev.satchel`, so
the plugin works in every other client as well.
"""

import os
from collections.abc import Iterable
from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, has_error, make_diagnostic
from satchel.files.file_reader import is_inside, real_path
from satchel.formats.code_references import DEFAULT_TOOLS
from satchel.formats.declared_tools import declared_tools
from satchel.formats.mcp_json import McpServerManifest
from satchel.formats.open_plugin_manifest import OpenManifest, read_open_plugin
from satchel.formats.read_result import quoted
from satchel.formats.server_placeholders import plugin_filler
from satchel.formats.toolkit_manifest import SKILLS_FOLDER, PluginManifest, read_plugin
from satchel.names import plugin_name_fault
from satchel.settings import Limits
from satchel.sources.claude_bundles import ignored_parts
from satchel.sources.plugin_findings import CodeParts, PluginFinding, not_there, unreadable
from satchel.sources.plugin_formats import MANIFEST_FILE, NAMESPACE, PluginFormat
from satchel.sources.toolkit_parts import parts_of, unusable_code, with_toolkit

MCP_FILE = "mcp.json"

_TOOLS_FILE = f"{DEFAULT_TOOLS}.py"

# A stand-in for the data folder, which may not exist yet; it must only be outside the plugin.
_DATA = f"{os.sep}plugin-data"


def read_open_plugin_folder(finding: PluginFinding, limits: Limits) -> PluginFinding:
    """Read the manifest, the servers and the extension for Satchel, without running code."""
    path = os.path.join(finding.path, PluginFormat.OPEN)
    file = finding.folder.get(PluginFormat.OPEN)
    skills = (os.path.join(finding.path, SKILLS_FOLDER),)
    finding = replace(finding, skills=skills, missing=not_there(skills))
    if file is None or file.data is None:
        return replace(finding, diagnostics=(unreadable(finding, PluginFormat.OPEN),))
    reading = read_open_plugin(file.data, path, limits)
    if reading.value is None:
        return replace(finding, diagnostics=reading.diagnostics)
    servers, server_diagnostics = _servers(finding, reading.value.spec, limits)
    extended, extension_diagnostics = _extension(finding, reading.value, limits)
    return replace(
        extended,
        servers=servers,
        diagnostics=(
            *reading.diagnostics,
            *server_diagnostics,
            *extension_diagnostics,
            *_misplaced(finding),
            *_ignored(finding, reading.value),
        ),
    )


# ---- servers ------------------------------------------------------------------------------


def _servers(
    finding: PluginFinding, spec: str, limits: Limits
) -> tuple[tuple[McpServerManifest, ...], tuple[Diagnostic, ...]]:
    if MCP_FILE not in finding.names:
        return (), ()
    path = os.path.join(finding.path, MCP_FILE)
    file = finding.folder.get(MCP_FILE)
    if file is None or file.data is None:
        return (), (unreadable(finding, MCP_FILE, "mcp-invalid"),)
    from satchel.formats.mcp_json_reader import read_mcp  # lazy: it loads pydantic

    reading = read_mcp(file.data, path, limits, spec)
    root = real_path(finding.path)
    inside, diagnostics = [], list(reading.diagnostics)
    for server in reading.value or ():
        if field := _escaping_field(server, root):
            where = Where(path, server.lines.get(field))
            message = f"server {quoted(server.name)} has a '{field}' that leaves its folder"
            fix = "use only files of the plugin"
            diagnostics.append(make_diagnostic("mcp-server-invalid", where, message, fix))
        else:
            inside.append(server)
    return tuple(inside), tuple(diagnostics)


def _escaping_field(server: McpServerManifest, root: str) -> str:
    """Return the field of a server whose path leaves its folder, `""` if there is none."""
    filler = plugin_filler(server, root, _DATA, {})
    command, cwd = server.table.get("command", ""), server.table.get("cwd", "")
    if not _is_below(os.path.join(root, command if command.startswith("./") else ""), root):
        return "command"
    base = _DATA if cwd.startswith("${PLUGIN_DATA}") else root
    return "" if _is_below(filler.inside(filler.filled(cwd)) or root, base) else "cwd"


def _is_below(path: str, base: str) -> bool:
    return "\0" not in path and is_inside(real_path(path), real_path(base))


# ---- the extension for Satchel ---------------------------------------------------------------


def _extension(
    finding: PluginFinding, core: OpenManifest, limits: Limits
) -> tuple[PluginFinding, tuple[Diagnostic, ...]]:
    """Read the folder `dev.satchel`; errors there do not affect the rest of the plugin."""
    path = os.path.join(finding.code_path, MANIFEST_FILE)
    file = finding.code.get(MANIFEST_FILE)
    diagnostics = list(_inline(finding, core))
    # A folder with only tools needs no toolkit.yaml.
    own_manifest: PluginManifest | None = PluginManifest(name=core.name)
    if file is not None and file.data is not None:
        reading = read_plugin(file.data, core.name, path, limits, extends=core.name)
        diagnostics += reading.diagnostics
        own_manifest = reading.value or reading.partial
    elif os.path.lexists(path):
        diagnostics.append(unreadable(finding, f"{NAMESPACE}/{MANIFEST_FILE}"))
    if own_manifest is not None:
        files = parts_of(finding.prefix, own_manifest).required | finding.policy.files
        finding = replace(finding, parts=CodeParts(files))
    diagnostics += _unfit_name(finding, core)
    manifest = replace(
        own_manifest or PluginManifest(name=core.name),
        name=core.name,
        version=core.version,
        description=core.description,
        author=core.author,
        license=core.license,
        homepage=core.homepage or core.repository,
        keywords=core.keywords,
        skills=SKILLS_FOLDER,
    )
    if unusable := tuple(unusable_code(finding, limits.plugin_source)):
        extended, code_diagnostics = finding, unusable
    else:
        extended, code_diagnostics = with_toolkit(finding, manifest, limits)
    diagnostics += code_diagnostics
    if has_error(diagnostics):
        # The extension is not served, so its groups and notes must not appear either.
        core_only = replace(manifest, notes="", active=False, groups=())
        return replace(finding, manifest=core_only), tuple(diagnostics)
    return extended, tuple(diagnostics)


def _unfit_name(finding: PluginFinding, core: OpenManifest) -> Iterable[Diagnostic]:
    """Report a name that the open format allows, but that is invalid for tools."""
    if finding.code and (fault := plugin_name_fault(core.name)):
        message = f"the name {quoted(core.name)} {fault}, so its tools are not used"
        where = Where(os.path.join(finding.path, PluginFormat.OPEN), core.line("name"))
        yield make_diagnostic("plugin-name-shape", where, message, "choose another name")


def _inline(finding: PluginFinding, core: OpenManifest) -> tuple[Diagnostic, ...]:
    """Report extension data for Satchel in plugin.json: it belongs in a file."""
    if NAMESPACE not in core.extensions:
        return ()
    return (
        make_diagnostic(
            "plugin-field-unknown",
            Where(
                os.path.join(finding.path, PluginFormat.OPEN), core.line("extensions", NAMESPACE)
            ),
            f"'extensions' has data for {NAMESPACE!r}, which is not read there",
            f"write it into {NAMESPACE}/{MANIFEST_FILE}",
        ),
    )


def _ignored(finding: PluginFinding, core: OpenManifest) -> Iterable[Diagnostic]:
    """Name the parts for other clients if nothing else is there."""
    if {SKILLS_FOLDER, MCP_FILE, NAMESPACE} & finding.names:
        return ()
    data = (f"{client} ({', '.join(names)})" for client, names in core.extensions.items())
    return ignored_parts(finding, data, is_used=False)


def _misplaced(finding: PluginFinding) -> Iterable[Diagnostic]:
    """Report files that the author probably meant to be read, in the wrong location."""

    def misplaced(code: str, name: str, reason: str, fix: str) -> Diagnostic:
        where = Where(os.path.join(finding.path, name), 1)
        return make_diagnostic(code, where, f"is not read, because {reason}", fix)

    if MANIFEST_FILE in finding.names:
        reason = "plugin.json makes the folder an open plugin"
        fix = f"move it and the code into {NAMESPACE}/"
        yield misplaced("plugin-toolkit-ignored", MANIFEST_FILE, reason, fix)
    elif NAMESPACE not in finding.names and _has_tools(finding):
        reason = f"the code of an open plugin is in {NAMESPACE}/"
        yield misplaced("plugin-toolkit-ignored", _TOOLS_FILE, reason, "move it there")
    # A `.mcp.json` beside a Claude manifest belongs to Claude.
    hidden = f".{MCP_FILE}"
    if hidden in finding.names and not {MCP_FILE, ".claude-plugin"} & finding.names:
        reason = f"the servers of an open plugin are in {MCP_FILE}"
        yield misplaced("mcp-invalid", hidden, reason, f"write them into {MCP_FILE}")


def _has_tools(finding: PluginFinding) -> bool:
    file = finding.folder.get(_TOOLS_FILE)
    return bool(file and file.data and declared_tools(file.data, _TOOLS_FILE).value)
