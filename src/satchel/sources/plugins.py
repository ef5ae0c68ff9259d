"""Finding local plugins: the folders directly in a place that hold a `toolkit.yaml`."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from satchel.diagnostics import Diagnostic, Where, has_error, report
from satchel.manifests import DeclaredTool, PluginManifest, declared_tools, read_plugin
from satchel.settings import Limits
from satchel.sources.files import is_utf8
from satchel.sources.folders import (
    Folder,
    FolderReader,
    follow,
    is_folder,
    is_skipped,
    list_folder,
    missing,
    not_utf8,
)
from satchel.sources.places import Place

MANIFEST_FILE = "toolkit.yaml"
DEFAULT_TOOLS = "tools"
DEFAULT_SKILLS = "skills"


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
        """Name the content of manifest and code."""
        return self.folder.digest

    @property
    def sources(self) -> Mapping[str, bytes]:
        """Return the Python files, by their path inside the plugin."""
        return {
            file.name: file.data
            for file in self.folder.files
            if file.data is not None and file.name.endswith(".py")
        }

    @property
    def is_sound(self) -> bool:
        """Tell whether the plugin can be imported at all."""
        return self.manifest is not None and not has_error(self.diagnostics)


@dataclass(frozen=True, slots=True)
class PluginScan:
    """What one look at a place of plugins found."""

    place: Place
    findings: Mapping[str, PluginFinding]
    diagnostics: tuple[Diagnostic, ...]
    links: frozenset[tuple[str, str]] = frozenset()


def scan_plugins(
    place: Place,
    limits: Limits,
    before: PluginScan | None = None,
    dirty: Iterable[str] | None = None,
) -> PluginScan:
    """Look for plugins in a place.

    `before` saves reading what has not changed; with `dirty`, a place that none of these
    paths lies in is not looked at.
    """
    if before is not None and dirty is not None and not before.links:
        inside = place.path.rstrip(os.sep) + os.sep
        if not any(path.startswith(inside) or inside.startswith(path) for path in dirty):
            return before
    if not os.path.isdir(place.path):
        return PluginScan(place, {}, () if place.optional else (missing(place),))
    return _Search(place, limits, before.findings if before else {}).run()


class _Search:
    """One look at a place; it lives as long as the call that made it."""

    def __init__(self, place: Place, limits: Limits, known: Mapping[str, PluginFinding]) -> None:
        self._place, self._limits, self._known = place, limits, known
        self._root = os.path.realpath(place.path)
        self._findings: dict[str, PluginFinding] = {}
        self._problems: list[Diagnostic] = []
        self._links: set[tuple[str, str]] = set()

    def run(self) -> PluginScan:
        """Take the place for a plugin if it is one, and look into its folders otherwise."""
        if _has_manifest(self._place.path):
            self._findings[""] = self._plugin("")
        else:
            for entry in list_folder(self._place.path, self._problems):
                hidden = is_skipped(entry.name) or entry.name.startswith(".")
                if is_folder(entry) and not hidden:
                    self._look_into(entry)
        inside = (found.folder.links for found in self._findings.values())
        links = frozenset(self._links).union(*inside)
        return PluginScan(self._place, self._findings, tuple(self._problems), links)

    def _look_into(self, entry: os.DirEntry[str]) -> None:
        if not is_utf8(entry.name):
            self._problems.append(not_utf8(entry))
            return
        target = follow(entry, (self._root,), self._root, self._problems)
        if target is None:
            return
        if entry.is_symlink():
            self._links.add((entry.path, target))
        if _has_manifest(entry.path):
            self._findings[entry.name] = self._plugin(entry.name)
        else:
            self._problems += _nearly_a_plugin(entry.path)

    def _plugin(self, key: str) -> PluginFinding:
        """Read a plugin's folder but for its skills, which are units of their own."""
        before = self._known.get(key)
        apart = before.manifest.skills if before and before.manifest else DEFAULT_SKILLS
        found = self._read(key, apart, before)
        named = found.manifest.skills if found.manifest else apart
        return found if named == apart else self._read(key, named, None)

    def _read(self, key: str, apart: str, before: PluginFinding | None) -> PluginFinding:
        reader = FolderReader(
            self._root,
            self._limits.files_per_skill,
            self._limits.plugin_source,
            wanted=_is_code,
            keep=_is_code,
            apart=frozenset({os.path.normpath(apart)}),
        )
        found = PluginFinding(self._place, key, Folder((), ()), None, (), ())
        folder = reader.read(found.path, before.folder if before else None)
        same = before is not None and folder.digest == before.digest
        if before is not None and same and folder.diagnostics == before.folder.diagnostics:
            return replace(before, folder=folder)
        return _judge(replace(found, folder=folder), self._limits)


def _has_manifest(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, MANIFEST_FILE))


def _is_code(name: str) -> bool:
    return name == MANIFEST_FILE or name.endswith(".py")


def _judge(found: PluginFinding, limits: Limits) -> PluginFinding:
    """Read the manifest, and what the code declares, without running it."""
    path = os.path.join(found.path, MANIFEST_FILE)
    file = found.folder.get(MANIFEST_FILE)
    if file is None or file.data is None:
        return replace(found, diagnostics=(_unreadable(path, found.folder),))
    if large := [file for file in found.folder.files if file.size > limits.plugin_source]:
        path = os.path.join(found.path, large[0].name)
        return replace(found, diagnostics=(_too_large(path, limits.plugin_source),))
    reading = read_plugin(file.data, found.folder_name, path, limits)
    if reading.value is None:
        return replace(found, diagnostics=reading.diagnostics)
    module = reading.value.tools.replace(".", "/")
    for name in (f"{module}.py", f"{module}/__init__.py"):
        if (source := found.sources.get(name)) is not None:
            code = declared_tools(source, os.path.join(found.path, name))
            return replace(
                found,
                manifest=reading.value,
                declared=code.value or (),
                diagnostics=(*reading.diagnostics, *code.diagnostics),
            )
    problems = reading.diagnostics
    if module != DEFAULT_TOOLS:
        problems = (*problems, _no_module(path, module))
    return replace(found, manifest=reading.value, diagnostics=problems)


def _no_module(path: str, module: str) -> Diagnostic:
    return report(
        "plugin-field-type",
        Where(path),
        f"'tools' names a module, but there is no {module}.py",
        f"create {module}.py, or name the module that holds the tools",
    )


def _too_large(path: str, most: int) -> Diagnostic:
    return report(
        "plugin-unreadable",
        Where(path),
        f"is larger than {most} bytes (limit plugin_source), so the plugin is not loaded",
        "move what is no code into a file of its own, or raise the limit",
    )


def _unreadable(path: str, folder: Folder) -> Diagnostic:
    reasons = [item.message for item in folder.diagnostics if item.where.path == path]
    return report(
        "plugin-unreadable",
        Where(path),
        reasons[0] if reasons else "cannot be read",
        f"make {MANIFEST_FILE} a regular file inside the plugin",
    )


def _nearly_a_plugin(folder: str) -> list[Diagnostic]:
    """Report a folder that looks as if its author meant it to be a plugin."""
    for name in ("toolkit.yml", "tools.py"):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return [
                report(
                    "plugin-manifest-missing",
                    Where(path),
                    f"stands in a folder without {MANIFEST_FILE}, which makes a folder a plugin",
                    f"add {MANIFEST_FILE}" if name == "tools.py" else f"rename it {MANIFEST_FILE}",
                )
            ]
    return []
