"""The notes of the active groups."""

from collections.abc import Iterable

from satchel.text import one_line, visible


def render_notes(groups: Iterable[tuple[str, str]]) -> str:
    """Return the notes of (name, notes) pairs, each under its heading, or `""` if none has any."""
    return "\n\n".join(
        f"## About Tool Group '{one_line(name)}'\n\n{visible(notes).strip()}"
        for name, notes in groups
        if visible(notes).strip()
    )
