"""Find words whose letters come from alphabets that look alike.

After "Restriction levels" of Unicode Technical Standard 39: Latin may stand beside scripts that do
not resemble it. Whole words of one script are honest, unless all their letters pass for Latin ones.
"""

import re
import unicodedata
from collections.abc import Iterable

_WORD = re.compile(r"[^\W\d_]+")
# Scripts that are written beside Latin letters in one word, and do not look like them: those of
# the level "highly restrictive", and others without blanks between words.
_DISTINCT = frozenset(
    {
        *("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"),
        *("THAI", "LAO", "KHMER", "TIBETAN", "MODIFIER", "FEMININE", "MASCULINE", "MICRO"),
        "HALFWIDTH",
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
_BESIDE_LATIN = re.compile(r"(?<=[A-Za-z])[^\0-\x7f]|[^\0-\x7f](?=[A-Za-z])")
_ODD = frozenset({"Nd", "Nl", "No", "Pd"})
"""The categories of numbers and dashes."""
_LONG_VOWEL = "\u30fc"
"""Of Japanese. In a Latin word it is read as a hyphen."""
_BETWEEN_LATIN = re.compile(r"(?<=[A-Za-z0-9])[^\0-\x7f]+(?=[A-Za-z0-9])")
_STROKES = frozenset(
    "\u06d4\u2cba\u2500\u2501\ua7f7\u2796"  # as a hyphen
    "\u2024\u0701\u0702\ua60e\ua4f8\U00010a50\u07fa"  # as a dot, and as an underscore
    "\u1735\u2041\u2044\u2215\u2571\u27cb\u29f8\u3033\u2cc6\u30ce"  # as a slash
    "\u0589\u0703\u0704\u16ec\u1803\u1809\u205a\u05c3\u02f8\ua789\u2236\u02d0\ua4fd"  # a colon
    "\u4e00\u4e28\u4e36\u4e3f\u4e59\u4e85"  # the characters of a single stroke
)
"""What Unicode lists as confusable with a mark of ASCII ("confusables.txt"), but for dashes."""
_PARTS = re.compile(r"HANGUL (?:LETTER|\w+SEONG)|CJK STROKE|KANGXI RADICAL|BOPOMOFO")
"""Names of characters that are parts of others: between Latin letters they are mere strokes."""
_MARKS = re.compile("(?<=[A-Za-z])[\u0300-\u036f]+|[\u0307\u0323]")
"""Accents and dots of a letter: a reader who knows the name without them may see none."""
_SHORTEST = 3
"""Shorter words of such letters are often honest, such as Russian prepositions."""


def mixes_scripts(name: str) -> bool:
    """Return whether a name could pass for another one because its letters look alike."""
    if name.isascii():
        return False
    if any(map(_is_out_of_place, _BESIDE_LATIN.findall(name))):
        return True
    if any(all(map(_is_stroke, run)) for run in _BETWEEN_LATIN.findall(name)):
        return True
    words = _WORD.findall(name)
    has_latin = "LATIN" in _scripts(name)
    return any(_is_mixed(word) or (has_latin and passes_for_latin(word)) for word in words)


def _is_out_of_place(letter: str) -> bool:
    """Return whether it is a number or dash of another script: a letter or hyphen to a reader."""
    is_styled = unstyled(letter).isascii()
    return letter == _LONG_VOWEL or (not is_styled and unicodedata.category(letter) in _ODD)


def _is_stroke(letter: str) -> bool:
    return letter in _STROKES or bool(_PARTS.match(unicodedata.name(letter, "")))


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
    folded = _MARKS.sub("", unicodedata.normalize("NFD", unstyled(text))).translate(_SKELETON)
    return folded.casefold().translate(_SKELETON)


def _scripts(letters: Iterable[str]) -> set[str]:
    """Return the scripts of the letters by the first words of their names.

    The letters of clicks count as another script, since they look like an `l`.
    """
    names = (unicodedata.name(letter, "UNNAMED") for letter in letters if letter.isalpha())
    return {"CLICK" if " CLICK" in name else name.partition(" ")[0] for name in names}
