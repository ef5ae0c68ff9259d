"""Find skills: the folders in a search root with a file named exactly `SKILL.md`."""

import os
import stat
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from satchel.diagnostics import Diagnostic, Where, has_error, make_diagnostic, strictly
from satchel.formats.packed_text import pack
from satchel.formats.read_result import ReadResult
from satchel.formats.skill_manifest import SkillManifest, read_skill
from satchel.lazy_dataclass import fast_constructor
from satchel.settings import Limits
from satchel.sources.file_reader import (
    Stamp,
    UnitFile,
    is_inside,
    is_utf8,
    real_path,
    reason_of,
)
from satchel.sources.folder_diagnostics import (
    fix_of_unreadable,
    in_repository,
    link_loop,
    link_outside,
    missing,
    not_utf8,
    too_deep,
    unlistable,
)
from satchel.sources.folder_reader import (
    FolderContent,
    FolderReader,
    is_folder,
    is_repository,
    is_skipped,
    linked,
    nested_repository,
)
from satchel.sources.lost_mounts import device_of, lost_below, lost_mount
from satchel.sources.open_folder import OpenFolder, following, joined
from satchel.sources.search_roots import ScriptRule, SearchRoot
from satchel.sources.secret_files import is_secret_file
from satchel.sources.skill_findings import SKILL_FILE, SkillFinding, SkillScan

_MOST_RESCANS = 3
_MOST_PACKED = 500
_JUST_NOW = 1.0
_NAME = attrgetter("name")

_BREAKS_THE_FORMAT = frozenset(
    {
        *("yaml-repaired", "skill-name-missing", "skill-name-shape", "skill-name-folder"),
        *("skill-description-long", "skill-compatibility-long", "skill-field-type"),
    }
)
"""Diagnostics of violations of the Agent Skills format that are otherwise repaired."""


def scan_skills(
    place: SearchRoot,
    limits: Limits,
    before: SkillScan | None = None,
    dirty: Collection[str] | None = None,
) -> SkillScan:
    """Scan a search root for skills.

    Results in `before` are reused. `dirty` are the paths that may have changed: only skills and
    folders that they touch are scanned again; `None` means everything.
    """
    if before is None or dirty is None or before.cut or _may_be_linked(before, dirty):
        return _scan_everything(place, limits, before)
    starts = _outermost({start for path in dirty if (start := _start(before, path)) is not None})
    if not starts:
        return before
    if "" in starts or lost_mount(place.path, before.device):
        return _scan_everything(place, limits, before)
    scan = replace(before, edited=frozenset())
    try:
        for start in starts:
            scan = _merge(scan, _Walk(place, limits, before).below(start), start)
    except OSError:  # Without handles or rights, nothing is known to be gone.
        return _scan_everything(place, limits, before)
    folders = len(scan.walked) + len(scan.findings) - 1  # without the root itself
    if scan.links != before.links or scan.cut or folders > limits.find_folders:
        return _scan_everything(place, limits, before)
    return _with_lost(scan, before)


def _scan_everything(place: SearchRoot, limits: Limits, before: SkillScan | None) -> SkillScan:
    """Scan a search root, and again if a link was replaced meanwhile, so that no targets mix."""
    scan = _Walk(place, limits, before).everything()
    for _ in range(_MOST_RESCANS):
        if all(real_path(path) == target for path, target in scan.links):
            break
        scan = _Walk(place, limits, before).everything()
    if before is not None and before.findings and not scan.findings:
        problem = lost_mount(place.path, before.device)
        if problem is not None:
            return _kept(before, problem)
    return _with_lost(replace(scan, device=device_of(place.path)), before)


def _with_lost(scan: SkillScan, before: SkillScan | None) -> SkillScan:
    """Keep the skills on a mount below the root, or behind a link to one, that is gone."""
    if before is None or before.is_cached:
        return scan
    keys = before.findings.keys() if scan.edited is None else before.findings.keys() & scan.edited
    lost = {
        key: _unusable(before.findings[key], problem)
        for key in keys
        if key not in scan.findings and (problem := lost_below(before, before.findings[key]))
    }
    if not lost:
        return scan
    noted = {key: items for key, items in scan.diagnostics_by_key.items() if key not in lost}
    return replace(
        scan,
        findings={**scan.findings, **lost},
        diagnostics_by_key=noted,
        broken=scan.broken | lost.keys(),
    )


