"""Summarize for the model in one sentence what changed since the last step."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from satchel.text import one_line

if TYPE_CHECKING:  # prompt/ needs no catalog at run time
    from satchel.catalog.catalog_changes import Change

_KINDS = {"tool": "tools", "skill": "skills", "group": "tool groups"}
_EVENTS = {"added", "changed", "removed"}
# By whether it existed before the first change and exists after the last.
_OUTCOMES = {"new": (False, True), "changed": (True, True), "gone": (True, False)}
_ACTIVATIONS = {"active": "tool groups active now", "inactive": "tool groups no longer active"}
_MAX_NAMES = 10


def render_changes(changes: Sequence["Change"]) -> str:
    """Return one sentence about the tools, skills and groups that changed, or `""`.

    Several changes of one item become one: an item that was removed and added again has changed.
    The message `active` or `inactive` of a changed group means that it was activated or
    deactivated. Other kinds and events are left out.
    """
    first: dict[tuple[str, str], str] = {}
    last: dict[tuple[str, str], str] = {}
    activations: dict[str, str] = {}
    for change in changes:
        name = one_line(change.name)
        if (change.kind, change.event) == ("group", "changed") and change.message in _ACTIVATIONS:
            activations[name] = change.message
        elif change.kind in _KINDS and change.event in _EVENTS:
            first.setdefault((change.kind, name), change.event)
            last[change.kind, name] = change.event
    outcomes = {key: (first[key] != "added", last[key] != "removed") for key in first}
    names_by_title = {
        f"{adjective} {kinds}": [
            key[1] for key in outcomes if (key[0], outcomes[key]) == (kind, outcome)
        ]
        for kind, kinds in _KINDS.items()
        for adjective, outcome in _OUTCOMES.items()
    }
    for message, title in _ACTIVATIONS.items():
        names_by_title[title] = [name for name in activations if activations[name] == message]
    parts = [f"{title}: {_join(names)}" for title, names in names_by_title.items() if names]
    return f"Since the last step: {'; '.join(parts)}." if parts else ""


def _join(names: Sequence[str]) -> str:
    rest = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")
