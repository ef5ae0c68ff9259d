"""Bound the texts of plugins and groups, which enter every prompt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from satchel.diagnostics import Where, make_diagnostic
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from satchel.catalog import Group, PluginContribution
    from satchel.diagnostics import Diagnostic
    from satchel.settings import Limits


def with_bounded_texts(contribution: PluginContribution, limits: Limits) -> PluginContribution:
    """Return a contribution without longer texts than allowed; itself if there are none."""
    about = limits.description_accepted
    is_long = len(contribution.description) > about
    if not is_long and not any(_is_long(group, limits) for group in contribution.groups):
        return contribution
    return replace(
        contribution,
        description=shorten(contribution.description, about),
        groups=tuple(_bounded(group, limits) for group in contribution.groups),
        diagnostics=(*contribution.diagnostics, *_problems(contribution, limits)),
    )


def _is_long(group: Group, limits: Limits) -> bool:
    return (
        len(group.description) > limits.description_accepted
        or len(group.notes) > limits.group_notes
    )


def _bounded(group: Group, limits: Limits) -> Group:
    if not _is_long(group, limits):
        return group
    return replace(
        group,
        description=shorten(group.description, limits.description_accepted),
        notes=shorten(group.notes, limits.group_notes),
    )


def _problems(contribution: PluginContribution, limits: Limits) -> Iterable[Diagnostic]:
    texts = [
        ("the description of the plugin", contribution.description, "description_accepted"),
        *(
            text
            for group in contribution.groups
            for text in (
                (_of("description", group), group.description, "description_accepted"),
                (_of("notes", group), group.notes, "group_notes"),
            )
        ),
    ]
    for what, text, limit in texts:
        if len(text) > (most := getattr(limits, limit)):
            yield make_diagnostic(
                "plugin-text-long",
                Where(contribution.path),
                f"{what}: {len(text):,} characters are given, {most:,} are shown (limit {limit})",
                "shorten it",
            )


def _of(what: str, group: Group) -> str:
    return f"the {what} of group {shorten(one_line(group.name), 100)!r}"
