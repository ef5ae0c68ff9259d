"""Follow data through the statements of a text: what is fetched here may be run there.

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

_STATEMENT_END = re.compile(r"\n|&&|;")
_HERE_DOCUMENT = re.compile(r"<<-?\s*[\"']?(\w+)[\"']?[^\n]*\n(?:[^\n]*\n){0,30}?\s*\1\b")
"""A text that a shell gives to a command, to its last line."""
_NAME = re.compile(r"[A-Za-z_./~][\w./~-]*")
_FUNCTION = re.compile(r"\s*(?:async\s+)?(?:def|function)\s+(\w+)")
_ENTERS = re.compile(r"\s*cd\s")
_RUNS_HERE = re.compile(r"\./|\b(?:sh|bash|zsh|python3?|node)\s+[\w-]+\.\w")
_FOLDER = "./"
"""The name of the folder that a shell is in."""
_MOST_NAMES = 500
_DEEPEST = 30
"""Folders of a path that are names."""
_NO_KINDS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSign:
    """Kinds that are a finding together, in a statement and in what its names stand for."""

    act: str
    """What the statement itself does."""
    involved: tuple[str, ...]
    """Kinds of the statement or of a name in it."""
    of_names: tuple[str, ...]
    """Kinds of a name in it."""
    absent: tuple[str, ...]
    """Kinds that the statement must not have."""

    @property
    def kinds(self) -> frozenset[str]:
        """Return all kinds that must be in a text."""
        return frozenset((self.act, *self.involved, *self.of_names))

    def is_met(self, of_statement: set[str], of_names: frozenset[str]) -> bool:
        """Return whether a statement is a finding."""
        return (
            self.act in of_statement
            and of_names.issuperset(self.of_names)
            and (of_statement | of_names).issuperset(self.involved)
            and of_statement.isdisjoint(self.absent)
        )


def read_flow_sign(text: str) -> FlowSign:
    """Return the sign that a line of `lure_rules.yaml` describes after `flow:`.

    The first kind is the act, `^kind` is one of a name, and `!kind` must be absent.
    """
    act, *others = text.split()
    return FlowSign(
        act=act,
        involved=tuple(kind for kind in others if kind[0] not in "^!"),
        of_names=tuple(kind[1:] for kind in others if kind[0] == "^"),
        absent=tuple(kind[1:] for kind in others if kind[0] == "!"),
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
            of_statement = kinds_by_statement.get(index, set())
            statement = text[start:end].rstrip(";& \n")
            if "```" in statement:
                kinds_by_name = {}
            names = set(_names_in(statement)) if kinds_by_name else set()
            of_names = _NO_KINDS.union(*(kinds_by_name.get(name, _NO_KINDS) for name in names))
            for rule, sign in signs if of_statement else ():
                if sign.is_met(of_statement, of_names):
                    yield rule, start, end
            if match := _FUNCTION.match(statement):
                function = match[1]
            kept = of_names | (of_statement & self._flowing)
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
    for kind, of_kind in spans.items():
        for start, _ in of_kind:
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
    """Return where statements end; the text that a shell is given is a part of its statement."""
    given = [match.span() for match in _HERE_DOCUMENT.finditer(text)]
    ends = (match.end() for match in _STATEMENT_END.finditer(text))
    return [0, *(at for at in ends if not any(a < at < b for a, b in given)), len(text)]
