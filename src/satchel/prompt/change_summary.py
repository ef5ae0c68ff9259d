"""What changed since the last step, in a few words for the model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from satchel.text import one_line

if TYPE_CHECKING:  # A prompt can be worded without a catalog.
    from satchel.catalog import Change

_KINDS = {"tool": "tools", "skill": "skills", "group": "tool groups"}
_EVENTS = {"added", "changed", "removed"}
# Whether it was there before the first change, and is there after the last.
_OUTCOMES = {"new": (False, True), "changed": (True, True), "gone": (True, False)}
_SWITCHED = {"active": "tool groups active now", "inactive": "tool groups no longer active"}
_MOST_NAMES = 10


def render_changes(changes: Sequence["Change"]) -> str:
    """Return one sentence about the tools, skills and groups that changed, `""` if none did.

    Of several changes of one thing the outcome is told: what went and came back has changed. A
    group that `changed` with the message `active` or `inactive` was switched on or off. Other
    kinds and other events are not told.
    """
    first: dict[tuple[str, str], str] = {}
    last: dict[tuple[str, str], str] = {}
    switched: dict[str, str] = {}
    for change in changes:
        name = one_line(change.name)
        if (change.kind, change.event) == ("group", "changed") and change.message in _SWITCHED:
            switched[name] = change.message
        elif change.kind in _KINDS and change.event in _EVENTS:
            first.setdefault((change.kind, name), change.event)
            last[change.kind, name] = change.event
    outcomes = {key: (first[key] != "added", last[key] != "removed") for key in first}
    told = {
        f"{word} {kinds}": [
            key[1] for key in outcomes if (key[0], outcomes[key]) == (kind, outcome)
        ]
        for kind, kinds in _KINDS.items()
        for word, outcome in _OUTCOMES.items()
    }
    for message, title in _SWITCHED.items():
        told[title] = [name for name in switched if switched[name] == message]
    parts = [f"{title}: {_listed(names)}" for title, names in told.items() if names]
    return f"Since the last step: {'; '.join(parts)}." if parts else ""


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
