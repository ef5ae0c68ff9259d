"""Find lures in a text: words of several kinds that stand together, and data that flows in code.

What counts is data, in `lure_rules.yaml`. A *kind* is a list of phrases or of short patterns for
code, such as `send` or `secret`. A *sign* names kinds that must meet in one sentence (`send
secret`), follow closely (`not>tell>user`), or be missing (`!example`). In code, a sign that begins
with `flow:` is looked for in a statement and in what its names stand for: `run ^fetch` is a
statement that runs what an earlier one has fetched.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache
from itertools import pairwise, product

from satchel.lazy_dataclass import dataclass

_Place = tuple[int, int]

_CLOSE, _VERY_CLOSE = 60, 20
"""Characters between the parts of `a>b` and of `a>>b`."""
_SPAN = 300
"""Characters of a sentence in which all parts of a sign must be."""
_NEGATED = 30
"""Characters between a prohibition and what it prohibits."""
_WORD = re.compile(r"[A-Za-z]+(?:['\u2019][a-z]+)?|\d+")
_FILLERS = {
    *("a", "an", "the", "any", "all", "your", "its", "their", "his", "her", "my", "our", "ever"),
    *("also", "just", "then", "please", "every", "each", "of", "to", "very", "own", "other"),
    *("some", "s", "this", "that", "these", "those"),
}
_MOST_FILLERS = 2
_WORD_GAP = 6
"""Characters between two words of a phrase."""
_SHORT_WORD = 3
"""Letters of words that have no endings."""
_SENTENCE_END = re.compile(r"[.!?][\"')\]*]*(?=\s)|\n\s*\n|\n(?=\s*(?:[-*#>|+]|\d+[.)])\s)|\n")
_WRAPPED = re.compile(r"(?<=[^\n]{45}[\w,;'\"`*])\n(?=\s*[a-z`\"'(*])")
_STATEMENT_END = re.compile(r"\n|&&|;")
_GIVEN = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?[^\n]*\n(?:[^\n]*\n){0,30}?\s*\1\b")
"""A text that a shell gives to a command, to its last line."""
_NAME = re.compile(r"[A-Za-z_./~][\w./~-]*")
_DEFINED = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b([A-Za-z_]\w*)(?:\[[^\]\n]{0,40}\])?\s*(?::\s*[\w\[\], .]{1,40})?[+|]?=(?![=>])",
        r"\{\s*([\w, :]{1,80})\s*\}\s*=",
        r"\b(?:as|read|def|function|with)\s+(?:-\w+\s+)*([A-Za-z_]\w*)",
        r"\bfor\s*\(?\s*(?:const|let|var)?\s*([\w, ()\[\]]{1,60}?)\s+(?:in|of)\b",
        r"\b([A-Za-z_]\w*)\.extractall\(|extractall\(\s*[\"']([\w./~-]+)",
        r"\(?\b([A-Za-z_]\w*)\)?\s*=>",
        r"\b([A-Za-z_]\w*)\s*\(\)\s*\{",
        r"\bfunction\s*\w*\(\s*([A-Za-z_]\w*)",
        r"\b([A-Za-z_]\w*)\.(?:write\w*|append|extend|push|update|add|put)\(",
        (
            r"(?:>>?|-OutFile|(?<!\S)-[A-Za-z]{0,6}[oO]|--output(?:-document)?|\btee(?:\s+-a)?|(?<!\S)-[CdP])"
            r"[\s=]*[\"']?([\w./~$:{}%\\-]+)"
        ),
        r"(?:urlretrieve|DownloadFile)\([^,\n]{1,200},\s*[\"']?([\w./~$:\\-]+)",
        r"(?:open|writeFile\w*|createWriteStream|Path|copy\w*)\(\s*[\"'`]?([\w./~-]+)",
        r"\b(?:zip\s+-\w+|bundle\s+create|tar\s+-?\w+)\s+([\w./~$-]+)",
        r"\bclone\s[^\n]{0,160}?\S+/([\w-]+?)(?:\.git)?\s*$",
        r"\bclone\s[^\n]{0,160}\s([\w./~-]+)\s*$",
        r"(?:curl|wget)\s(?:[^\n]{0,160}\s)?[\"']?https?://[^\s\"'|]*/([\w.-]+)",
    )
)
_ENTERS = re.compile(r"\s*cd\s")
_RUNS_HERE = re.compile(r"\./|\b(?:sh|bash|zsh|python3?|node)\s+[\w-]+\.\w")
_LITERALS = re.compile("\u00ab(.*?)\u00bb")
"""The mark of the plain text in a pattern, which is in each of its matches."""
_START = 4
"""Letters that say quickly whether a text may contain a literal."""
_REACH = 80
"""Characters behind a literal, and on to the end of a line, in which a pattern is tried."""
_FOLDER = "./"
"""The name of the folder that a shell is in."""
_MOST_NAMES = 500
_DEEPEST = 30
"""Folders of a path that are names."""
_NO_KINDS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Sign:
    """Kinds that are a finding together."""

    chains: tuple[tuple[tuple[str, int], ...], ...]
    """Each is a kind, or several that follow one another closely."""
    absent: tuple[str, ...] = ()
    is_flow: bool = False

    @property
    def kinds(self) -> frozenset[str]:
        """Return all kinds that must be in a text."""
        return frozenset(kind.removeprefix("^") for chain in self.chains for kind, _ in chain)

    @property
    def is_one_kind(self) -> bool:
        """Return whether it is a single pattern, which may go over several sentences."""
        return len(self.chains) == len(self.chains[0]) == 1

    @property
    def prohibits(self) -> bool:
        """Return whether a prohibition is a part of it."""
        return any(kind == "not" for chain in self.chains for kind, _ in chain)


def read_sign(text: str) -> Sign:
    """Return the sign that a line of `lure_rules.yaml` describes."""
    is_flow, parts = text.startswith("flow:"), text.removeprefix("flow:").split()
    return Sign(
        tuple(_read_chain(it) for it in parts if not it.startswith("!")),
        tuple(it[1:] for it in parts if it.startswith("!")),
        is_flow,
    )


def _read_chain(text: str) -> tuple[tuple[str, int], ...]:
    """Return kinds, each with how close it must be to the one before."""
    first, *others = re.split("(>+)", text)
    closeness = {">": _CLOSE, ">>": _VERY_CLOSE}
    pairs = zip(others[1::2], others[::2], strict=True)
    return ((first, 0), *((kind, closeness[mark]) for kind, mark in pairs))


class _Phrases:
    """The phrases that begin with the same words."""

    __slots__ = ("kinds", "longer")

    def __init__(self) -> None:
        self.kinds: list[str] = []
        """Of the phrase that ends here."""
        self.longer: dict[str, _Phrases] = {}

    def add(self, words: Iterable[str], kind: str) -> None:
        phrases = self
        for word in words:
            phrases = phrases.longer.setdefault(word, _Phrases())
        phrases.kinds.append(kind)


class CodePattern:
    """A regular expression without case, which is tried only around its literals."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        literals = _LITERALS.search(pattern)
        self.literals = literals[1].lower().split("|") if literals else [""]

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Return the expression; most are never needed."""
        pattern = _LITERALS.sub(
            lambda match: f"(?:{'|'.join(map(re.escape, match[1].split('|')))})", self._pattern
        )
        return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


class Lexicon:
    """The kinds of words and of code."""

    def __init__(
        self, words: Mapping[str, str], code: Mapping[str, Iterable[str]], flowing: Iterable[str]
    ) -> None:
        self._phrases = _Phrases()
        for kind, text in words.items():
            for phrase in text.split(","):
                for words_ in product(*(it.split("|") for it in phrase.split())):
                    self._phrases.add(
                        [_stem(it) for word in words_ for it in _WORD.findall(word)], kind
                    )
        self.code = {kind: tuple(map(CodePattern, patterns)) for kind, patterns in code.items()}
        self._by_start: dict[tuple[str, ...], list[tuple[str, str, CodePattern]]]
        self._by_start = defaultdict(list)
        """By the first letters of each literal: they say quickly what is not in a text."""
        for kind, patterns in self.code.items():
            for pattern in patterns:
                for literal in pattern.literals:
                    self._by_start[tuple(literal[:_START])].append((kind, literal, pattern))
        self._short = {start for start in self._by_start if len(start) < _START}
        self.flowing = frozenset(flowing)

    def cost(self, kind: str) -> tuple[int, str]:
        """Return how long a search for a kind takes: a key to sort by. Words cost nothing."""
        return len(self.code.get(kind, ())), kind

    def places(self, text: str) -> Places:
        """Return where each kind stands in a text."""
        lower = text.lower()
        letters = (lower[it:] for it in range(_START))
        starts: set[tuple[str, ...]] = {*zip(*letters, strict=False), *self._short}
        code: dict[str, list[tuple[str, CodePattern]]] = defaultdict(list)
        for start in starts & self._by_start.keys():
            for kind, literal, pattern in self._by_start[start]:
                code[kind].append((literal, pattern))
        return Places(self._word_places(text), code, text, lower)

    def _word_places(self, text: str) -> dict[str, list[_Place]]:
        places: dict[str, list[_Place]] = defaultdict(list)
        words = [(_stem(it.group()), it.start(), it.end()) for it in _WORD.finditer(text)]
        for index, (word, start, _) in enumerate(words):
            if phrases := self._phrases.longer.get(word):
                for kind, last in _phrases_at(words, index, phrases):
                    places[kind].append((start, words[last][2]))
        return places


class Places(dict[str, list[_Place]]):
    """Where each kind stands in a text, in order. Code is searched when it is asked for."""

    def __init__(
        self,
        words: Mapping[str, list[_Place]],
        code: Mapping[str, Iterable[tuple[str, CodePattern]]],
        text: str,
        lower: str,
    ) -> None:
        super().__init__((kind, sorted(places)) for kind, places in words.items())
        self._code, self._text, self._lower = code, text, lower
        self._spans: dict[str, list[_Place]] = {}
        """Around each literal."""

    def __missing__(self, kind: str) -> list[_Place]:
        self[kind] = sorted(
            {
                _place(match)
                for literal, pattern in self._code.get(kind, ())
                for start, end in self._spans_of(literal)
                for match in pattern.compiled.finditer(self._text, start, end)
            }
        )
        return self[kind]

    def _spans_of(self, literal: str) -> list[_Place]:
        """Return the lines around a literal; all of the text for an empty one."""
        if (spans := self._spans.get(literal)) is None:
            spans = self._spans[literal] = []
            end = -1
            while (at := self._lower.find(literal, end + 1)) >= 0:
                start = max(end, self._lower.rfind("\n", 0, at) + 1)
                end = self._lower.find("\n", at + _REACH) if literal else -1
                end = len(self._lower) if end < 0 else end
                spans.append((start, end))
        return spans


def _place(match: re.Match[str]) -> _Place:
    """Return where a match stands, without the space or the mark before it."""
    return match.end() - len(match[0].lstrip(" \t\n;&|")), match.end()


def _phrases_at(
    words: list[tuple[str, int, int]], index: int, phrases: _Phrases
) -> Iterator[tuple[str, int]]:
    """Yield the kinds of phrases that begin at a word, and the index of their last word.

    Small words may stand between the words of a phrase.
    """
    for kind in phrases.kinds:
        yield kind, index
    if not phrases.longer:
        return
    for following in range(index + 1, min(index + _MOST_FILLERS + 2, len(words))):
        word, start, _ = words[following]
        if start - words[following - 1][2] > _WORD_GAP:
            return
        if longer := phrases.longer.get(word):
            yield from _phrases_at(words, following, longer)
        if word not in _FILLERS:
            return


@lru_cache(100_000)
def _stem(word: str) -> str:
    """Return a word without the ending of its form: `copies` and `copying` are `copi`."""
    word = word.lower().replace("\u2019", "'").removesuffix("'s")
    for ending, shortest in (("ing", 3), ("ed", 3), ("es", 4), ("s", 3), ("e", 4)):
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            word = word.removesuffix(ending)
            break
    if len(word) > _SHORT_WORD and word[-1] == word[-2]:
        word = word[:-1]
    return f"{word[:-1]}i" if word.endswith("y") and len(word) > _SHORT_WORD else word


class LureFinder:
    """Finds the signs of rules in texts."""

    def __init__(
        self, lexicon: Lexicon, signs: Mapping[str, Iterable[Sign]], known: re.Pattern[str]
    ) -> None:
        """`known` are addresses that are no sign of anything."""
        self.lexicon, self._known = lexicon, known
        self._signs = [
            (sorted(sign.kinds, key=lexicon.cost), rule, sign)
            for rule, of_rule in signs.items()
            for sign in of_rule
        ]

    def find(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield the rule, the start and the end of each match."""
        text = self._known.sub(lambda match: " " * len(match[0]), text)
        places = self.lexicon.places(text)
        ends = _sentence_ends(text)
        possible = [
            (rule, sign) for kinds, rule, sign in self._signs if all(places[kind] for kind in kinds)
        ]
        for rule, sign in possible:
            if not sign.is_flow:
                for start, end in _meetings(sign, places, ends):
                    yield rule, start, end
        if flows := [(rule, sign) for rule, sign in possible if sign.is_flow]:
            yield from self._flows(text, places, flows)

    def _flows(
        self, text: str, places: Places, signs: list[tuple[str, Sign]]
    ) -> Iterator[tuple[str, int, int]]:
        kinds_of: dict[str, frozenset[str]] = {}
        """By the name of a variable or a file."""
        function = ""
        ends = _statement_ends(text)
        kinds = set().union(*(sign.kinds | {*sign.absent} for _, sign in signs))
        kinds_at = _kinds_at(ends, {kind: places[kind] for kind in kinds})
        for index, (start, end) in enumerate(pairwise(ends)):
            own = kinds_at.get(index, _NO_KINDS)
            statement = text[start:end].rstrip(";& \n")
            if "```" in statement:
                kinds_of = {}
            names = set(_names_in(statement)) if kinds_of else ()
            inherited = _NO_KINDS.union(*(kinds_of[name] for name in names if name in kinds_of))
            for rule, sign in signs if own else ():
                if _flows_into(sign, own, inherited):
                    yield rule, start, end
            passed = inherited | (own & self.lexicon.flowing)
            if match := re.match(r"\s*(?:async\s+)?(?:def|function)\s+(\w+)", statement):
                function = match[1]
            if passed and len(kinds_of) < _MOST_NAMES:
                defined = set(_defined_in(statement))
                if function and "return" in statement:
                    defined.add(function)
                for name in defined:
                    kinds_of[name] = kinds_of.get(name, frozenset()) | passed


