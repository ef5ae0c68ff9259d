"""A plugin folder as it was read, whichever of the formats it is in."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from satchel.diagnostics import Diagnostic, Where, has_error, report
from satchel.manifests import DeclaredTool, McpServer, PluginManifest, declared_tools, read_plugin
from satchel.settings import Limits
from satchel.sources.files import UnitFile, digest_of
from satchel.sources.folders import Folder
from satchel.sources.places import Place

MANIFEST_FILE = "toolkit.yaml"
DEFAULT_TOOLS = "tools"

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


def is_code(name: str) -> bool:
    """Tell whether a file is part of what we import, or says what that is."""
    return name == MANIFEST_FILE or name.endswith(".py")


def read_code(
    found: PluginFinding, manifest: PluginManifest, path: str
) -> tuple[tuple[DeclaredTool, ...], tuple[Diagnostic, ...]]:
    """Return the tools that a plugin's code declares; `path` is the manifest that names it."""
    module = manifest.tools.replace(".", "/")
    for name in (f"{module}.py", f"{module}/__init__.py"):
        if (source := found.sources.get(name)) is not None:
            code = declared_tools(source, os.path.join(found.code_path, name))
            return code.value or (), code.diagnostics
    return (), () if module == DEFAULT_TOOLS else (_no_module(path, module),)


def too_large(found: PluginFinding, limit: int) -> Diagnostic | None:
    """Report a file of code that is larger than the limit."""
    if large := [file for file in found.folder.files if file.size > limit]:
        return report(
            "plugin-unreadable",
            Where(os.path.join(found.path, large[0].name)),
            f"is larger than {limit} bytes (limit plugin_source), so the plugin is not loaded",
            "move what is no code into a file of its own, or raise the limit",
        )
    return None


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


def _no_module(path: str, module: str) -> Diagnostic:
    return report(
        "plugin-field-type",
        Where(path),
        f"'tools' names a module, but there is no {module}.py",
        f"create {module}.py, or name the module that holds the tools",
    )
