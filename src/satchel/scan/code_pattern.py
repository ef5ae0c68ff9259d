"""Search a text for a pattern only where one of the pattern's literals stands.

A scan has hundreds of patterns, and most have a literal that a text rarely contains: finding a
literal costs a hundredth of searching for a pattern. The matches are those of `re.finditer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_FLAGS = re.IGNORECASE | re.MULTILINE
_SHORTEST = 2
"""Letters of a literal that is worth looking for."""
_LONG_ENOUGH = 6
_LETTERS = 3
"""Letters that say quickly whether a text may contain a literal."""
_MOST_LETTERS = 4
"""Letters of a set such as `[67]` that are looked for one by one."""
_LONGEST = 10_000
"""Characters of a match that is looked for before and behind a literal."""
_MOST_STARTS = 8
"""Places around a literal that are tried one by one."""
_LOOKAHEAD = 1000
"""Characters behind a match that may decide about it."""
_SAME_LETTERS = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")
"""Letters that a pattern without case takes for ASCII ones."""


class _Anchor(NamedTuple):
    """A literal, and the characters that may stand between the start of a match and it."""

    literal: str
    fewest: int
    most: int


class _SearchedText:
    """A text, and where literals stand in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lower = (text if text.isascii() else text.translate(_SAME_LETTERS)).lower()
        self.threes: set[tuple[str, ...]] = set(
            zip(*(self._lower[start:] for start in range(_LETTERS)), strict=False)
        )
        self._places: dict[str, list[int]] = {}

    def places(self, literal: str) -> list[int]:
        """Return where a literal of small letters stands, in order."""
        if (places := self._places.get(literal)) is None:
            places = self._places[literal] = []
            threes = zip(*(literal[it:] for it in range(_LETTERS)), strict=False)
            start = self._lower.find(literal) if self.threes.issuperset(threes) else -1
            while start >= 0:
                places.append(start)
                start = self._lower.find(literal, start + 1)
        return places


class _CodePattern:
    """A regular expression without case, of several lines."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        parsed = parser.parse(pattern, _FLAGS)
        anchors = _anchors_of(parsed)
        self.anchors = anchors if _value(anchors)[0] >= _SHORTEST else ()
        self._longest = parsed.getwidth()[1] + _LOOKAHEAD
        spread = max((it.most - it.fewest for it in anchors), default=0)
        self._is_placed = spread <= _MOST_STARTS or self._longest <= _LONGEST

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern, _FLAGS)

    def matches(self, searched: _SearchedText) -> Iterator[re.Match[str]]:
        """Yield what `re.finditer` would."""
        if not self.anchors or not self._is_placed:
            if not self.anchors or any(searched.places(it.literal) for it in self.anchors):
                yield from self._compiled.finditer(searched.text)
            return
        spans = [
            (max(place - anchor.most, 0), place - anchor.fewest)
            for anchor in self.anchors
            for place in searched.places(anchor.literal)
        ]
        end = 0
        for first, last in _merged(spans):
            while (start := max(first, end)) <= last:
                match = self._first(searched.text, start, last)
                if match is None:
                    break
                yield match
                end = max(match.end(), match.start() + 1)

    def _first(self, text: str, start: int, last: int) -> re.Match[str] | None:
        """Return the first match that begins in a span."""
        if last - start > _MOST_STARTS:
            match = self._compiled.search(text, start, last + self._longest)
            return match if match and match.start() <= last else None
        for place in range(start, last + 1):
            if match := self._compiled.match(text, place):
                return match
        return None


class CodePatterns:
    """The patterns of several kinds."""

    def __init__(self, patterns: Mapping[str, Iterable[str]]) -> None:
        self._everywhere: list[tuple[str, _CodePattern]] = []
        self._by_three: dict[tuple[str, ...], list[tuple[str, _CodePattern]]] = {}
        """By the first three letters of each literal."""
        for kind, of_kind in patterns.items():
            for pattern in map(_CodePattern, of_kind):
                threes = {tuple(it.literal[:3]) for it in pattern.anchors}
                if threes and min(map(len, threes)) == _LETTERS:
                    for three in threes:
                        self._by_three.setdefault(three, []).append((kind, pattern))
                else:
                    self._everywhere.append((kind, pattern))

    def matches(self, text: str) -> Iterator[tuple[str, re.Match[str]]]:
        """Yield the kind and the match of each pattern."""
        searched = _SearchedText(text)
        possible = dict.fromkeys(self._everywhere)
        for three in searched.threes & self._by_three.keys():
            possible |= dict.fromkeys(self._by_three[three])
        for kind, pattern in possible:
            for match in pattern.matches(searched):
                yield kind, match


def _merged(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans in order, those that touch as one."""
    spans.sort()
    before: tuple[int, int] | None = None
    for first, last in spans:
        if before and first <= before[1] + 1:
            before = before[0], max(before[1], last)
        else:
            if before:
                yield before
            before = first, last
    if before:
        yield before


def _anchors_of(sequence: parser.SubPattern) -> tuple[_Anchor, ...]:
    """Return literals of which each match has one; `()` if there are none."""
    best: tuple[_Anchor, ...] = ()
    fewest = most = 0
    before = ""
    for item in sequence:
        low, high = parser.SubPattern(sequence.state, [item]).getwidth()
        inner = _anchors_in(sequence.state, *item)
        best = max(best, tuple(_behind(before, fewest, most, it) for it in inner), key=_value)
        fewest, most = fewest + low, most + high
        if item[0] is op.LITERAL:
            before += inner[0].literal
        elif high:
            before = ""
    return best


def _anchors_in(state: Any, kind: Any, value: Any) -> tuple[_Anchor, ...]:
    """Return the literals of one part of a pattern."""
    if kind is op.LITERAL:
        return (_Anchor(chr(value).lower(), 0, 0),)
    choices: list[parser.SubPattern] = []
    if kind is op.BRANCH:
        choices = value[1]
    elif kind is op.IN and len(value) <= _MOST_LETTERS:
        choices = [parser.SubPattern(state, [it]) for it in value]
    elif kind is op.SUBPATTERN:
        choices = [value[3]]
    elif kind in {op.MAX_REPEAT, op.MIN_REPEAT} and value[0]:
        choices = [value[2]]
    anchors = [_anchors_of(choice) for choice in choices]
    return tuple(anchor for of_choice in anchors for anchor in of_choice) if all(anchors) else ()


def _behind(before: str, fewest: int, most: int, anchor: _Anchor) -> _Anchor:
    """Return an anchor of a later part of a pattern; letters right before it belong to it."""
    literal, first, last = anchor
    if last == 0:
        return _Anchor(before + literal, fewest - len(before), most - len(before))
    return _Anchor(literal, fewest + first, most + last)


def _value(anchors: tuple[_Anchor, ...]) -> tuple[int, int]:
    """Return how much the literals save: long ones are rare."""
    shortest = min((len(it.literal) for it in anchors), default=0)
    return min(shortest, _LONG_ENOUGH), -max((it.most for it in anchors), default=0)
