"""The result of reading one text, and the list on which its problems are collected."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from satchel.diagnostics import Diagnostic, Where, has_error, make_diagnostic
from satchel.text import one_line, shorten

_SHOWN_LENGTH = 60

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ReadResult(Generic[T_co]):
    """What came of reading one text: a value or None, and every problem found, all at once."""

    value: T_co | None
    diagnostics: tuple[Diagnostic, ...]
    partial: T_co | None = None
    """What could be read of a text that cannot be used: enough to find what else is wrong."""


class DiagnosticCollector:
    """Collects what is wrong with one file, so that its author hears all of it at once."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._found: list[Diagnostic] = []

    def add(
        self,
        code: str,
        message: str,
        fix: str = "",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        """Note one problem; its code decides how severe it is."""
        self._found.append(make_diagnostic(code, Where(self._path, line, column), message, fix))

    def extend(self, found: Iterable[Diagnostic]) -> None:
        """Take over what an earlier step found."""
        self._found.extend(found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def fatal(self) -> bool:
        """Whether the file as a whole cannot be used."""
        return has_error(self._found)

    @property
    def found(self) -> tuple[Diagnostic, ...]:
        """Everything noted so far, in the order of the file where lines are known."""
        return tuple(sorted(self._found, key=lambda item: item.where.line or 0))


def quoted(text: str) -> str:
    """Quote text from outside for a message: short, on one line, nothing invisible."""
    return f"'{shorten(one_line(text), _SHOWN_LENGTH)}'"
