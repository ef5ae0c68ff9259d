"""A plugin folder as it was read, whichever of the formats it is in."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from satchel.diagnostics import Diagnostic, Where, has_error, make_diagnostic
from satchel.formats import DeclaredTool, McpServerManifest, PluginManifest
from satchel.sources.file_reader import UnitFile, digest_of, is_inside
from satchel.sources.folder_reader import FolderContent
from satchel.sources.plugin_formats import FormatPolicy, PluginFormat, policy_of
from satchel.sources.search_roots import SearchRoot


@dataclass(frozen=True, slots=True)
class CodeParts:
    """Which files of a plugin are read: the named ones, and Python that does not lie apart."""

    required: frozenset[str]
    """Files by their path inside the plugin, whether they are there or not."""
    exclude: frozenset[str] = frozenset()
    """Folders by their path inside the plugin."""


@dataclass(frozen=True, kw_only=True)
class PluginFinding:
    """One plugin folder as it was read, its code included but not run."""

    place: SearchRoot
    key: str
    """The folder's name, or `""` when the place is the plugin itself."""
    folder: FolderContent
    manifest: PluginManifest | None
    declared: tuple[DeclaredTool, ...]
    diagnostics: tuple[Diagnostic, ...]
    format: PluginFormat = PluginFormat.TOOLKIT
    parts: CodeParts = field(default=CodeParts(frozenset()), compare=False)
    names: frozenset[str] = field(default=frozenset(), compare=False)
    """What stands directly in the folder."""
    servers: tuple[McpServerManifest, ...] = ()
    skills: tuple[str, ...] = ()
    """Folders to search for the skills it brings."""
    missing: tuple[str, ...] = ()
    """Those of these folders that are not there."""
    entry_point: str = ""
    """The name that an installed package has, whatever its manifest says."""
    is_edited: bool = True
    """Whether its files change one by one, so that all of its code counts."""

    @property
    def path(self) -> str:
        """Return the plugin's folder."""
        return os.path.join(self.place.path, self.key) if self.key else self.place.path

    @property
    def folder_name(self) -> str:
        """Return the name that serves while no manifest can be read."""
        return os.path.basename(self.path)

    @property
    def digest(self) -> str:
        """Name the content of manifest and code, and what was found wrong with it."""
        finding = (self.folder.digest, *map(str, (*self.diagnostics, *self.folder.diagnostics)))
        return digest_of("\0".join(finding).encode("utf-8", "surrogatepass"))

    @property
    def policy(self) -> FormatPolicy:
        """Return what its format does differently."""
        return policy_of(self.format)

    @property
    def prefix(self) -> str:
        """Return what the path of a file begins with that is written for us."""
        folder = self.policy.code_folder
        return f"{folder}/" if folder else ""

    @property
    def code_path(self) -> str:
        """Return the folder that the Python files lie in."""
        folder = self.policy.code_folder
        return os.path.join(self.path, folder) if folder else self.path

    @cached_property
    def code(self) -> Mapping[str, UnitFile]:
        """Return the files of the part that is written for us, by their path inside it."""
        return {
            file.name.removeprefix(self.prefix): file
            for file in self.folder.files
            if file.name.startswith(self.prefix)
        }

    @cached_property
    def sources(self) -> Mapping[str, bytes]:
        """Return the Python files, by their path inside the folder that they lie in."""
        return {
            name: file.data
            for name, file in self.code.items()
            if file.data is not None and name.endswith(".py")
        }

    @property
    def modules(self) -> tuple[str, ...]:
        """Return the modules that hold the tools."""
        return self.manifest.modules if self.manifest else ()

    @property
    def contract_modules(self) -> tuple[str, ...]:
        """Return the modules that hold contracts which the manifest names."""
        return self.manifest.contract_modules if self.manifest else ()

    def file_of(self, module: str) -> str:
        """Return the file that holds a module, by its path among the code; `""` if none does."""
        return next((name for name in files_of(module) if name in self.sources), "")

    @property
    def is_sound(self) -> bool:
        """Tell whether the plugin can be used at all."""
        return self.manifest is not None and (self.is_flawed or not has_error(self.diagnostics))

    @property
    def is_flawed(self) -> bool:
        """Tell whether only the part that is written for us cannot be used."""
        # Whatever else an open plugin brings does not depend on what a client adds.
        is_extended = self.policy.has_extension and self.manifest is not None
        return is_extended and has_error(self.diagnostics)


def files_of(module: str) -> tuple[str, ...]:
    """Return the files that may hold a module, the first of which counts; `""` is none."""
    stem = module.replace(".", "/")
    return (f"{stem}.py", f"{stem}/__init__.py") if module else ()


def not_there(folders: Iterable[str]) -> tuple[str, ...]:
    """Return those that are no folders."""
    return tuple(folder for folder in folders if not os.path.isdir(folder))


def unreadable(finding: PluginFinding, name: str, code: str = "plugin-unreadable") -> Diagnostic:
    """Report a file of a plugin that could not be read, with the reason if one is known."""
    path = os.path.join(finding.path, *name.split("/"))
    why = "cannot be read" if os.path.lexists(path) else "does not exist"
    for item in finding.folder.diagnostics:
        if item.where.path != finding.path and is_inside(path, item.where.path):
            why = item.message
    return make_diagnostic(code, Where(path), why, f"make {name} a regular file inside the plugin")
