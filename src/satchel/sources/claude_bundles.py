"""Read Claude bundles, folders with a `.claude-plugin/plugin.json`: their skills and servers."""

import os
from collections.abc import Iterable
from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.formats import (
    SKILLS_FOLDER,
    ClaudeManifest,
    McpServerManifest,
    PluginManifest,
    read_claude_plugin,
    read_claude_servers,
)
from satchel.formats.read_result import quoted
from satchel.settings import Limits
from satchel.sources.plugin_findings import CodeParts, PluginFinding, unreadable
from satchel.sources.plugin_formats import PluginFormat
from satchel.text import one_line, shorten

CLAUDE_MCP_FILE = ".mcp.json"

# Files and folders that only Claude uses, with the field of the manifest that replaces each.
_IGNORED_PARTS = {
    "agents": "agents",
    "commands": "commands",
    "hooks": "hooks",
    "output-styles": "outputStyles",
    ".lsp.json": "lspServers",
    "monitors": "monitors",
    "themes": "themes",
    "bin": "bin",
    "settings.json": "settings",
}


def inside_path(text: str) -> str:
    """Return a normalized path inside the bundle, `""` if the path leaves it."""
    path = os.path.normpath(text).replace(os.sep, "/")
    leads_out = os.path.isabs(path) or path.split("/")[0] == ".."
    return "" if not text or leads_out or "\0" in text else path


def read_claude_bundle(finding: PluginFinding, limits: Limits) -> PluginFinding:
    """Read the skills and servers of a bundle; one diagnostic names everything that is ignored."""
    file = finding.folder.get(PluginFormat.CLAUDE)
    if file is None or file.data is None:
        return replace(finding, diagnostics=(unreadable(finding, PluginFormat.CLAUDE),))
    path = os.path.join(finding.path, *PluginFormat.CLAUDE.split("/"))
    reading = read_claude_plugin(file.data, path, limits)
    if (manifest := reading.value) is None:
        return replace(finding, diagnostics=reading.diagnostics)
    files = _server_files(manifest)
    servers, diagnostics = _servers(finding, files, limits)
    # As in Claude, a server of the manifest replaces one of the same name.
    by_name = {server.name: server for server in (*servers, *manifest.servers)}
    skills = [os.path.normpath(os.path.join(finding.path, name)) for name in _skills(manifest)]
    return replace(
        finding,
        parts=CodeParts(frozenset({PluginFormat.CLAUDE, *files})),
        manifest=_as_plugin(manifest),
        servers=tuple(by_name.values()),
        skills=tuple(skills),
        diagnostics=(
            *reading.diagnostics,
            *diagnostics,
            *_wrong_paths(finding, manifest),
            *_ignored(finding, manifest),
        ),
    )


def _server_files(manifest: ClaudeManifest) -> tuple[str, ...]:
    paths = (path for name in manifest.server_files if (path := inside_path(name)))
    return tuple(dict.fromkeys((CLAUDE_MCP_FILE, *paths)))


def _servers(
    finding: PluginFinding, files: tuple[str, ...], limits: Limits
) -> tuple[list[McpServerManifest], list[Diagnostic]]:
    servers: list[McpServerManifest] = []
    diagnostics: list[Diagnostic] = []
    for name in files:
        file = finding.folder.get(name)
        if file is not None and file.data is not None:
            path = os.path.join(finding.path, *name.split("/"))
            reading = read_claude_servers(file.data, path, limits)
            servers += reading.value or ()
            diagnostics += reading.diagnostics
        elif name != CLAUDE_MCP_FILE or name in finding.names:
            diagnostics.append(unreadable(finding, name, "mcp-invalid"))
    return servers, diagnostics


def _skills(manifest: ClaudeManifest) -> list[str]:
    """Return the skill folders that are not inside another one."""
    paths = {SKILLS_FOLDER, *(path for name in manifest.skills if (path := inside_path(name)))}
    return sorted(
        path for path in paths if not any(_is_below(path, other) for other in paths - {path})
    )


def _is_below(name: str, other: str) -> bool:
    return other == "." or name.startswith(f"{other}/")


def _as_plugin(manifest: ClaudeManifest) -> PluginManifest:
    return PluginManifest(
        name=manifest.name,
        version=manifest.version,
        description=manifest.description,
        author=manifest.author,
        license=manifest.license,
        homepage=manifest.homepage,
        keywords=manifest.keywords,
    )


def _wrong_paths(finding: PluginFinding, manifest: ClaudeManifest) -> Iterable[Diagnostic]:
    """Report paths in the manifest that are not read."""
    path = os.path.join(finding.path, *PluginFormat.CLAUDE.split("/"))
    for key, names in (("skills", manifest.skills), ("mcpServers", manifest.server_files)):
        where = Where(path, manifest.lines.get(key))
        for name in names:
            inside = inside_path(name)
            if not inside:
                message = f"the path {quoted(name)} leaves the bundle; it is not followed"
                yield make_diagnostic(
                    "source-link-outside", where, message, "name a path inside the bundle"
                )
            elif key == "skills" and not os.path.isdir(os.path.join(finding.path, inside)):
                message = f"'skills' names a folder, but there is no {quoted(name)}"
                yield make_diagnostic(
                    "source-missing", where, message, "create it, or remove it there"
                )


def _ignored(finding: PluginFinding, manifest: ClaudeManifest) -> Iterable[Diagnostic]:
    parts = {part for name, part in _IGNORED_PARTS.items() if name in finding.names}
    if names := ", ".join(one_line(name) for name in sorted(parts.union(manifest.ignored))):
        yield make_diagnostic(
            "plugin-parts-ignored",
            Where(finding.path),
            "only skills and MCP servers of a Claude bundle are read, not its "
            + shorten(names, 200),
        )
