"""The wording and the budget of the skill prompt.

Format of the default block: agentskills.io, `<available_skills>`.
"""

from collections.abc import Callable
from dataclasses import replace

from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits

DEFAULT_BUDGET = 16_000

DEFAULT_TEMPLATE = """\
  <skill>
    <name>{name}</name>
    <description>{description}</description>
    <location>{dir}/SKILL.md</location>
  </skill>"""

NO_LOCATION_TEMPLATE = """\
  <skill>
    <name>{name}</name>
    <description>{description}</description>
  </skill>"""
"""For a skill without a folder: there is no location that the model could open."""

LOADER_LINE = "- {name}: {description}"
READER_LINE = "- {name}: {description} ({dir}/SKILL.md)"

_FIELDS = {"name", "description", "dir"}
_CHECKED = {"", DEFAULT_TEMPLATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillPrompt:
    """Text and budget of the skill prompt. Every field is escaped for XML before it is filled in.

    `template` and `line_template` may use `{name}`, `{description}` and `{dir}`; any other field
    raises `DefinitionError`.

    `budget` limits the skill prompt, but not the notes, in units of `measure`; the default measures
    characters, and `None` means no limit. A listing over the budget takes the first of these forms
    that fits: a line for each skill by `line_template`, with long descriptions shortened; names by
    group or source, with as many descriptions as fit; then some names, and how many more there are.
    If `line_template` is `None`, it is your `template`, or a short line in place of the default
    one. `measure` is called a few dozen times at most.

    If `instruction` is `None`, it says what the model can do with the form of the listing. One of
    your own stays, and a sentence about the form follows it, unless it is empty.

    `first` names skills as `satchel.toml` does: where not all can be described, these come first.
    """

    instruction: str | None = None
    template: str = DEFAULT_TEMPLATE
    line_template: str | None = None
    opening: str = "<available_skills>"
    closing: str = "</available_skills>"
    description_length: int = 1_024
    budget: int | None = DEFAULT_BUDGET
    measure: Callable[[str], int] = len
    first: tuple[str, ...] = ()

    def within(self, limits: Limits) -> "SkillPrompt":
        """Return a copy that shows no more of a description than the limits allow."""
        length = min(self.description_length, limits.description_shown)
        return replace(self, description_length=length)

    def __post_init__(self) -> None:
        if self.description_length < 0 or (self.budget is not None and self.budget < 0):
            raise DefinitionError("the budget and the length of descriptions cannot be negative")
        if isinstance(self.first, str):
            raise DefinitionError(
                "the skills that come first must be a list of names",
                fix=f"write first=({self.first!r},)",
            )
        for template in (self.template, self.line_template or ""):
            if template not in _CHECKED:
                _require_known_fields(template)


def _require_known_fields(template: str) -> None:
    """Raise `DefinitionError` for a template with an unknown field."""
    import string  # lazy: few hosts have a template

    try:
        fields = list(string.Formatter().parse(template))
    except ValueError as problem:
        raise DefinitionError(
            f"the skill template is invalid: {problem}", fix="write {{ and }} for braces"
        ) from None
    for _, name, spec, conversion in fields:
        if name is not None and (name not in _FIELDS or spec or conversion):
            raise DefinitionError(
                f"the skill template has an unknown field {{{name}}}",
                fix="use {name}, {description} and {dir}; write {{ and }} for braces",
            )