def _kinds_at(ends: list[int], places: Mapping[str, list[_Place]]) -> dict[int, set[str]]:
    """Return the kinds that begin in each statement, by its number."""
    kinds_at: dict[int, set[str]] = defaultdict(set)
    for kind, of_kind in places.items():
        for start, _ in of_kind:
            kinds_at[bisect_right(ends, start) - 1].add(kind)
    return kinds_at


def _names_in(statement: str) -> Iterator[str]:
    """Yield the names and paths of a statement, and what they are parts of."""
    for name in _NAME.findall(statement):
        yield name.partition(".")[0]
        parts = name.strip("./~").split("/")
        yield from ("/".join(parts[:count]) for count in range(1, min(len(parts), _DEEPEST) + 1))
    if _RUNS_HERE.search(statement):
        yield _FOLDER


def _defined_in(statement: str) -> Iterator[str]:
    """Yield the names and paths that a statement gives a value to."""
    for pattern in _DEFINED:
        for match in pattern.finditer(statement):
            yield from (name.strip("./~") for name in _NAME.findall(match[match.lastindex or 0]))
    if _ENTERS.match(statement):
        yield _FOLDER


def _flows_into(sign: Sign, own: AbstractSet[str], inherited: frozenset[str]) -> bool:
    for ((kind, _),) in sign.chains:
        if kind.startswith("^"):
            if kind[1:] not in inherited:
                return False
        elif kind not in own and (kind not in inherited or kind == sign.chains[0][0][0]):
            return False
    return not any(kind in own for kind in sign.absent)


