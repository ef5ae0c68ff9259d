"""All that a model sees of one catalog, rendered once for many sessions."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from operator import attrgetter, is_not
from typing import TYPE_CHECKING, Any

from satchel.configuration.selection import SelectionPatterns
from satchel.contracts.variable_places import variables_in
from satchel.groups.view_digest import digest_view
from satchel.lazy_dataclass import dataclass
from satchel.names import require_known
from satchel.prompt.group_notes import render_notes
from satchel.prompt.listing_words import ListingForm
from satchel.prompt.skill_listing import SkillTexts, render_skills
from satchel.session.own_tools import OpenWork, OwnTools, own_tools_of
from satchel.shared import PackedValue

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from satchel.catalog.catalog_entries import SkillEntry
    from satchel.groups.group_activation import View
    from satchel.groups.view_digest import ViewDigest
    from satchel.prompt.skill_listing import PromptListing
    from satchel.prompt.skill_prompt import SkillPrompt
    from satchel.session.session_options import SessionOptions
    from satchel.session.session_state import SessionState
    from satchel.shared import SharedView


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RenderedStep:
    """The prompt, the notes and the tools of one view."""

    view: View
    own_tools: OwnTools
    """The session's own tools, without their context."""
    names: tuple[str, ...]
    """The names of all tools that are not deferred, in the order of their registration."""
    listing: PromptListing
    notes: str
    sections: str
    """The text that plugins add to the end of the prompt."""
    variables: tuple[str, ...]
    """The prompt variables in notes and sections."""
    digest: ViewDigest


def render_step(
    shared_view: SharedView, session_state: SessionState, has_tasks: bool
) -> RenderedStep:
    """Return what the model of a session sees; sessions with equal options share it."""
    options, style, loaded = session_state.options, session_state.skill_style, session_state.loaded
    open_work = OpenWork(has_tasks, loaded.has_files, loaded.has_scripts)

    def rendered(likely: frozenset[str]) -> RenderedStep:
        return shared_view.get_or_make(
            (options, style, open_work, likely),
            lambda: _render(shared_view, options, style, open_work, likely),
        )

    step = rendered(frozenset())
    # Only a listing that leaves something out depends on what was loaded.
    if step.listing.form is not ListingForm.NAMES:
        return step
    return rendered(frozenset(skill.name for skill in loaded))


def schemas(
    shared_view: SharedView, rendered: RenderedStep, dialect: str, names: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Return a copy of the schemas of the tools with these names, in this order.

    Raises `NotFoundError` for an unknown dialect.
    """
    from satchel.tools.dialects import DIALECTS, with_deferred  # lazy: a prompt needs no schemas

    require_known("dialect", dialect, DIALECTS)
    cache, by_name = shared_view.cache, rendered.view.by_name

    def schema(name: str) -> Any:
        # A tool of the catalog takes precedence over the session's own.
        entry = by_name.get(name)
        if entry and entry.tool:
            return cache.schema(entry.tool, dialect)
        return rendered.own_tools[name].to_schema(dialect)

    def make() -> PackedValue:
        sent, view = [schema(name) for name in names], rendered.view
        if not view.deferred:
            return PackedValue(sent)
        late = (schema(entry.name) for entry in view.deferred_tools)
        return PackedValue(with_deferred(dialect, sent, late))

    packed = cache.get_or_make((rendered, dialect, names), make)
    unpacked: list[dict[str, Any]] = packed.unpacked()
    return unpacked


def _render(
    shared_view: SharedView,
    options: SessionOptions,
    style: SkillPrompt,
    open_work: OpenWork,
    likely: frozenset[str],
) -> RenderedStep:
    view, cache = shared_view.view, shared_view.cache
    listing, own_tools = _listing_and_tools(shared_view, options, style, open_work, likely)
    names = [entry.name for entry in view.sent_tools]
    names += [name for name in own_tools if name not in view.by_name]
    notes = render_notes((group.name, group.notes) for group in view.groups)
    return RenderedStep(
        view=view,
        own_tools=own_tools,
        names=tuple(names),
        listing=listing,
        notes=notes,
        sections=cache.sections,
        variables=variables_in(notes + cache.sections),
        digest=digest_view(shared_view.catalog, view, own_tools, cache.digest),
    )


def _listing_and_tools(
    shared_view: SharedView,
    options: SessionOptions,
    style: SkillPrompt,
    open_work: OpenWork,
    likely: frozenset[str],
) -> tuple[PromptListing, OwnTools]:
    """Return the skill listing and the session's own tools: most groups do not change them."""
    view, catalog = shared_view.view, shared_view.catalog
    active = frozenset(group.name for group in view.groups)
    has_tasks = open_work.tasks or any(entry.tool and entry.tool.background for entry in view.tools)
    open_work = replace(open_work, tasks=has_tasks)

    # Few groups have skills, so most views list the same ones.
    key = ("listing", active & catalog.groups_of_skills, options, style, open_work, likely)

    def render() -> tuple[PromptListing, OwnTools]:
        listing = _listing(shared_view, options, style, likely, key)
        return listing, own_tools_of(catalog, view, options, listing, open_work)

    return shared_view.cache.get_or_make(key, render)


def _listing(
    shared_view: SharedView,
    options: SessionOptions,
    style: SkillPrompt,
    likely: frozenset[str],
    key: Hashable,
) -> PromptListing:
    """List the skills; after an edit that the prompt does not show, the last listing is reused."""
    skills, cache = shared_view.view.model_skills, shared_view.cache
    if not options.skill_tools:
        # A model can read a skill without a folder only by the session's own tools.
        skills = tuple(skill for skill in skills if skill.access.has_folder)
    searchable = options.search is not False
    pinned = (*style.first, *shared_view.catalog.first_skills)
    key = (key, pinned)
    last = cache.last_listings.get(key)
    if last is not None and _read_alike(last[0], skills):
        listing = last[1]
    else:
        texts = cache.skill_texts = (cache.skill_texts or SkillTexts()).renewed(len(skills))
        listing = render_skills(
            skills,
            style,
            can_load=options.skill_tools,
            can_search=searchable,
            first=lambda: likely | _matching(pinned, skills),
            texts=texts,
        )
    cache.listings[key] = (skills, listing)
    return listing


_SHOWN = attrgetter("name", "description", "folder", "scope", "groups", "source")


def _read_alike(before: Sequence[SkillEntry], now: Sequence[SkillEntry]) -> bool:
    """Return whether the prompt says the same of both; most skills are the same objects."""
    if len(before) != len(now):
        return False
    changed = compress(zip(before, now, strict=True), map(is_not, before, now))
    return all(_SHOWN(one) == _SHOWN(other) for one, other in changed)


def _matching(patterns: tuple[str, ...], skills: Iterable[SkillEntry]) -> frozenset[str]:
    """Return the names of the skills that patterns match."""
    if not patterns:
        return frozenset()
    pinned = SelectionPatterns(patterns)
    return frozenset(
        skill.name
        for skill in skills
        if pinned.match("skill", (skill.name, *skill.addresses, skill.source))
    )
