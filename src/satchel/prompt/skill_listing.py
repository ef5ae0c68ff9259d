"""The skill listing of the prompt: the fullest form that fits into its budget."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile
from operator import attrgetter, lt
from typing import TYPE_CHECKING, Any

from satchel.lazy_dataclass import dataclass
from satchel.names import BASIC_GROUP
from satchel.prompt.listing_words import (
    ListingForm,
    ModelAbilities,
    instruction_for,
    remark_on,
    unlisted_line,
)
from satchel.prompt.skill_prompt import (
    DEFAULT_TEMPLATE,
    LOADER_LINE,
    NO_LOCATION_TEMPLATE,
    READER_LINE,
    SkillPrompt,
)
from satchel.text import one_line, shorten, xml, xml_path

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import SkillEntry

# A shorter start of a description does not say what the skill is for.
_MIN_DESCRIPTION = 20
# The longest description in a listing of names.
_BESIDE_NAMES = 100
# Lengths and numbers move in steps, so that most edits change only the line of their skill.
_LENGTH_STEP = 1.25
_COUNT_STEP = 1.1
# The names of so many skills may be shorter than the lines that count them.
_FEW = 20
# The number of skills in the first try: about as many as ever fit. Each further try doubles it.
_FIRST_IN_FULL = 64
_FIRST_IN_LINES = 512
_MOST_TEXTS = 8192
"""About as many names and lines as a listing of names tries."""
_NAME = attrgetter("name")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptListing:
    """The text of the skill prompt, and what its form leaves out."""

    text: str = ""
    form: ListingForm = ListingForm.FULL
    total: int = 0
    """How many skills there are."""
    described: int = 0
    """How many of them have a description in the text."""
    left_out: int = 0
    """How many are not even named."""
    cut_at: int | None = None
    """The length that long descriptions are shortened to; `None` if none is shortened."""


class SkillTexts:
    """Names and lines of skills as they are shown: from prompt to prompt, few of them change."""

    __slots__ = ("_order", "escaped", "line", "path", "plain")

    def __init__(self) -> None:
        self._order: tuple[list[str], list[int] | None] = [], None
        keep = lru_cache(_MOST_TEXTS)
        self.plain, self.escaped, self.path = keep(one_line), keep(xml), keep(xml_path)
        self.line = keep(self._line)

    def renewed(self, count: int) -> SkillTexts:
        """Return these, or none if most of them are of former descriptions of `count` skills."""
        current = min(count, _FIRST_IN_LINES)
        return self if self.plain.cache_info().currsize <= 2 * current + 64 else SkillTexts()

    def by_name(self, skills: Sequence[SkillEntry]) -> Sequence[SkillEntry]:
        """Sort skills by name, ignoring case. Those of a catalog usually are in this order."""
        names = [*map(_NAME, skills)]
        last_names, order = self._order
        if names != last_names:
            order = _order_of(names)
            self._order = names, order
        return skills if order is None else [skills[position] for position in order]

    def _line(self, template: str, name: str, description: str, folder: str, length: int) -> str:
        shown = self.escaped(shorten(self.plain(description), length))
        return template.format(name=self.escaped(name), description=shown, dir=self.path(folder))


def render_skills(
    skills: Sequence[SkillEntry],
    prompt: SkillPrompt,
    *,
    can_load: bool = False,
    can_search: bool = False,
    first: Callable[[], frozenset[str]] = frozenset,
    texts: SkillTexts | None = None,
) -> PromptListing:
    """List the skills as far as the budget allows; without skills the text is `""`.

    `can_load` and `can_search`: whether the model can call `load_skill` and `search_skills`.
    `first` returns the names of skills that are described first; it is called only if not all are.
    `texts` are those of the last listing.
    """
    if not skills:
        return PromptListing()
    texts = texts or SkillTexts()
    ordered = texts.by_name(skills)
    model = ModelAbilities(can_load, can_search)
    page = _Page(prompt=prompt, model=model, texts=texts)
    return (
        _list_in_full(ordered, page)
        or _list_in_lines(ordered, page)
        or _list_names(ordered, page, first())
    )


def _order_of(names: Sequence[str]) -> list[int] | None:
    """Return the positions of names in alphabetical order; `None` if they are in this order."""
    text = "\n".join(names)
    folded = names if text == text.casefold() else [*map(str.casefold, names)]
    if all(map(lt, folded, folded[1:])):
        return None
    return [at for *_, at in sorted(zip(folded, names, range(len(names)), strict=True))]


# ---- every skill with its description ------------------------------------------------------------


def _list_in_full(skills: Sequence[SkillEntry], page: _Page) -> PromptListing | None:
    """List all skills by the template, or return `None`."""

    def render(some: Sequence[SkillEntry]) -> str:
        return page.write(ListingForm.FULL, [page.full_item(skill) for skill in some])

    text = _render_if_all_fit(skills, render, page, _FIRST_IN_FULL)
    if text is None:
        return None
    return PromptListing(text=text, total=len(skills), described=len(skills))


def _list_in_lines(skills: Sequence[SkillEntry], page: _Page) -> PromptListing | None:
    """List all skills in lines, with descriptions of at most one length, or return `None`."""
    longest = page.prompt.description_length

    def render(length: int, some: Sequence[SkillEntry] = skills) -> str:
        lines = [page.line(skill, length) for skill in some]
        return page.write(ListingForm.LINES, lines, is_cut=length < longest)

    shortest = min(_MIN_DESCRIPTION, longest)
    at_least = _render_if_all_fit(
        skills, lambda some: render(shortest, some), page, _FIRST_IN_LINES
    )
    if at_least is None:
        return None
    needed = max(len(page.description(skill, longest)) for skill in skills)
    if page.fits(text := render(longest)):
        return _in_lines(text, skills)
    lengths = [*takewhile(needed.__gt__, _steps(shortest, _LENGTH_STEP))] or [shortest]
    length = _largest_that_fits(lengths, lambda length: page.fits(render(length)))
    return _in_lines(render(length), skills, length)


def _in_lines(text: str, skills: Sequence[SkillEntry], cut_at: int | None = None) -> PromptListing:
    count = len(skills)
    form = ListingForm.LINES
    return PromptListing(text=text, form=form, total=count, described=count, cut_at=cut_at)


# ---- names by group or source --------------------------------------------------------------------


def _list_names(skills: Sequence[SkillEntry], page: _Page, first: frozenset[str]) -> PromptListing:
    """Name as many skills as fit, and describe those that are most likely used.

    These may take half of the budget. If all others can be named, more are described.
    """
    ranked, likely = _ranked(skills, first)
    half = page.half()
    described = _largest_that_fits(
        _stepped(0, likely), lambda n: half.fits(_names_writer(ranked, n, half)(0))
    )
    others = len(ranked) - described
    write = _names_writer(ranked, described, page)
    named = _largest_that_fits(_stepped(0, others), lambda n: page.fits(write(n)))
    # What says how many are missing may take more room than the last names.
    if named < others <= named + named // 4 + _FEW and page.fits(write(others)):
        named = others
    if named == others:
        counts = _stepped(described, len(ranked) - 1)
        described = _largest_that_fits(
            counts, lambda n: page.fits(_names_writer(ranked, n, page)(len(ranked) - n))
        )
        named = len(ranked) - described
        write = _names_writer(ranked, described, page)
    return PromptListing(
        text=write(named),
        form=ListingForm.NAMES,
        total=len(ranked),
        described=described,
        left_out=len(ranked) - described - named,
    )


_FIRST, _GROUPED, _OTHER = 0, 1, 2


def _ranked(
    skills: Sequence[SkillEntry], first: frozenset[str]
) -> tuple[Sequence[SkillEntry], int]:
    """Return the skills, those that are most likely used first, and how many these are."""
    places, different = _values(skills, "groups", "scope")
    ranks = {
        (groups, scope): (_GROUPED if groups and BASIC_GROUP not in groups else _OTHER, scope)
        for groups, scope in different
    }
    if not first and len(set(ranks.values())) == 1:
        ((rank, _),) = set(ranks.values())
        return skills, len(skills) if rank < _OTHER else 0
    rank_of_each = [
        (_FIRST, place[1]) if skill.name in first else ranks[place]
        for skill, place in zip(skills, places, strict=True)
    ]
    order = sorted(range(len(skills)), key=rank_of_each.__getitem__)
    return [skills[at] for at in order], sum(rank < _OTHER for rank, _ in rank_of_each)


def _values(
    skills: Sequence[SkillEntry], *names: str
) -> tuple[Sequence[tuple[Any, ...]], Collection[tuple[Any, ...]]]:
    """Return the values of these attributes for each skill, and each different one once."""
    columns = [[*map(attrgetter(name), skills)] for name in names]
    # Very many skills often share them, and `count` compares by identity first.
    if skills and all(column.count(column[0]) == len(skills) for column in columns):
        shared = tuple(column[0] for column in columns)
        return [shared] * len(skills), [shared]
    values = [*zip(*columns, strict=True)]
    return values, set(values)


def _names_writer(
    ranked: Sequence[SkillEntry], described: int, page: _Page
) -> Callable[[int], str]:
    """Return a function that writes descriptions of the first skills, and names so many others."""
    items = [
        (skill.name.casefold(), page.line(skill, _BESIDE_NAMES)) for skill in ranked[:described]
    ]
    descriptions = [line for _, line in sorted(items)]
    by_source = page.by_source(ranked[described:])

    def write(named: int) -> str:
        counts = _names_per_source(by_source, named)
        lines = [page.names_line(key, by_source[key], counts[key]) for key in sorted(counts)]
        lines = [*descriptions, *lines]
        unlisted = sum(len(members) for key, members in by_source.items() if key not in counts)
        if unlisted:
            lines.append(unlisted_line(unlisted, page.model, has_names=bool(lines)))
        return page.write(ListingForm.NAMES, lines, is_cut=True)

    return write


def _names_per_source(by_source: Mapping[str, Sequence[object]], total: int) -> dict[str, int]:
    """Divide a number of names among the sources: equally, as far as each has so many skills."""
    counts = {}
    smallest_first = sorted(by_source, key=lambda source: (len(by_source[source]), source))
    for position, source in enumerate(smallest_first):
        sources_left = len(smallest_first) - position
        count = min(len(by_source[source]), total // sources_left)
        total -= count
        if count:
            counts[source] = count
    return counts


# ---- the text ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """The templates and the budget of one session."""

    prompt: SkillPrompt
    model: ModelAbilities
    texts: SkillTexts
    budget_parts: int = 1
    """The budget is divided into so many parts, of which one is used."""

    def half(self) -> _Page:
        """Return the page with half of its budget."""
        return replace(self, budget_parts=self.budget_parts * 2)

    def fits(self, text: str) -> bool:
        budget = self.prompt.budget
        return budget is None or self.prompt.measure(text) * self.budget_parts <= budget

    def full_item(self, skill: SkillEntry) -> str:
        template = self.prompt.template
        if template == DEFAULT_TEMPLATE and not self.texts.path(skill.folder):
            template = NO_LOCATION_TEMPLATE
        return self._fill(template, skill, self.prompt.description_length)

    def line(self, skill: SkillEntry, length: int) -> str:
        template = self.prompt.line_template
        if template is None and self.prompt.template != DEFAULT_TEMPLATE:
            template = self.prompt.template
        if template is None:
            template = LOADER_LINE if self.model.can_load else READER_LINE
        return self._fill(template, skill, min(length, self.prompt.description_length))

    def description(self, skill: SkillEntry, length: int) -> str:
        return shorten(self.texts.plain(skill.description), length)

    def by_source(self, skills: Sequence[SkillEntry]) -> dict[str, list[SkillEntry]]:
        """Return the skills by group or source; without `load_skill`, by the folder above."""
        if self.model.can_load:
            keys: Sequence[Any]
            keys, different = _values(skills, "groups", "source")
            titles = {key: _title(*key) for key in different}
        else:
            keys = [os.path.dirname(skill.folder) for skill in skills]
            titles = {key: key for key in set(keys)}
        if len(titles) == 1:
            return {title: list(skills) for title in titles.values()}
        entries_by_title: dict[str, list[SkillEntry]] = {title: [] for title in titles.values()}
        for skill, key in zip(skills, keys, strict=True):
            entries_by_title[titles[key]].append(skill)
        return entries_by_title

    def names_line(self, source: str, skills: Sequence[SkillEntry], count: int) -> str:
        if self.model.can_load:
            names = [*map(self.texts.escaped, map(_NAME, skills[:count]))]
        else:
            names = [self.texts.path(os.path.basename(skill.folder)) for skill in skills[:count]]
        names.sort(key=str.casefold)
        if rest := len(skills) - count:
            names.append(f"and {rest:,} more")
        return f"{self.texts.path(source)} ({len(skills):,}): {', '.join(names)}"

    def write(self, form: ListingForm, lines: Iterable[str], *, is_cut: bool = False) -> str:
        """Put the instruction and the frame around the lines."""
        parts = [self.prompt.opening, *lines, self.prompt.closing]
        block = "\n".join(part for part in parts if part)
        instruction = self._instruction(form, is_cut=is_cut)
        return f"{instruction}\n\n{block}" if instruction else block

    def _instruction(self, form: ListingForm, *, is_cut: bool) -> str:
        own = self.prompt.instruction
        if own is None:
            return instruction_for(form, self.model, is_cut=is_cut)
        remark = remark_on(form, self.model, is_cut=is_cut)
        return f"{own} {remark}" if own and remark else own

    def _fill(self, template: str, skill: SkillEntry, length: int) -> str:
        folder = skill.folder if "{dir" in template else ""
        return self.texts.line(template, skill.name, skill.description, folder, length)


def _title(groups: tuple[str, ...], source: str) -> str:
    """Return what the names of some skills stand under."""
    group = next((name for name in groups if name != BASIC_GROUP), "")
    # The name of a folder is enough: where it is does not help, and not every reader may know.
    return f"group {group}" if group else os.path.basename(source) or source


# ---- numbers -------------------------------------------------------------------------------------


def _render_if_all_fit(
    skills: Sequence[SkillEntry],
    render: Callable[[Sequence[SkillEntry]], str],
    page: _Page,
    count: int,
) -> str | None:
    """Return the text if it fits. Parts are tried first: of very many, few are written."""
    while count < len(skills):
        if not page.fits(render(skills[:count])):
            return None
        count *= 2
    text = render(skills)
    return text if page.fits(text) else None


def _steps(start: int, factor: float) -> Iterator[int]:
    """Yield the numbers from `start` on, each at most `factor` times the one before."""
    while True:
        yield start
        start = max(int(start * factor), start + 1)


def _stepped(low: int, high: int) -> list[int]:
    """Return the numbers to try from `low` to `high`, each about a tenth larger than the last."""
    steps = takewhile(high.__gt__, _steps(1, _COUNT_STEP))
    return [low, *(step for step in steps if step > low), *([high] if high > low else [])]


def _largest_that_fits(numbers: Sequence[int], fits: Callable[[int], bool]) -> int:
    """Return the largest of ascending numbers that fits; the first one is not tried."""
    # In steps, so that most tries are short texts.
    return numbers[bisect_left(numbers, True, lo=1, key=lambda number: not fits(number)) - 1]
