"""Read Claude bundles, folders with a `.claude-plugin/plugin.json`: their skills and servers."""

import os
from collections.abc import Iterable
from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.formats.claude_manifest import ClaudeManifest, read_claude_plugin
from satchel.formats.mcp_json import McpServerManifest
from satchel.formats.read_result import ReadResult, quoted
from satchel.formats.server_entries import read_claude_servers
from satchel.formats.toolkit_manifest import SKILLS_FOLDER, PluginManifest
from satchel.settings import Limits
from satchel.sources.plugin_findings import CodeParts, PluginFinding, unreadable
from satchel.sources.plugin_formats import PluginFormat
from satchel.sources.skill_findings import OWN_SKILL_FIX, SKILL_FILE
from satchel.text import one_line, shorten

CLAUDE_MCP_FILE = ".mcp.json"

# Files and folders that only other clients use, with the field of Claude's manifest for each.
_IGNORED_PARTS = {
    "agents": "agents",
    "hooks": "hooks",
    "policies": "policies",
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
    reading = _read_manifest(finding, limits)
    if (manifest := reading.value) is None:
        return replace(finding, diagnostics=reading.diagnostics)
    files = _server_files(manifest)
    servers, diagnostics = _servers(finding, files, limits)
    # As in Claude, a server of the manifest replaces one of the same name.
    by_name = {server.name: server for server in (*servers, *manifest.servers)}
    skills = [
        os.path.normpath(os.path.join(finding.path, name)) for name in _skills(finding, manifest)
    ]
    commands = command_paths(finding, ("commands", *manifest.commands))
    is_used = bool(by_name) or any(map(os.path.exists, (*skills, *commands)))
    return replace(
        finding,
        parts=CodeParts(frozenset({PluginFormat.CLAUDE, *files})),
        manifest=as_plugin(manifest),
        servers=tuple(by_name.values()),
        skills=tuple(skills),
        command_paths=commands,
        diagnostics=(
            *reading.diagnostics,
            *diagnostics,
            *_wrong_paths(finding, manifest),
            *ignored_parts(finding, manifest.ignored, is_used=is_used),
        ),
    )


def _read_manifest(finding: PluginFinding, limits: Limits) -> ReadResult[ClaudeManifest]:
    """Read plugin.json, together with the plugin's entry in a marketplace."""
    listed = finding.listed
    is_there = os.path.lexists(os.path.join(finding.path, *PluginFormat.CLAUDE.split("/")))
    if listed is not None and not (listed.is_strict and is_there):
        return ReadResult(listed.manifest, ())
    file = finding.folder.get(PluginFormat.CLAUDE)
    if file is None or file.data is None:
        return ReadResult(None, (unreadable(finding, PluginFormat.CLAUDE),))
    path = os.path.join(finding.path, *PluginFormat.CLAUDE.split("/"))
    reading = read_claude_plugin(file.data, path, limits)
    if listed is None or reading.value is None:
        return reading
    return replace(reading, value=_merged(reading.value, listed.manifest))


def _merged(manifest: ClaudeManifest, entry: ClaudeManifest) -> ClaudeManifest:
    """Return the manifest of a plugin, extended by its entry, which also names it."""
    return replace(
        manifest,
        name=entry.name,
        version=manifest.version or entry.version,
        description=manifest.description or entry.description,
        skills=(*manifest.skills, *entry.skills),
        commands=(*manifest.commands, *entry.commands),
        server_files=(*manifest.server_files, *entry.server_files),
        servers=(*entry.servers, *manifest.servers),
        ignored=(*manifest.ignored, *entry.ignored),
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


def _skills(finding: PluginFinding, manifest: ClaudeManifest) -> list[str]:
    """Return the skill folders that are not inside another one.

    An entry that is the whole manifest may choose some skills of a shared folder. A plugin with
    nothing but a SKILL.md is a skill itself.
    """
    is_choice = finding.listed is not None and not finding.listed.is_strict and manifest.skills
    is_skill = "SKILL.md" in finding.names and SKILLS_FOLDER not in finding.names
    paths = {
        *(() if is_choice else (SKILLS_FOLDER,)),
        *((".",) if is_skill and not manifest.skills else ()),
        *(path for name in manifest.skills if (path := inside_path(name))),
    }
    return sorted(
        path for path in paths if not any(_is_below(path, other) for other in paths - {path})
    )


def command_paths(finding: PluginFinding, names: Iterable[str]) -> tuple[str, ...]:
    """Return the files and folders with commands, inside the plugin and not inside each other."""
    inside = dict.fromkeys(path for name in names if (path := inside_path(name)) not in {"", "."})
    return tuple(
        os.path.join(finding.path, *path.split("/"))
        for path in inside
        if not any(_is_below(path, other) for other in inside)
    )


def _is_below(name: str, other: str) -> bool:
    return other == "." or name.startswith(f"{other}/")


def as_plugin(manifest: ClaudeManifest) -> PluginManifest:
    """Return the manifest in the terms of Satchel."""
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
    path = path if os.path.lexists(path) else finding.path
    for key, names in (
        ("skills", manifest.skills),
        ("commands", manifest.commands),
        ("mcpServers", manifest.server_files),
    ):
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


def ignored_parts(
    finding: PluginFinding, named: Iterable[str], *, is_used: bool
) -> Iterable[Diagnostic]:
    """Report the parts that are not used: files, and what the manifest names beside them.

    A plugin of which nothing is used is a warning.
    """
    parts = {part for name, part in _IGNORED_PARTS.items() if name in finding.names}
    names = ", ".join(one_line(name) for name in sorted(parts.union(named)))
    if not is_used:
        yield _unused(finding, names)
    elif names:
        yield make_diagnostic(
            "plugin-parts-ignored",
            Where(finding.path),
            "only skills, commands and MCP servers are read, not its " + shorten(names, 200),
        )


def _unused(finding: PluginFinding, names: str) -> Diagnostic:
    has = f"; it has only {shorten(names, 200)}, for other clients" if names else ""
    return make_diagnostic(
        "plugin-unused",
        Where(finding.path),
        f"has no skills, commands or MCP servers, so nothing of it is used{has}",
        OWN_SKILL_FIX if SKILL_FILE in finding.names else "disable or remove it",
    )
