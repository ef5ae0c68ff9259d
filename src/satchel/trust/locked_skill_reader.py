"""Read the files of a locked skill: each must still have the bytes that were compared."""

from collections.abc import Mapping
from typing import Self

from satchel.errors import ToolError
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits
from satchel.sources.skill_files import (
    BlockingSkillReader,
    LocalSkillReader,
    ServedFile,
    SkillAccess,
)
from satchel.sources.skill_findings import SkillFinding
from satchel.text import one_line, shorten
from satchel.trust.runnable_files import CodeProblem
from satchel.trust.tree_digest import (
    changed_file,
    program_files,
    served_files,
    tree_digest,
    without_lock,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedSkillReader(BlockingSkillReader):
    """Reads a skill in a folder; refuses what changed since."""

    local: LocalSkillReader
    digests: Mapping[str, str]
    """The digest of each file that is served, by its name."""
    programs: Mapping[str, str]
    """The digests of all files that its scripts could run."""
    access: SkillAccess
    """What could be done with it without the lock, which allows nothing more."""
    lock: str
    """The path of the lock file, which may change."""

    @classmethod
    def of(cls, finding: SkillFinding, lock: str) -> Self:
        """Return a reader of a skill as it was found. Raises `UnreadableFileError`."""
        local = LocalSkillReader(finding.bounds, finding.path)
        served = served_files(finding)
        programs = program_files(finding, served)
        return cls(local=local, digests=served, programs=programs, access=finding.access, lock=lock)

    @property
    def digest(self) -> str:
        """Return the digest of all of it that counts."""
        files = without_lock(self.programs or self.digests, self.local.folder, self.lock)
        return tree_digest(files.items())

    def read(self, name: str, limits: Limits) -> ServedFile:
        """Return a file. Raises `ToolError`."""
        file = self.local.read(name, limits)
        if self.digests.get(file.name) != file.digest:
            raise _changed(name)
        return file

    def verify(self) -> None:
        """Compare the whole folder, before a script runs. Raises `ToolError`."""
        change = changed_file(self.programs, self.local.folder, self.local.root, self.lock)
        if isinstance(change, CodeProblem):
            raise not_comparable(change)
        if change:
            raise _changed(change)


def not_comparable(problem: CodeProblem) -> ToolError:
    """Return the error of a script that is not run, because its skill cannot be compared."""
    text = f"The skill cannot be compared completely: {shorten(one_line(problem.text), 400)}"
    return ToolError(f"{text}. Its scripts are not run; report this to the user.")


def _changed(name: str) -> ToolError:
    return ToolError(
        f"{shorten(name, 200)!r} changed since the skill was locked; it is not used. Tell the user."
    )
