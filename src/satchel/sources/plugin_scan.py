"""Find local plugins: the folders with a manifest directly in a search root."""

import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from types import MappingProxyType

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.file_reader import (
    is_inside,
    is_utf8,
    may_be_folder,
    real_path,
    reason_of,
    touches,
)
from satchel.formats.marketplace_manifest import ListedPlugin
from satchel.formats.read_result import quoted
from satchel.formats.toolkit_manifest import PluginManifest, read_plugin
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits
from satchel.sources.claude_bundles import read_claude_bundle
from satchel.sources.folder_diagnostics import (
    in_repository,
    link_loop,
    link_outside,
    missing,
    not_utf8,
    unfollowed,
    unlistable,
)
from satchel.sources.folder_reader import (
    FolderContent,
    FolderReader,
    is_folder,
    is_skipped,
    list_folder,
    nested_repository,
)
from satchel.sources.gemini_extensions import read_gemini_extension_folder
from satchel.sources.lost_files import lost_manifest
from satchel.sources.lost_mounts import device_of, lost_below, lost_mount
from satchel.sources.marketplaces import is_marketplace, scan_marketplace
from satchel.sources.open_plugins import read_open_plugin_folder
from satchel.sources.plugin_findings import CodeParts, PluginFinding, not_there, unreadable
from satchel.sources.plugin_formats import MANIFEST_FILE, PluginFormat, format_of, format_of_listed
from satchel.sources.project_entry_points import project_package
from satchel.sources.search_roots import SearchRoot
from satchel.sources.toolkit_parts import parts_of, unusable_code, with_toolkit

_LOG = logging.getLogger("satchel")

# Files, in lower case, of a folder that was probably meant as a plugin; the first match is used.
_NEAR_MISSES = {
    PluginFormat.OPEN.value: f"rename it {PluginFormat.OPEN}",
    MANIFEST_FILE: f"rename it {MANIFEST_FILE}",
    "toolkit.yml": f"rename it {MANIFEST_FILE}",
    "tools.py": f"add {MANIFEST_FILE}",
}

