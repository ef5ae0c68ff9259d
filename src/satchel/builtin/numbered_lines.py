"""Text as numbered lines: resolve line numbers, and replace some of the lines.

Only the named lines change. Line endings, a missing last one, and a byte order mark stay.
"""

from collections.abc import Sequence

from satchel.errors import ToolError
from satchel.lazy_dataclass import dataclass

_MARK = "\ufeff"
_PAIR = 2


@dataclass(frozen=True, slots=True)
class Lines:
    """A text that was split after each line feed and nowhere else; lines keep their endings."""

    items: tuple[str, ...]
    mark: str = ""
    """The byte order mark at the start of the text, or `""`."""

    @classmethod
    def of(cls, text: str) -> "Lines":
        """Split a text into lines."""
        mark = _MARK if text.startswith(_MARK) else ""
        *whole, rest = text.removeprefix(mark).split("\n")
        return cls((*(line + "\n" for line in whole), *filter(None, [rest])), mark)

    @property
    def text(self) -> str:
        """Return the whole text."""
        return self.mark + "".join(self.items)

    @property
    def count(self) -> str:
        """Return the number of lines in words, such as `"3 lines"`."""
        return count_text(len(self.items))

    def numbered(self, first: int, last: int) -> str:
        """Return the lines from `first` to `last`, each after its number and a tab."""
        width = len(str(last))
        return "\n".join(
            f"{number:>{width}}\t{_bare(line)}"
            for number, line in enumerate(self.items[first - 1 : last], first)
        )

    def replaced(self, first: int, last: int, content: str) -> "Lines":
        """Return the text with the lines from `first` to `last` replaced by those of `content`.

        If `last` is `first - 1`, no line is removed and the content is inserted before `first`.
        """
        end = "\r\n" if self.items and self.items[0].endswith("\r\n") else "\n"
        new = [_bare(line) + end for line in Lines.of(content).items]
        lines = [*self.items[: first - 1], *new, *self.items[last:]]
        # A last line without an ending may now be in the middle, and the other way round.
        lines = [line if line.endswith("\n") else line + end for line in lines]
        if lines and self.items and not self.items[-1].endswith("\n"):
            lines[-1] = _bare(lines[-1])
        return Lines(tuple(lines), self.mark)


def count_text(number: int) -> str:
    """Return a number of lines in words, such as `"3 lines"`."""
    return "1 line" if number == 1 else f"{number} lines"


def resolve_line(number: int, count: int) -> int:
    """Return a line number counted from 1; negative ones count from the end.

    Raises `ToolError` if the text has no such line.
    """
    line = number + count + 1 if number < 0 else number
    if number == 0:
        raise ToolError("Line numbers begin at 1; -1 is the last line.")
    if not 1 <= line <= count:
        size = "is empty" if count == 0 else f"has {count_text(count)}"
        raise ToolError(f"There is no line {number}: the file {size}.")
    return line


def resolve_range(ranges: Sequence[int] | None, count: int) -> tuple[int, int]:
    """Return the first and the last line of a range; `None` is all lines. Raises `ToolError`."""
    if ranges is None:
        return 1, count
    if len(ranges) != _PAIR:
        raise ToolError("Write ranges as two numbers, [first, last], such as [1, 20].")
    first, last = (resolve_line(number, count) for number in ranges)
    if first > last:
        raise ToolError(f"The range {list(ranges)} ends before it begins. Swap the two numbers.")
    return first, last


def existing_part(ranges: Sequence[int] | None, count: int) -> tuple[int, int]:
    """Return what there is of a range, to show it; a range that begins after the end raises."""
    if ranges is not None and len(ranges) == _PAIR:
        ranges = [max(ranges[0], -count), min(ranges[1], count)]
    return resolve_range(ranges, count)


def _bare(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")