def _meetings(sign: Sign, places: Places, ends: list[int]) -> Iterator[_Place]:
    """Yield where the kinds of a sign meet in a sentence; once in each sentence."""
    chains = [_chained(chain, places) for chain in sign.chains]
    if not all(chains):
        return
    seen = -1
    for anchor in chains[0]:
        sentence = bisect_right(ends, anchor[0])
        begin, end = ends[sentence - 1], ends[min(sentence, len(ends) - 1)]
        if sentence == seen or not begin <= anchor[0] < end:
            continue
        parts = [anchor, *(_nearest(places, anchor, begin, end) for places in chains[1:])]
        first = min(part[0] if part else -1 for part in parts)
        last = max(part[1] if part else 0 for part in parts)
        if first < 0 or (last > end and not sign.is_one_kind) or last - first > _SPAN:
            continue
        if any(_begins_within(places[kind], begin, end) for kind in sign.absent):
            continue
        if not sign.prohibits and _is_prohibited(places["not"], first):
            continue
        seen = sentence
        yield first, last


def _begins_within(places: list[_Place], begin: int, end: int) -> bool:
    index = bisect_left(places, (begin, 0))
    return index < len(places) and places[index][0] < end


def _is_prohibited(negations: list[_Place], first: int) -> bool:
    index = bisect_left(negations, (first, 0)) - 1
    return index >= 0 and 0 <= first - negations[index][1] <= _NEGATED


