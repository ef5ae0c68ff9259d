"""Read Gemini extensions: their servers, commands, skills and context file."""

import os
from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.formats.gemini_manifest import GeminiManifest, read_gemini_extension
from satchel.formats.toolkit_manifest import SKILLS_FOLDER
from satchel.formats.utf8_text import decode
from satchel.settings import Limits
from satchel.sources.claude_bundles import as_plugin, command_paths, ignored_parts, inside_path
from satchel.sources.plugin_findings import CodeParts, PluginFinding, unreadable
from satchel.sources.plugin_formats import PluginFormat


def read_gemini_extension_folder(finding: PluginFinding, limits: Limits) -> PluginFinding:
    """Read an extension; its context becomes the notes of a group that is active."""
    file = finding.folder.get(PluginFormat.GEMINI)
    if file is None or file.data is None:
        return replace(finding, diagnostics=(unreadable(finding, PluginFormat.GEMINI),))
    path = os.path.join(finding.path, PluginFormat.GEMINI)
    reading = read_gemini_extension(file.data, path, limits)
    if (extension := reading.value) is None:
        return replace(finding, diagnostics=reading.diagnostics)
    manifest = extension.plugin
    notes, problems = _context(finding, extension)
    skills = os.path.join(finding.path, SKILLS_FOLDER)
    commands = command_paths(finding, ("commands",))
    is_used = bool(manifest.servers or notes) or any(map(os.path.exists, (skills, *commands)))
    return replace(
        finding,
        parts=CodeParts(
            frozenset({PluginFormat.GEMINI, *filter(None, [inside_path(extension.context)])})
        ),
        manifest=replace(as_plugin(manifest), notes=notes, active=bool(notes)),
        servers=manifest.servers,
        skills=(skills,),
        command_paths=commands,
        diagnostics=(
            *reading.diagnostics,
            *problems,
            *ignored_parts(finding, manifest.ignored, is_used=is_used),
        ),
    )


def _context(finding: PluginFinding, extension: GeminiManifest) -> tuple[str, list[Diagnostic]]:
    name = inside_path(extension.context)
    where = Where(os.path.join(finding.path, PluginFormat.GEMINI))
    if not name:
        message = "the context file leaves the extension; it is not read"
        fix = "name a file inside the extension"
        return "", [make_diagnostic("source-link-outside", where, message, fix)]
    file = finding.folder.get(name)
    if file is None or file.data is None:
        is_there = os.path.lexists(os.path.join(finding.path, *name.split("/")))
        return "", [unreadable(finding, name)] if is_there else []
    text = decode(file.data, os.path.join(finding.path, name), "plugin-unreadable")
    return (text.value or "").strip(), list(text.diagnostics)
