"""The instruction of the skill prompt for each form of the listing."""

from enum import StrEnum

from satchel.lazy_dataclass import dataclass


class ListingForm(StrEnum):
    """How much the listing says about each skill."""

    FULL = "full"
    """Every skill with its description, as the template writes it."""
    LINES = "lines"
    """Every skill in a line; long descriptions may be shortened."""
    NAMES = "names"
    """Not every skill is described: names by group or source."""


_LOADER = "Skills are instructions for particular tasks. "
_READER = "Skills are folders with instructions for particular tasks. "
_RELATIVE = "; paths in it are relative to its folder."


@dataclass(frozen=True, slots=True)
class ModelAbilities:
    """What the model can do with the skills."""

    can_load: bool
    """Whether it has `load_skill`."""
    can_search: bool
    """Whether it has `search_skills`."""


def instruction_for(form: ListingForm, model: ModelAbilities, *, is_cut: bool) -> str:
    """Return the default instruction; `is_cut` says whether a description is shortened."""
    start = _LOADER if model.can_load else _READER
    if form is ListingForm.NAMES:
        return f"{start}{remark_on(form, model, is_cut=is_cut)} {_use_by_name(model)}"
    how = (
        "call load_skill with the skill's name first and follow what it says."
        if model.can_load
        else f"read the skill's SKILL.md first and follow it{_RELATIVE}"
    )
    text = f"{start}When a task matches the description of a skill, {how}"
    remark = remark_on(form, model, is_cut=is_cut)
    return f"{text} {remark}" if remark else text


def remark_on(form: ListingForm, model: ModelAbilities, *, is_cut: bool) -> str:
    """Return what the form means, also for an instruction of the host; `""` for the full one."""
    if form is ListingForm.NAMES:
        search = (
            "For each task, call search_skills first, with words of the task."
            if model.can_search
            else "Look for a name that fits the task."
        )
        return f"There are too many to describe them all here. {search}"
    if form is ListingForm.LINES and is_cut:
        search = " If none seems to match, call search_skills." if model.can_search else ""
        return f"Long descriptions are shortened.{search}"
    return ""


def unlisted_line(count: int, model: ModelAbilities, *, has_names: bool) -> str:
    """Return the line about skills that are not even named."""
    more_word = " more" if has_names else ""
    subject = f"1{more_word} skill is" if count == 1 else f"{count:,}{more_word} skills are"
    them = "it" if count == 1 else "them"
    hint = (
        f"call search_skills to find {them}"
        if model.can_search
        else "ask the user for a skill by topic"
    )
    return f"{subject} not listed here; {hint}"


def _use_by_name(model: ModelAbilities) -> str:
    if model.can_load:
        return "If a skill fits, call load_skill with its name first and follow what it says."
    return f"If a skill fits, read FOLDER/NAME/SKILL.md first and follow it{_RELATIVE}"
