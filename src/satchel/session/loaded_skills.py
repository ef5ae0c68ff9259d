"""Which skills a conversation loaded, and which of their files it read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from satchel.catalog import SkillEntry
from satchel.formats import SkillManifest
from satchel.runtime.skill_scripts import scripts_of
from satchel.settings import KIB, Limits
from satchel.sources.skill_scan import SKILL_FILE

_AROUND = 4 * KIB


def page_length(limits: Limits) -> int:
    """Return how many characters of a file go into one answer, with what is said around them."""
    return max(limits.result_text // 4 - _AROUND, limits.result_text // 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSkill:
    """A skill as it was when it was loaded. It holds words only, and keeps no generation alive."""

    name: str
    digest: str
    """Names the content that was served."""
    root: str
    """The folder that the user named, in which all of the skill's files lie."""
    folder: str
    files: tuple[str, ...]
    """The files that may be read from now on."""
    allowed_tools: tuple[str, ...]
    """What the skill asks to be approved beforehand."""
    is_cut: bool = False
    """Whether its instructions may be longer than one answer."""
    server: str = ""
    """The remote server that it is of."""
    read: dict[str, str] = field(default_factory=dict)
    """The digests of the files that were read, by name."""

    @classmethod
    def of(
        cls, name: str, entry: SkillEntry, manifest: SkillManifest, limits: Limits
    ) -> "LoadedSkill":
        """Return a skill of the catalog as it is now, under the name that it was asked for by."""
        return cls(
            name=name,
            digest=entry.version,
            root=entry.finding.place.path if entry.finding else entry.path,
            folder=entry.path,
            files=tuple(file.name for file in entry.files),
            allowed_tools=manifest.allowed_tools,
            is_cut=_length_of(entry, manifest)
            > limits.result_text // 8,  # there may be much around them
            server=entry.server,
        )

    @property
    def resources(self) -> list[str]:
        """Return the files beside the instructions."""
        return [name for name in self.files if name != SKILL_FILE]

    @property
    def scripts(self) -> tuple[str, ...]:
        """Return the files that can be run; of a remote server nothing ever is."""
        return () if self.server else scripts_of(self.files)


def _length_of(entry: SkillEntry, manifest: SkillManifest) -> int:
    """Return how long instructions are, or at most are while they are still at a server."""
    if not entry.server:
        return len(manifest.body)
    return sum(file.size for file in entry.files if file.name == SKILL_FILE)


class LoadedSkills:
    """The skills that one conversation loaded, by name."""

    __slots__ = ("_by_name", "has_files", "has_scripts")

    def __init__(self) -> None:
        self.replace_all({})

    def __iter__(self) -> Iterator[LoadedSkill]:
        return iter(self._by_name.values())

    def get(self, name: str) -> LoadedSkill | None:
        """Return a skill that was loaded."""
        return self._by_name.get(name)

    def add(self, skill: LoadedSkill) -> None:
        """Note that a skill was loaded, or loaded anew."""
        self.replace_all({**self._by_name, skill.name: skill})

    def replace_all(self, skills: Mapping[str, LoadedSkill]) -> None:
        """Forget all, and note others."""
        self._by_name = dict(skills)
        self.has_files = any(skill.resources or skill.is_cut for skill in self)
        self.has_scripts = any(skill.scripts for skill in self)