def _kept(before: SkillScan, problem: Diagnostic) -> SkillScan:
    """Return a scan of which no skill can be read now."""
    return SkillScan(
        place=before.place,
        findings={key: _unusable(found, problem) for key, found in before.findings.items()},
        diagnostics_by_key={"": (problem,)},
        links=before.links,
        device=before.device,
        broken=frozenset(before.findings),
    )


def _unusable(finding: SkillFinding, problem: Diagnostic) -> SkillFinding:
    """Return a skill that cannot be read now, though it still exists."""
    folder = replace(finding.folder, files=(), diagnostics=())
    return replace(finding, folder=folder, manifest=None, diagnostics=(problem,))


def _start(before: SkillScan, path: str) -> str | None:
    """Return the key of the topmost folder to scan again because `path` changed."""
    root = before.place.path
    if path == root or root.startswith(path.rstrip(os.sep) + os.sep):
        return ""
    if not path.startswith(root.rstrip(os.sep) + os.sep):
        return None
    if "" in before.findings or not before.walked:
        return ""
    parts = os.path.relpath(path, root).split(os.sep)
    for length in range(1, len(parts) + 1):
        key = "/".join(parts[:length])
        if key in before.findings:
            return key
        if key not in before.walked:
            # A new or removed entry, or a file. Of files, only SKILL.md affects its folder.
            is_skill_file = parts[length - 1].casefold() == SKILL_FILE.casefold()
            return "/".join(parts[: length - 1]) if is_skill_file else key
    return "/".join(parts)


def _may_be_linked(before: SkillScan, dirty: Collection[str]) -> bool:
    """Return whether changes are not all in known skills that have and are led to by no link."""
    if not before.links:
        return False
    for start in {_start(before, path) or "" for path in dirty}:
        if not start or (skill := before.findings.get(start)) is None:
            return True
        path, real = skill.path, real_path(skill.path)
        if any(_overlap(link, path) or _overlap(target, real) for link, target in before.links):
            return True
    return not dirty


def _overlap(path: str, other: str) -> bool:
    return is_inside(path, other) or is_inside(other, path)


def _outermost(keys: set[str]) -> list[str]:
    return [
        key
        for key in sorted(keys)
        if not any(key != other and (not other or key.startswith(other + "/")) for other in keys)
    ]


def _merge(scan: SkillScan, part: SkillScan, start: str) -> SkillScan:
    """Replace what a scan found at `start` and below."""
    if start in scan.findings and not part.walked:  # There is nothing else below a skill.
        findings, walked = dict(scan.findings), scan.walked
        edited = {start}
        if start not in part.findings:
            del findings[start]
    else:
        findings = {key: scan.findings[key] for key in _outside(scan.findings, start)}
        walked = frozenset(_outside(scan.walked, start))
        edited = scan.findings.keys() - findings.keys() | part.findings.keys()
    findings.update(part.findings)
    noted = scan.diagnostics_by_key
    return replace(
        scan,
        findings=findings,
        edited=(scan.edited or frozenset()) | edited,
        walked=walked | part.walked if part.walked else walked,
        diagnostics_by_key={
            **{key: noted[key] for key in _outside(noted, start)},
            **part.diagnostics_by_key,
        },
        links=scan.links | part.links,
        cut=scan.cut or part.cut,
        broken=part.broken.union(_outside(scan.broken, start)),
    )


def _outside(keys: Iterable[str], start: str) -> Iterable[str]:
    below = start + "/"
    return (key for key in keys if key != start and not key.startswith(below))


class _Entry(NamedTuple):
    """What is in a folder that is not a skill."""

    name: str
    path: str
    """Its path as it is shown."""
    is_link: bool
    is_folder: bool
    """Whether it is a folder, or a link to one."""


