"""The skills of the last scan that stay, though they cannot be read or found now."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from satchel.sources.lost_mounts import lost_below, lost_mount
from satchel.sources.skill_findings import SKILL_FILE, SkillFinding, SkillScan, is_below

if TYPE_CHECKING:
    from satchel.diagnostics import Diagnostic
    from satchel.files.file_reader import Stamp
    from satchel.sources.search_roots import SearchRoot


class KeptSkills:
    """Decides which skills of the last scan stay.

    Those that exist and cannot be read stay as broken ones. Those that are gone stay unchanged for
    `settle` seconds, because a folder or file that is replaced is often removed first.
    """

    def __init__(self, before: SkillScan | None, settle: float) -> None:
        # Skills from the disk cache were never served, so none of them has to stay.
        self._before = before if before and not before.is_cached else None
        self._settle = settle

    def unreadable(self, key: str, problem: Diagnostic) -> Mapping[str, SkillFinding]:
        """Return the skills at `key` and below, which cannot be read because of `problem`."""
        findings = self._before.findings if self._before else {}
        return {
            below: _unreadable(finding, problem)
            for below, finding in findings.items()
            if is_below(below, key)
        }

    def added_to(self, scan: SkillScan) -> SkillScan:
        """Add the skills that went missing just now, or whose file system is not mounted now."""
        before = self._before
        if before is None:
            return scan
        if before.findings and not scan.findings:
            problem = lost_mount(before.root.path, before.device)
            if problem is not None:
                return self._all_lost(before, problem)
        keys = before.findings.keys()
        edited = keys if scan.edited is None else keys & scan.edited
        absent = [key for key in edited if key not in scan.findings]
        if not absent:
            return scan
        # A renamed folder: what is gone does not stay beside what is new and has its name.
        new = [scan.findings[key] for key in scan.findings.keys() - keys]
        new_names = {finding.name for finding in new if finding.manifest}
        now = time.monotonic()
        kept, missing = dict[str, SkillFinding](), dict[str, float]()
        for key in absent:
            finding, missed_at = before.findings[key], before.missing.get(key, now)
            if problem := lost_below(before, finding):
                kept[key] = _unreadable(finding, problem)
            elif finding.name in new_names or _is_refused(finding, scan):
                continue
            elif now - missed_at < self._settle:
                kept[key], missing[key] = finding, missed_at
        if not kept:
            return scan
        noted = {key: items for key, items in scan.diagnostics_by_key.items() if key not in kept}
        return replace(
            scan,
            findings={**scan.findings, **kept},
            missing={**scan.missing, **missing},
            diagnostics_by_key=noted,
            suspect=scan.suspect.union(key for key, it in kept.items() if it.is_suspect),
        )

    def _all_lost(self, before: SkillScan, problem: Diagnostic) -> SkillScan:
        return SkillScan(
            root=before.root,
            findings=self.unreadable("", problem),
            diagnostics_by_key={"": (problem,)},
            links=before.links,
            device=before.device,
            suspect=frozenset(before.findings),
        )


def without_moved(scans: Mapping[SearchRoot, SkillScan]) -> Mapping[SearchRoot, SkillScan]:
    """Leave out skills that are gone if their SKILL.md is in another folder now: it was moved."""
    present = {
        _stamp_of(finding)
        for scan in scans.values()
        for key, finding in scan.findings.items()
        if key not in scan.missing
    }
    return {root: _without_missing(scan, present) for root, scan in scans.items()}


def _stamp_of(finding: SkillFinding) -> Stamp | None:
    """Return the stamp of its SKILL.md, which stays the same when a folder above is renamed."""
    file = finding.folder.get(SKILL_FILE)
    return file.stamp if file else None


def _without_missing(scan: SkillScan, present: Collection[Stamp | None]) -> SkillScan:
    stamps = {key: _stamp_of(scan.findings[key]) for key in scan.missing}
    gone = {key for key, stamp in stamps.items() if stamp and stamp in present}
    if not gone:
        return scan
    return replace(
        scan,
        findings={key: item for key, item in scan.findings.items() if key not in gone},
        missing={key: time for key, time in scan.missing.items() if key not in gone},
        edited=None if scan.edited is None else scan.edited | gone,
        suspect=scan.suspect - gone,
    )


def _is_refused(finding: SkillFinding, scan: SkillScan) -> bool:
    """Return whether a skill was left out on purpose.

    Also true for one that came back after the scan; the next scan finds it.
    """
    is_reported = any(is_below(finding.key, key) for key in scan.diagnostics_by_key)
    return is_reported and os.path.exists(os.path.join(finding.path, SKILL_FILE))


def _unreadable(finding: SkillFinding, problem: Diagnostic) -> SkillFinding:
    folder = replace(finding.folder, files=(), diagnostics=())
    return replace(finding, folder=folder, manifest=None, diagnostics=(problem,))
