"""What a host chooses for its sessions."""

from dataclasses import dataclass, field

from satchel.errors import DefinitionError
from satchel.names import NamePatterns

_NOTES = ("prompt", "answer", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """Which tools of its own a session offers to the model, and where notes go."""

    meta_tool: bool = True
    """Whether the model can switch tool groups by `reset_equipped_tools`."""
    skill_tools: bool = True
    """Whether the model can load skills by `load_skill` and `read_skill_file`."""
    scripts: bool = False
    """Whether the model can run the scripts of skills that it loaded by `run_skill_script`."""
    search: bool | None = None
    """Whether there are `search_tools` and `search_skills`; `None`: when much is out of sight."""
    notes: str = "both"
    """Where the notes of the active groups go: `prompt`, the meta tool's `answer`, or `both`."""
    tools: NamePatterns = field(default_factory=NamePatterns)
    """Which tools of the catalog there are for it, whatever their groups."""

    def __post_init__(self) -> None:
        search = False if self.search is None else self.search
        switches = (self.meta_tool, self.skill_tools, self.scripts, search)
        if not all(isinstance(item, bool) for item in switches):
            raise DefinitionError("what a session offers is chosen by True and False")
        if self.notes not in _NOTES:
            raise DefinitionError(
                f"notes go to {', '.join(_NOTES)}, not to {self.notes!r}", fix="write notes='both'"
            )

    @property
    def notes_in_prompt(self) -> bool:
        """Whether notes stand in the system prompt: always where there is no meta tool."""
        return self.notes != "answer" or not self.meta_tool

    @property
    def notes_in_answer(self) -> bool:
        """Whether notes stand in the answer of the meta tool."""
        return self.notes != "prompt"
