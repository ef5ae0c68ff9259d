"""What a text is found by, and what a query looks for."""

import re
import unicodedata
from itertools import pairwise

from satchel.text import visible

MOST_TERMS = 32
"""Of a longer query only the beginning counts."""

_LONGEST_TEXT = 10_000
_LONGEST_QUERY = 2_000

# Scripts that put no blanks between words: Han, kana and bopomofo.
_CJK = (
    "\u3005-\u3007\u3040-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_CJK_LETTER = re.compile(f"[{_CJK}]")
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

# They say nothing of what is wanted, and in a small catalog they are as rare as what does.
_SMALL_WORDS = frozenset(
    {
        *("a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from"),
        *("have", "how", "i", "in", "is", "it", "its", "me", "my", "of", "on", "or"),
        *("our", "that", "the", "them", "there", "these", "this", "to", "up", "us", "want", "was"),
        *("we", "what", "when", "which", "will", "with", "would", "you", "your"),
    }
)


def normalize_text(text: str) -> str:
    """Return a text for the index: folded, with a blank around each letter of a CJK script."""
    folded = _folded(text[:_LONGEST_TEXT])
    return folded if folded.isascii() else _CJK_LETTER.sub(r" \g<0> ", folded)


def split_camel_case(text: str) -> str:
    """Put a blank before each hump of camelCase."""
    return _HUMP.sub(" ", text)


def name_terms(name: str) -> tuple[str, ...]:
    """Return the words of a name: its parts however they are joined, and all of it as one."""
    humps = split_camel_case(name)
    parts = _words(humps)
    plain = _words(name) if humps != name else ()
    return tuple(dict.fromkeys((*parts, *plain, "".join(parts))))


def query_terms(query: str) -> tuple[str, ...]:
    """Return what a query looks for: its words and, of what has no blanks, pairs of letters.

    Small words count only where there are no others. All words as one find `file-system` for
    "filesystem" and the other way round.
    """
    words = _words(query.strip()[:_LONGEST_QUERY])
    telling = [word for word in words if word not in _SMALL_WORDS] or words
    terms = ["".join(words)] if words else []
    for word in telling:
        if len(word) > 1 and _CJK_LETTER.match(word):
            terms += [f"{one} {two}" for one, two in pairwise(word)]
        else:
            terms.append(word)
    return tuple(dict.fromkeys(terms))[:MOST_TERMS]


def _words(text: str) -> list[str]:
    return _WORD.findall(_folded(text))


def _folded(text: str) -> str:
    if text.isascii():  # Most texts are, and need no look at each letter.
        return text.casefold()
    return unicodedata.normalize("NFKC", visible(text)).casefold()
