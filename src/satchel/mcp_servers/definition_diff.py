"""Describe the differences between two definitions of a tool."""

import json
from collections.abc import Sequence
from typing import Any

from satchel.text import one_line

_MAX_LENGTH = 200
"""Characters of a change in the short form, before and after each."""

_CONTEXT = 20
"""Unchanged characters shown before a change."""

_PARTS = ("description", "parameters", "output", "annotations")


def differences(before: str, now: str) -> tuple[str, str]:
    """Return the changes between two definitions in JSON: a short form, and line by line.

    The short form cuts long texts and says how many characters are left out.
    """
    old, new = _parts(before), _parts(now)
    short, full = [], []
    for part in _PARTS:
        old_text, new_text = _text(old.get(part)), _text(new.get(part))
        if old_text == new_text:
            continue
        short.append(f"{part}: {_short_change(old_text, new_text)}")
        removed, added = _changed_lines(old_text.splitlines(), new_text.splitlines())
        full += [f"{part}:", *(f"- {line}" for line in removed), *(f"+ {line}" for line in added)]
    return " | ".join(short) or "its former definition is not known", "\n".join(full)


def _parts(text: str) -> dict[str, Any]:
    try:
        definition = json.loads(text)
    except ValueError:
        return {}
    return definition if isinstance(definition, dict) else {}


def _text(part: Any) -> str:
    if part is None or isinstance(part, str):
        return part or ""
    return json.dumps(part, indent=1, sort_keys=True)


def _short_change(old: str, new: str) -> str:
    old, new = one_line(old), one_line(new)
    start = max(0, _common_prefix(old, new) - _CONTEXT)
    dots = "…" if start else ""
    sides = [("-", old[start:]), ("+", new[start:])]
    return " ".join(f"{sign} {dots}{_cut(text)}" for sign, text in sides if text)


def _cut(text: str) -> str:
    left_out = len(text) - _MAX_LENGTH
    return f"{text[:_MAX_LENGTH]}… ({left_out:,} more letters)" if left_out > 0 else text


def _changed_lines(old: Sequence[str], new: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return both sides without their common first and last lines."""
    # Not `difflib`: a hostile server can choose lines that keep it busy for hours.
    start = _common_prefix(old, new)
    old, new = old[start:], new[start:]
    end = _common_prefix(old[::-1], new[::-1])
    return old[: len(old) - end], new[: len(new) - end]


def _common_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
