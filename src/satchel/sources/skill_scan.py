"""Find skills: the folders in a search root with a file named exactly `SKILL.md`."""

import os
from collections.abc import Collection, Iterable
from dataclasses import replace

from satchel.files.file_reader import is_inside, real_path
from satchel.settings import Limits
from satchel.sources.kept_skills import KeptSkills
from satchel.sources.lost_mounts import device_of, lost_mount
from satchel.sources.search_roots import SearchRoot
from satchel.sources.skill_findings import SKILL_FILE, SkillScan, is_below
from satchel.sources.skill_walk import SkillWalk

_MOST_RESCANS = 3
_MOST_PARTS = 50
"""If more parts changed, the whole root is scanned: each merge copies all findings."""


def scan_skills(
    root: SearchRoot,
    limits: Limits,
    before: SkillScan | None = None,
    dirty: Collection[str] | None = None,
    settle: float = 0.0,
) -> SkillScan:
    """Scan a search root for skills.

    Results in `before` are reused. `dirty` are the paths that may have changed: only skills and
    folders that they touch are scanned again; `None` means everything. Skills that are gone stay
    for `settle` seconds, because they may be replaced at this moment.
    """
    kept = KeptSkills(before, settle)
    scan = None
    if before is not None and dirty is not None:
        scan = _scan_dirty(before, limits, dirty, kept)
    if scan is None:
        scan = _scan_everything(root, limits, before, kept)
    return scan if scan is before else kept.added_to(scan)


def _scan_everything(
    root: SearchRoot, limits: Limits, before: SkillScan | None, kept: KeptSkills
) -> SkillScan:
    """Scan a search root; again while links change meanwhile, so that old and new never mix."""
    scan = SkillWalk(root, limits, before, kept).everything()
    for _ in range(_MOST_RESCANS):
        if all(real_path(path) == target for path, target in scan.links):
            break
        scan = SkillWalk(root, limits, before, kept).everything()
    return replace(_without_doubles(scan), device=device_of(root.path))


def _without_doubles(scan: SkillScan) -> SkillScan:
    """Serve a skill that a link also reaches only from its own folder."""
    findings, root = scan.findings, real_path(scan.root.path)
    doubles: set[str] = set()
    for link, target in scan.links:
        if is_inside(target, root):
            key, own = _key(link, scan.root.path), _key(target, root)
            # Most links lead to one skill; only behind a walked folder can there be more.
            candidates = (key,) if key in findings else findings if key in scan.walked else ()
            below = [it for it in candidates if is_below(it, key)]
            doubles.update(it for it in below if own + it.removeprefix(key) in findings)
    if not doubles:
        return scan
    kept = {key: finding for key, finding in findings.items() if key not in doubles}
    return replace(scan, findings=kept, suspect=scan.suspect - doubles)


def _scan_dirty(
    before: SkillScan, limits: Limits, dirty: Collection[str], kept: KeptSkills
) -> SkillScan | None:
    """Scan the parts that changes touch; `None` if everything must be scanned."""
    root = before.root
    if before.cut or _changes_reach_links(before, dirty):
        return None
    starts = {start for path in dirty if (start := _start(before, path)) is not None}
    if not starts:
        return before
    if "" in starts or len(starts) > _MOST_PARTS or lost_mount(root.path, before.device):
        return None
    scan = replace(before, edited=frozenset())
    try:
        for start in _outermost(starts):
            scan = _merge(scan, SkillWalk(root, limits, before, kept).part(start), start)
    except OSError:  # Without handles or rights, nothing is known to be gone.
        return None
    folders = len(scan.walked) + len(scan.findings) - 1  # without the root itself
    is_whole = _are_links_separate(before, scan) and not scan.cut and folders <= limits.find_folders
    return _without_doubles(scan) if is_whole else None


def _are_links_separate(before: SkillScan, now: SkillScan) -> bool:
    """Return whether the targets of new and gone links overlap neither the root nor other targets.

    Else more than the scanned parts may have changed.
    """
    links, root = before.links | now.links, real_path(before.root.path)
    return all(
        # A new link must not have changed again during the scan.
        ((link, target) in before.links or real_path(link) == target)
        and not _overlap(target, root)
        and not any(_overlap(target, other) for path, other in links if path != link)
        for link, target in before.links ^ now.links
    )


def _start(before: SkillScan, path: str) -> str | None:
    """Return the key of the topmost folder to scan again because `path` changed."""
    root = before.root.path
    if is_inside(root, path):
        return ""
    if not is_inside(path, root):
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


def _changes_reach_links(before: SkillScan, dirty: Collection[str]) -> bool:
    """Return whether a link also leads to a changed part, so that its skills have two keys."""
    if not before.links:
        return False
    starts = {path: _start(before, path) for path in dirty}
    # A change outside of known skills may have replaced a link.
    if any(start not in before.findings for start in starts.values()) and any(
        real_path(link) != target for link, target in before.links
    ):
        return True
    # A changed part is above, below or at a link or its target.
    parts = {path if key is None else _path(before, key) for path, key in starts.items()}
    return any(
        link not in parts and (_overlap(link, part) or _overlap(target, real_part))
        for part, real_part in [(part, real_path(part)) for part in parts]
        for link, target in before.links
    )


def _key(path: str, root: str) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")


def _path(scan: SkillScan, key: str) -> str:
    return os.path.join(scan.root.path, *key.split("/"))


def _overlap(path: str, other: str) -> bool:
    return is_inside(path, other) or is_inside(other, path)


def _outermost(keys: set[str]) -> list[str]:
    return [
        key
        for key in sorted(keys)
        if not any(key != other and is_below(key, other) for other in keys)
    ]


def _merge(scan: SkillScan, part: SkillScan, start: str) -> SkillScan:
    """Replace what a scan found at `start` and below."""
    if start in scan.walked or scan.missing:
        findings = {key: scan.findings[key] for key in _outside(scan.findings, start)}
        walked = frozenset(_outside(scan.walked, start))
        gone = scan.findings.keys() - findings.keys()
    else:  # Fast path: a single skill, or a new one, so nothing below must be removed.
        findings, walked, gone = dict(scan.findings), scan.walked, {start}
        if start not in part.findings:
            findings.pop(start, None)
    path = _path(scan, start)
    findings.update(part.findings)
    noted = scan.diagnostics_by_key
    return replace(
        scan,
        findings=findings,
        edited=(scan.edited or frozenset()).union(gone, part.findings),
        walked=walked | part.walked if part.walked else walked,
        diagnostics_by_key={
            **{key: noted[key] for key in _outside(noted, start)},
            **part.diagnostics_by_key,
        },
        missing={key: scan.missing[key] for key in _outside(scan.missing, start)},
        links=part.links.union(link for link in scan.links if not is_inside(link[0], path)),
        cut=scan.cut or part.cut,
        suspect=part.suspect.union(_outside(scan.suspect, start)),
    )


def _outside(keys: Iterable[str], start: str) -> Iterable[str]:
    return (key for key in keys if not is_below(key, start))
