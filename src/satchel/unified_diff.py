"""The lines that differ between two texts."""

from collections.abc import Iterator

from satchel.text import spell_hidden


def unified_lines(
    before: str, now: str, names: tuple[str, str], *, context: int = 3
) -> Iterator[str]:
    """Return a unified diff with invisible characters spelled out."""
    from difflib import unified_diff  # Lazy: few processes compare texts.

    lines = unified_diff(before.splitlines(), now.splitlines(), *names, lineterm="", n=context)
    return map(spell_hidden, lines)
