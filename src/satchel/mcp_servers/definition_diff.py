"""In what two definitions of a tool differ, part by part, for people."""

import json
from collections.abc import Sequence
from typing import Any

from satchel.text import one_line

_LONGEST = 200
"""How much of a change is shown in short, before it and after it."""

_AROUND = 20
"""How many letters before a change are shown with it."""

_PARTS = ("description", "parameters", "output", "annotations")


def differences(before: str, now: str) -> tuple[str, str]:
    """Return what changed of a definition's text, in short and line by line.

    Each part that changed is named. In short, what is too long is cut, and how much is said.
    """
    old, new = _parts(before), _parts(now)
    short, whole = [], []
    for part in _PARTS:
        was, is_ = _text(old.get(part)), _text(new.get(part))
        if was == is_:
            continue
        short.append(f"{part}: {_changed(was, is_)}")
        gone, come = _between(was.splitlines(), is_.splitlines())
        whole += [f"{part}:", *(f"- {line}" for line in gone), *(f"+ {line}" for line in come)]
    return " | ".join(short) or "what it was is not known", "\n".join(whole)


def _parts(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(part: Any) -> str:
    if part is None or isinstance(part, str):
        return part or ""
    return json.dumps(part, indent=1, sort_keys=True)


def _changed(was: str, is_: str) -> str:
    """Show both sides of a change from a little before it on."""
    was, is_ = one_line(was), one_line(is_)
    start = max(0, _common(was, is_) - _AROUND)
    dots = "…" if start else ""
    sides = [("-", was[start:]), ("+", is_[start:])]
    return " ".join(f"{sign} {dots}{_cut(text)}" for sign, text in sides if text)


def _cut(text: str) -> str:
    more = len(text) - _LONGEST
    return f"{text[:_LONGEST]}… ({more:,} more letters)" if more > 0 else text


def _between(was: Sequence[str], is_: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Leave out the lines that both begin and end with."""
    # Not `difflib`: lines that a stranger chose can keep it busy for hours.
    start = _common(was, is_)
    was, is_ = was[start:], is_[start:]
    end = _common(was[::-1], is_[::-1])
    return was[: len(was) - end], is_[: len(is_) - end]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Count how many items both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
