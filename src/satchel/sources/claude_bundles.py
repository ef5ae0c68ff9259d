"""Claude bundles: folders with a `.claude-plugin/plugin.json`, of which we take what we know."""

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

# Where Claude finds more, unless the manifest says so itself.
_PARTS = {
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
    """Return a path of a manifest as a plain one inside the bundle, `""` if it leads out."""
    path = os.path.normpath(text).replace(os.sep, "/")
    leads_out = os.path.isabs(path) or path.split("/")[0] == ".."
    return "" if not text or leads_out or "\0" in text else path


def read_claude_bundle(found: PluginFinding, limits: Limits) -> PluginFinding:
    """Take skills and servers of a bundle, and say once what is left."""
    file = found.folder.get(PluginFormat.CLAUDE)
    if file is None or file.data is None:
        return replace(found, diagnostics=(unreadable(found, PluginFormat.CLAUDE),))
    path = os.path.join(found.path, *PluginFormat.CLAUDE.split("/"))
    reading = read_claude_plugin(file.data, path, limits)
    if (manifest := reading.value) is None:
        return replace(found, diagnostics=reading.diagnostics)
    files = _server_files(manifest)
    servers, problems = _servers(found, files, limits)
    # Claude lets a server of the manifest take the place of one of the same name.
    named = {server.name: server for server in (*servers, *manifest.servers)}
    skills = [os.path.normpath(os.path.join(found.path, name)) for name in _skills(manifest)]
    return replace(
        found,
        parts=CodeParts(frozenset({PluginFormat.CLAUDE, *files})),
        manifest=_as_plugin(manifest),
        servers=tuple(named.values()),
        skills=tuple(skills),
        diagnostics=(
            *reading.diagnostics,
            *problems,
            *_wrong_paths(found, manifest),
            *_ignored(found, manifest),
        ),
    )


def _server_files(manifest: ClaudeManifest) -> tuple[str, ...]:
    """Return the files with servers, by their path inside the bundle."""
    named = (path for name in manifest.server_files if (path := inside_path(name)))
    return tuple(dict.fromkeys((CLAUDE_MCP_FILE, *named)))


def _servers(
    found: PluginFinding, files: tuple[str, ...], limits: Limits
) -> tuple[list[McpServerManifest], list[Diagnostic]]:
    servers: list[McpServerManifest] = []
    problems: list[Diagnostic] = []
    for name in files:
        file = found.folder.get(name)
        if file is not None and file.data is not None:
            path = os.path.join(found.path, *name.split("/"))
            reading = read_claude_servers(file.data, path, limits)
            servers += reading.value or ()
            problems += reading.diagnostics
        elif name != CLAUDE_MCP_FILE or name in found.names:
            problems.append(unreadable(found, name, "mcp-invalid"))
    return servers, problems


def _skills(manifest: ClaudeManifest) -> list[str]:
    """Return the folders with skills, without those that lie in another."""
    named = {SKILLS_FOLDER, *(path for name in manifest.skills if (path := inside_path(name)))}
    return sorted(
        name for name in named if not any(_is_below(name, other) for other in named - {name})
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


def _wrong_paths(found: PluginFinding, manifest: ClaudeManifest) -> Iterable[Diagnostic]:
    """Report what the manifest names and where nothing is read."""
    path = os.path.join(found.path, *PluginFormat.CLAUDE.split("/"))
    for key, names in (("skills", manifest.skills), ("mcpServers", manifest.server_files)):
        where = Where(path, manifest.lines.get(key))
        for name in names:
            inside = inside_path(name)
            if not inside:
                told = f"the path {quoted(name)} leaves the bundle; it is not followed"
                yield make_diagnostic(
                    "source-link-outside", where, told, "name a path inside the bundle"
                )
            elif key == "skills" and not os.path.isdir(os.path.join(found.path, inside)):
                told = f"'skills' names a folder, but there is no {quoted(name)}"
                yield make_diagnostic(
                    "source-missing", where, told, "create it, or remove it there"
                )


def _ignored(found: PluginFinding, manifest: ClaudeManifest) -> Iterable[Diagnostic]:
    """Say once what of a bundle is not read."""
    parts = {part for name, part in _PARTS.items() if name in found.names}
    if names := ", ".join(one_line(name) for name in sorted(parts.union(manifest.ignored))):
        yield make_diagnostic(
            "plugin-parts-ignored",
            Where(found.path),
            "only skills and MCP servers of a Claude bundle are read, not its "
            + shorten(names, 200),
        )
