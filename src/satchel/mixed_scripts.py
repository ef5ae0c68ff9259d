"""Find words whose letters come from alphabets that look alike.

After "Restriction levels" of Unicode Technical Standard 39: Latin may stand beside scripts that do
not resemble it. Whole words of one script are honest, unless all their letters pass for Latin ones.
"""

import re
import unicodedata
from collections.abc import Iterable

_WORD = re.compile(r"[^\W\d_]+")
# Scripts that are written beside Latin letters and do not look like them.
_DISTINCT = frozenset(
    {
        *("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "ARABIC"),
        *("HEBREW", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU"),
        *("KANNADA", "MALAYALAM", "SINHALA", "THAI", "LAO", "TIBETAN", "MYANMAR", "KHMER"),
        *("GEORGIAN", "ETHIOPIC", "THAANA", "MODIFIER", "IDEOGRAPHIC", "FEMININE", "MASCULINE"),
        *("MICRO", "HALFWIDTH"),
    }
)
# Cyrillic, Greek and Armenian letters that pass for Latin ones, above these.
_LATIN = "acdehijlopqsubxywyABCEHIJKMOPSTXYGWavoptuikxABEZHIKMNOPTYXonugphOUS"
_ALIKE = "асԁеһіјӏорԛѕυвхуԝүАВСЕНІЈКМОРЅТХҮԌԜανορτυικχΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսցքհՕՍՏ"
_PASSING = frozenset(_ALIKE)
# With letters that are less alike, but enough to misread a name that is known.
_SKELETON = str.maketrans(_ALIKE + "тɡɑⅼɩıȷ", _LATIN + "tgaliij")
_STYLED = str.maketrans(
    "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ\u2010\u2012\u2013\u2014\u2015\u2043\u2212\u02d7\ufe58",
    "abcdefghijklmnoprstuvwyz---------",
)
"""Small capitals and other hyphens: they style a text, and no language writes names with them."""
_FOREIGN_DIGIT = r"(?![0-9\uff10-\uff19])\d"
_OUT_OF_PLACE = re.compile(rf"[A-Za-z](?:\u30fc|{_FOREIGN_DIGIT})|{_FOREIGN_DIGIT}[A-Za-z]")
"""The Japanese long vowel or a digit of another script in a Latin word: a hyphen or letter."""
_DOTS = re.compile("[\u0307\u0323]")
"""Dots above and below a letter: a reader who knows the name without them sees none."""
_SHORTEST = 3
"""Shorter words of such letters are often honest, such as Russian prepositions."""


def mixes_scripts(name: str) -> bool:
    """Return whether a name could pass for another one because its letters look alike."""
    if name.isascii():
        return False
    if _OUT_OF_PLACE.search(name):
        return True
    words = _WORD.findall(name)
    has_latin = "LATIN" in _scripts(name)
    return any(_is_mixed(word) or (has_latin and passes_for_latin(word)) for word in words)


def _is_mixed(word: str) -> bool:
    return len(_scripts(word) - _DISTINCT) > 1


def passes_for_latin(word: str) -> bool:
    """Return whether all letters of a word look like Latin ones."""
    return len(word) >= _SHORTEST and _PASSING.issuperset(word)


def unstyled(text: str) -> str:
    """Return a text with plain letters and hyphens for those that only have another style."""
    return unicodedata.normalize("NFKC", text).translate(_STYLED)


def skeleton(text: str) -> str:
    """Return a text in lowercase with Latin letters for those that look like them."""
    folded = _DOTS.sub("", unicodedata.normalize("NFD", unstyled(text))).translate(_SKELETON)
    return folded.casefold().translate(_SKELETON)


def _scripts(letters: Iterable[str]) -> set[str]:
    """Return the scripts of the letters by the first words of their names."""
    return {
        unicodedata.name(letter, "UNNAMED").partition(" ")[0]
        for letter in letters
        if letter.isalpha()
    }
