"""The lines that differ between two texts."""

from collections.abc import Iterator

from satchel.text import spell_hidden


def unified_lines(
    before: str, now: str, names: tuple[str, str], *, context: int = 3
) -> Iterator[str]:
    """Return a unified diff with invisible characters spelled out, also those that end lines."""
    from difflib import unified_diff  # Lazy: few processes compare texts.

    lines = unified_diff(lines_of(before), lines_of(now), *names, lineterm="", n=context)
    return map(spell_hidden, lines)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text; other line ends than a line feed stay in them."""
    return text.removesuffix("\n").split("\n") if text else []
