"""The part of a plugin that is written for Satchel: its tools in Python, and its notes."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.formats import (
    DEFAULT_TOOLS,
    DeclaredTool,
    PluginManifest,
    declared_tools,
    defines_setup,
)
from satchel.formats.read_result import quoted
from satchel.formats.utf8_text import decode
from satchel.settings import Limits
from satchel.sources.plugin_findings import CodeParts, PluginFinding, files_of
from satchel.sources.plugin_formats import MANIFEST_FILE

DEFAULT_SETUP = "setup"


def parts_of(prefix: str, manifest: PluginManifest) -> CodeParts:
    """Return what a toolkit.yaml, whose folder is `prefix` in the plugin, says of its files."""
    setup = manifest.setup or DEFAULT_SETUP
    modules = (*manifest.modules, *manifest.contract_modules, setup)
    skills = os.path.normpath(manifest.skills).replace(os.sep, "/")
    notes = (name for name in map(plain, manifest.notes_files) if not name.startswith(f"{skills}/"))
    files = (MANIFEST_FILE, *notes, *(name for module in modules for name in files_of(module)))
    return CodeParts(frozenset(prefix + name for name in files), frozenset({skills, ".agents"}))


def with_part(
    finding: PluginFinding, manifest: PluginManifest, limits: Limits
) -> tuple[PluginFinding, tuple[Diagnostic, ...]]:
    """Add a manifest to a finding, with its notes, and what its code declares.

    Nothing of it is run.
    """
    part = _Part(finding, manifest)
    notes = part.notes(limits)
    declared = part.declared()
    part.check_contracts()
    part.check_setup()
    full = replace(finding, manifest=manifest.with_notes(notes), declared=declared)
    return full, tuple(dict.fromkeys(part.diagnostics))


def plain(name: str) -> str:
    """Return the name of a file as the folder lists it."""
    return os.path.normpath(name).replace(os.sep, "/")


def too_large(finding: PluginFinding, limit: int) -> Iterable[Diagnostic]:
    """Report the files of code that are larger than the limit."""
    for name, file in finding.code.items():
        if name.endswith(".py") and file.size > limit:
            yield make_diagnostic(
                "plugin-unreadable",
                Where(os.path.join(finding.code_path, name)),
                f"is larger than {limit} bytes (limit plugin_source)",
                "move what is no code into a file of its own, or raise the limit",
            )


class _Part:
    """One look at what a manifest names; it lives as long as the call that made it."""

    def __init__(self, finding: PluginFinding, manifest: PluginManifest) -> None:
        self._finding, self._manifest = finding, manifest
        self.diagnostics: list[Diagnostic] = []

    def notes(self, limits: Limits) -> Mapping[str, str]:
        """Return the texts of the files that are the notes, by the names that it gives."""
        texts: dict[str, str] = {}
        for name, line in self._manifest.notes_files.items():
            path = os.path.join(self._finding.code_path, name)
            file = self._finding.code.get(plain(name))
            if file is None or file.data is None:
                # With blanks it may be a sentence.
                if not re.search(r"\s", name):
                    message = (
                        f"'notes' names a file, but there is no {quoted(name)} inside this folder"
                    )
                    self._misfit(line, message, "create it, or write the notes themselves")
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
        """Read what the modules declare."""
        tools: list[DeclaredTool] = []
        for module in self._manifest.modules:
            chosen = [tool for tool in self._manifest.chosen if tool.module == module]
            if name := self._finding.file_of(module):
                path = os.path.join(self._finding.code_path, *name.split("/"))
                wanted = frozenset(tool.function for tool in chosen) - {""}
                code = declared_tools(self._finding.sources[name], path, wanted)
                self.diagnostics.extend(code.diagnostics)
                tools += self._served(module, path, code.value or ())
            elif chosen:
                file = f"{module.replace('.', '/')}.py"
                message = f"'tools' lists {quoted(chosen[0].name)}, but there is no {file}"
                fix = f"create {file}, or name the module that holds it"
                self._misfit(self._manifest.line(*chosen[0].at), message, fix)
            elif module not in {"", DEFAULT_TOOLS}:
                self._no_module("tools", module, "the tools", self._manifest.line("tools"))
        return tuple(tools)

    def _served(
        self, module: str, path: str, declared: tuple[DeclaredTool, ...]
    ) -> Iterable[DeclaredTool]:
        """Return those tools of a module that the manifest serves, named as it names them."""
        if not self._manifest.chosen:
            yield from declared
        for wanted in self._manifest.chosen:
            for tool in declared if wanted.module == module else ():
                known = tool.function if wanted.function else tool.name
                if known == (wanted.function or wanted.name):
                    yield replace(tool, name=wanted.name, path=path)

    def check_contracts(self) -> None:
        """Report the modules of contracts that do not exist or do not compile."""
        for chosen in self._manifest.contracts:
            if file := self._finding.file_of(chosen.module):
                path = os.path.join(self._finding.code_path, *file.split("/"))
                code = declared_tools(self._finding.sources[file], path)
                self.diagnostics += (it for it in code.diagnostics if it.code == "plugin-syntax")
            else:
                line = self._manifest.line(*chosen.at)
                self._no_module("contract", chosen.module, chosen.name, line)

    def check_setup(self) -> None:
        """Report a setup that the manifest names and that cannot be run."""
        module = self._manifest.setup
        file = self._finding.file_of(module)
        if module and not file:
            self._no_module("setup", module, "setup(ctx)", self._manifest.line("setup"))
        elif module and not defines_setup(self._finding.sources[file]):
            message = f"'setup' names a module, but {file} defines no function setup(ctx)"
            self._misfit(self._manifest.line("setup"), message, "define it, or remove 'setup:'")

    def _no_module(self, key: str, module: str, holds: str, line: int | None) -> None:
        file = f"{module.replace('.', '/')}.py"
        message = f"{key!r} names a module, but there is no {file}"
        fix = f"create {file}, or name the module that holds {holds}"
        self._misfit(line, message, fix)

    def _misfit(self, line: int | None, message: str, fix: str) -> None:
        where = Where(os.path.join(self._finding.code_path, MANIFEST_FILE), line)
        self.diagnostics.append(make_diagnostic("plugin-field-type", where, message, fix))
