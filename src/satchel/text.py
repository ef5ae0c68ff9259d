"""Sanitize untrusted text for a prompt, a terminal or a message.

Skill folders are untrusted. Invisible characters can hide instructions in a prompt, and control
characters can rewrite a terminal. Both are removed here and nowhere else.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator

_KEPT_CONTROLS = {"\n", "\t"}
_JOINER = "\u200d"
_EMOJI_STYLE = "\ufe0f"
_EMOJI_MODIFIERS = "\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
# Letters that Unicode does not class as invisible but that print as nothing.
_BLANK_LETTERS = {"\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u2800", "\u3164", "\uffa0"}
# Variation selectors can spell hidden bytes; plane 14 holds the tag block, which spells ASCII.
_HIDDEN_RANGES = (("\u180b", "\u180f"), ("\ufe00", "\ufe0e"), ("\U000e0000", "\U000e0fff"))
# Cc control, Cf format (bidi, zero width), Cs lone surrogate, Zl and Zp line separators.
_HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}


# A quick test: every character that may be hidden, and few others.
_SUSPICIOUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

_COMMON = bytes((*b"\n", *range(0x20, 0x7F)))


def visible(text: str) -> str:
    """Remove invisible and control characters except newline, tab and joiners inside emoji."""
    return replace_hidden(text, lambda _: "")


def replace_hidden(text: str, shown: Callable[[str], str]) -> str:
    """Replace every character that `visible` would remove."""
    if not may_have_hidden(text):
        return text
    return "".join(
        shown(letter) if _is_hidden(text, at) else letter for at, letter in enumerate(text)
    )


def spell_hidden(text: str) -> str:
    r"""Write invisible and control characters as escapes of Python, such as `\u200b`."""
    return replace_hidden(text, lambda letter: ascii(letter)[1:-1])


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


def may_have_hidden(text: str) -> bool:
    """Return whether a quick test finds a character that may be hidden."""
    rare = rare_characters(text)
    return bool(rare) and _SUSPICIOUS.search(rare) is not None


def rare_characters(text: str) -> str:
    """Return the characters that are neither printable ASCII nor line ends.

    Testing these is many times faster than testing all of a text.
    """
    rest = text.encode("utf-8", "surrogatepass").translate(None, _COMMON)
    return rest.decode("utf-8", "surrogatepass")


def has_hidden(text: str) -> bool:
    """Return whether `visible` would remove anything."""
    return visible(text) != text


def one_line(text: str) -> str:
    """Replace runs of white space by single spaces, and remove invisible characters."""
    return " ".join(visible(text).split())


def escaped(text: str) -> str:
    """Quote a text with escapes for all but ASCII, so that look-alike letters differ."""
    return ascii(shorten(text, 200))


def xml(text: str) -> str:
    """Escape a text as one line for an XML element, so that it cannot close its tag."""
    return _escaped(one_line(text))


def xml_text(text: str) -> str:
    """Escape a text for an XML element, with its line breaks."""
    return _escaped(visible(text))


def xml_path(path: str) -> str:
    """Escape a path for an XML element; spaces are kept, so that the path stays valid."""
    return _escaped(visible(path).replace("\n", " ").replace("\t", " "))


def _escaped(text: str) -> str:
    # `replace` is several times as fast as `translate`, and prompts have many such texts.
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    if not text.isascii():  # compatibility forms, which look the same to a model
        text = text.replace("\uff1c", "&lt;").replace("\ufe64", "&lt;")
    return text.replace(">", "&gt;").replace('"', "&quot;")


def shorten(text: str, limit: int) -> str:
    """Cut a text at `limit` characters and end it with an ellipsis."""
    if len(text) <= limit:
        return text
    return text[: max(limit - 1, 0)].rstrip() + "…" if limit > 0 else ""


def _is_hidden(text: str, at: int) -> bool:
    letter = text[at]
    if letter in _KEPT_CONTROLS:
        return False
    if letter in _BLANK_LETTERS or any(low <= letter <= high for low, high in _HIDDEN_RANGES):
        return True
    if letter == _EMOJI_STYLE:
        return not _styles_emoji(text, at)
    if letter == _JOINER:
        return not _joins_emoji(text, at)
    return unicodedata.category(letter) in _HIDDEN_CATEGORIES


def _styles_emoji(text: str, at: int) -> bool:
    """Return whether the selector at `at` follows a pictograph or the first part of a keycap."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if before and before in "0123456789#*":
        return after == "\u20e3"
    return bool(before) and unicodedata.category(before) in {"So", "Sm", "Sk"}


def _joins_emoji(text: str, at: int) -> bool:
    """Return whether the joiner at `at` is between two pictographs, as in a family emoji."""
    before = text[max(at - 3, 0) : at].rstrip(_EMOJI_MODIFIERS)
    after = text[at + 1 : at + 2]
    return bool(before and after) and all(
        unicodedata.category(letter) == "So" for letter in (before[-1], after)
    )
