"""The result of reading one file, and the collector of its diagnostics."""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from satchel.diagnostics import Diagnostic, Where, has_error, make_diagnostic
from satchel.lazy_dataclass import dataclass
from satchel.text import one_line, shorten

_SHOWN_LENGTH = 60

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ReadResult(Generic[T_co]):
    """The value read from one file, or `None`, with all diagnostics."""

    value: T_co | None
    diagnostics: tuple[Diagnostic, ...]
    partial: T_co | None = None
    """What could be read of an invalid file, so that further checks can run on it."""


class DiagnosticCollector:
    """Collects all diagnostics of one file, so that the author sees them at once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._diagnostics: list[Diagnostic] = []

    def add(
        self,
        code: str,
        message: str,
        fix: str = "",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        """Add one diagnostic; its code decides the severity."""
        where = Where(self.path, line, column)
        self._diagnostics.append(make_diagnostic(code, where, message, fix))

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add the diagnostics of an earlier step."""
        self._diagnostics.extend(diagnostics)

    def __len__(self) -> int:
        return len(self._diagnostics)

    @property
    def fatal(self) -> bool:
        """Whether the file as a whole cannot be used."""
        return bool(self._diagnostics) and has_error(self._diagnostics)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All diagnostics so far, sorted by line."""
        if not self._diagnostics:
            return ()
        return tuple(sorted(self._diagnostics, key=lambda item: item.where.line or 0))


def nearest_line(lines: Mapping[tuple[str, ...], int], at: tuple[str, ...]) -> int | None:
    """Return the line of a key, or of the nearest key around it; `None` if there is none."""
    while at and at not in lines:
        at = at[:-1]
    return lines.get(at)


def quoted(text: str) -> str:
    """Quote untrusted text for a message: short, on one line, without invisible characters."""
    return f"'{shorten(one_line(text), _SHOWN_LENGTH)}'"