_NAME_LINE = re.compile(rb"(?m)^[\"']?name[\"']?\s*:[ \t]*([^\s#]*)")
_ManifestReader = Callable[[PluginFinding, Limits], PluginFinding]
"""Reads the manifest and the files that it names, without running code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginScan:
    """The results of one scan of a search root for plugins."""

    root: SearchRoot
    findings: Mapping[str, PluginFinding]
    diagnostics: tuple[Diagnostic, ...]
    links: frozenset[tuple[str, str]] = frozenset()
    device: int = 0
    """The device that the root was on when something of it was there; 0 if unknown."""
    missing: Mapping[str, float] = field(default_factory=dict, compare=False)
    """The keys of the plugins that are gone, perhaps only for a moment, and when that was noticed.

    Times are those of the monotonic clock.
    """


def scan_plugins(
    root: SearchRoot,
    limits: Limits,
    before: PluginScan | None = None,
    dirty: Iterable[str] | None = None,
    settle: float = 0.0,
) -> PluginScan:
    """Scan a search root for plugins.

    Results in `before` are reused. `dirty` are the paths that may have changed: only plugins that
    they touch are read again; `None` means everything. Plugins that are gone stay for `settle`
    seconds, because they may be replaced at this moment.
    """
    if before is None or before.links:  # the target of a link may have changed
        dirty = None
    elif dirty is not None and not touches(dirty, root.path):
        return before
    if may_be_folder(root.path):
        scan = _Search(root, limits, before, dirty).run()
    else:
        problems = () if root.optional else (missing(root.path),)
        scan = PluginScan(root=root, findings={}, diagnostics=problems)
    scan = replace(scan, device=device_of(root.path))
    return scan if before is None else _with_kept(scan, before, settle)


def _with_kept(scan: PluginScan, before: PluginScan, settle: float) -> PluginScan:
    """Keep the plugins that exist but cannot be read or found now, or are just gone."""
    root_error = _listing_error(scan.root.path)
    if before.findings and not (scan.findings or root_error):
        problem = lost_mount(scan.root.path, before.device)
        if problem is not None:
            kept = {key: _broken(cached, (problem,)) for key, cached in before.findings.items()}
            return replace(before, findings=kept, diagnostics=(problem,))
    findings, missing_since = dict(scan.findings), dict[str, float]()
    # A renamed folder: what is gone does not stay beside what is new and has its name.
    new = [scan.findings[key] for key in scan.findings.keys() - before.findings]
    new_names = {finding.manifest.name for finding in new if finding.manifest}
    now = time.monotonic()
    for key, cached in before.findings.items():
        if key in findings:
            continue
        missed_at = before.missing.get(key, now)
        if (error := root_error or _listing_error(cached.path)) is not None:
            message = f"cannot be read: {reason_of(error)}"
            fix = "make the folder readable, or delete it"
            problem = make_diagnostic("plugin-unreadable", Where(cached.path), message, fix)
            findings[key] = _broken(cached, (problem,))
        elif problem := lost_below(before, cached):
            findings[key] = _broken(cached, (problem,))
        elif (cached.manifest and cached.manifest.name in new_names) or _is_refused(cached, scan):
            continue
        elif now - missed_at < settle:
            findings[key], missing_since[key] = cached, missed_at
    links = (finding.folder.links for finding in findings.values())
    return replace(scan, findings=findings, links=scan.links.union(*links), missing=missing_since)


def _is_refused(cached: PluginFinding, scan: PluginScan) -> bool:
    """Return whether a plugin was left out on purpose; it may also have returned just now."""
    is_reported = any(is_inside(cached.path, item.where.path) for item in scan.diagnostics)
    return is_reported and format_of(cached.path) is not None


class _Search:
    def __init__(
        self,
        root: SearchRoot,
        limits: Limits,
        before: PluginScan | None,
        dirty: Iterable[str] | None,
    ) -> None:
        self._root, self._limits, self._dirty = root, limits, dirty
        self._cached: Mapping[str, PluginFinding] = before.findings if before else {}
        self._real_root = real_path(root.path)
        self._findings: dict[str, PluginFinding] = {}
        self._diagnostics: list[Diagnostic] = []
        self._links: set[tuple[str, str]] = set()

    def run(self) -> PluginScan:
        """Read the root as a plugin if it is one, else search its folders."""
        if self._root.within and not is_inside(self._real_root, self._root.bounds()):
            self._diagnostics.append(link_outside(self._root.path))
        elif repository := nested_repository(self._root):
            self._diagnostics.append(in_repository(repository))
        elif not (self._folder("", self._root.path) or self._keep_without_manifest("")):
            self._visit_all()
        plugin_links = (finding.folder.links for finding in self._findings.values())
        links = frozenset(self._links).union(*plugin_links)
        return PluginScan(
            root=self._root,
            findings=self._findings,
            diagnostics=tuple(self._diagnostics),
            links=links,
        )

    def _visit_all(self) -> None:
        if (error := _listing_error(self._root.path)) is not None:
            self._diagnostics.append(unlistable(self._root.path, reason_of(error)))
            return
        for entry in list_folder(self._root.path, self._diagnostics):
            if is_skipped(entry.name) or entry.name.startswith("."):
                continue
            if is_folder(entry):
                self._visit(entry)
            elif entry.is_symlink():
                self._unfollowed(entry.path)

    def _unfollowed(self, path: str) -> None:
        """Report a link that leads to nothing, or to what cannot be looked at."""
        try:
            os.stat(path)
        except OSError as error:
            self._links.add((path, real_path(path)))
            self._diagnostics.append(unfollowed(path, error))

    def _folder(self, key: str, path: str) -> bool:
        form = format_of(path)
        if is_marketplace(path):
            form = format_of_listed(path)
            has_own = self._marketplace(key, path)
            if form is not None and not has_own:
                self._findings[key] = self._plugin(key, form)
            return True
        if form is not None:
            self._findings[key] = self._plugin(key, form)
        return form is not None

    def _marketplace(self, key: str, path: str) -> bool:
        """Read the plugins that a marketplace lists; return whether it lists itself."""
        scan = scan_marketplace(path, self._limits)
        self._diagnostics += scan.diagnostics
        self._links |= scan.links
        if scan.is_broken:
            self._keep_listed(path, scan.diagnostics)
            return False
        for below, listed in scan.plugins:
            inner = "/".join(part for part in (key, below) if part)
            folder = os.path.join(path, below)
            if repository := nested_repository(self._root, folder):
                self._diagnostics.append(in_repository(repository))
                continue
            form = format_of_listed(folder) if listed.is_strict else None
            finding = self._plugin(inner, form or PluginFormat.CLAUDE, listed)
            self._findings[f"{inner}//{listed.name}"] = finding
        return any(not below for below, _ in scan.plugins)

    def _keep_listed(self, path: str, diagnostics: Iterable[Diagnostic]) -> None:
        """Keep the plugins of a broken list as broken ones, because they still exist."""
        for key, cached in self._cached.items():
            if cached.listed is not None and is_inside(cached.path, path):
                self._findings[key] = _broken(cached, diagnostics)

    def _keep_without_manifest(self, key: str) -> bool:
        """Keep a plugin that lost its manifest as a broken one, if something else of it is left."""
        cached = self._cached.get(key)
        if cached is None or not (lost := tuple(lost_manifest(cached))):
            return False
        self._findings[key] = _broken(cached, lost)
        return True

    def _visit(self, entry: os.DirEntry[str]) -> None:
        if not is_utf8(entry.name):
            self._diagnostics.append(not_utf8(self._root.path, entry.name))
            return
        target = real_path(entry.path)
        if entry.is_symlink():
            self._links.add((entry.path, target))
        if not (self._root.follows_links_out or is_inside(target, self._real_root)):
            self._diagnostics.append(link_outside(entry.path))
            return
        if target == self._real_root:
            self._diagnostics.append(link_loop(entry.path))
            return
        if repository := nested_repository(self._root, target):
            self._diagnostics.append(in_repository(repository))
            return
        if not (self._folder(entry.name, entry.path) or self._keep_without_manifest(entry.name)):
            error = None if entry.name in self._cached else _listing_error(entry.path)
            unread = [unlistable(entry.path, reason_of(error))] if error else []
            self._diagnostics += unread or missing_manifest(entry.path)

    def _plugin(
        self, key: str, form: PluginFormat, listed: ListedPlugin | None = None
    ) -> PluginFinding:
        """Read a plugin's folder without its skills, which are scanned separately."""
        before = self._cached.get(f"{key}//{listed.name}" if listed else key)
        if before is not None and (before.format is not form or before.listed != listed):
            before = None
        # One without a manifest may be kept for a broken list, which is outside its folder.
        dirty = self._dirty if before is not None and before.manifest is not None else None
        if before is not None and dirty is not None and not touches(dirty, before.path):
            return before
        finding = PluginFinding(root=self._root, key=key, format=form, listed=listed)
        target = real_path(finding.path)
        # Links must stay in the plugin if a link led out of the search root. Where none may lead
        # out, a folder outside has just replaced the root: nothing in it is read.
        is_outside = not is_inside(target, self._real_root)
        is_own_root = self._root.follows_links_out if is_outside else finding.policy.is_contained
        root = target if is_own_root else self._real_root
        return read_toolkit(finding, root, self._limits, before)


