"""The skills that a session loaded, and the files of them that it read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from satchel.lazy_dataclass import dataclass
from satchel.settings import KIB
from satchel.sources.skill_files import IN_FOLDER
from satchel.sources.skill_findings import SKILL_FILE

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import SkillEntry
    from satchel.files.contained_files import Bounds
    from satchel.formats.skill_manifest import SkillManifest
    from satchel.settings import Limits
    from satchel.sources.skill_files import SkillAccess

_AROUND = 4 * KIB


def page_length(limits: Limits) -> int:
    """Return how many characters of a file fit into one answer, beside the text around them."""
    return max(limits.result_text // 4 - _AROUND, limits.result_text // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSkill:
    """A skill as it was when it was loaded. It holds no reference to the catalog."""

    name: str
    digest: str
    """The version of the content that was served."""
    root: str | Bounds
    """The search root or its project; all files of the skill are inside it."""
    folder: str
    files: tuple[str, ...] = ()
    """The files that the model may read."""
    scripts: tuple[str, ...] = ()
    """The files that can be run."""
    allowed_tools: tuple[str, ...] = ()
    """The tools that the skill asks to approve in advance."""
    is_restricting: bool = False
    """Whether it has the field `allowed-tools`, readable or not."""
    is_cut: bool = False
    """Whether its instructions may be longer than one answer."""
    access: SkillAccess = IN_FOLDER
    """What can be done with it and its files."""
    read: dict[str, str] = field(default_factory=dict)
    """The digests of the files that were read, by name."""

    @classmethod
    def of(
        cls, name: str, entry: SkillEntry, manifest: SkillManifest, limits: Limits
    ) -> LoadedSkill:
        """Return the record of a skill of the catalog, under the name that was used to load it."""
        files = tuple(file.name for file in entry.files)
        return cls(
            name=name,
            digest=entry.version,
            root=entry.finding.bounds if entry.finding else entry.path,
            folder=entry.path,
            files=files,
            scripts=_scripts(entry.path, files) if entry.access.is_runnable else (),
            allowed_tools=manifest.allowed_tools,
            is_restricting=manifest.is_restricting,
            # An eighth: the answer may have much other text.
            is_cut=_length_of(entry, manifest) > limits.result_text // 8,
            access=entry.access,
        )

    @property
    def resources(self) -> list[str]:
        """Return the files other than the instructions."""
        return [name for name in self.files if name != SKILL_FILE]


def _scripts(folder: str, files: Iterable[str]) -> tuple[str, ...]:
    from satchel.runtime.skill_scripts import scripts_inside  # lazy: needed only by a loaded skill

    return scripts_inside(folder, files)


def _length_of(entry: SkillEntry, manifest: SkillManifest) -> int:
    """Return the length of the instructions; for those still to be fetched, an upper bound."""
    if not entry.access.is_fetched:
        return len(manifest.body)
    return sum(file.size for file in entry.files if file.name == SKILL_FILE)


class LoadedSkills:
    """The loaded skills of one session, by name."""

    __slots__ = ("_by_name", "has_files", "has_scripts")

    def __init__(self) -> None:
        self.replace_all({})

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[LoadedSkill]:
        return iter(self._by_name.values())

    def get(self, name: str) -> LoadedSkill | None:
        """Return a loaded skill, or `None`."""
        return self._by_name.get(name)

    def add(self, skill: LoadedSkill) -> None:
        """Add a skill, or replace the one of that name."""
        self.replace_all({**self._by_name, skill.name: skill})

    def replace_all(self, skills: Mapping[str, LoadedSkill]) -> None:
        """Replace all skills."""
        self._by_name = dict(skills)
        self.has_files = any(skill.resources or skill.is_cut for skill in self)
        self.has_scripts = any(skill.scripts for skill in self)
