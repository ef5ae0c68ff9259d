"""The notes of the active groups, and the sections that plugins add to the prompt."""

from collections.abc import Iterable

from satchel.prompt.forged_frames import HEADING, defused
from satchel.text import one_line, visible


def render_notes(groups: Iterable[tuple[str, str]]) -> str:
    """Return the notes of `(name, notes)` pairs, each under its heading; `""` without notes.

    Nothing in the notes can pose as such a heading, or as a tag of the prompt.
    """
    return "\n\n".join(
        f"## {HEADING} '{one_line(name)}'\n\n{defused(visible(notes).strip())}"
        for name, notes in groups
        if visible(notes).strip()
    )


def render_sections(texts: Iterable[str]) -> str:
    """Return the texts as paragraphs, without the empty ones."""
    return "\n\n".join(defused(text) for text in (visible(text).strip() for text in texts) if text)
