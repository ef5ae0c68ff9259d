"""Bound the texts of plugins and groups, which enter every prompt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from satchel.catalog.catalog_entries import Group, PluginContribution
from satchel.diagnostics import Where, make_diagnostic
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    from satchel.diagnostics import Diagnostic
    from satchel.settings import Limits

_LIMITS = (("description", "description_accepted"), ("notes", "group_notes"))
"""The bounded fields, each with its limit."""
Owner = TypeVar("Owner", Group, PluginContribution)


def with_bounded_texts(contribution: PluginContribution, limits: Limits) -> PluginContribution:
    """Return a contribution without longer texts than allowed; itself if there are none."""
    problems: list[Diagnostic] = []
    where = Where(contribution.path)

    def bounded(owner: Owner, label: str) -> Owner:
        for name, limit in _LIMITS:
            text, most = getattr(owner, name, ""), getattr(limits, limit)
            if len(text) > most:
                message = (
                    f"the {name} of {label}: {len(text):,} characters are given, "
                    f"{most:,} are shown (limit {limit})"
                )
                problems.append(make_diagnostic("plugin-text-long", where, message, "shorten it"))
                shorter: dict[str, Any] = {name: shorten(text, most)}
                owner = replace(owner, **shorter)
        return owner

    result = bounded(contribution, "the plugin")
    groups = tuple(
        bounded(group, f"group {shorten(one_line(group.name), 100)!r}")
        for group in contribution.groups
    )
    if not problems:
        return contribution
    return replace(result, groups=groups, diagnostics=(*contribution.diagnostics, *problems))
