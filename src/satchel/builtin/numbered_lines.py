"""Text as numbered lines: which ones are meant, and what becomes of it when some are replaced.

Nothing but the lines that are meant changes: ends of lines, a missing last one and a byte order
mark stay as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from satchel.errors import ToolError

_MARK = "\ufeff"
_PAIR = 2


@dataclass(frozen=True, slots=True)
class Lines:
    """A text, cut after each line feed and nowhere else; each line keeps its end."""

    items: tuple[str, ...]
    mark: str = ""
    """The byte order mark that the text began with, if any."""

    @classmethod
    def of(cls, text: str) -> "Lines":
        """Cut a text into lines."""
        mark = _MARK if text.startswith(_MARK) else ""
        *whole, rest = text.removeprefix(mark).split("\n")
        return cls((*(line + "\n" for line in whole), *filter(None, [rest])), mark)

    @property
    def text(self) -> str:
        """Return the text again."""
        return self.mark + "".join(self.items)

    @property
    def count(self) -> str:
        """Say how many lines there are."""
        return count_of(len(self.items))

    def numbered(self, first: int, last: int) -> str:
        """Return the lines from `first` to `last`, each behind its number and a tab."""
        width = len(str(last))
        return "\n".join(
            f"{number:>{width}}\t{_bare(line)}"
            for number, line in enumerate(self.items[first - 1 : last], first)
        )

    def replaced(self, first: int, last: int, content: str) -> "Lines":
        """Return the text with the lines from `first` to `last` replaced by those of `content`.

        With `last` one below `first`, nothing goes and the content comes before `first`.
        """
        end = "\r\n" if self.items and self.items[0].endswith("\r\n") else "\n"
        new = [_bare(line) + end for line in Lines.of(content).items]
        lines = [*self.items[: first - 1], *new, *self.items[last:]]
        # What was last and had no end may be in the middle now, and the other way round.
        lines = [line if line.endswith("\n") else line + end for line in lines]
        if lines and self.items and not self.items[-1].endswith("\n"):
            lines[-1] = _bare(lines[-1])
        return Lines(tuple(lines), self.mark)


def count_of(number: int) -> str:
    """Say how many lines there are."""
    return "1 line" if number == 1 else f"{number} lines"


def line_in(number: int, count: int) -> int:
    """Return the place of a line that may be counted from the end. Raises `ToolError`."""
    place = number + count + 1 if number < 0 else number
    if number == 0:
        raise ToolError("Line numbers begin at 1; -1 is the last line.")
    if not 1 <= place <= count:
        has = "is empty" if count == 0 else f"has {count_of(count)}"
        raise ToolError(f"There is no line {number}: the file {has}.")
    return place


def range_in(ranges: Sequence[int] | None, count: int) -> tuple[int, int]:
    """Return the first and the last line of a range, or of all. Raises `ToolError`."""
    if ranges is None:
        return 1, count
    if len(ranges) != _PAIR:
        raise ToolError("Write ranges as two numbers, [first, last], such as [1, 20].")
    first, last = (line_in(number, count) for number in ranges)
    if first > last:
        raise ToolError(f"The range {list(ranges)} ends before it begins; swap the two numbers.")
    return first, last


def _bare(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")
