"""Finding local plugins: the folders directly in a place that hold a manifest."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from satchel.diagnostics import Diagnostic, Where, report
from satchel.manifests import read_plugin
from satchel.settings import Limits
from satchel.sources.claude import ClaudeFiles, claude_files, judge_claude
from satchel.sources.files import is_inside, is_utf8
from satchel.sources.findings import (
    MANIFEST_FILE,
    NAMESPACE,
    Format,
    PluginFinding,
    format_of,
    unreadable,
)
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
from satchel.sources.openplugins import MCP_FILE, is_wanted, judge_open
from satchel.sources.parts import DEFAULT_SETUP, DEFAULT_TOOLS, is_code, plain, too_large, with_part
from satchel.sources.places import Place

DEFAULT_SKILLS = "skills"


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
        if (known := format_of(self._place.path)) is not None:
            self._findings[""] = self._plugin("", known)
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
        if (known := format_of(entry.path)) is not None:
            self._findings[entry.name] = self._plugin(entry.name, known)
        else:
            self._problems += _nearly_a_plugin(entry.path)

    def _plugin(self, key: str, form: Format) -> PluginFinding:
        """Read a plugin's folder but for its skills, which are units of their own."""
        before = self._known.get(key)
        if before is not None and before.format is not form:
            before = None
        found = PluginFinding(self._place, key, Folder((), ()), None, (), (), form)
        match form:
            case Format.OPEN:
                return self._open(found, before)
            case Format.CLAUDE:
                return self._claude(found, before)
        inside = os.path.realpath(found.path)
        # What a link out of the place leads to is bounded by itself.
        root = self._root if is_inside(inside, self._root) else inside
        return read_toolkit(found, root, self._limits, before)

    def _open(self, found: PluginFinding, before: PluginFinding | None) -> PluginFinding:
        tops = frozenset({Format.OPEN, MCP_FILE, NAMESPACE})
        return judge_open(self._some_files(found, before, tops, is_wanted), self._limits)

    def _claude(self, found: PluginFinding, before: PluginFinding | None) -> PluginFinding:
        """Read the manifest of a bundle, and then the files that it names."""
        first = ClaudeFiles()
        found = self._some_files(found, before, first.folders, first.is_wanted)
        files = claude_files(found, self._limits)
        if files.servers != first.servers:
            found = self._some_files(found, found, files.folders, files.is_wanted)
        return judge_claude(found, files, self._limits)

    def _some_files(
        self,
        found: PluginFinding,
        before: PluginFinding | None,
        tops: frozenset[str],
        wanted: Callable[[str], bool],
    ) -> PluginFinding:
        """Read the wanted files, of which all lie below some names directly in the folder.

        What else is there may be large, and links in it are nobody's trouble. Those that are
        followed stay inside the plugin.
        """
        names = frozenset(entry.name for entry in list_folder(found.path, []))
        reader = FolderReader(
            os.path.realpath(found.path),
            self._limits.files_per_skill,
            self._limits.plugin_source,
            wanted=wanted,
            keep=wanted,
            apart=names - tops,
        )
        folder = reader.read(found.path, before.folder if before else None)
        return replace(found, folder=folder, names=names)


def read_toolkit(
    found: PluginFinding, root: str, limits: Limits, before: PluginFinding | None = None
) -> PluginFinding:
    """Read a folder with a toolkit.yaml but for its skills, which are units of their own.

    Links are followed inside the resolved folder `root`.
    """
    parts = _parts_of(before)
    read = _toolkit(found, root, limits, parts, before)
    named = _parts_of(read) if read.manifest else parts
    return read if named == parts else _toolkit(found, root, limits, named, None)


def _toolkit(
    found: PluginFinding,
    root: str,
    limits: Limits,
    parts: "_Parts",
    before: PluginFinding | None,
) -> PluginFinding:
    def belongs(name: str) -> bool:
        is_part = is_code(name) if found.is_edited else name in parts.needed
        return is_part or name in parts.notes

    reader = FolderReader(
        root,
        limits.files_per_skill,
        limits.plugin_source,
        wanted=belongs,
        keep=belongs,
        apart=frozenset({os.path.normpath(parts.skills), ".agents"}),
    )
    folder = reader.read(found.path, before.folder if before else None)
    same = before is not None and folder.digest == before.folder.digest
    if before is not None and same and folder.diagnostics == before.folder.diagnostics:
        return replace(before, folder=folder)
    return _judge(replace(found, folder=folder), limits)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a toolkit.yaml says of the folder's other files."""

    skills: str = DEFAULT_SKILLS
    notes: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset({DEFAULT_TOOLS, DEFAULT_SETUP})

    @property
    def needed(self) -> frozenset[str]:
        """Return the files without which nobody knows what the plugin declares."""
        stems = [module.replace(".", "/") for module in self.modules]
        files = (f"{stem}{end}" for stem in stems for end in (".py", "/__init__.py"))
        return frozenset({MANIFEST_FILE, *files})


def _parts_of(found: PluginFinding | None) -> _Parts:
    if found is None or found.manifest is None:
        return _Parts()
    manifest = found.manifest
    parts = _Parts(manifest.skills, frozenset(map(plain, found.notes_files)))
    # Where all code counts, it does not matter which of it holds the tools.
    named = frozenset({*manifest.modules, manifest.setup or DEFAULT_SETUP})
    return parts if found.is_edited else replace(parts, modules=named)


def _judge(found: PluginFinding, limits: Limits) -> PluginFinding:
    """Read the manifest, and what the code declares, without running it."""
    path = os.path.join(found.path, MANIFEST_FILE)
    file = found.folder.get(MANIFEST_FILE)
    if file is None or file.data is None:
        return replace(found, diagnostics=(unreadable(found, MANIFEST_FILE),))
    if (large := too_large(found, limits.plugin_source)) is not None:
        return replace(found, diagnostics=(large,))
    name = found.entry_point
    reading = read_plugin(file.data, found.folder_name, path, limits, entry_point=name)
    if reading.value is None:
        return replace(found, diagnostics=reading.diagnostics)
    full, of_part = with_part(found, reading.value, limits)
    return replace(
        full,
        skills=(os.path.join(found.path, reading.value.skills),),
        diagnostics=(*reading.diagnostics, *of_part),
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
