"""Find lures in a text: words of several kinds that stand together, and data that flows in code.

The rules are in `lure_rules.yaml`. A *kind* is a set of words or patterns with one meaning. A
*sign* is a line of kinds that together make a finding:

- `send secret`: both kinds are in one sentence;
- `not>tell>user`: the kinds follow one another closely;
- `!example`: no word of this kind is in the sentence, and with `!!by_user` none is in the text;
- `anywhere:`: the parts may be anywhere in the text;
- `near:`: the parts are at most some lines from the first one, in any sentence;
- `flow:run ^fetch`: a statement of code runs what an earlier statement has fetched.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from satchel.lazy_dataclass import dataclass
from satchel.scan.data_flow import DataFlow, FlowSign, read_flow_sign
from satchel.scan.lexicon import CodePattern, KindSpans, Lexicon, Span, stripped
from satchel.scan.package_names import PackageNames

_CLOSE, _VERY_CLOSE = 60, 20
"""Characters between the parts of `a>b` and of `a>>b`."""
_LONGEST = 300
"""Characters of a sentence in which all parts of a sign must be."""
_NEAR = 400
"""Characters between the first part of a sign with `near:` and the others."""
_NEGATED = 30
"""Characters between a prohibition and what it prohibits."""
_ADVERSARIES = ("adversary", "foreign_adversary")
_BEFORE_SUBJECT = re.compile(r"[\W\d]*(?:an?\s+|the\s+)?", re.IGNORECASE)
"""What may stand before the subject of a sentence, such as the mark of a list."""
_SENTENCE_END = re.compile(
    r"[.!?][\"')\]*]*(?=\s(?!\|))|\n\s*\n|\n(?=\s*(?:[-*#>|+]|\d+[.)])\s)|\n"
)
_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$", re.MULTILINE)
"""A row of a table, each cell of which is a sentence."""
_WRAPPED = re.compile(r"(?<=[^\n]{45}[\w,;'\"`*])\n(?=\s*[a-z`\"'(*])")
"""The end of a long line whose sentence continues on the next one, with a small letter."""


class _Link(NamedTuple):
    """A kind, and how many characters may be between it and the one before."""

    kind: str
    gap: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LureRule:
    """Kinds that make a finding together, usually in one sentence."""

    chains: tuple[tuple[_Link, ...], ...]
    """Each is a kind, or several that follow one another closely."""
    absent: tuple[str, ...] = ()
    absent_anywhere: tuple[str, ...] = ()
    is_anywhere: bool = False
    """Whether the parts may be anywhere in a text."""
    is_near: bool = False
    """Whether the parts may be in different sentences, but not far from the first one."""

    @property
    def kinds(self) -> frozenset[str]:
        """Return all kinds that must be in a text."""
        return frozenset(link.kind for chain in self.chains for link in chain)

    @property
    def may_leave_sentence(self) -> bool:
        """Return whether it is a single pattern, which may go over several sentences."""
        return self.is_near or len(self.kinds) == 1


def read_sign(text: str) -> LureRule | FlowSign:
    """Return the sign that a line of `lure_rules.yaml` describes."""
    if text.startswith("flow:"):
        return read_flow_sign(text.removeprefix("flow:"))
    parts = re.sub("^(?:anywhere|near):", "", text).split()
    return LureRule(
        chains=tuple(_read_chain(part) for part in parts if not part.startswith("!")),
        absent=tuple(part[1:] for part in parts if re.match("![^!]", part)),
        absent_anywhere=tuple(part[2:] for part in parts if part.startswith("!!")),
        is_anywhere=text.startswith("anywhere:"),
        is_near=text.startswith("near:"),
    )


def _read_chain(text: str) -> tuple[_Link, ...]:
    first, *others = re.split("(>+)", text)
    gaps = {">": _CLOSE, ">>": _VERY_CLOSE}
    pairs = zip(others[1::2], others[::2], strict=True)
    return (_Link(first, 0), *(_Link(kind, gaps[mark]) for kind, mark in pairs))


class LureFinder:
    """Finds the signs of rules in texts."""

    def __init__(
        self,
        lexicon: Lexicon,
        data_flow: DataFlow,
        signs: Mapping[str, Iterable[LureRule | FlowSign]],
        harmless: Iterable[CodePattern],
        packages: PackageNames,
    ) -> None:
        """`harmless` matches addresses and commands that are never part of a finding."""
        self.lexicon, self._data_flow, self._harmless = lexicon, data_flow, harmless
        self._packages = packages
        # The cheapest kinds are looked up first: mostly one is missing, which ends the check.
        self._signs = [
            (sign.kinds, sorted(sign.kinds, key=lexicon.cost), rule, sign)
            for rule, rule_signs in signs.items()
            for sign in rule_signs
        ]

    def find(self, text: str, functions: Sequence[Span] = ()) -> Iterator[tuple[str, int, int]]:
        """Yield the rule, the start and the end of each match that the text does not cite.

        `functions` are where those of Python begin and end.
        """
        lower = text.lower()
        for pattern in self._harmless:
            if any(literal in lower for literal in pattern.literals):
                text = pattern.compiled.sub(lambda match: " " * len(match[0]), text)
        spans = self.lexicon.spans_in(text)
        packages = self._packages.find(text)
        matches = [
            *self._matches(text, spans, functions),
            *(("misspelled-package", *at) for at in packages),
        ]
        is_lesson = matches and (spans["threat"] or spans["foreign_threat"])
        cited = spans["cited"] if is_lesson else []
        # At index n: where the first n citations end. They may overlap.
        citation_ends = [0, *accumulate((end for _, end in cited), max)]
        for rule, start, end in matches:
            at, _ = stripped(text, start, end)
            if at >= citation_ends[bisect_right(cited, (at, len(text)))]:
                yield rule, start, end

    def _matches(
        self, text: str, spans: KindSpans, functions: Sequence[Span]
    ) -> Iterator[tuple[str, int, int]]:
        ends = _sentence_ends(text)
        flow_signs: list[tuple[str, FlowSign]] = []
        possible = spans.possible
        for kinds, by_cost, rule, sign in self._signs:
            if not (kinds <= possible and all(spans[kind] for kind in by_cost)):
                continue
            if any(spans[kind] for kind in sign.absent_anywhere):
                continue
            if isinstance(sign, FlowSign):
                flow_signs.append((rule, sign))
            elif sign.is_anywhere:
                parts = [_chained(chain, spans) for chain in sign.chains]
                if all(parts):
                    yield rule, *parts[0][0]
            else:
                yield from ((rule, *span) for span in _meetings(sign, spans, ends))
        if flow_signs:
            for rule, start, end in self._data_flow.find(text, spans, flow_signs, functions):
                if not _is_about_adversary(text, spans, start):
                    yield rule, start, end


def _meetings(sign: LureRule, spans: KindSpans, ends: list[int]) -> Iterator[Span]:
    """Yield where the kinds of a sign meet in a sentence; once in each sentence."""
    anchors, *others = (_chained(chain, spans) for chain in sign.chains)
    if not (anchors and all(others)):
        return
    latest = 0  # the number of the sentence of the last meeting, from 1
    for anchor in anchors:
        sentence = bisect_right(ends, anchor[0])
        begin, end = ends[sentence - 1], ends[min(sentence, len(ends) - 1)]
        if sentence == latest or anchor[0] >= end:
            continue
        if sign.is_near:
            begin, end = anchor[0] - _NEAR, anchor[1] + _NEAR
        nearest = [_nearest(spans_of_part, anchor, begin, end) for spans_of_part in others]
        parts = [anchor, *filter(None, nearest)]
        first, last = min(start for start, _ in parts), max(stop for _, stop in parts)
        is_complete = None not in nearest and (sign.is_near or last - first <= _LONGEST)
        if not is_complete or (last > end and not sign.may_leave_sentence):
            continue
        # A sentence about an adversary describes an attack; it is not one.
        if any(_begins_within(spans[kind], begin, end) for kind in (*sign.absent, *_ADVERSARIES)):
            continue
        if _leaves_quotation(spans["quotation"], anchor):
            continue
        if "not" not in sign.kinds and _is_prohibited(spans, first):
            continue
        latest = sentence
        if sign.is_near:  # shown is the sentence of the last part: the first may be in a title
            final = max(start for start, _ in parts)
            first = max(first, ends[bisect_right(ends, final) - 1])
        yield first, last


def _is_about_adversary(text: str, spans: KindSpans, start: int) -> bool:
    """Return whether a statement begins with an adversary: it says what that one does."""
    subject = _BEFORE_SUBJECT.match(text, start)
    return any(
        subject is not None and _begins_within(spans[kind], subject.end(), subject.end() + 1)
        for kind in _ADVERSARIES
    )


def _begins_within(spans: list[Span], begin: int, end: int) -> bool:
    index = bisect_left(spans, (begin, 0))
    return index < len(spans) and spans[index][0] < end


def _leaves_quotation(quotations: list[Span], chain: Span) -> bool:
    """Return whether a chain begins in a quotation and ends behind it: a text about it."""
    index = bisect_left(quotations, chain) - 1
    return index >= 0 and chain[0] < quotations[index][1] < chain[1]


def _is_prohibited(spans: KindSpans, first: int) -> bool:
    negations = spans["not"]
    index = bisect_left(negations, (first, 0)) - 1
    is_near = index >= 0 and 0 <= first - negations[index][1] <= _NEGATED
    return is_near and spans.is_in_reach(negations[index], first)


def _chained(chain: tuple[_Link, ...], spans: KindSpans) -> list[Span]:
    """Return where kinds follow one another closely."""
    chained = spans[chain[0].kind]
    for kind, gap in chain[1:]:
        following, longer = spans[kind], []
        for start, end in chained:
            index = bisect_left(following, (end, 0))
            if index == len(following) or following[index][0] - end > gap:
                continue
            if chain[0].kind != "not" or spans.is_in_reach((start, end), following[index][0]):
                longer.append((start, following[index][1]))
        chained = longer
    return chained


def _nearest(spans: list[Span], anchor: Span, begin: int, end: int) -> Span | None:
    """Return the span nearest to another one, in the same sentence; never a part of it."""
    index = bisect_left(spans, anchor)
    near = [
        (start, stop)
        for start, stop in spans[max(index - 2, 0) : index + 3]
        if begin <= start < end and (stop <= anchor[0] or start >= anchor[1])
    ]
    return min(near, key=lambda span: max(anchor[0] - span[1], span[0] - anchor[1]), default=None)


def _sentence_ends(text: str) -> list[int]:
    """Return where sentences end, with the start and the end of the text."""
    wrapped = {match.start() for match in _WRAPPED.finditer(text)}
    ends = {it.end() for it in _SENTENCE_END.finditer(text) if it.start() not in wrapped}
    for row in _ROW.finditer(text):
        ends |= {row.start() + cell.end() for cell in re.finditer(r"\s\|(?=\s)", row[0])}
    return [0, *sorted(ends), len(text) + 1]