class _Walk:
    def __init__(self, place: SearchRoot, limits: Limits, before: SkillScan | None) -> None:
        self._place, self._limits = place, limits
        self._root = place.bounds()
        self._known = before.findings if before else {}
        # Scripts that are compared with what the user trusted are read; others only listed.
        compares = place.scripts is ScriptRule.COMPARE
        if compares:
            self._known = {
                key: found
                for key, found in self._known.items()
                if all(file.digest for file in found.files)
            }
        self._served = {} if before and before.is_cached else self._known
        self._targets: dict[str, str] = {}
        self._reader = FolderReader(
            root=self._root,
            most_files=limits.files_per_skill,
            largest=max(limits.resource, limits.skill_file),
            keep=SKILL_FILE.__eq__,
            lists_others=not compares,
            skips_repositories=bool(place.project),
            hides_secrets=True,
        )
        self._findings: dict[str, SkillFinding] = {}
        self._walked: set[str] = set()
        self._odd: dict[str, tuple[Diagnostic, ...]] = {}
        self._links: set[tuple[str, str]] = set()
        self._cut = False
        # A start must not wait for that.
        self._packed = _MOST_PACKED if before and before.is_cached else 0

    def everything(self) -> SkillScan:
        """Scan the whole search root."""
        path = self._place.path
        with ExitStack() as opened:
            try:
                place = opened.enter_context(following(path))
            except OSError as error:
                self._absent(error)
                return self._result()
            if self._place.within and place.path != self._path_without_links():
                self._links.add((path, place.path))
            if not is_inside(place.path, self._root):
                self._note("", [link_outside(path)])
            elif repository := nested_repository(self._place, place.path):
                self._note("", [in_repository(repository)])
            elif place.file:
                self._absent(NotADirectoryError())
            else:
                self._folder("", path, place.folder, (place.path,))
        return self._result()

    def _absent(self, error: OSError) -> None:
        """Report a search root that is missing, or cannot be opened now."""
        path = self._place.path
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            self._unlistable("", path, error)
        elif not self._place.optional or (self._place.within and os.path.lexists(path)):
            self._note("", [missing(path)])

    def _path_without_links(self) -> str:
        below = os.path.relpath(self._place.path, self._place.within)
        return os.path.normpath(os.path.join(self._root, below))

    def below(self, key: str) -> SkillScan:
        """Scan the part of the search root at `key` and below; no link leads there.

        Raises `OSError` if that cannot be looked at now.
        """
        *above, name = key.split("/")
        path = self._place.path
        with ExitStack() as opened:
            try:
                place = opened.enter_context(following(path))
                if place.file or not is_inside(place.path, self._root):
                    return self._result()
                folder = place.folder
                ancestry = [folder.path]
                for part in above:
                    path = joined(path, part)
                    folder = opened.enter_context(folder.enter(part))
                    ancestry.append(folder.path)
                # Listing thousands of skills would take longer than all else after an edit.
                was_known = key in self._known
                if was_known or any(entry.name == name for entry in folder.entries()):
                    mode = folder.stat(name).st_mode
                    is_link, is_dir = stat.S_ISLNK(mode), stat.S_ISDIR(mode)
                    entry = _Entry(name, joined(path, name), is_link, is_dir)
                    self._entry(key, entry, folder, tuple(ancestry))
            except (FileNotFoundError, NotADirectoryError):
                pass  # It is gone, with a folder above or without.
        return self._result()

    def _result(self) -> SkillScan:
        return SkillScan(
            place=self._place,
            findings=self._findings,
            walked=frozenset(self._walked),
            diagnostics_by_key=self._odd,
            links=frozenset(self._links),
            cut=self._cut,
            broken=frozenset(
                key
                for key, found in self._findings.items()
                if not found.manifest or found.folder.has_shrunk
            ),
        )

    def _note(self, key: str, diagnostics: Iterable[Diagnostic]) -> None:
        if diagnostics := tuple(diagnostics):
            self._odd[key] = (*self._odd.get(key, ()), *diagnostics)

    def _is_done(self, key: str, path: str) -> bool:
        """Return whether a folder need not be looked into: it is unchanged, or one too many."""
        if len(self._walked) + len(self._findings) > self._limits.find_folders:
            if not self._cut:
                self._note("", [self._too_many()])
            self._cut = True
            return True
        before = self._known.get(key)
        if before is None or not before.is_unchanged_at(path):
            return False
        self._findings[key] = before
        self._pack(before)
        return True

    def _folder(self, key: str, path: str, folder: OpenFolder, above: tuple[str, ...]) -> None:
        """Scan one folder: it is a skill, or its subfolders are scanned."""
        try:
            entries = folder.entries()
        except OSError as error:
            self._walked.add(key)
            self._unlistable(key, path, error)
            return
        if key and self._place.project and is_repository(entries):
            self._note(key, [in_repository(path)])
            return
        may_be_skill = bool(key) or not self._place.policy.has_strict_skills
        if may_be_skill and SKILL_FILE in map(_NAME, entries):
            self._findings[key] = self._skill(key, path, folder, entries)
            return
        if (before := self._served.get(key)) is not None:
            self._lost(before, folder)
        self._walked.add(key)
        prefix, path_prefix = f"{key}/" if key else "", joined(path, "")
        for entry in sorted(entries, key=_NAME):
            name = entry.name
            listed = _Entry(name, path_prefix + name, entry.is_symlink(), is_folder(entry))
            self._entry(prefix + name, listed, folder, above)

    def _lost(self, before: SkillFinding, folder: OpenFolder) -> None:
        """Keep a skill that lost its SKILL.md just now: an editor may be replacing the file."""
        now = Stamp.of(folder.status)
        lost = UnitFile(name=SKILL_FILE, size=0, digest="", stamp=now, settled=False)
        content = FolderContent(files=(lost,))
        if content.is_younger_than(_JUST_NOW):
            self._findings[before.key] = replace(
                before, folder=content, manifest=None, diagnostics=(), is_lost=True
            )

    def _unlistable(self, key: str, path: str, error: OSError) -> None:
        """Report a folder that cannot be opened or listed; its skills still exist."""
        problem = unlistable(path, reason_of(error))
        self._note(key, [problem])
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            self._keep(key, problem)

    def _keep(self, key: str, problem: Diagnostic) -> None:
        for below, finding in self._served.items():
            if not key or below == key or below.startswith(key + "/"):
                self._findings[below] = _unusable(finding, problem)

    def _entry(self, key: str, entry: "_Entry", folder: OpenFolder, above: tuple[str, ...]) -> None:
        """Scan an entry of a folder that is not a skill."""
        name, path = entry.name, entry.path
        if is_skipped(name) or is_secret_file(name):
            return
        if entry.is_link:
            self._links.add((path, real_path(path)))
        if entry.is_folder:
            self._enter(key, entry, folder, above)
        elif entry.is_link and not os.path.exists(path):
            self._follow(key, entry, folder, above)
        elif name != SKILL_FILE and name.casefold() == SKILL_FILE.casefold():
            self._note(key, [_wrong_case(path)])

    def _enter(self, key: str, entry: "_Entry", folder: OpenFolder, above: tuple[str, ...]) -> None:
        """Scan a folder unless it must not be entered."""
        name, path = entry.name, entry.path
        if self._place.policy.has_strict_skills and "/" in key:
            return
        if not is_utf8(name):
            self._note(key, [not_utf8(os.path.dirname(path), name)])
        elif key.count("/") >= self._limits.find_depth:
            self._note(key, [too_deep(path, self._limits.find_depth, "find_depth")])
        elif entry.is_link:
            self._follow(key, entry, folder, above)
        elif not self._is_done(key, path):
            try:
                below = folder.enter(name)
            except OSError as error:
                self._walked.add(key)
                self._unlistable(key, path, error)
                return
            with below:
                # A folder that is not a link can still be a loop, if a link led above it.
                if below.path in above:
                    self._note(key, [link_loop(path)])
                else:
                    self._folder(key, path, below, (*above, below.path))

    def _follow(
        self, key: str, entry: "_Entry", folder: OpenFolder, above: tuple[str, ...]
    ) -> None:
        """Scan where a link leads, if that is inside, or the user's own link leads to a skill."""
        path, diagnostics = entry.path, list[Diagnostic]()
        leads_out = self._place.follows_links_out and "/" not in key
        root = os.sep if leads_out else self._root
        with linked(folder, entry.name, path, root, diagnostics) as place:
            for problem in diagnostics:
                if problem.code == "source-unreadable":
                    self._keep(key, problem)
            if place is not None and not place.file:
                if not is_inside(place.path, self._root):
                    self._targets[key] = place.path
                if key in self._targets and not _has_skill(place.folder):
                    diagnostics.append(link_outside(path))
                elif place.path in above:
                    diagnostics.append(link_loop(path))
                elif repository := nested_repository(self._place, place.path):
                    diagnostics.append(in_repository(repository))
                elif not self._is_done(key, path):
                    self._folder(key, path, place.folder, (*above, place.path))
        self._note(key, diagnostics)

    def _skill(
        self, key: str, path: str, opened: OpenFolder, entries: list[os.DirEntry[str]]
    ) -> SkillFinding:
        before = self._known.get(key)
        target = self._targets.get(key, "")
        if before is None and not target and len(entries) == 1:
            single = self._only_file(key, path, opened, entries[0])
            if single is not None:
                return single
        reader = replace(self._reader, root=target) if target else self._reader
        data: dict[str, bytes] = {}
        entries.sort(key=_NAME)
        folder = reader.read(path, before.folder if before else None, opened, entries, data)
        if folder.links:
            self._links.update(folder.links)
        if before is not None and folder == before.folder and target == before.target:
            self._pack(before)
            return before
        manifest, diagnostics = self._read(path, folder, data.get(SKILL_FILE), before)
        return fast_constructor(SkillFinding)(
            place=self._place,
            key=key,
            folder=folder,
            manifest=manifest,
            diagnostics=diagnostics,
            target=target,
        )

    def _only_file(
        self, key: str, path: str, opened: OpenFolder, entry: os.DirEntry[str]
    ) -> SkillFinding | None:
        """Read a new skill without other files, as most are; `None` if that needs a closer look."""
        is_regular = entry.is_file(follow_symlinks=False)
        reading = self._reader.read_only_file(SKILL_FILE, opened) if is_regular else None
        if reading is None:
            return None
        folder, data = reading
        manifest, diagnostics = self._parse(path, data)
        return fast_constructor(SkillFinding)(
            place=self._place, key=key, folder=folder, manifest=manifest, diagnostics=diagnostics
        )

    def _pack(self, finding: SkillFinding) -> None:
        """Compress the body of an unchanged skill, but only of some, as an edit may wait."""
        if finding.manifest and self._packed < _MOST_PACKED and pack(finding.manifest, "body"):
            self._packed += 1

    def _read(
        self,
        folder_path: str,
        folder: FolderContent,
        data: bytes | None,
        before: SkillFinding | None,
    ) -> tuple[SkillManifest | None, tuple[Diagnostic, ...]]:
        """Read the manifest of a skill, unless `before` has the same bytes."""
        if before is not None:
            file, previous = folder.get(SKILL_FILE), before.folder.get(SKILL_FILE)
            if file is not None and previous is not None and previous.digest == file.digest:
                return before.manifest, before.diagnostics
        if data is None:
            return None, (_unreadable(joined(folder_path, SKILL_FILE), folder),)
        return self._parse(folder_path, data)

    def _parse(
        self, folder_path: str, data: bytes
    ) -> tuple[SkillManifest | None, tuple[Diagnostic, ...]]:
        path = joined(folder_path, SKILL_FILE)
        reading = read_skill(data, os.path.basename(folder_path), path, self._limits)
        if self._place.policy.has_strict_skills:
            diagnostics = tuple(
                strictly([item])[0] if item.code in _BREAKS_THE_FORMAT else item
                for item in reading.diagnostics
            )
            reading = ReadResult(None if has_error(diagnostics) else reading.value, diagnostics)
        return reading.value, reading.diagnostics

    def _too_many(self) -> Diagnostic:
        most = self._limits.find_folders
        return make_diagnostic(
            "source-too-many",
            Where(self._place.path),
            f"has more than {most} folders (limit find_folders); the rest is not searched",
            "name the folders that hold skills, or raise find_folders in your satchel.toml, "
            "or --find-folders",
        )


def _has_skill(folder: OpenFolder) -> bool:
    try:
        return not stat.S_ISDIR(folder.stat(SKILL_FILE).st_mode)
    except OSError:
        return False


def _wrong_case(path: str) -> Diagnostic:
    return make_diagnostic(
        "skill-file-case",
        Where(path),
        f"is named {os.path.basename(path)!r}, so its folder is not a skill",
        f"rename it to {SKILL_FILE}",
    )


def _unreadable(path: str, folder: FolderContent) -> Diagnostic:
    cause = next((item for item in folder.diagnostics if item.where.path == path), None)
    reason = "is a folder" if os.path.isdir(path) else "cannot be read"
    fix = fix_of_unreadable(cause, f"make {SKILL_FILE} a regular file inside the skill")
    return make_diagnostic("skill-unreadable", Where(path), cause.message if cause else reason, fix)
