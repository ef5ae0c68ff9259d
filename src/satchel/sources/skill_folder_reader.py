"""Read the folders of skills: SKILL.md is parsed, the other files are listed."""

import os
from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

from satchel.diagnostics import RULES, Diagnostic, Where, has_error, make_diagnostic
from satchel.files.open_folder import OpenFolder, joined
from satchel.formats.packed_text import pack
from satchel.formats.read_result import ReadResult
from satchel.formats.skill_manifest import SkillManifest, read_skill
from satchel.lazy_dataclass import fast_constructor
from satchel.settings import Limits
from satchel.sources.folder_diagnostics import fix_of_unreadable
from satchel.sources.folder_reader import FolderContent, FolderReader
from satchel.sources.search_roots import ScriptRule, SearchRoot
from satchel.sources.skill_findings import SKILL_FILE, SkillFinding, SkillScan

_MOST_PACKED = 500
_NAME = attrgetter("name")

_BREAKS_THE_FORMAT = frozenset(
    {
        *("yaml-repaired", "skill-name-missing", "skill-name-shape", "skill-name-folder"),
        *("skill-description-long", "skill-compatibility-long", "skill-field-type"),
    }
)
"""Diagnostics of violations of the Agent Skills format that are otherwise repaired."""


class SkillFolderReader:
    """Reads the skills of one search root; what did not change is taken from the last scan."""

    def __init__(self, root: SearchRoot, limits: Limits, before: SkillScan | None) -> None:
        self._root, self._limits = root, limits
        self.known: Mapping[str, SkillFinding] = before.findings if before else {}
        """The skills of the last scan that may still be the same."""
        # Scripts that are compared with what the user trusted are read; others only listed.
        compares = root.scripts is ScriptRule.COMPARE
        if compares:
            self.known = {
                key: finding
                for key, finding in self.known.items()
                if all(file.digest for file in finding.files)
            }
        self._reader = FolderReader(
            root=root.bounds(),
            most_files=limits.files_per_skill,
            largest=max(limits.resource, limits.skill_file),
            keep=SKILL_FILE.__eq__,
            lists_others=not compares,
            skips_repositories=bool(root.project),
            hides_secrets=True,
        )
        # Nothing is compressed in the first scan of a process, because it has to be fast.
        is_from_disk_cache = before is not None and before.is_cached
        self._may_pack = 0 if is_from_disk_cache else _MOST_PACKED

    def unchanged(self, key: str, path: str) -> SkillFinding | None:
        """Return a skill of the last scan if stamps alone show that it is still the same."""
        before = self.known.get(key)
        if before is None or not before.is_unchanged_at(path):
            return None
        self._pack(before)
        return before

    def read(
        self,
        key: str,
        path: str,
        opened: OpenFolder,
        entries: list[os.DirEntry[str]],
        target: str = "",
    ) -> SkillFinding:
        """Read a skill from its open folder; `path` is shown.

        `target` is where a link of the user's own leads, outside of the search root.
        """
        before = self.known.get(key)
        if before is None and not target and len(entries) == 1:
            single = self._only_file(key, path, opened, entries[0])
            if single is not None:
                return single
        reader = replace(self._reader, root=target) if target else self._reader
        data: dict[str, bytes] = {}
        entries.sort(key=_NAME)
        folder = reader.read(path, before.folder if before else None, opened, entries, data)
        if before is not None and folder == before.folder and target == before.target:
            self._pack(before)
            return before
        manifest, diagnostics = self._manifest(path, folder, data.get(SKILL_FILE), before)
        return SkillFinding(
            root=self._root,
            key=key,
            folder=folder,
            manifest=manifest,
            diagnostics=diagnostics,
            target=target,
        )

    def _only_file(
        self, key: str, path: str, opened: OpenFolder, entry: os.DirEntry[str]
    ) -> SkillFinding | None:
        """Read a skill of one file, as most are; `None` if the folder must be read in full."""
        is_regular = entry.is_file(follow_symlinks=False)
        reading = self._reader.read_only_file(SKILL_FILE, opened) if is_regular else None
        if reading is None:
            return None
        folder, data = reading
        manifest, diagnostics = self._parse(path, data)
        return fast_constructor(SkillFinding)(
            root=self._root, key=key, folder=folder, manifest=manifest, diagnostics=diagnostics
        )

    def _pack(self, finding: SkillFinding) -> None:
        """Compress the body of an unchanged skill; few in a scan, so edits are not delayed."""
        if finding.manifest and self._may_pack and pack(finding.manifest, "body"):
            self._may_pack -= 1

    def _manifest(
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
        reading = read_skill(data, folder_path.rpartition(os.sep)[2], path, self._limits)
        if self._root.policy.has_strict_skills:
            diagnostics = tuple(
                replace(item, severity=RULES[item.code].strict)
                if item.code in _BREAKS_THE_FORMAT
                else item
                for item in reading.diagnostics
            )
            reading = ReadResult(None if has_error(diagnostics) else reading.value, diagnostics)
        return reading.value, reading.diagnostics


def _unreadable(path: str, folder: FolderContent) -> Diagnostic:
    cause = next((item for item in folder.diagnostics if item.where.path == path), None)
    reason = "is a folder" if os.path.isdir(path) else "cannot be read"
    fix = fix_of_unreadable(cause, f"make {SKILL_FILE} a regular file inside the skill")
    return make_diagnostic("skill-unreadable", Where(path), cause.message if cause else reason, fix)
