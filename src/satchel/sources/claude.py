"""Claude bundles: folders with a `.claude-plugin/plugin.json`, of which we take what we know."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from satchel.diagnostics import Diagnostic, Where, report
from satchel.manifests import (
    ClaudeManifest,
    McpServer,
    PluginManifest,
    Reading,
    read_claude_plugin,
    read_claude_servers,
)
from satchel.manifests.reading import shown
from satchel.settings import Limits
from satchel.sources.findings import Format, PluginFinding, silent, unreadable
from satchel.sources.openplugins import SKILLS_FOLDER
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


@dataclass(frozen=True, slots=True)
class ClaudeFiles:
    """The files of a bundle that are read: those of every bundle, and those that it names."""

    manifest: Reading[ClaudeManifest] | None = None

    @property
    def servers(self) -> tuple[str, ...]:
        """Return the files with servers, by their path inside the bundle."""
        named = self.manifest.value.server_files if self.manifest and self.manifest.value else ()
        inside = (path for name in named if (path := inside_path(name)))
        return tuple(dict.fromkeys((CLAUDE_MCP_FILE, *inside)))

    def is_wanted(self, name: str) -> bool:
        """Tell whether a file is read, by its path inside the bundle."""
        return name == Format.CLAUDE or name in self.servers

    @property
    def folders(self) -> frozenset[str]:
        """Return the names directly in the bundle below which there is something to read."""
        return frozenset(name.split("/")[0] for name in (Format.CLAUDE, *self.servers))


def inside_path(text: str) -> str:
    """Return a path of a manifest as a plain one inside the bundle, `""` if it leads out."""
    path = os.path.normpath(text).replace(os.sep, "/")
    leads_out = os.path.isabs(path) or path.split("/")[0] == ".."
    return "" if not text or leads_out or "\0" in text else path


def claude_files(found: PluginFinding, limits: Limits) -> ClaudeFiles:
    """Return what else is to be read of a bundle whose manifest was read."""
    file = found.folder.get(Format.CLAUDE)
    if file is None or file.data is None:
        return ClaudeFiles()
    path = os.path.join(found.path, *Format.CLAUDE.split("/"))
    return ClaudeFiles(read_claude_plugin(file.data, path, limits))


def judge_claude(found: PluginFinding, files: ClaudeFiles, limits: Limits) -> PluginFinding:
    """Take skills and servers of a bundle, and say once what is left."""
    if files.manifest is None:
        return replace(found, diagnostics=(unreadable(found, Format.CLAUDE),))
    manifest = files.manifest.value
    if manifest is None:
        return replace(found, diagnostics=files.manifest.diagnostics)
    servers, problems = _servers(found, files, limits)
    # Claude lets a server of the manifest take the place of one of the same name.
    named = {server.name: server for server in (*servers, *manifest.servers)}
    return replace(
        found,
        manifest=_as_plugin(manifest),
        servers=tuple(named.values()),
        skills=tuple(
            os.path.normpath(os.path.join(found.path, name)) for name in _skills(manifest)
        ),
        diagnostics=(
            *files.manifest.diagnostics,
            *problems,
            *_outside(found, manifest),
            *_ignored(found, manifest),
        ),
    )


def _servers(
    found: PluginFinding, files: ClaudeFiles, limits: Limits
) -> tuple[list[McpServer], list[Diagnostic]]:
    servers: list[McpServer] = []
    problems: list[Diagnostic] = []
    for name in files.servers:
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


def _as_plugin(manifest: ClaudeManifest) -> PluginManifest | None:
    silence = silent(manifest.name)
    return silence and replace(
        silence,
        version=manifest.version,
        description=manifest.description,
        author=manifest.author,
        license=manifest.license,
        homepage=manifest.homepage,
        keywords=manifest.keywords,
    )


def _outside(found: PluginFinding, manifest: ClaudeManifest) -> Iterable[Diagnostic]:
    for name in (*manifest.skills, *manifest.server_files):
        if not inside_path(name):
            yield report(
                "source-link-outside",
                Where(os.path.join(found.path, *Format.CLAUDE.split("/"))),
                f"the path {shown(name)} leaves the bundle; it is not followed",
                "name a path inside the bundle",
            )


def _ignored(found: PluginFinding, manifest: ClaudeManifest) -> Iterable[Diagnostic]:
    """Say once what of a bundle is not read."""
    parts = {part for name, part in _PARTS.items() if name in found.names}
    if names := ", ".join(one_line(name) for name in sorted(parts.union(manifest.ignored))):
        yield report(
            "plugin-parts-ignored",
            Where(found.path),
            "only skills and MCP servers of a Claude bundle are read, not its "
            + shorten(names, 200),
        )
