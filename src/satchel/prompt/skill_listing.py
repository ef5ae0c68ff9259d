"""The skill prompt: which skills there are, within a budget.

Format of the default block: agentskills.io, `<available_skills>`.
"""

import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from satchel.errors import DefinitionError
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

SHORT_TEMPLATE = "  <skill><name>{name}</name><location>{dir}/SKILL.md</location></skill>"
LOADER_SHORT_TEMPLATE = "  <skill><name>{name}</name></skill>"
# Whoever loads a skill by its name needs no location: that leaves more for the descriptions.
LOADER_TIGHT_TEMPLATE = (
    "  <skill><name>{name}</name><description>{description}</description></skill>"
)

_FIELDS = {"name", "description", "dir"}
# A shorter beginning of a description does not tell what a skill is for.
_SHORTEST = 20
# So many names are tried at once, then twice as many, and so on.
_FIRST_NAMES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillLine:
    """What the prompt tells of one skill."""

    name: str
    description: str
    dir: str
    rank: int = 0
    """How far it is from the user: when not all can be listed, the farthest go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillPrompt:
    """How the skill prompt is worded; every field is escaped for XML before it is filled in.

    `template` may use `{name}`, `{description}` and `{dir}`, nothing else: anything else raises
    `DefinitionError`; `short_template` is for one skill by its name only. An `instruction` or
    `short_template` of `None` is chosen by whether the model can call `load_skill`; but a
    `template` of your own is its own short form, without the description.

    `budget` bounds the skill prompt, not the notes, in units of `measure`, characters by default;
    `None` is no bound. Over it, descriptions are shortened fairly, then left out, then skills
    are, with a line that says how many. `measure` is called a few dozen times at most.
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
        """Return a style that shows no more of a description than the limits allow."""
        length = min(self.description_length, limits.description_shown)
        return replace(self, description_length=length)

    def __post_init__(self) -> None:
        if self.description_length < 0 or (self.budget is not None and self.budget < 0):
            raise DefinitionError("the budget and the length of descriptions cannot be negative")
        for template in (self.template, self.short_template or ""):
            _fields(template)


@dataclass(frozen=True, slots=True)
class RenderedListing:
    """The skill prompt, and what the budget kept out of it."""

    text: str = ""
    left_out: int = 0
    """How many skills are not listed."""
    names_only: bool = False
    """Whether the budget left no room for descriptions."""


def render_skills(
    skills: Sequence[SkillLine],
    prompt: SkillPrompt,
    *,
    loader: bool = False,
    search: bool = False,
) -> RenderedListing:
    """List the skills as far as the budget allows; without skills the text is `""`.

    `loader` and `search` tell whether the model can call `load_skill` and `search_skills`.
    """
    if not skills:
        return RenderedListing()
    page = _Page(prompt, loader, search)
    # Names come first: where not even those fit, no description needs to be looked at.
    order = sorted(range(len(skills)), key=lambda at: (skills[at].rank, skills[at].name))
    named: dict[int, _Named] = {}
    for count in _doubling(_FIRST_NAMES, len(skills)):
        named |= {at: _Named.of(skills[at]) for at in order[len(named) : count]}
        if not page.fits(page.of_names(_in_order(named, named))):
            return _some(named, order, page)
    return _described(skills, _in_order(named, named), page)


def _described(
    skills: Sequence[SkillLine], named: Sequence["_Named"], page: "_Page"
) -> RenderedListing:
    """List all skills, with as much of the descriptions as fits."""
    prompt = page.prompt
    is_told = "description" in _fields(prompt.template)
    texts = [one_line(skill.description) if is_told else "" for skill in skills]
    longest = min(prompt.description_length, max(map(len, texts)))
    escaped: dict[str, str] = {}

    def with_descriptions(length: int, template: str) -> str:
        cut = [shorten(text, length) for text in texts]
        escaped.update((text, xml(text)) for text in cut if text not in escaped)
        return page.of_descriptions(named, [escaped[text] for text in cut], template)

    # Escaping makes no text shorter, so the sum alone can tell.
    characters = sum(min(len(text), longest) for text in texts)
    is_hopeless = prompt.measure is len and prompt.budget is not None and characters > prompt.budget
    if not is_hopeless and page.fits(text := with_descriptions(longest, prompt.template)):
        return RenderedListing(text)
    tight = page.tight_template
    # Fair: the same length for all, so only the long descriptions pay.
    most = longest if tight != prompt.template else longest - 1
    length = _largest(_SHORTEST, most, lambda n: page.fits(with_descriptions(n, tight)))
    if length is None:
        return RenderedListing(page.of_names(named), names_only=True)
    return RenderedListing(with_descriptions(length, tight))


