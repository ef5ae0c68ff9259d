"""Taint tracking: follow data from statement to statement, such as from a download to a run.

A name, of a variable or of a file, keeps the kinds of the statements that give it a value. How a
statement does that is data, in `lure_rules.yaml`: code of all languages is read the same way.
"""

import math
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
_CALLED = re.compile(r"(\w+)\(")
_GLOBAL = re.compile(r"\s*(?:global|nonlocal)\s+([\w, ]+)")
_ATTRIBUTE = re.compile(r"\b(?:self|cls|this)\.(?=\w)")
_OWN = "own_"
"""What an attribute of an object begins with here, in each of its methods."""
_ENTERS = re.compile(r"\s*cd\s")
_RUNS_HERE = re.compile(r"\./|\bmake install\b|\b(?:sh|bash|zsh|python3?|node)\s+[\w-]+\.\w")
_FOLDER = "./"
"""The name that stands for the current directory."""
_MOST_NAMES = 500
_DEEPEST = 30
"""Folders of a path that are names."""
_NO_KINDS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    start: int
    end: int
    text: str
    """Without the marks at its end, and with other names for attributes."""
    kinds: set[str]


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
        self,
        text: str,
        spans: Mapping[str, list[Span]],
        signs: Sequence[tuple[str, FlowSign]],
        functions: Sequence[Span] = (),
    ) -> Iterator[tuple[str, int, int]]:
        """Yield the rule, the start and the end of each statement that is a finding.

        `functions` are where those of Python begin and end, if that is known, in order.
        """
        kinds = set().union(*(sign.kinds | {*sign.absent} for _, sign in signs))
        statements = _statements(text, {kind: spans[kind] for kind in kinds})
        argument_kinds: dict[str, frozenset[str]] = {}
        findings = list(self._follow(statements, signs, functions, argument_kinds))
        if argument_kinds:  # A function may be written above its call.
            findings = list(self._follow(statements, signs, functions, argument_kinds))
        yield from findings

    def _follow(
        self,
        statements: Iterable[_Statement],
        signs: Sequence[tuple[str, FlowSign]],
        functions: Sequence[Span],
        argument_kinds: dict[str, frozenset[str]],
    ) -> Iterator[tuple[str, int, int]]:
        """Yield the findings, and add what functions are called with to `argument_kinds`."""
        names, function = _NameKinds(functions), ""
        for statement in statements:
            text, kinds = statement.text, statement.kinds
            names.enter(statement.start, text)
            name_kinds = names.kinds_of(text)
            for rule, sign in signs if kinds else ():
                if sign.is_met(kinds, name_kinds):
                    yield rule, statement.start, statement.end
            if match := _FUNCTION.match(text):
                function = match[1]
                names.add(
                    _NAME.findall(text[match.end() :]), argument_kinds.get(function, _NO_KINDS)
                )
            elif functions and name_kinds:
                for name in _CALLED.findall(text):
                    argument_kinds[name] = argument_kinds.get(name, _NO_KINDS) | name_kinds
            kept = name_kinds | (kinds & self._flowing)
            names.add(self._defined_in(text) if kept else (), kept)
            if function and kept and "return" in text:
                names.share([function])
                names.add([function], kept)

    def _defined_in(self, statement: str) -> Iterator[str]:
        """Yield the names and paths that a statement gives a value to."""
        for pattern in self._definitions:
            for match in pattern.finditer(statement):
                names = _NAME.findall(match[match.lastindex or 0])
                yield from (name.strip("./~") for name in names)
        if _ENTERS.match(statement):
            yield _FOLDER


class _NameKinds:
    """The kinds of names: those of a function in Python are forgotten at its end."""

    def __init__(self, functions: Sequence[Span]) -> None:
        self._functions = functions
        self._next = 0
        self._count = 0
        self._shared: set[str] = set()
        self._scopes: list[tuple[float, dict[str, frozenset[str]]]] = [(math.inf, {})]
        """Where each ends, and its names, from the outermost one."""

    def enter(self, place: int, statement: str) -> None:
        """Continue with a statement. With a fence of a block of code, all names are forgotten."""
        if "```" in statement:
            self._scopes = [(end, {}) for end, _ in self._scopes]
        if match := _GLOBAL.match(statement):
            self.share(_NAME.findall(match[1]))
        while self._scopes[-1][0] <= place:
            self._scopes.pop()
        while self._next < len(self._functions) and self._functions[self._next][0] <= place:
            _, end = self._functions[self._next]
            self._next += 1
            if end > place:
                self._scopes.append((end, {}))

    def share(self, names: Iterable[str]) -> None:
        """Keep what these names stand for at the end of a function."""
        self._shared.update(names)

    def kinds_of(self, statement: str) -> frozenset[str]:
        """Return the kinds of all names in a statement."""
        tables = [table for _, table in self._scopes if table]
        names = set(_names_in(statement)) if tables else ()
        return _NO_KINDS.union(*(table.get(it, _NO_KINDS) for it in names for table in tables))

    def add(self, names: Iterable[str], kinds: frozenset[str]) -> None:
        """Add kinds to names of this function, or of all of the text if they are shared."""
        for name in names if kinds and self._count < _MOST_NAMES else ():
            is_shared = name in self._shared or name.startswith(_OWN)
            _, table = self._scopes[0 if is_shared else -1]
            self._count += name not in table
            table[name] = table.get(name, _NO_KINDS) | kinds


def _statements(text: str, spans: Mapping[str, list[Span]]) -> list[_Statement]:
    """Return the statements of a text, each with the kinds that begin in it."""
    ends = _statement_ends(text)
    kinds: dict[int, set[str]] = defaultdict(set)
    for kind, kind_spans in spans.items():
        for start, _ in kind_spans:
            kinds[bisect_right(ends, start) - 1].add(kind)
    return [
        _Statement(
            start=a,
            end=b,
            text=_ATTRIBUTE.sub(_OWN, text[a:b].rstrip(";& \n")),
            kinds=kinds.get(index, set()),
        )
        for index, (a, b) in enumerate(pairwise(ends))
    ]


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
