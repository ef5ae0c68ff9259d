"""Find the commands of plugins for other clients; each becomes a skill that the user calls."""

import os
from collections.abc import Iterable

from satchel.diagnostics import Diagnostic
from satchel.errors import ToolError
from satchel.files.file_reader import UnitFile, digest_of, is_inside, real_path, touches
from satchel.formats.command_manifest import command_name, read_command
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits
from satchel.sources.folder_diagnostics import link_outside
from satchel.sources.folder_reader import FolderContent, FolderReader
from satchel.sources.search_roots import SearchRoot
from satchel.sources.skill_files import ServedFile, SkillAccess
from satchel.sources.skill_findings import SKILL_FILE, SkillFinding, SkillScan

_ACCESS = SkillAccess()


@dataclass(frozen=True, slots=True)
class CommandReader:
    """Reads the only file of a command."""

    data: bytes

    @property
    def access(self) -> SkillAccess:
        """Return what can be done with a command."""
        return _ACCESS

    def read(self, name: str, limits: Limits) -> ServedFile:  # noqa: ARG002
        """Return the command. Raises `ToolError` for any other name."""
        if name != SKILL_FILE:
            raise ToolError("a command has no other files")
        return ServedFile(name, self.data, digest_of(self.data))

    async def fetch(self, name: str, limits: Limits) -> ServedFile:
        """Return the command. Raises `ToolError` for any other name."""
        return self.read(name, limits)


def scan_commands(
    root: SearchRoot,
    limits: Limits,
    before: SkillScan | None = None,
    dirty: Iterable[str] | None = None,
) -> SkillScan:
    """Read the commands in a folder, or the one that `root` names."""
    if before and not before.links and dirty is not None and not touches(dirty, root.path):
        return before
    if not os.path.lexists(root.path):
        return SkillScan(root=root, findings={})
    bounds = real_path(root.within)
    if not is_inside(real_path(root.path), bounds):
        outside = {"": (link_outside(root.path),)}
        links = frozenset({(root.path, real_path(root.path))})
        return SkillScan(root=root, findings={}, diagnostics_by_key=outside, links=links)
    folder, only = root.path, ""
    if not os.path.isdir(folder):
        folder, only = os.path.split(folder)
    content = _read(folder, only, bounds, root.policy.command_suffix, limits)
    cached = before.findings if before else {}
    findings: dict[str, SkillFinding] = {}
    for file in content.files:
        key = "" if only else file.name
        findings[key] = _finding(root, key, file, limits, cached.get(key))
    diagnostics: dict[str, tuple[Diagnostic, ...]] = {"": content.diagnostics}
    return SkillScan(
        root=root,
        findings=findings,
        diagnostics_by_key=diagnostics if content.diagnostics else {},
        links=content.links,
        suspect=frozenset(key for key, finding in findings.items() if finding.manifest is None),
    )


def _read(folder: str, only: str, root: str, suffix: str, limits: Limits) -> FolderContent:
    def is_command(name: str) -> bool:
        return name.endswith(suffix) and not os.path.basename(name).startswith(".")

    reader = FolderReader(
        root=root,
        most_files=limits.files_per_skill,
        largest=limits.skill_file,
        wanted=(lambda _name: False) if only else is_command,
        keep=is_command,
        required=frozenset({only} if only else ()),
    )
    return reader.read(folder)


def _finding(
    root: SearchRoot, key: str, file: UnitFile, limits: Limits, before: SkillFinding | None
) -> SkillFinding:
    data = file.data or b""
    own = UnitFile(
        name=SKILL_FILE,
        size=len(data),
        digest=file.digest,
        stamp=file.stamp,
        settled=file.settled,
    )
    folder = FolderContent(files=(own,))
    if before is not None and before.folder == folder:
        return before
    path = os.path.join(root.path, key) if key else root.path
    reading = read_command(data, command_name(key or os.path.basename(path)), path, limits)
    return SkillFinding(
        root=root,
        key=key,
        folder=folder,
        manifest=reading.value,
        diagnostics=reading.diagnostics,
        remote=CommandReader(data),
    )