def _some(named: Mapping[int, "_Named"], order: Sequence[int], page: "_Page") -> RenderedListing:
    """List as many names as fit: those that are first in `order`, and how many are not there."""

    def with_names(count: int) -> str:
        return page.of_names(_in_order(named, order[:count]), len(order) - count)

    most = min(len(named), len(order) - 1)
    # A budget too small even for the line that says so is the one case where it is passed.
    count = _largest(0, most, lambda count: page.fits(with_names(count))) or 0
    return RenderedListing(with_names(count), left_out=len(order) - count, names_only=True)


@dataclass(frozen=True, slots=True)
class _Named:
    """A skill without its description, escaped."""

    name: str
    dir: str

    @classmethod
    def of(cls, skill: SkillLine) -> Self:
        return cls(xml(skill.name), xml_path(skill.dir))

    def fill(self, template: str, description: str = "") -> str:
        return template.format(name=self.name, description=description, dir=self.dir)


@dataclass(frozen=True, slots=True)
class _Page:
    """The wording of one session: what it does not choose itself follows from its tools."""

    prompt: SkillPrompt
    loader: bool
    search: bool

    def of_names(self, skills: Iterable[_Named], left_out: int = 0) -> str:
        template = self._short_template
        lines = [skill.fill(template) for skill in skills]
        return self._around([*lines, _left_out(left_out, self.search)])

    def of_descriptions(
        self, skills: Sequence[_Named], descriptions: Sequence[str], template: str
    ) -> str:
        pairs = zip(skills, descriptions, strict=True)
        return self._around([skill.fill(template, description) for skill, description in pairs])

    def fits(self, page: str) -> bool:
        budget = self.prompt.budget
        return budget is None or self.prompt.measure(page) <= budget

    @property
    def tight_template(self) -> str:
        """What takes the template's place where not everything fits."""
        is_ours = self.prompt.template == DEFAULT_TEMPLATE and self.prompt.short_template is None
        return LOADER_TIGHT_TEMPLATE if self.loader and is_ours else self.prompt.template

    @property
    def _short_template(self) -> str:
        if self.prompt.short_template is not None:
            return self.prompt.short_template
        if self.prompt.template != DEFAULT_TEMPLATE:
            return self.prompt.template
        return LOADER_SHORT_TEMPLATE if self.loader else SHORT_TEMPLATE

    def _around(self, lines: Sequence[str]) -> str:
        """Put rendered skills between the instruction and the end of the block."""
        instruction = self.prompt.instruction
        if instruction is None:
            instruction = LOADER_INSTRUCTION if self.loader else DEFAULT_INSTRUCTION
        parts = [self.prompt.opening, *lines, self.prompt.closing]
        block = "\n".join(part for part in parts if part)
        return f"{instruction}\n\n{block}" if instruction else block


def _doubling(first: int, last: int) -> Iterator[int]:
    """Yield ever larger numbers up to `last`, so that no try is much larger than one that fits."""
    while first < last:
        yield first
        first *= 2
    yield last


def _largest(least: int, most: int, fits: Callable[[int], bool]) -> int | None:
    """Return the largest number from `least` to `most` that fits; `None` if not even `least` does.

    By doubling, then by halving.
    """
    if most < least or not fits(least):
        return None
    low, high = least, most
    while low < high:
        middle = min((low + high + 1) // 2, max(2 * low, 1))
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _in_order(named: Mapping[int, "_Named"], positions: Iterable[int]) -> list["_Named"]:
    """Return the skills of these positions in the order in which they were given."""
    return [named[at] for at in sorted(positions)]


def _fields(template: str) -> set[str]:
    """Return the fields of a template, and raise `DefinitionError` for any that there is not."""
    try:
        fields = list(string.Formatter().parse(template))
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
    return {name for _, name, _, _ in fields if name is not None}


def _left_out(count: int, search: bool) -> str:
    if not count:
        return ""
    more, them = ("1 more skill is", "it") if count == 1 else (f"{count} more skills are", "them")
    how = f"call search_skills to find {them}" if search else "ask the user for one by its topic"
    return f"  <!-- {more} not listed here; {how} -->"
