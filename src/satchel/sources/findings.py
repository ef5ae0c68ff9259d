"""A plugin folder as it was read, whichever of the formats it is in."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from satchel.diagnostics import Diagnostic, Where, has_error, report
from satchel.manifests import DeclaredTool, McpServer, PluginManifest, read_plugin
from satchel.settings import Limits
from satchel.sources.files import UnitFile, digest_of
from satchel.sources.folders import Folder
from satchel.sources.places import Place

MANIFEST_FILE = "toolkit.yaml"

NAMESPACE = "dev.satchel"
"""The name of our extensions to open plugins, and of the folder in which they are."""


class Format(StrEnum):
    """What makes a folder a plugin: its manifest, by its path inside the folder."""

    OPEN = "plugin.json"
    TOOLKIT = MANIFEST_FILE
    CLAUDE = ".claude-plugin/plugin.json"


def format_of(folder: str) -> Format | None:
    """Return the format of a plugin folder, `None` for a folder that is no plugin.

    The open format comes first: beside plugin.json no other manifest may have a say.
    """
    for known in Format:
        if os.path.lexists(os.path.join(folder, *known.split("/"))):
            return known
    return None


@dataclass(frozen=True, slots=True)
class PluginFinding:
    """One plugin folder as it was read, its code included but not run."""

    place: Place
    key: str
    """The folder's name, or `""` when the place is the plugin itself."""
    folder: Folder
    manifest: PluginManifest | None
    declared: tuple[DeclaredTool, ...]
    diagnostics: tuple[Diagnostic, ...]
    format: Format = Format.TOOLKIT
    names: frozenset[str] = field(default=frozenset(), compare=False)
    """What stands directly in the folder; known of other formats than our own."""
    servers: tuple[McpServer, ...] = ()
    skills: tuple[str, ...] = ()
    """Folders to search for the skills it brings."""
    notes_files: tuple[str, ...] = ()
    """The files that the manifest may mean by its notes, as it names them."""
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
        found = (self.folder.digest, *map(str, (*self.diagnostics, *self.folder.diagnostics)))
        return digest_of("\0".join(found).encode("utf-8", "surrogatepass"))

    @property
    def code_path(self) -> str:
        """Return the folder that the Python files lie in."""
        return self.path if self.format is Format.TOOLKIT else os.path.join(self.path, NAMESPACE)

    @property
    def code(self) -> Mapping[str, UnitFile]:
        """Return the files of the part that is written for us, by their path inside it."""
        prefix = "" if self.format is Format.TOOLKIT else f"{NAMESPACE}/"
        return {
            file.name.removeprefix(prefix): file
            for file in self.folder.files
            if file.name.startswith(prefix)
        }

    @property
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

    def file_of(self, module: str) -> str:
        """Return the file that holds a module, by its path among the code; `""` if none does."""
        stem = module.replace(".", "/")
        names = (f"{stem}.py", f"{stem}/__init__.py")
        return next((name for name in names if name in self.sources), "")

    @property
    def is_sound(self) -> bool:
        """Tell whether the plugin can be used at all."""
        return self.manifest is not None and (self.is_flawed or not has_error(self.diagnostics))

    @property
    def is_flawed(self) -> bool:
        """Tell whether only the part that is written for us cannot be used."""
        # Whatever else an open plugin brings does not depend on what a client adds.
        is_open = self.format is Format.OPEN and self.manifest is not None
        return is_open and has_error(self.diagnostics)


def silent(name: str) -> PluginManifest | None:
    """Return the manifest of a plugin that tells its name elsewhere, and nothing more."""
    return read_plugin(b"{}", name, "", Limits(), extends=name).value


def unreadable(found: PluginFinding, name: str, code: str = "plugin-unreadable") -> Diagnostic:
    """Report a file of a plugin that could not be read, with the reason if one is known."""
    path = os.path.join(found.path, *name.split("/"))
    reasons = [item.message for item in found.folder.diagnostics if item.where.path == path]
    return report(
        code,
        Where(path),
        reasons[0] if reasons else "cannot be read",
        f"make {name} a regular file inside the plugin",
    )
