"""Finding local plugins: the folders directly in a place that hold a manifest."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.formats import PluginManifest, read_plugin
from satchel.formats.read_result import quoted
from satchel.settings import Limits
from satchel.sources.claude_bundles import read_claude_bundle
from satchel.sources.file_reader import is_inside, is_utf8
from satchel.sources.folder_reader import (
    FolderContent,
    FolderReader,
    follow,
    is_folder,
    is_skipped,
    list_folder,
    missing,
    not_utf8,
)
from satchel.sources.open_plugins import read_open_plugin_folder
from satchel.sources.plugin_findings import CodeParts, PluginFinding, not_there, unreadable
from satchel.sources.plugin_formats import MANIFEST_FILE, PluginFormat, format_of
from satchel.sources.search_roots import SearchRoot
from satchel.sources.toolkit_parts import parts_of, too_large, with_part

# In lower case; the first that is there counts.
_NEARLY = {
    PluginFormat.OPEN.value: f"rename it {PluginFormat.OPEN}",
    MANIFEST_FILE: f"rename it {MANIFEST_FILE}",
    "toolkit.yml": f"rename it {MANIFEST_FILE}",
    "tools.py": f"add {MANIFEST_FILE}",
}

_Judge = Callable[[PluginFinding, Limits], PluginFinding]
"""Reads the manifest, and what it names as far as that was read; nothing of it is run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginScan:
    """What one look at a place of plugins found."""

    place: SearchRoot
    findings: Mapping[str, PluginFinding]
    diagnostics: tuple[Diagnostic, ...]
    links: frozenset[tuple[str, str]] = frozenset()


def scan_plugins(
    place: SearchRoot,
    limits: Limits,
    before: PluginScan | None = None,
    dirty: Iterable[str] | None = None,
) -> PluginScan:
    """Look for plugins in a place.

    `before` saves reading what has not changed. `dirty` are paths that may have changed: only
    the plugins that they touch are read again; `None` means everything.
    """
    if before is None or before.links:  # a link may lead to what changed
        dirty = None
    elif dirty is not None and not _touches(dirty, place.path):
        return before
    if not os.path.isdir(place.path):
        return PluginScan(
            place=place, findings={}, diagnostics=() if place.optional else (missing(place),)
        )
    return _Search(place, limits, before.findings if before else {}, dirty).run()


def _touches(paths: Iterable[str], folder: str) -> bool:
    """Tell whether one of these paths lies in a folder, or the folder in it."""
    inside = folder.rstrip(os.sep) + os.sep
    return any(path.startswith(inside) or inside.startswith(path) for path in paths)


class _Search:
    """One look at a place; it lives as long as the call that made it."""

    def __init__(
        self,
        place: SearchRoot,
        limits: Limits,
        known: Mapping[str, PluginFinding],
        dirty: Iterable[str] | None,
    ) -> None:
        self._place, self._limits, self._known, self._dirty = place, limits, known, dirty
        self._root = os.path.realpath(place.path)
        self._findings: dict[str, PluginFinding] = {}
        self._diagnostics: list[Diagnostic] = []
        self._links: set[tuple[str, str]] = set()

    def run(self) -> PluginScan:
        """Take the place for a plugin if it is one, and look into its folders otherwise."""
        if (known := format_of(self._place.path)) is not None:
            self._findings[""] = self._plugin("", known)
        else:
            for entry in list_folder(self._place.path, self._diagnostics):
                hidden = is_skipped(entry.name) or entry.name.startswith(".")
                if is_folder(entry) and not hidden:
                    self._look_into(entry)
        inside = (finding.folder.links for finding in self._findings.values())
        links = frozenset(self._links).union(*inside)
        return PluginScan(
            place=self._place,
            findings=self._findings,
            diagnostics=tuple(self._diagnostics),
            links=links,
        )

    def _look_into(self, entry: os.DirEntry[str]) -> None:
        if not is_utf8(entry.name):
            self._diagnostics.append(not_utf8(entry))
            return
        bounds = os.sep if self._place.follows_links_out else self._root
        target = follow(entry, (self._root,), bounds, self._diagnostics)
        if target is None:
            return
        if entry.is_symlink():
            self._links.add((entry.path, target))
        if (known := format_of(entry.path)) is not None:
            self._findings[entry.name] = self._plugin(entry.name, known)
        else:
            self._diagnostics += _nearly_a_plugin(entry.path)

    def _plugin(self, key: str, form: PluginFormat) -> PluginFinding:
        """Read a plugin's folder but for its skills, which are units of their own."""
        before = self._known.get(key)
        if before is not None and before.format is not form:
            before = None
        if (
            before is not None
            and self._dirty is not None
            and not _touches(self._dirty, before.path)
        ):
            return before
        finding = PluginFinding(
            place=self._place,
            key=key,
            folder=FolderContent((), ()),
            manifest=None,
            declared=(),
            diagnostics=(),
            format=form,
        )
        inside = os.path.realpath(finding.path)
        # What a link out of the place leads to is bounded by itself.
        is_bound = finding.policy.is_contained or not is_inside(inside, self._root)
        root = inside if is_bound else self._root
        return _read(finding, root, self._limits, before)


