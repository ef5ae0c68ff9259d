"""Read the files of a locked skill: each must still have the bytes that were compared."""

from collections.abc import Mapping
from typing import Self

from satchel.errors import ToolError
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits
from satchel.sources.contained_files import Bounds
from satchel.sources.file_reader import UnreadableFileError
from satchel.sources.skill_files import (
    IN_FOLDER,
    LocalSkillReader,
    ServedFile,
    SkillAccess,
    SkillReader,
)
from satchel.sources.skill_scan import SkillFinding
from satchel.sources.tree_digest import files_of_skill, read_digests
from satchel.text import shorten
from satchel.tools.callables import in_thread


@dataclass(frozen=True, slots=True)
class LockedSkillReader:
    """Reads a skill in a folder; refuses what changed since."""

    local: LocalSkillReader
    digests: Mapping[str, str]
    """The digest of each file, by its name."""

    @classmethod
    def of(cls, found: SkillFinding) -> Self:
        """Return a reader of a skill as it was found. Raises `UnreadableFileError`."""
        return cls(LocalSkillReader(found.bounds, found.path), files_of_skill(found))

    @property
    def access(self) -> SkillAccess:
        """Return `IN_FOLDER`."""
        return IN_FOLDER

    def read(self, name: str, limits: Limits) -> ServedFile:
        """Return a file. Raises `ToolError`."""
        file = self.local.read(name, limits)
        if self.digests.get(file.name) != file.digest:
            raise _changed(name)
        return file

    async def fetch(self, name: str, limits: Limits) -> ServedFile:
        """Return a file, read in a thread. Raises `ToolError`."""
        file: ServedFile = await in_thread(lambda: self.read(name, limits))
        return file

    def verify(self) -> None:
        """Compare the whole folder, before a script runs. Raises `ToolError`."""
        for name in changed_files(self.digests, self.local):
            raise _changed(name)


def changed_files(digests: Mapping[str, str], reader: SkillReader) -> list[str]:
    """Return the files in a skill's folder that differ now, are new, or are gone; sorted."""
    assert isinstance(reader, LocalSkillReader)
    root = reader.root
    try:
        bounds = root.root() if isinstance(root, Bounds) else root
        now = read_digests(reader.folder, bounds, hides_secrets=True)
    except UnreadableFileError:
        now = {}
    return sorted(
        name for name in digests.keys() | now.keys() if digests.get(name) != now.get(name)
    )


def _changed(name: str) -> ToolError:
    return ToolError(
        f"{shorten(name, 200)!r} changed since the skill was locked; it is not used. Tell the user."
    )
