"""Read the files that a toolkit.yaml names: tools, contracts and setup in Python, and notes."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.file_reader import is_inside
from satchel.formats.code_references import DEFAULT_TOOLS
from satchel.formats.declared_tools import DeclaredTool, declared_tools, defines_setup
from satchel.formats.read_result import quoted
from satchel.formats.toolkit_manifest import PluginManifest
from satchel.formats.utf8_text import decode
from satchel.settings import Limits
from satchel.sources.folder_reader import UNREADABLE
from satchel.sources.plugin_findings import CodeParts, PluginFinding, files_of, unreadable
from satchel.sources.plugin_formats import MANIFEST_FILE

_DEFAULT_SETUP = "setup"


def parts_of(prefix: str, manifest: PluginManifest) -> CodeParts:
    """Return the files to read for a toolkit.yaml in the folder `prefix` of the plugin."""
    setup = manifest.setup or _DEFAULT_SETUP
    modules = (*manifest.modules, *manifest.contract_modules, setup)
    skills = normalized_name(manifest.skills)
    names = map(normalized_name, manifest.notes_files)
    notes = (name for name in names if not name.startswith(f"{skills}/"))
    files = (MANIFEST_FILE, *notes, *(name for module in modules for name in files_of(module)))
    return CodeParts(frozenset(prefix + name for name in files), frozenset({skills, ".agents"}))


def with_toolkit(
    finding: PluginFinding, manifest: PluginManifest, limits: Limits
) -> tuple[PluginFinding, tuple[Diagnostic, ...]]:
    """Return the finding with a manifest, its notes and its declared tools, and the diagnostics.

    No code is run.
    """
    files = _NamedFiles(finding, manifest)
    notes = files.notes(limits)
    declared = files.declared()
    files.check_contracts()
    files.check_setup()
    full = replace(finding, manifest=manifest.with_notes(notes), declared=declared)
    return full, tuple(dict.fromkeys(files.diagnostics))


def normalized_name(name: str) -> str:
    """Return the path of a file as in a listing of the folder."""
    return os.path.normpath(name).replace(os.sep, "/")


def unusable_code(finding: PluginFinding, limit: int) -> Iterable[Diagnostic]:
    """Report each Python file that is too large, and each named one that cannot be read."""
    problems = [it for it in finding.folder.diagnostics if it.code in UNREADABLE]
    for name in sorted(finding.parts.required):
        path = os.path.join(finding.path, *name.split("/"))
        is_code = name.endswith(".py") and finding.folder.get(name) is None
        blocking = (it.where.path for it in problems if it.where.path != finding.path)
        if is_code and any(is_inside(path, blocker) for blocker in blocking):
            yield unreadable(finding, name)
    for name, file in finding.code.items():
        if name.endswith(".py") and file.size > limit:
            yield make_diagnostic(
                "plugin-unreadable",
                Where(os.path.join(finding.code_path, name)),
                f"is larger than {limit} bytes (limit plugin_source)",
                "move data into a file of its own, or raise the limit",
            )


class _NamedFiles:
    """Reads and checks the files that one manifest names."""

    def __init__(self, finding: PluginFinding, manifest: PluginManifest) -> None:
        self._finding, self._manifest = finding, manifest
        self.diagnostics: list[Diagnostic] = []

    def notes(self, limits: Limits) -> Mapping[str, str]:
        texts: dict[str, str] = {}
        for name, line in self._manifest.notes_files.items():
            path = os.path.join(self._finding.code_path, name)
            file = self._finding.code.get(normalized_name(name))
            if file is None or file.data is None:
                # A name with blanks may be a sentence.
                if not re.search(r"\s", name):
                    message = (
                        f"'notes' names a file, but there is no {quoted(name)} inside this folder"
                    )
                    self._report_field(line, message, "create it, or write the notes themselves")
            elif file.size > limits.skill_file:
                message = f"is larger than {limits.skill_file} bytes (limit skill_file)"
                fix = "shorten the notes, or raise the limit"
                self.diagnostics.append(
                    make_diagnostic("plugin-unreadable", Where(path), message, fix)
                )
            else:
                reading = decode(file.data, path, "plugin-unreadable")
                self.diagnostics.extend(reading.diagnostics)
                texts[name] = (reading.value or "").strip()
        return texts

    def declared(self) -> tuple[DeclaredTool, ...]:
        tools: list[DeclaredTool] = []
        for module in self._manifest.modules:
            chosen = [tool for tool in self._manifest.listed_tools if tool.module == module]
            if name := self._finding.file_of(module):
                path = os.path.join(self._finding.code_path, *name.split("/"))
                functions = frozenset(tool.function for tool in chosen) - {""}
                code = declared_tools(self._finding.sources[name], path, functions)
                self.diagnostics.extend(code.diagnostics)
                tools += self._served(module, path, code.value or ())
            elif chosen:
                file = f"{module.replace('.', '/')}.py"
                message = f"'tools' lists {quoted(chosen[0].name)}, but there is no {file}"
                fix = f"create {file}, or name the module that holds it"
                self._report_field(self._manifest.line(*chosen[0].at), message, fix)
            elif module not in {"", DEFAULT_TOOLS}:
                self._no_module("tools", module, "the tools", self._manifest.line("tools"))
        return tuple(tools)

    def _served(
        self, module: str, path: str, declared: tuple[DeclaredTool, ...]
    ) -> Iterable[DeclaredTool]:
        """Yield the tools of a module that the manifest serves, with their names there."""
        if not self._manifest.listed_tools:
            yield from declared
        for reference in self._manifest.listed_tools:
            for tool in declared if reference.module == module else ():
                name = tool.function if reference.function else tool.name
                if name == (reference.function or reference.name):
                    yield replace(tool, name=reference.name, path=path)

    def check_contracts(self) -> None:
        """Report contract modules that do not exist or do not compile."""
        for chosen in self._manifest.contracts:
            if file := self._finding.file_of(chosen.module):
                path = os.path.join(self._finding.code_path, *file.split("/"))
                code = declared_tools(self._finding.sources[file], path)
                self.diagnostics += (it for it in code.diagnostics if it.code == "plugin-syntax")
            else:
                line = self._manifest.line(*chosen.at)
                self._no_module("contract", chosen.module, chosen.name, line)

    def check_setup(self) -> None:
        module = self._manifest.setup
        file = self._finding.file_of(module)
        if module and not file:
            self._no_module("setup", module, "setup(ctx)", self._manifest.line("setup"))
        elif module and not defines_setup(self._finding.sources[file]):
            message = f"'setup' names a module, but {file} defines no function setup(ctx)"
            self._report_field(
                self._manifest.line("setup"), message, "define it, or remove 'setup:'"
            )

    def _no_module(self, key: str, module: str, content: str, line: int | None) -> None:
        file = f"{module.replace('.', '/')}.py"
        message = f"{key!r} names a module, but there is no {file}"
        fix = f"create {file}, or name the module that holds {content}"
        self._report_field(line, message, fix)

    def _report_field(self, line: int | None, message: str, fix: str) -> None:
        where = Where(os.path.join(self._finding.code_path, MANIFEST_FILE), line)
        self.diagnostics.append(make_diagnostic("plugin-field-type", where, message, fix))
