"""Find where kinds of words and of code stand in a text.

A *kind* is a list of phrases or of short patterns for code, such as `send` or `secret`. All kinds
are data, in `lure_rules.yaml`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import accumulate, chain, pairwise, product

Span = tuple[int, int]
"""Where something begins and ends in a text."""

_WORD = re.compile(r"[A-Za-z]+(?:['\u2019][a-z]+)?|\d+")
_WORD_OR_GAP = re.compile(f"({_WORD.pattern})")
_FILLERS = {
    *("a", "an", "the", "any", "all", "your", "its", "their", "his", "her", "my", "our", "ever"),
    *("also", "just", "then", "please", "every", "each", "of", "to", "very", "own", "other"),
    *("some", "s", "this", "that", "these", "those"),
}
"""Small words that may stand between the words of a phrase."""
_MOST_FILLERS = 2
_BETWEEN_WORDS = re.compile(r"[^,;:(){}\[\]=|]{0,6}")
"""What may be between two words of a phrase: no mark that separates parts of a list or of code."""
_SHORT_WORD = 3
"""Letters of words that have no endings."""
_LITERALS = re.compile("\u00ab(.*?)\u00bb")
"""The mark of the plain text in a pattern, which is in each of its matches."""
_START = 4
"""Length of the prefixes by which literals are indexed."""
_WHOLE_TEXT = 50
"""How much longer a search without a literal takes."""
_NOT_BEFORE, _NOT_AFTER, _NEVER_AFTER = 25, 3, 40
"""Characters between "not" and a verb of another language, some of which negate after the verb.
In some, "never" stands behind whom the verb is about."""
_CLAUSE_END = re.compile(r"[.,;:!?\n\u3001\u3002\uff0c]|\b(?:und|en|och|og)\b")
_STATES = re.compile(
    r"\b(?:is|are|was|were|does|did|has|have|can)(?:\s*not|n['\u2019]t)\Z", re.IGNORECASE
)
"""A "not" that says how something is; "do not" and "never" are orders."""
_REACH = 80
"""A pattern is tried up to this many characters after its literal, and to the end of that line."""


class Lexicon:
    """The kinds of words and of code."""

    def __init__(
        self,
        words: Mapping[str, str],
        code: Mapping[str, Iterable[str]],
        negatable: Iterable[str] = (),
    ) -> None:
        """`negatable` are kinds of code that count only where no `foreign_not` is beside them."""
        self._negatable = frozenset(negatable)
        self._phrases = _TrieNode()
        for kind, text in words.items():
            for phrase in text.split(","):
                for choice in product(*map(_choices, phrase.split())):
                    self._phrases.add(chain.from_iterable(choice), kind)
        self.code = {kind: tuple(map(CodePattern, patterns)) for kind, patterns in code.items()}
        self._by_literal: dict[str, list[tuple[str, CodePattern]]] = defaultdict(list)
        for kind, patterns in self.code.items():
            for pattern in patterns:
                for literal in pattern.literals:
                    self._by_literal[literal].append((kind, pattern))
        self._by_start: dict[tuple[str, ...], list[str]] = defaultdict(list)
        """Literals by their first letters: they say quickly what is not in a text."""
        for literal in self._by_literal:
            if len(literal) >= _START:
                self._by_start[tuple(literal[:_START])].append(literal)
        self._short = [literal for literal in self._by_literal if len(literal) < _START]

    def cost(self, kind: str) -> tuple[int, str]:
        """Return how long a search for a kind takes: a key to sort by. Words cost nothing."""
        patterns = self.code.get(kind, ())
        return sum(1 if all(it.literals) else _WHOLE_TEXT for it in patterns), kind

    def spans_in(self, text: str) -> KindSpans:
        """Return where each kind stands in a text."""
        lower = text.lower()
        code: dict[str, list[tuple[str, CodePattern]]] = defaultdict(list)
        for literal in self._literals_in(lower):
            for kind, pattern in self._by_literal[literal]:
                code[kind].append((literal, pattern))
        return KindSpans(self._word_spans(text), code, self._negatable, (text, lower))

    def _literals_in(self, lower: str) -> Iterator[str]:
        """Yield the literals in a text. Its pairs of letters say quickly which ones are not."""
        pairs = {*pairwise(lower)}
        for literal in self._short:
            if pairs.issuperset(pairwise(literal)) and literal in lower:
                yield literal
        starts = {*zip(*(lower[offset:] for offset in range(_START)), strict=False)}
        for start in starts & self._by_start.keys():
            for literal in self._by_start[start]:
                if tuple(literal[-_START:]) in starts and literal in lower:
                    yield literal

    def _word_spans(self, text: str) -> dict[str, list[Span]]:
        spans: dict[str, list[Span]] = defaultdict(list)
        # Gaps and words in turn: faster than a match for each word.
        parts = _WORD_OR_GAP.split(text)
        ends = [*accumulate(map(len, parts))]
        words = [*zip(map(_stem, parts[1::2]), ends[::2], ends[1::2], parts[::2], strict=False)]
        for index, (word, start, _, _) in enumerate(words):
            if node := self._phrases.children.get(word):
                for kind, last in _phrases_at(words, index, node):
                    spans[kind].append((start, words[last][2]))
        return spans


class CodePattern:
    """A case-insensitive regular expression, which is tried only near its literals."""

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


class KindSpans(dict[str, list[Span]]):
    """Where each kind stands in a text, in order. Code is searched when it is asked for."""

    def __init__(
        self,
        words: Mapping[str, list[Span]],
        code: Mapping[str, Iterable[tuple[str, CodePattern]]],
        negatable: frozenset[str],
        texts: tuple[str, str],
    ) -> None:
        """`texts` are the text as it is and in small letters."""
        super().__init__((kind, sorted(spans)) for kind, spans in words.items())
        self._code, self._negatable = code, negatable
        self._text, self._lower = texts
        self._around: dict[str, list[Span]] = {}
        """The lines around each literal."""
        self.possible = {*words, *code}
        """The kinds of words that are in the text, and those of code of which it has a literal."""

    def __missing__(self, kind: str) -> list[Span]:
        matches = {
            stripped(self._text, *match.span())
            for literal, pattern in self._code.get(kind, ())
            for start, end in self._lines_around(literal)
            for match in pattern.compiled.finditer(self._text, start, end)
        }
        is_negatable = kind in self._negatable
        self[kind] = sorted(
            span for span in matches if not (is_negatable and self._is_negated(span))
        )
        return self[kind]

    def is_in_reach(self, negation: Span, start: int) -> bool:
        """Return whether a "not" reaches a place. In "if it is not there, ask" it ends before."""
        first, last = negation
        is_statement = _STATES.search(self._text, max(first - 8, 0), last)
        return not (is_statement and "," in self._text[last:start])

    def _is_negated(self, span: Span) -> bool:
        """Return whether a word of another language for "not" is in the same clause, beside it."""
        first, last = span
        ends = [end for _, end in self["foreign_not"] if 0 <= first - end <= _NOT_BEFORE]
        starts = [at for at, _ in self["foreign_not"] if 0 <= at - last <= _NOT_AFTER]
        starts += [at for at, _ in self["foreign_never"] if first < at <= last + _NEVER_AFTER]
        between = [(end, first) for end in ends] + [(first, start) for start in starts]
        return any(not _CLAUSE_END.search(self._text, *part) for part in between)

    def _lines_around(self, literal: str) -> list[Span]:
        """Return the lines around a literal; all of the text for an empty one."""
        if (spans := self._around.get(literal)) is None:
            spans = self._around[literal] = []
            end = -1
            while (at := self._lower.find(literal, end + 1)) >= 0:
                start = max(end, self._lower.rfind("\n", 0, at) + 1)
                end = self._lower.find("\n", at + _REACH) if literal else -1
                end = len(self._lower) if end < 0 else end
                spans.append((start, end))
        return spans


def stripped(text: str, start: int, end: int) -> Span:
    """Return where a part of a text stands, without the space or the mark before it."""
    return end - len(text[start:end].lstrip(" \t\n;&|")), end


class _TrieNode:
    """A node of the trie of phrases; each edge is a word."""

    __slots__ = ("children", "kinds")

    def __init__(self) -> None:
        self.kinds: list[str] = []
        """The kinds of the phrases that end at this node."""
        self.children: dict[str, _TrieNode] = {}

    def add(self, words: Iterable[str], kind: str) -> None:
        node = self
        for word in words:
            if (child := node.children.get(word)) is None:
                child = node.children[word] = _TrieNode()
            node = child
        if kind not in node.kinds:
            node.kinds.append(kind)


def _choices(options: str) -> dict[tuple[str, ...], None]:
    """Return the stems of each of the options `a|b`; those of `copies|copying` are the same."""
    return {tuple(map(_stem, _WORD.findall(option))): None for option in options.split("|")}


def _phrases_at(
    words: list[tuple[str, int, int, str]], index: int, node: _TrieNode
) -> Iterator[tuple[str, int]]:
    """Yield the kinds of phrases that begin at a word, and the index of their last word."""
    for kind in node.kinds:
        yield kind, index
    if not node.children:
        return
    for following in range(index + 1, min(index + _MOST_FILLERS + 2, len(words))):
        word, _, _, gap = words[following]
        if gap != " " and not _BETWEEN_WORDS.fullmatch(gap):
            return
        if child := node.children.get(word):
            yield from _phrases_at(words, following, child)
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
