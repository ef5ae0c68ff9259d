"""Read Gemini extensions: their servers, commands, skills and context file."""

import os
from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.formats.claude_manifest import ClaudeManifest
from satchel.formats.gemini_manifest import CONTEXT, DEFAULT_CONTEXT, read_gemini_extension
from satchel.formats.read_result import quoted
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
    if (manifest := reading.value) is None:
        return replace(finding, diagnostics=reading.diagnostics)
    notes, problems = _contexts(finding, manifest)
    skills = os.path.join(finding.path, SKILLS_FOLDER)
    commands = command_paths(finding, ("commands",))
    is_used = bool(manifest.servers or notes) or any(map(os.path.exists, (skills, *commands)))
    return replace(
        finding,
        parts=CodeParts(
            frozenset({PluginFormat.GEMINI, *filter(None, map(inside_path, _names(manifest)))})
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


def _names(extension: ClaudeManifest) -> tuple[str, ...]:
    return extension.contexts or (DEFAULT_CONTEXT,)


def _contexts(finding: PluginFinding, extension: ClaudeManifest) -> tuple[str, list[Diagnostic]]:
    """Return the text of all context files."""
    texts: list[str] = []
    problems: list[Diagnostic] = []
    where = Where(os.path.join(finding.path, PluginFormat.GEMINI), extension.lines.get(CONTEXT))
    for name in dict.fromkeys(map(inside_path, _names(extension))):
        file = finding.folder.get(name)
        if not name:
            message = "the context file leaves the extension; it is not read"
            fix = "name a file inside the extension"
            problems.append(make_diagnostic("source-link-outside", where, message, fix))
        elif file is not None and file.data is not None:
            text = decode(file.data, os.path.join(finding.path, name), "plugin-unreadable")
            texts.append((text.value or "").strip())
            problems += text.diagnostics
        elif os.path.lexists(os.path.join(finding.path, *name.split("/"))):
            problems.append(unreadable(finding, name))
        elif extension.contexts:
            message = f"'contextFileName' names a file, but there is no {quoted(name)}"
            fix = "create it, or remove it there"
            problems.append(make_diagnostic("source-missing", where, message, fix))
    return "\n\n".join(filter(None, texts)), problems
