"""The part of a plugin that is written for Satchel: its tools in Python, and its notes."""

import os
import re
from collections.abc import Iterable
from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, report
from satchel.manifests import DeclaredTool, PluginManifest, declared_tools, defines_setup
from satchel.manifests.decoding import decode
from satchel.settings import Limits
from satchel.sources.findings import MANIFEST_FILE, PluginFinding
from satchel.text import one_line, shorten

DEFAULT_TOOLS = "tools"
DEFAULT_SETUP = "setup"


def is_code(name: str) -> bool:
    """Tell whether a file is part of what we import, or says what that is."""
    return name == MANIFEST_FILE or name.endswith(".py")


def with_part(
    found: PluginFinding, manifest: PluginManifest, limits: Limits
) -> tuple[PluginFinding, tuple[Diagnostic, ...]]:
    """Add a manifest to a finding, with its notes and the tools that its code declares.

    Nothing of it is run.
    """
    notes, odd_notes = _notes(found, manifest, limits)
    declared, odd_code = _declared(found, manifest)
    odd_setup = _odd_setup(found, manifest.setup)
    told = manifest.with_notes(notes)
    full = replace(found, manifest=told, declared=declared, notes_files=manifest.notes_files)
    return full, (*odd_notes, *odd_code, *odd_setup)


def plain(name: str) -> str:
    """Return the name of a file as the folder lists it."""
    return os.path.normpath(name).replace(os.sep, "/")


def too_large(found: PluginFinding, limit: int) -> Diagnostic | None:
    """Report a file of code that is larger than the limit."""
    if large := [file for file in found.folder.files if file.size > limit]:
        return _too_large(os.path.join(found.path, large[0].name), limit)
    return None


def _notes(
    found: PluginFinding, manifest: PluginManifest, limits: Limits
) -> tuple[dict[str, str], list[Diagnostic]]:
    """Return the texts of the files that are the notes, by the names that the manifest gives."""
    texts: dict[str, str] = {}
    problems: list[Diagnostic] = []
    for name in manifest.notes_files:
        path = os.path.join(found.code_path, name)
        file = found.code.get(plain(name))
        if file is None or file.data is None:
            # With blanks it may be a sentence.
            if not re.search(r"\s", name):
                problems.append(_no_notes(found.code_path, name))
        elif file.size > limits.skill_file:
            problems.append(_too_large(path, limits.skill_file, "skill_file"))
        else:
            reading = decode(file.data, path, "plugin-unreadable")
            problems.extend(reading.diagnostics)
            texts[name] = (reading.value or "").strip()
    return texts, problems


def _declared(
    found: PluginFinding, manifest: PluginManifest
) -> tuple[tuple[DeclaredTool, ...], list[Diagnostic]]:
    """Read what the modules declare."""
    manifest_path = os.path.join(found.code_path, MANIFEST_FILE)
    problems: list[Diagnostic] = []
    tools: list[DeclaredTool] = []
    for module in manifest.modules:
        name = found.file_of(module)
        if name:
            path = os.path.join(found.code_path, *name.split("/"))
            wanted = (tool.function for tool in manifest.chosen if tool.module == module)
            code = declared_tools(found.sources[name], path, frozenset(wanted) - {""})
            problems.extend(code.diagnostics)
            tools += _chosen(manifest, module, path, code.value or ())
        elif module != DEFAULT_TOOLS or manifest.chosen:
            problems.append(_no_module(manifest_path, module.replace(".", "/")))
    return tuple(tools), problems


def _chosen(
    manifest: PluginManifest, module: str, path: str, declared: tuple[DeclaredTool, ...]
) -> Iterable[DeclaredTool]:
    """Return those tools of a module that the manifest serves, named as it names them."""
    if not manifest.chosen:
        yield from declared
    for wanted in manifest.chosen:
        for tool in declared if wanted.module == module else ():
            if (tool.function == wanted.function) if wanted.function else tool.name == wanted.name:
                yield replace(tool, name=wanted.name, path=path)


def _odd_setup(found: PluginFinding, module: str) -> list[Diagnostic]:
    """Report a setup that the manifest names and that cannot be run."""
    path, file = os.path.join(found.code_path, MANIFEST_FILE), found.file_of(module)
    if module and not file:
        return [_no_module(path, module.replace(".", "/"), "setup")]
    if module and not defines_setup(found.sources[file]):
        told = f"'setup' names a module, but {file} defines no function setup(ctx)"
        return [report("plugin-field-type", Where(path), told, "define it, or remove 'setup:'")]
    return []


def _no_module(path: str, module: str, key: str = "tools") -> Diagnostic:
    holds = "the tools" if key == "tools" else "setup(ctx)"
    return report(
        "plugin-field-type",
        Where(path),
        f"'{key}' names a module, but there is no {module}.py",
        f"create {module}.py, or name the module that holds {holds}",
    )


def _no_notes(folder: str, name: str) -> Diagnostic:
    return report(
        "plugin-field-type",
        Where(os.path.join(folder, MANIFEST_FILE)),
        f"'notes' names a file, but there is no {shorten(one_line(name), 100)} inside this folder",
        "create it, or write the notes themselves",
    )


def _too_large(path: str, most: int, limit: str = "plugin_source") -> Diagnostic:
    return report(
        "plugin-unreadable",
        Where(path),
        f"is larger than {most} bytes (limit {limit}), so the plugin is not loaded",
        "move what is no code into a file of its own, or raise the limit",
    )
