"""The skill listing of the prompt, within a budget.

Format of the default block: agentskills.io, `<available_skills>`.
"""

import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Protocol, Self

from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits
from satchel.text import one_line, shorten, xml, xml_path

DEFAULT_BUDGET = 16_000

DEFAULT_INSTRUCTION = (
    "Skills are folders with instructions for particular tasks. When a task matches the "
    "description of a skill, read the skill's SKILL.md first and follow it; paths in it are "
    "relative to its folder."
)

LOADER_INSTRUCTION = (
    "Skills are instructions for particular tasks. When a task matches the description of a "
    "skill, call load_skill with the skill's name first and follow what it says."
)

DEFAULT_TEMPLATE = """\
  <skill>
    <name>{name}</name>
    <description>{description}</description>
    <location>{dir}/SKILL.md</location>
  </skill>"""

_NO_LOCATION_TEMPLATE = """\
  <skill>
    <name>{name}</name>
    <description>{description}</description>
  </skill>"""
"""For a skill without a folder: there is no location that the model could open."""

SHORT_TEMPLATE = "  <skill><name>{name}</name><location>{dir}/SKILL.md</location></skill>"
LOADER_SHORT_TEMPLATE = "  <skill><name>{name}</name></skill>"
# A model with load_skill needs no location; the descriptions get that space.
LOADER_TIGHT_TEMPLATE = (
    "  <skill><name>{name}</name><description>{description}</description></skill>"
)

_FIELDS = {"name", "description", "dir"}
# A shorter start of a description does not say what the skill is for.
_MIN_DESCRIPTION = 20
# The number of names in the first try; each further try doubles it.
_FIRST_TRY = 128


class PromptedSkill(Protocol):
    """What the prompt says about one skill; a `SkillEntry` of the catalog has all of it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def description(self) -> str:
        """Its description."""

    @property
    def folder(self) -> str:
        """Its folder; `""` if it has none."""

    @property
    def scope(self) -> int:
        """The precedence of its source; over the budget, higher ones are left out first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillPrompt:
    """Text and budget of the skill prompt. Every field is escaped for XML before it is filled in.

    `template` may use `{name}`, `{description}` and `{dir}`; any other field raises
    `DefinitionError`. `short_template` renders a skill without its description. If `instruction` or
    `short_template` is `None`, the default depends on whether the model can call `load_skill`; a
    custom `template` is also the default `short_template`, with an empty description.

    `budget` limits the skill prompt, but not the notes, in units of `measure`; the default measures
    characters, and `None` means no limit. Over the budget, descriptions are first shortened to the
    same length, then left out; then skills are left out, and a line says how many. `measure` is
    called a few dozen times at most.
    """

    instruction: str | None = None
    template: str = DEFAULT_TEMPLATE
    short_template: str | None = None
    opening: str = "<available_skills>"
    closing: str = "</available_skills>"
    description_length: int = 1_024
    budget: int | None = DEFAULT_BUDGET
    measure: Callable[[str], int] = len

    def within(self, limits: Limits) -> "SkillPrompt":
        """Return a copy that shows no more of a description than the limits allow."""
        length = min(self.description_length, limits.description_shown)
        return replace(self, description_length=length)

    def __post_init__(self) -> None:
        if self.description_length < 0 or (self.budget is not None and self.budget < 0):
            raise DefinitionError("the budget and the length of descriptions cannot be negative")
        for template in (self.template, self.short_template or ""):
            _fields(template)


@dataclass(frozen=True, slots=True)
class RenderedListing:
    """The text of the skill prompt, and what the budget left out."""

    text: str = ""
    left_out: int = 0
    """How many skills are not listed."""
    names_only: bool = False
    """Whether descriptions are left out."""


def render_skills(
    skills: Sequence[PromptedSkill],
    prompt: SkillPrompt,
    *,
    can_load: bool = False,
    can_search: bool = False,
) -> RenderedListing:
    """List the skills as far as the budget allows; without skills the text is `""`.

    `can_load` and `can_search`: whether the model can call `load_skill` and `search_skills`.
    """
    if not skills:
        return RenderedListing()
    layout = _Layout(prompt, can_load, can_search)
    # Names first: if they do not fit, no description needs to be rendered.
    # By scope, then by name. Two stable sorts by C functions: there may be very many skills.
    names = [*map(attrgetter("name"), skills)]
    scopes = [*map(attrgetter("scope"), skills)]
    order = sorted(range(len(skills)), key=names.__getitem__)
    order.sort(key=scopes.__getitem__)
    escaped: dict[int, _EscapedSkill] = {}
    lines: dict[int, str] = {}
    for count in _doubling(_FIRST_TRY, len(skills)):
        for at in order[len(lines) : count]:
            escaped[at] = _EscapedSkill.of(skills[at])
            lines[at] = layout.name_line(escaped[at])
        if not layout.fits(layout.with_lines([lines[at] for at in sorted(lines)])):
            return _list_some_names(lines, order, layout)
    return _list_with_descriptions(skills, [escaped[at] for at in sorted(escaped)], layout)