def _chained(chain: tuple[tuple[str, int], ...], places: Places) -> list[_Place]:
    """Return where kinds follow one another closely."""
    chained = places[chain[0][0]]
    for kind, closeness in chain[1:]:
        following, longer = places[kind], []
        for start, end in chained:
            index = bisect_left(following, (end, 0))
            if index < len(following) and following[index][0] - end <= closeness:
                longer.append((start, following[index][1]))
        chained = longer
    return chained


def _nearest(of_kind: list[_Place], anchor: _Place, begin: int, end: int) -> _Place | None:
    """Return the place nearest to another one, in the same sentence; never a part of it."""
    index = bisect_left(of_kind, anchor)
    near = [
        it
        for it in of_kind[max(index - 2, 0) : index + 3]
        if begin <= it[0] < end and (it[1] <= anchor[0] or it[0] >= anchor[1])
    ]
    return min(near, key=lambda it: max(anchor[0] - it[1], it[0] - anchor[1]), default=None)


def _sentence_ends(text: str) -> list[int]:
    """Return where sentences end; a line that continues with a small letter is no end."""
    wrapped = {it.start() for it in _WRAPPED.finditer(text)}
    return [
        0,
        *(it.end() for it in _SENTENCE_END.finditer(text) if it.start() not in wrapped),
        len(text) + 1,
    ]


def _statement_ends(text: str) -> list[int]:
    """Return where statements end; the text that a shell is given is a part of its statement."""
    given = [it.span() for it in _GIVEN.finditer(text)]
    ends = (it.end() for it in _STATEMENT_END.finditer(text))
    return [0, *(it for it in ends if not any(a < it < b for a, b in given)), len(text)]
