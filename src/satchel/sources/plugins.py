"""Finding local plugins: the folders directly in a place that hold a `toolkit.yaml`."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from satchel.diagnostics import Diagnostic, Where, has_error, report
from satchel.manifests import (
    DeclaredTool,
    PluginManifest,
    declared_tools,
    defines_setup,
    read_plugin,
)
from satchel.manifests.decoding import decode
from satchel.settings import Limits
from satchel.sources.files import is_inside, is_utf8
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
from satchel.text import one_line, shorten

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
    notes_files: tuple[str, ...] = ()
    """The files that the manifest may mean by its notes, as it names them."""

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

    def file_of(self, module: str) -> str:
        """Return the file that holds a module, by its path inside the plugin; `""` if none does."""
        stem = module.replace(".", "/")
        names = (f"{stem}.py", f"{stem}/__init__.py")
        return next((name for name in names if name in self.sources), "")

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
        bounds = os.sep if self._place.follows_links_out else self._root
        target = follow(entry, (self._root,), bounds, self._problems)
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
        parts = _parts_of(before)
        found = self._read(key, parts, before)
        named = _parts_of(found) if found.manifest else parts
        return found if named == parts else self._read(key, named, None)

    def _read(self, key: str, parts: "_Parts", before: PluginFinding | None) -> PluginFinding:
        def belongs(name: str) -> bool:
            return name == MANIFEST_FILE or name.endswith(".py") or name in parts.notes

        found = PluginFinding(self._place, key, Folder((), ()), None, (), ())
        inside = os.path.realpath(found.path)
        reader = FolderReader(
            # What a link out of the place leads to is bounded by itself.
            self._root if is_inside(inside, self._root) else inside,
            self._limits.files_per_skill,
            self._limits.plugin_source,
            wanted=belongs,
            keep=belongs,
            apart=frozenset({os.path.normpath(parts.skills)}),
        )
        folder = reader.read(found.path, before.folder if before else None)
        same = before is not None and folder.digest == before.digest
        if before is not None and same and folder.diagnostics == before.folder.diagnostics:
            return replace(before, folder=folder)
        return _judge(replace(found, folder=folder), self._limits)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a manifest says of the folder's other files."""

    skills: str = DEFAULT_SKILLS
    notes: frozenset[str] = frozenset()


def _parts_of(found: PluginFinding | None) -> _Parts:
    if found is None or found.manifest is None:
        return _Parts()
    return _Parts(found.manifest.skills, frozenset(map(_normal, found.notes_files)))


def _normal(name: str) -> str:
    """Return the name of a file as the folder lists it."""
    return os.path.normpath(name).replace(os.sep, "/")


def _has_manifest(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, MANIFEST_FILE))


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
    notes, odd_notes = _notes(found, reading.value, limits)
    declared, odd_code = _declared(found, reading.value)
    return replace(
        found,
        manifest=reading.value.with_notes(notes),
        declared=declared,
        diagnostics=(
            *reading.diagnostics,
            *odd_notes,
            *odd_code,
            *_odd_setup(found, reading.value.setup),
        ),
        notes_files=reading.value.notes_files,
    )


def _notes(
    found: PluginFinding, manifest: PluginManifest, limits: Limits
) -> tuple[dict[str, str], list[Diagnostic]]:
    """Return the texts of the files that are the notes, by the names that the manifest gives."""
    texts: dict[str, str] = {}
    problems: list[Diagnostic] = []
    for name in manifest.notes_files:
        path = os.path.join(found.path, name)
        file = found.folder.get(_normal(name))
        if file is None or file.data is None:
            # With blanks it may be a sentence.
            if not re.search(r"\s", name):
                problems.append(_no_notes(found.path, name))
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
    """Read what the modules declare, without running them."""
    manifest_path = os.path.join(found.path, MANIFEST_FILE)
    problems: list[Diagnostic] = []
    tools: list[DeclaredTool] = []
    for module in manifest.modules:
        name = found.file_of(module)
        if name:
            path = os.path.join(found.path, *name.split("/"))
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
    path, file = os.path.join(found.path, MANIFEST_FILE), found.file_of(module)
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
