"""Escape what poses as a heading or a tag of the prompt in texts of plugins and servers."""

import re
import unicodedata

HEADING = "About Tool Group"
"""How the heading of a group's notes begins."""

_TAGS = r"available_skills|skills?|skill_content|skill_resources|tools?"
# Compatibility forms of "<" look the same to a model.
_TAG = re.compile(rf"[<\uff1c\ufe64](?=[\s/]*(?:{_TAGS})\b)", re.IGNORECASE)
_BEFORE_WORDS = re.compile(r"[\W_]*")
# Greek and Cyrillic letters that look like those of the heading.
_LOOKALIKES = str.maketrans("аоеτтɡցԁӏοαսυвуρрⅼɩı", "aoettggdloauubyppltl")


def defused(text: str) -> str:
    """Return a text in which no line can pose as our heading, and no tag as our tag."""
    text = _TAG.sub("&lt;", text)
    if "\n" not in text and not _poses_as_heading(text):
        return text
    return "\n".join(
        _escaped(line) if _poses_as_heading(line) else line for line in text.split("\n")
    )


def _escaped(line: str) -> str:
    words = line.lstrip()
    return f"{line[: len(line) - len(words)]}\\{words}"


def _poses_as_heading(line: str) -> bool:
    start = _BEFORE_WORDS.sub("", unicodedata.normalize("NFKC", line[:200]), count=1).casefold()
    plain = " ".join(re.findall(r"[^\W_]+", start.translate(_LOOKALIKES)))
    return plain.startswith(HEADING.lower())
