"""Taint tracking: follow data from statement to statement, such as from a download to a run.

A name, of a variable or of a file, keeps the kinds of the statements that give it a value. How a
statement does that is data, in `lure_rules.yaml`: code of all languages is read the same way.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from satchel.lazy_dataclass import dataclass
from satchel.scan.lexicon import Span

_STATEMENT_END = re.compile(r"\n|&&|;(?!base64)|(?<=`)\.(?=\s)")
_HERE_DOCUMENT = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?[^\n]*\n(?:[^\n]*\n){0,30}?\s*\1\b")
"""A text that a shell gives to a command, to its last line."""
_NAME = re.compile(r"[A-Za-z_./~][\w./~-]*")
_FUNCTION = re.compile(r"\s*(?:async\s+)?(?:def|function)\s+(\w+)")
_ENTERS = re.compile(r"\s*cd\s")
_RUNS_HERE = re.compile(r"\./|\bmake install\b|\b(?:sh|bash|zsh|python3?|node)\s+[\w-]+\.\w")
_FOLDER = "./"
"""The name that stands for the current directory."""
_MOST_NAMES = 500
_DEEPEST = 30
"""Folders of a path that are names."""
_NO_KINDS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSign:
    """Kinds that make a finding if a statement, or a value that it uses, has them."""

    act: str
    """What the statement itself does."""
    involved: tuple[str, ...]
    """Kinds of the statement or of a name in it."""
    name_kinds: tuple[str, ...]
    """Kinds of a name in it."""
    absent: tuple[str, ...]
    """Kinds that the statement must not have."""
    absent_anywhere: tuple[str, ...]
    """Kinds that the text must not have."""

    @property
    def kinds(self) -> frozenset[str]:
        """Return all kinds that must be in a text."""
        return frozenset((self.act, *self.involved, *self.name_kinds))

    def is_met(self, statement_kinds: set[str], name_kinds: frozenset[str]) -> bool:
        """Return whether a statement is a finding."""
        return (
            self.act in statement_kinds
            and name_kinds.issuperset(self.name_kinds)
            and (statement_kinds | name_kinds).issuperset(self.involved)
            and statement_kinds.isdisjoint(self.absent)
        )


def read_flow_sign(text: str) -> FlowSign:
    """Return the sign that a line of `lure_rules.yaml` describes after `flow:`.

    The first kind is the act, `^kind` is one of a name, and `!kind` must be absent, `!!kind` from
    all of the text.
    """
    act, *others = text.split()
    return FlowSign(
        act=act,
        involved=tuple(kind for kind in others if kind[0] not in "^!"),
        name_kinds=tuple(kind[1:] for kind in others if kind[0] == "^"),
        absent=tuple(kind[1:] for kind in others if kind[0] == "!" != kind[1]),
        absent_anywhere=tuple(kind[2:] for kind in others if kind[:2] == "!!"),
    )


class DataFlow:
    """Finds statements that do something with what names stand for."""

    def __init__(self, definitions: Iterable[str], flowing: Iterable[str]) -> None:
        self._definitions = tuple(map(re.compile, definitions))
        """Patterns for statements that give a value to the name in their group."""
        self._flowing = frozenset(flowing)
        """The kinds that a name keeps."""

    def find(
        self, text: str, spans: Mapping[str, list[Span]], signs: Sequence[tuple[str, FlowSign]]
    ) -> Iterator[tuple[str, int, int]]:
        """Yield the rule, the start and the end of each statement that is a finding."""
        kinds_by_name: dict[str, frozenset[str]] = {}
        function = ""
        ends = _statement_ends(text)
        kinds = set().union(*(sign.kinds | {*sign.absent} for _, sign in signs))
        kinds_by_statement = _by_statement(ends, {kind: spans[kind] for kind in kinds})
        for index, (start, end) in enumerate(pairwise(ends)):
            statement_kinds = kinds_by_statement.get(index, set())
            statement = text[start:end].rstrip(";& \n")
            if "```" in statement:
                kinds_by_name = {}
            names = set(_names_in(statement)) if kinds_by_name else set()
            name_kinds = _NO_KINDS.union(*(kinds_by_name.get(name, _NO_KINDS) for name in names))
            for rule, sign in signs if statement_kinds else ():
                if sign.is_met(statement_kinds, name_kinds):
                    yield rule, start, end
            if match := _FUNCTION.match(statement):
                function = match[1]
            kept = name_kinds | (statement_kinds & self._flowing)
            if kept and len(kinds_by_name) < _MOST_NAMES:
                defined = set(self._defined_in(statement))
                if function and "return" in statement:
                    defined.add(function)
                for name in defined:
                    kinds_by_name[name] = kinds_by_name.get(name, _NO_KINDS) | kept

    def _defined_in(self, statement: str) -> Iterator[str]:
        """Yield the names and paths that a statement gives a value to."""
        for pattern in self._definitions:
            for match in pattern.finditer(statement):
                names = _NAME.findall(match[match.lastindex or 0])
                yield from (name.strip("./~") for name in names)
        if _ENTERS.match(statement):
            yield _FOLDER


def _by_statement(ends: list[int], spans: Mapping[str, list[Span]]) -> dict[int, set[str]]:
    """Return the kinds that begin in each statement, by its number."""
    kinds: dict[int, set[str]] = defaultdict(set)
    for kind, kind_spans in spans.items():
        for start, _ in kind_spans:
            kinds[bisect_right(ends, start) - 1].add(kind)
    return kinds


def _names_in(statement: str) -> Iterator[str]:
    """Yield the names and paths of a statement, and what they are parts of."""
    for name in _NAME.findall(statement):
        yield name.partition(".")[0]
        parts = name.strip("./~").split("/")
        yield from ("/".join(parts[:count]) for count in range(1, min(len(parts), _DEEPEST) + 1))
    if _RUNS_HERE.search(statement):
        yield _FOLDER


def _statement_ends(text: str) -> list[int]:
    """Return where statements end; a here-document belongs to the statement that opens it."""
    documents = [match.span() for match in _HERE_DOCUMENT.finditer(text)]
    ends = (match.end() for match in _STATEMENT_END.finditer(text))
    return [0, *(at for at in ends if not any(a < at < b for a, b in documents)), len(text)]
