"""The notes of the active groups, and what plugins end the prompt with."""

from collections.abc import Iterable

from satchel.text import one_line, visible


def render_notes(groups: Iterable[tuple[str, str]]) -> str:
    """Return the notes of (name, notes) pairs, each under its heading, or `""` if none has any."""
    return "\n\n".join(
        f"## About Tool Group '{one_line(name)}'\n\n{visible(notes).strip()}"
        for name, notes in groups
        if visible(notes).strip()
    )


def render_sections(texts: Iterable[str]) -> str:
    """Return the texts one after the other, or `""` if they say nothing."""
    return "\n\n".join(text for text in (visible(text).strip() for text in texts) if text)
