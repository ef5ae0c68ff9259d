"""The options of a session."""

from satchel.catalog.entry_filter import EntryFilter
from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass

_NOTES = ("prompt", "answer", "both")
_ALLOWED_TOOLS = ("note", "enforce")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """Which of its own tools a session offers to the model, and where notes go."""

    meta_tool: bool = True
    """Whether the model can activate tool groups by `reset_equipped_tools`."""
    skill_tools: bool = True
    """Whether the model can load skills by `load_skill` and `read_skill_file`."""
    scripts: bool = False
    """Whether the model can run the scripts of loaded skills by `run_skill_script`."""
    search: bool | None = None
    """Whether there are `search_tools` and `search_skills`; `None`: if many entries are hidden."""
    defer_loading: bool = False
    """Whether the model may call tools of inactive groups that its provider's search finds."""
    notes: str = "both"
    """Where the notes of the active groups go: `prompt`, the meta tool's `answer`, or `both`."""
    allowed_tools: str = "note"
    """Whether the `allowed-tools` of loaded skills are only noted, or enforced."""
    entries: EntryFilter | None = None
    """Which tools and skills of the catalog the session may see, in any group."""

    def __post_init__(self) -> None:
        search = False if self.search is None else self.search
        switches = (self.meta_tool, self.skill_tools, self.scripts, search, self.defer_loading)
        if not all(isinstance(item, bool) for item in switches):
            raise DefinitionError(
                "meta_tool, skill_tools, scripts, search and defer_loading must be booleans"
            )
        if self.allowed_tools not in _ALLOWED_TOOLS:
            raise DefinitionError(
                f"allowed_tools must be 'note' or 'enforce', not {self.allowed_tools!r}",
                fix="write allowed_tools='enforce' to refuse other tools",
            )
        if self.notes not in _NOTES:
            raise DefinitionError(
                f"notes must be one of {', '.join(_NOTES)}, not {self.notes!r}",
                fix="write notes='both'",
            )

    @property
    def notes_in_prompt(self) -> bool:
        """Whether the system prompt has the notes; without the meta tool it always does."""
        return self.notes != "answer" or not self.meta_tool

    @property
    def notes_in_answer(self) -> bool:
        """Whether the answer of the meta tool has the notes."""
        return self.notes != "prompt"