def _broken(cached: PluginFinding, diagnostics: Iterable[Diagnostic]) -> PluginFinding:
    """Return a plugin that cannot be read now; its parts are read again later."""
    return PluginFinding(
        root=cached.root,
        key=cached.key,
        format=cached.format,
        listed=cached.listed,
        parts=cached.parts,
        folder=FolderContent(folders=cached.folder.folders),  # they tell its device
        diagnostics=tuple(diagnostics),
    )


def read_toolkit(
    finding: PluginFinding, root: str, limits: Limits, before: PluginFinding | None = None
) -> PluginFinding:
    """Read a plugin folder without its skills, which are scanned separately.

    Links are followed inside the resolved folder `root`. The folder is read a second time if the
    manifest names other files than expected.
    """
    parts = before.parts if before else _default_parts(finding)
    first = _read_parts(replace(finding, parts=parts), root, limits, before)
    if first.parts == parts:
        return first
    return _read_parts(replace(finding, parts=first.parts), root, limits, first)


def _default_parts(finding: PluginFinding) -> CodeParts:
    """Return the files to read while the manifest is unknown."""
    policy = finding.policy
    unknown = PluginManifest(name="")
    parts = parts_of(finding.prefix, unknown) if policy.has_code else CodeParts()
    return CodeParts(parts.required | policy.files) if policy.files else parts


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
        exclude=finding.parts.exclude | _without_code(finding, names),
        required=finding.parts.required,
        skips_repositories=bool(finding.root.project),
    )
    folder = reader.read(finding.path, before.folder if before else None)
    is_reusable = before is not None and finding.policy.is_judged_by_content
    if before is not None and is_reusable and _is_same(before, finding, folder):
        return replace(before, folder=folder, names=names)
    complete = replace(finding, folder=folder, names=names)
    try:
        return _MANIFEST_READERS[finding.format](complete, limits)
    except Exception as error:  # a fault of Satchel, which costs only this plugin
        _LOG.exception("cannot read the plugin in %s", finding.path)
        message = f"cannot be read: unexpected {type(error).__name__}: {error}"
        fix = "report it as a bug of Satchel, and disable the plugin meanwhile"
        unread = make_diagnostic("plugin-unreadable", Where(finding.path), message, fix)
        return replace(complete, diagnostics=(unread,))


