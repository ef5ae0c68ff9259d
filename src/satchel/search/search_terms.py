"""Split texts and queries into search terms."""

import re
import unicodedata
from itertools import pairwise

from satchel.names import split_camel_case
from satchel.text import visible

MOST_TERMS = 32
"""The number of terms of a query that are searched; the rest is ignored."""

_LONGEST_TEXT = 10_000
_LONGEST_QUERY = 2_000

# Scripts without spaces between words: Han, kana and bopomofo.
_CJK = (
    "\u3005-\u3007\u3040-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_CJK_LETTER = re.compile(f"[{_CJK}]")
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")

# Stop words. In a small catalog they may be as rare as the words that matter.
_STOP_WORDS = frozenset(
    {
        *("a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from"),
        *("have", "how", "i", "in", "is", "it", "its", "me", "my", "of", "on", "or"),
        *("our", "that", "the", "them", "there", "these", "this", "to", "up", "us", "want", "was"),
        *("we", "what", "when", "which", "will", "with", "would", "you", "your"),
    }
)


def normalize_text(text: str) -> str:
    """Return a text for the index: case-folded, with spaces around each CJK character."""
    folded = _folded(text[:_LONGEST_TEXT])
    return folded if folded.isascii() else _CJK_LETTER.sub(r" \g<0> ", folded)


def name_terms(name: str) -> tuple[str, ...]:
    """Return the words of a name in any style, and the whole name as one word."""
    spaced = split_camel_case(name)
    parts = _words(spaced)
    plain = _words(name) if spaced != name else ()
    return tuple(dict.fromkeys((*parts, *plain, "".join(parts))))


def query_terms(query: str) -> tuple[str, ...]:
    """Return the terms of a query: its words, and pairs of characters of CJK text.

    Stop words count only if there are no other words. The first term is all words joined: it finds
    `file-system` for "filesystem" and the other way round.
    """
    words = _words(query.strip()[:_LONGEST_QUERY])
    significant = [word for word in words if word not in _STOP_WORDS] or words
    terms = ["".join(words)] if words else []
    for word in significant:
        if len(word) > 1 and _CJK_LETTER.match(word):
            terms += [f"{first} {second}" for first, second in pairwise(word)]
        else:
            terms.append(word)
    return tuple(dict.fromkeys(terms))[:MOST_TERMS]


def without_stop_words(text: str) -> str:
    """Return the words of a text that a query may look for: a third of the index is saved."""
    return " ".join(word for word in _words(text) if word not in _STOP_WORDS)


def _words(text: str) -> list[str]:
    return _WORD.findall(_folded(text))


def _folded(text: str) -> str:
    if text.isascii():  # fast path: most texts
        return text.casefold()
    return unicodedata.normalize("NFKC", visible(text)).casefold()
