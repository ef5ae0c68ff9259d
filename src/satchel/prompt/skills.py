"""The skill prompt: which skills there are, within a budget.

Format of the default block: agentskills.io, `<available_skills>`.
"""

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from satchel.errors import DefinitionError
from satchel.text import one_line, shorten, xml, xml_path

_FIELDS = {"name", "description", "dir"}

DEFAULT_INSTRUCTION = (
    "Skills are folders with instructions for particular tasks. When a task matches the "
    "description of a skill, read the skill's SKILL.md first and follow it; paths in it are "
    "relative to its folder."
)

DEFAULT_TEMPLATE = """\
  <skill>
    <name>{name}</name>
    <description>{description}</description>
    <location>{dir}/SKILL.md</location>
  </skill>"""


@dataclass(frozen=True, slots=True)
class SkillLine:
    """What the prompt tells of one skill."""

    name: str
    description: str
    dir: str


@dataclass(frozen=True, slots=True)
class SkillPrompt:
    """How the skill prompt is worded; every field is escaped for XML before it is filled in.

    `template` may use `{name}`, `{description}` and `{dir}`, nothing else: anything else raises
    `DefinitionError`. `budget` bounds the skill prompt, not the notes, in units of `measure`,
    characters by default: over it, descriptions are shortened fairly, then left out, then skills
    are, with a line that says how many.
    """

    instruction: str = DEFAULT_INSTRUCTION
    template: str = DEFAULT_TEMPLATE
    opening: str = "<available_skills>"
    closing: str = "</available_skills>"
    description_length: int = 1_024
    budget: int | None = None
    measure: Callable[[str], int] = len

    def __post_init__(self) -> None:
        if self.description_length < 0 or (self.budget is not None and self.budget < 0):
            raise DefinitionError("the budget and the length of descriptions cannot be negative")
        try:
            fields = list(string.Formatter().parse(self.template))
        except ValueError as problem:
            raise DefinitionError(
                f"the skill template cannot be read: {problem}", fix="write {{ and }} for braces"
            ) from None
        for _, name, spec, conversion in fields:
            if name is not None and (name not in _FIELDS or spec or conversion):
                raise DefinitionError(
                    f"the skill template has the field {{{name}}}",
                    fix="use {name}, {description} and {dir}; write {{ and }} for braces",
                )

    def line(self, skill: SkillLine, length: int) -> str:
        """Render one skill with at most `length` characters of its description."""
        return self.template.format(
            name=xml(skill.name),
            description=xml(shorten(one_line(skill.description), length)),
            dir=xml_path(skill.dir),
        )

    def page(self, lines: Sequence[str], left_out: int = 0) -> str:
        """Put rendered skills between the instruction and the end of the block."""
        rest = [_left_out(left_out)] if left_out else []
        parts = [self.opening, *lines, *rest, self.closing]
        block = "\n".join(part for part in parts if part)
        return f"{self.instruction}\n\n{block}" if self.instruction else block

    def fits(self, page: str) -> bool:
        """Tell whether a prompt is within the budget."""
        return self.budget is None or self.measure(page) <= self.budget


def render_skills(skills: Sequence[SkillLine], prompt: SkillPrompt) -> str:
    """Return the skill prompt, or `""` when there are no skills."""
    if not skills:
        return ""

    def with_descriptions(length: int) -> str:
        return prompt.page([prompt.line(skill, length) for skill in skills])

    longest = min(
        prompt.description_length, max(len(one_line(skill.description)) for skill in skills)
    )
    # Fair: the same length for all, so only the long descriptions pay.
    if prompt.fits(page := with_descriptions(longest)):
        return page
    length = _largest(longest, lambda length: prompt.fits(with_descriptions(length)))
    if length is not None:
        return with_descriptions(length)

    def with_names(count: int) -> str:
        lines = [prompt.line(skill, 0) for skill in skills[:count]]
        return prompt.page(lines, len(skills) - count)

    count = _largest(len(skills), lambda count: prompt.fits(with_names(count)))
    # A budget too small even for the line that says so is the one case where it is passed.
    return with_names(count or 0)


def _largest(most: int, fits: Callable[[int], bool]) -> int | None:
    """Return the largest number up to `most` that fits, by halving; `None` if not even 0 does."""
    if not fits(0):
        return None
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _left_out(count: int) -> str:
    more = "1 more skill is" if count == 1 else f"{count} more skills are"
    return f"  <!-- {more} not listed here; ask the user for one by its topic -->"