def _is_python(name: str) -> bool:
    return name.endswith(".py")


def _without_code(finding: PluginFinding, names: frozenset[str]) -> frozenset[str]:
    """Return the entries of the folder that are not searched for Python files.

    They may be large, and links in them do not matter.
    """
    policy = finding.policy
    if not (policy.has_code and finding.is_edited):
        return names
    return names - {policy.code_folder} if policy.code_folder else frozenset()


def _is_same(before: PluginFinding, finding: PluginFinding, folder: FolderContent) -> bool:
    return (
        before.parts == finding.parts
        and before.folder.digest == folder.digest
        and before.folder.diagnostics == folder.diagnostics
        and not_there(before.skills) == before.missing
    )


def _read_toolkit_manifest(finding: PluginFinding, limits: Limits) -> PluginFinding:
    path = os.path.join(finding.path, MANIFEST_FILE)
    file = finding.folder.get(MANIFEST_FILE)
    if file is None or file.data is None:
        return replace(finding, diagnostics=(unreadable(finding, MANIFEST_FILE),))
    name = finding.entry_point
    if not name and finding.folder.get("__init__.py"):
        entry_point = project_package(finding.path).name
        name_line = _NAME_LINE.search(file.data)
        if name_line is None or name_line[1] == entry_point.encode():
            name = entry_point  # a package's folder may have another name
    reading = read_plugin(file.data, finding.folder_name, path, limits, entry_point=name)
    partial = reading.value or reading.partial
    if partial:
        finding = replace(finding, parts=parts_of(finding.prefix, partial))
    if unusable := tuple(unusable_code(finding, limits.plugin_source)):
        return replace(finding, diagnostics=(*reading.diagnostics, *unusable))
    # Errors in the code are reported even if the manifest is invalid.
    manifest = partial or PluginManifest(name=finding.folder_name)
    full, code_diagnostics = with_toolkit(finding, manifest, limits)
    skills = (os.path.join(finding.path, manifest.skills),)
    missing = not_there(skills)
    diagnostics = (*reading.diagnostics, *code_diagnostics, *_no_skills(path, manifest, missing))
    if reading.value is None:
        return replace(finding, diagnostics=diagnostics)
    return replace(full, skills=skills, missing=missing, diagnostics=diagnostics)


_MANIFEST_READERS: Mapping[PluginFormat, _ManifestReader] = MappingProxyType(
    {
        PluginFormat.OPEN: read_open_plugin_folder,
        PluginFormat.TOOLKIT: _read_toolkit_manifest,
        PluginFormat.CLAUDE: read_claude_bundle,
        PluginFormat.GEMINI: read_gemini_extension_folder,
    }
)


def _no_skills(path: str, manifest: PluginManifest, missing: tuple[str, ...]) -> list[Diagnostic]:
    """Report a missing skills folder that the manifest names."""
    line = manifest.line("skills")
    if not missing or line is None:
        return []
    message = f"'skills' names a folder, but there is no {quoted(manifest.skills)}"
    return [
        make_diagnostic(
            "source-missing", Where(path, line), message, "create it, or remove 'skills:'"
        )
    ]


def _listing_error(folder: str) -> OSError | None:
    """Return why an existing folder cannot be listed or entered."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                break
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return error
    return None


def missing_manifest(folder: str) -> list[Diagnostic]:
    """Report a folder that was probably meant as a plugin."""
    names = {entry.name.casefold(): entry.name for entry in list_folder(folder, [])}
    for name, fix in _NEAR_MISSES.items():
        if (actual := names.get(name)) and os.path.isfile(os.path.join(folder, actual)):
            message = f"is in a folder that has neither {MANIFEST_FILE} nor {PluginFormat.OPEN}"
            where = Where(os.path.join(folder, actual))
            return [make_diagnostic("plugin-manifest-missing", where, message, fix)]
    return []
