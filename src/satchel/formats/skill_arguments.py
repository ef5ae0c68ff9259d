"""Replace `$ARGUMENTS`, `$1`, `$2` and so on in the text of a skill that the user calls."""

import re
import shlex

_PLACEHOLDER = re.compile(r"(\\?)\$(?:ARGUMENTS\[([0-9]{1,3})\]|(ARGUMENTS)\b|([1-9])(?![0-9]))")


def takes_arguments(text: str) -> bool:
    """Return whether a text has a place for arguments."""
    return any(not match[1] for match in _PLACEHOLDER.finditer(text))


def with_arguments(text: str, arguments: str) -> str:
    r"""Return a text with the arguments in it, or below it if it has no place for them.

    `$ARGUMENTS` is all of them as written, and `$1` or `$ARGUMENTS[0]` the first, divided as a
    shell does. A missing one is empty. `\$1` is the text `$1`. Arguments are not searched for
    placeholders.
    """
    single = divided(arguments)
    is_placed = False

    def value(match: re.Match[str]) -> str:
        nonlocal is_placed
        escape, index, everything, number = match.groups()
        if escape:
            return match[0][1:]
        is_placed = True
        if everything:
            return arguments
        at = int(index) if index else int(number) - 1
        return single[at] if at < len(single) else ""

    filled = _PLACEHOLDER.sub(value, text)
    if is_placed or not arguments.strip():
        return filled
    return f"{filled.rstrip()}\n\nARGUMENTS: {arguments}\n"


def divided(arguments: str) -> list[str]:
    """Return arguments as a shell divides them, or at spaces if a quote has no end."""
    try:
        return shlex.split(arguments)
    except ValueError:  # a quote without its end, such as an apostrophe
        return arguments.split()
