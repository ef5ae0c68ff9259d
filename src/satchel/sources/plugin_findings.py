"""The result of reading a plugin folder of any format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from satchel.diagnostics import Where, has_error, make_diagnostic
from satchel.files.file_reader import digest_of, is_inside
from satchel.lazy_dataclass import dataclass
from satchel.sources.folder_diagnostics import fix_of_unreadable
from satchel.sources.folder_reader import FolderContent
from satchel.sources.plugin_formats import PluginFormat, policy_of

if TYPE_CHECKING:
    from satchel.diagnostics import Diagnostic
    from satchel.files.file_reader import UnitFile
    from satchel.formats.declared_tools import DeclaredTool
    from satchel.formats.marketplace_manifest import ListedPlugin
    from satchel.formats.mcp_json import McpServerManifest
    from satchel.formats.toolkit_manifest import PluginManifest
    from satchel.sources.plugin_formats import FormatPolicy
    from satchel.sources.search_roots import SearchRoot


@dataclass(frozen=True, slots=True)
class CodeParts:
    """The files of a plugin to read: required ones, and Python outside of excluded folders."""

    required: frozenset[str] = frozenset()
    """Files by their path inside the plugin; they may not exist."""
    exclude: frozenset[str] = frozenset()
    """Folders by their path inside the plugin."""


@dataclass(frozen=True, kw_only=True)
class PluginFinding:
    """One plugin folder as it was read, with its code, which was not run."""

    root: SearchRoot
    key: str
    """The folder's name, or `""` if the search root itself is the plugin."""
    folder: FolderContent = field(default=FolderContent())
    manifest: PluginManifest | None = None
    declared: tuple[DeclaredTool, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    format: PluginFormat = PluginFormat.TOOLKIT
    parts: CodeParts = field(default=CodeParts(), compare=False)
    names: frozenset[str] = field(default=frozenset(), compare=False)
    """The names of all entries in the folder."""
    servers: tuple[McpServerManifest, ...] = ()
    skills: tuple[str, ...] = ()
    """Folders to search for its skills."""
    missing: tuple[str, ...] = ()
    """The skill folders that do not exist."""
    command_paths: tuple[str, ...] = ()
    """Files and folders with commands that the user calls."""
    listed: ListedPlugin | None = None
    """Its entry in the marketplace that lists it."""
    entry_point: str = ""
    """The entry point of an installed package; it is the plugin's name."""
    is_edited: bool = True
    """Whether files may change one by one, so that all Python files are read."""

    @property
    def part(self) -> PluginFinding:
        """Return the folder with the manifest: itself."""
        return self

    @property
    def has_code(self) -> bool:
        """Return whether it has Python files."""
        return bool(self.sources)

    @property
    def path(self) -> str:
        """Return the plugin's folder."""
        return os.path.join(self.root.path, self.key) if self.key else self.root.path

    @property
    def folder_name(self) -> str:
        """Return the folder's name, used while the manifest cannot be read."""
        return self.listed.name if self.listed else os.path.basename(self.path)

    @property
    def unit(self) -> str:
        """Return its unique key: plugins of a marketplace may share a folder."""
        return f"{self.path}//{self.listed.name}" if self.listed else self.path

    @property
    def digest(self) -> str:
        """Return a digest of all files that were read, of its entry, and of all diagnostics."""
        texts = (
            self.folder.digest,
            repr(self.listed),
            *map(str, (*self.diagnostics, *self.folder.diagnostics)),
        )
        # Without the path of the folder: hosts and workers compare it between machines.
        text = "\0".join(texts).replace(self.path, "")
        return digest_of(text.encode("utf-8", "surrogatepass"))

    @property
    def chosen(self) -> tuple[str, ...]:
        """Return the paths that it consists of, inside its folder; `()` for the whole folder.

        An entry of a marketplace may choose some skills of a folder that others share. A server
        may start any file of it.
        """
        listed = self.listed
        if listed is None or listed.is_strict or self.servers or not listed.manifest.skills:
            return ()
        paths = (*self.skills, *self.command_paths)
        return tuple(os.path.relpath(path, self.path) for path in paths)

    @property
    def policy(self) -> FormatPolicy:
        """Return the policy of its format."""
        return policy_of(self.format)

    @property
    def prefix(self) -> str:
        """Return the prefix of all paths in the code folder."""
        folder = self.policy.code_folder
        return f"{folder}/" if folder else ""

    @property
    def code_path(self) -> str:
        """Return the folder with the Python files."""
        folder = self.policy.code_folder
        return os.path.join(self.path, folder) if folder else self.path

    @cached_property
    def code(self) -> Mapping[str, UnitFile]:
        """Return the files in the code folder, by their path inside it."""
        return {
            file.name.removeprefix(self.prefix): file
            for file in self.folder.files
            if file.name.startswith(self.prefix)
        }

    @cached_property
    def sources(self) -> Mapping[str, bytes]:
        """Return the sources of the Python files, by their path inside the code folder."""
        return {
            name: file.data
            for name, file in self.code.items()
            if file.data is not None and name.endswith(".py")
        }

    @property
    def modules(self) -> tuple[str, ...]:
        """Return the modules with the tools."""
        return self.manifest.modules if self.manifest else ()

    @property
    def contract_modules(self) -> tuple[str, ...]:
        """Return the modules with the contracts that the manifest names."""
        return self.manifest.contract_modules if self.manifest else ()

    @property
    def code_paths(self) -> tuple[str, ...]:
        """Return the folder with its Python code."""
        return (self.code_path,)

    def file_of(self, module: str) -> str:
        """Return the file of a module, by its path inside the code folder; `""` if missing."""
        return next((name for name in files_of(module) if name in self.sources), "")

    @property
    def is_valid(self) -> bool:
        """Return whether the plugin can be used at all."""
        return self.manifest is not None and (self.is_degraded or not has_error(self.diagnostics))

    @property
    def is_degraded(self) -> bool:
        """Return whether only the extension for Satchel is invalid; the rest can be used."""
        is_extended = self.policy.has_extension and self.manifest is not None
        return is_extended and has_error(self.diagnostics)


def files_of(module: str) -> tuple[str, ...]:
    """Return the possible files of a module; the first that exists is used."""
    stem = module.replace(".", "/")
    return (f"{stem}.py", f"{stem}/__init__.py") if module else ()


def not_there(folders: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that are not folders."""
    return tuple(folder for folder in folders if not os.path.isdir(folder))


def unreadable(finding: PluginFinding, name: str, code: str = "plugin-unreadable") -> Diagnostic:
    """Return the diagnostic of a file that could not be read, with the reason if known."""
    path = os.path.join(finding.path, *name.split("/"))
    reason, cause = "cannot be read" if os.path.lexists(path) else "does not exist", None
    for item in finding.folder.diagnostics:
        is_closed = item.code == "source-unreadable"
        is_cause = is_closed or item.where.path != finding.path  # it may only have too many files
        if is_cause and is_inside(path, item.where.path):
            reason, cause = item.message, item
    fix = fix_of_unreadable(cause, f"make {name} a regular file inside the plugin")
    return make_diagnostic(code, Where(path), reason, fix)
