"""What a scan finds out about skills, before any is used."""

import os
from collections.abc import Mapping
from dataclasses import field

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.contained_files import Bounds
from satchel.files.file_reader import UnitFile
from satchel.formats.skill_manifest import SkillManifest
from satchel.lazy_dataclass import dataclass
from satchel.sources.folder_reader import FolderContent
from satchel.sources.search_roots import SearchRoot
from satchel.sources.skill_files import IN_PROJECT, LocalSkillReader, SkillAccess, SkillReader

SKILL_FILE = "SKILL.md"
OWN_SKILL_FIX = "name its folder with --skills, to load the SKILL.md in it"
"""How to use a plugin that brings nothing, but is a skill itself."""
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFinding:
    """One skill folder as it was read; `manifest` is `None` if it cannot be used."""

    root: SearchRoot
    key: str
    """The path below the search root, with `/`; `""` if the root itself is the skill."""
    folder: FolderContent
    manifest: SkillManifest | None
    diagnostics: tuple[Diagnostic, ...]
    target: str = ""
    """Where a link of the user's own leads, outside of the search root; `""` without one."""
    remote: SkillReader | None = field(default=None, compare=False, repr=False)
    """Reads its files if they are not in a folder."""
    programs: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """The trusted digests of all files that its scripts may run, if they are compared."""

    @property
    def access(self) -> SkillAccess:
        """Return what can be done with it; no reader is made, because a prompt asks all skills."""
        return self.remote.access if self.remote else IN_PROJECT[self.root.scripts]

    @property
    def reader(self) -> SkillReader:
        """Return the reader of its files."""
        return self.remote or LocalSkillReader(self.bounds, self.path)

    @property
    def bounds(self) -> Bounds:
        """Return the folder that its files must stay inside."""
        if self.root.project:
            return Bounds(self.root.project, is_resolved=True)
        return Bounds(self.target or self.root.within or self.root.path)

    @property
    def path(self) -> str:
        """Return the skill's folder, or the local address of a skill at a server."""
        below = os.sep + self.key.replace("/", os.sep) if self.key else ""
        return self.root.path.rstrip(os.sep) + below

    @property
    def is_suspect(self) -> bool:
        """Return whether it is broken, or lost so much of a file that the rest may still come."""
        return self.manifest is None or self.folder.has_shrunk

    @property
    def is_hidden(self) -> bool:
        """Return whether it is in a hidden folder, which often mirrors visible ones."""
        return self.key.startswith(".") or "/." in self.key

    @property
    def name(self) -> str:
        """Return the skill's name, or the folder's name if it cannot be used."""
        return self.manifest.name if self.manifest else self.folder_name

    @property
    def folder_name(self) -> str:
        """Return the folder's name, which the skill's name should equal."""
        return os.path.basename(self.path)

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of the manifest and of the other files."""
        folder = self.folder
        if len(folder.files) == 1 and not folder.diagnostics:
            return self.diagnostics  # Most skills are such, and this is asked of each.
        # That of an unreadable SKILL.md already says what is wrong with the file.
        covered = {item.where.path for item in self.diagnostics if item.code == "skill-unreadable"}
        others = (item for item in folder.diagnostics if item.where.path not in covered)
        return (*self.diagnostics, *others, *_inner_skills(self.path, folder.files))

    @property
    def files(self) -> tuple[UnitFile, ...]:
        """Return all files of the skill, with `SKILL.md`."""
        return self.folder.files

    @property
    def digest(self) -> str:
        """Return the digest of the whole folder."""
        return self.folder.digest

    def is_unchanged_at(self, path: str) -> bool:
        """Return whether stamps alone show that `path` is still this skill, and a usable one."""
        return self.manifest is not None and not self.target and self.folder.is_unchanged_at(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillScan:
    """The results of one scan of a search root, reused by the next scan."""

    root: SearchRoot
    findings: Mapping[str, SkillFinding]
    walked: frozenset[str] = frozenset()
    """The keys of the searched folders that are not skills themselves."""
    diagnostics_by_key: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    """Diagnostics outside of skills, by the key of the file or folder."""
    links: frozenset[tuple[str, str]] = frozenset()
    """All links, with their targets.

    Targets may change as well, so only an edit of a skill apart from them is scanned alone.
    """
    cut: bool = False
    """Whether the limit of folders ended the scan."""
    is_cached: bool = False
    """Whether it comes from the cache of another process; then only its files count."""
    device: int = 0
    """The device that the root was on when something of it was there; 0 if unknown."""
    suspect: frozenset[str] = frozenset()
    """The keys of the skills that cannot be used, or may be half written."""
    missing: Mapping[str, float] = field(default_factory=dict, compare=False)
    """The keys of the skills that are gone, perhaps only for a moment, and when that was noticed.

    Times are those of the monotonic clock.
    """
    edited: frozenset[str] | None = field(default=None, compare=False)
    """The keys of all skills that may differ from the last scan; `None` if they are not known."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics outside of skills."""
        return tuple(
            item for key in sorted(self.diagnostics_by_key) for item in self.diagnostics_by_key[key]
        )


def is_below(key: str, start: str) -> bool:
    """Return whether a key is `start` or below it; all are below the root, `""`."""
    return not start or key == start or key.startswith(start + "/")


def _inner_skills(path: str, files: tuple[UnitFile, ...]) -> tuple[Diagnostic, ...]:
    """Return one diagnostic for all skills inside a skill; usually there are none."""
    inner = [file.name for file in files if file.name.endswith(f"/{SKILL_FILE}")]
    if not inner:
        return ()
    folders = [os.path.dirname(os.path.join(path, *name.split("/"))) for name in inner]
    # A folder with a SKILL.md is one skill, so a holder that is a skill cannot stand for others.
    skills = {path, *folders}
    holders = {name if (above := os.path.dirname(name)) in skills else above for name in folders}
    one, are_beside = len(inner) == 1, all(os.path.dirname(name) == path for name in folders)
    number, them = ("a skill", "it") if one else (f"{len(inner)} skills", "them")
    if are_beside and len(inner) > _MOST_NAMED:  # a folder of skills in which one lies by mistake
        advice = f"move {SKILL_FILE} and its own files into a new folder beside {them}"
    else:
        each = "" if len(holders) == 1 else "each of "
        advice = f"name {each}{', '.join(sorted(holders))} as a folder of skills"
    return (
        make_diagnostic(
            "skill-inside-skill",
            Where(path),
            f"has {number} inside; the model reads {them} only as files of this one",
            f"to serve {them} as well, {advice}",
        ),
    )