def read_toolkit(
    finding: PluginFinding, root: str, limits: Limits, before: PluginFinding | None = None
) -> PluginFinding:
    """Read a folder with a toolkit.yaml but for its skills, which are units of their own.

    Links are followed inside the resolved folder `root`.
    """
    return _read(finding, root, limits, before)


def _read(
    finding: PluginFinding, root: str, limits: Limits, before: PluginFinding | None
) -> PluginFinding:
    """Read a folder, and once more if its manifest names other files than were looked for."""
    parts = before.parts if before else _usual_parts(finding)
    read = _read_parts(replace(finding, parts=parts), root, limits, before)
    if read.parts == parts:
        return read
    return _read_parts(replace(finding, parts=read.parts), root, limits, read)


def _usual_parts(finding: PluginFinding) -> CodeParts:
    """Return what is read of a plugin whose manifest nobody knows yet."""
    policy = finding.policy
    usual = (
        parts_of(finding.prefix, PluginManifest(name=""))
        if policy.has_code
        else CodeParts(frozenset())
    )
    return CodeParts(usual.required | policy.files) if policy.files else usual


def _read_parts(
    finding: PluginFinding, root: str, limits: Limits, before: PluginFinding | None
) -> PluginFinding:
    names = frozenset(entry.name for entry in list_folder(finding.path, []))
    reader = FolderReader(
        root=root,
        most_files=limits.files_per_skill,
        largest=limits.plugin_source,
        wanted=_is_python,
        keep=_is_python,
        exclude=finding.parts.exclude | _foreign(finding, names),
        required=finding.parts.required,
    )
    folder = reader.read(finding.path, before.folder if before else None)
    is_reusable = before is not None and finding.policy.is_judged_by_content
    if before is not None and is_reusable and _is_same(before, finding, folder):
        return replace(before, folder=folder, names=names)
    return _JUDGES[finding.format](replace(finding, folder=folder, names=names), limits)


def _is_python(name: str) -> bool:
    return name.endswith(".py")


def _foreign(finding: PluginFinding, names: frozenset[str]) -> frozenset[str]:
    """Return what stands in the folder and is not searched for Python.

    It may be large, and links in it are nobody's trouble.
    """
    policy = finding.policy
    if not (policy.has_code and finding.is_edited):
        return names
    return names - {policy.code_folder} if policy.code_folder else frozenset()


def _is_same(before: PluginFinding, finding: PluginFinding, folder: FolderContent) -> bool:
    """Tell whether another judgement would be that of before."""
    return (
        before.parts == finding.parts
        and before.folder.digest == folder.digest
        and before.folder.diagnostics == folder.diagnostics
        and not_there(before.skills) == before.missing
    )


def _judge(finding: PluginFinding, limits: Limits) -> PluginFinding:
    path = os.path.join(finding.path, MANIFEST_FILE)
    file = finding.folder.get(MANIFEST_FILE)
    if file is None or file.data is None:
        return replace(finding, diagnostics=(unreadable(finding, MANIFEST_FILE),))
    name = finding.entry_point
    reading = read_plugin(file.data, finding.folder_name, path, limits, entry_point=name)
    if written := reading.value or reading.partial:
        finding = replace(finding, parts=parts_of(finding.prefix, written))
    if large := tuple(too_large(finding, limits.plugin_source)):
        return replace(finding, diagnostics=(*reading.diagnostics, *large))
    # Whatever its manifest says, code that does not compile is told at once.
    manifest = written or PluginManifest(name=finding.folder_name)
    full, of_part = with_part(finding, manifest, limits)
    skills = (os.path.join(finding.path, manifest.skills),)
    missing = not_there(skills)
    diagnostics = (*reading.diagnostics, *of_part, *_no_skills(path, manifest, missing))
    if reading.value is None:
        return replace(finding, diagnostics=diagnostics)
    return replace(full, skills=skills, missing=missing, diagnostics=diagnostics)


_JUDGES: Mapping[PluginFormat, _Judge] = MappingProxyType(
    {
        PluginFormat.OPEN: read_open_plugin_folder,
        PluginFormat.TOOLKIT: _judge,
        PluginFormat.CLAUDE: read_claude_bundle,
    }
)


def _no_skills(path: str, manifest: PluginManifest, missing: tuple[str, ...]) -> list[Diagnostic]:
    """Report a folder of skills that the manifest names and that is not there."""
    line = manifest.line("skills")
    if not missing or line is None:
        return []
    message = f"'skills' names a folder, but there is no {quoted(manifest.skills)}"
    return [
        make_diagnostic(
            "source-missing", Where(path, line), message, "create it, or remove 'skills:'"
        )
    ]


def _nearly_a_plugin(folder: str) -> list[Diagnostic]:
    """Report a folder that looks as if its author meant it to be a plugin."""
    names = {entry.name.casefold(): entry.name for entry in list_folder(folder, [])}
    for name, fix in _NEARLY.items():
        if (there := names.get(name)) and os.path.isfile(os.path.join(folder, there)):
            message = f"stands in a folder that has neither {MANIFEST_FILE} nor {PluginFormat.OPEN}"
            where = Where(os.path.join(folder, there))
            return [make_diagnostic("plugin-manifest-missing", where, message, fix)]
    return []
