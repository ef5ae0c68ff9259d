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
    words = _WORD.findall(name)
    has_latin = "LATIN" in _scripts(name)
    return any(_is_mixed(word) or (has_latin and passes_for_latin(word)) for word in words)


def _is_out_of_place(letter: str) -> bool:
    """Return whether it is a number or dash of another script: a letter or hyphen to a reader."""
    is_styled = unstyled(letter).isascii()
    return letter == _LONG_VOWEL or (not is_styled and unicodedata.category(letter) in _ODD)


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