def _list_with_descriptions(
    skills: Sequence[PromptedSkill], escaped: Sequence["_EscapedSkill"], layout: "_Layout"
) -> RenderedListing:
    """List all skills, with as much of the descriptions as fits."""
    prompt = layout.prompt
    has_description = "description" in _fields(prompt.template)
    texts = [one_line(skill.description) if has_description else "" for skill in skills]
    longest = min(prompt.description_length, max(map(len, texts)))
    escaped_texts: dict[str, str] = {}

    def render(length: int, template: str) -> str:
        cut = [shorten(text, length) for text in texts]
        escaped_texts.update((text, xml(text)) for text in cut if text not in escaped_texts)
        return layout.with_descriptions(escaped, [escaped_texts[text] for text in cut], template)

    # Escaping makes no text shorter. If the plain texts are too long, the prompt is, too.
    characters = sum(min(len(text), longest) for text in texts)
    is_too_long = prompt.measure is len and prompt.budget is not None and characters > prompt.budget
    if not is_too_long and layout.fits(text := render(longest, prompt.template)):
        return RenderedListing(text)
    tight = layout.tight_template
    # The same maximum length for all: only long descriptions are cut. With the same template,
    # `longest` did not fit above.
    maximum = longest if tight != prompt.template else longest - 1
    length = _largest(_MIN_DESCRIPTION, maximum, lambda n: layout.fits(render(n, tight)))
    if length is None:
        return RenderedListing(layout.with_names(escaped), names_only=True)
    return RenderedListing(render(length, tight))


def _list_some_names(
    lines: Mapping[int, str], order: Sequence[int], layout: "_Layout"
) -> RenderedListing:
    """List as many names as fit, the first in `order`, and the number of the others."""

    def render(count: int) -> str:
        return layout.with_lines([lines[at] for at in sorted(order[:count])], len(order) - count)

    maximum = min(len(lines), len(order) - 1)
    # The text exceeds the budget only if the line about the others alone does not fit.
    count = _largest(0, maximum, lambda count: layout.fits(render(count))) or 0
    return RenderedListing(render(count), left_out=len(order) - count, names_only=True)


@dataclass(frozen=True, slots=True)
class _EscapedSkill:
    """Name and folder of a skill, escaped for XML."""

    name: str
    dir: str

    @classmethod
    def of(cls, skill: PromptedSkill) -> Self:
        return cls(xml(skill.name), xml_path(skill.folder))

    def fill(self, template: str, description: str = "") -> str:
        if not self.dir and template == DEFAULT_TEMPLATE:
            template = _NO_LOCATION_TEMPLATE
        return template.format(name=self.name, description=description, dir=self.dir)


@dataclass(frozen=True, slots=True)
class _Layout:
    """The templates and the budget of one session."""

    prompt: SkillPrompt
    can_load: bool
    can_search: bool

    def with_names(self, skills: Iterable[_EscapedSkill]) -> str:
        return self.with_lines([self.name_line(skill) for skill in skills])

    def name_line(self, skill: _EscapedSkill) -> str:
        return skill.fill(self._short_template)

    def with_lines(self, lines: Iterable[str], left_out: int = 0) -> str:
        return self._frame([*lines, _left_out_line(left_out, self.can_search)])

    def with_descriptions(
        self, skills: Sequence[_EscapedSkill], descriptions: Sequence[str], template: str
    ) -> str:
        pairs = zip(skills, descriptions, strict=True)
        return self._frame([skill.fill(template, description) for skill, description in pairs])

    def fits(self, text: str) -> bool:
        budget = self.prompt.budget
        return budget is None or self.prompt.measure(text) <= budget

    @property
    def tight_template(self) -> str:
        """The template for descriptions that do not all fit in full."""
        is_default = self.prompt.template == DEFAULT_TEMPLATE and self.prompt.short_template is None
        return LOADER_TIGHT_TEMPLATE if self.can_load and is_default else self.prompt.template

    @property
    def _short_template(self) -> str:
        if self.prompt.short_template is not None:
            return self.prompt.short_template
        if self.prompt.template != DEFAULT_TEMPLATE:
            return self.prompt.template
        return LOADER_SHORT_TEMPLATE if self.can_load else SHORT_TEMPLATE

    def _frame(self, lines: Sequence[str]) -> str:
        instruction = self.prompt.instruction
        if instruction is None:
            instruction = LOADER_INSTRUCTION if self.can_load else DEFAULT_INSTRUCTION
        parts = [self.prompt.opening, *lines, self.prompt.closing]
        block = "\n".join(part for part in parts if part)
        return f"{instruction}\n\n{block}" if instruction else block


def _doubling(first: int, last: int) -> Iterator[int]:
    """Yield doubled numbers up to `last`: no try is much larger than the one that fits."""
    while first < last:
        yield first
        first *= 2
    yield last


def _largest(low: int, high: int, fits: Callable[[int], bool]) -> int | None:
    """Return the largest number from `low` to `high` that fits, or `None` if none does.

    It doubles the number, then bisects.
    """
    if high < low or not fits(low):
        return None
    while low < high:
        middle = min((low + high + 1) // 2, max(2 * low, 1))
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _fields(template: str) -> set[str]:
    """Return the fields of a template. Raises `DefinitionError` for an unknown field."""
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
    return {name for _, name, _, _ in fields if name is not None}


def _left_out_line(count: int, can_search: bool) -> str:
    if not count:
        return ""
    rest, them = ("1 more skill is", "it") if count == 1 else (f"{count} more skills are", "them")
    hint = (
        f"call search_skills to find {them}" if can_search else "ask the user for a skill by topic"
    )
    return f"  <!-- {rest} not listed here; {hint} -->"
