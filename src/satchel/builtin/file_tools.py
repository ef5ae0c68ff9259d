"""The file tools: view and edit text files inside one folder."""

from pathlib import Path

from satchel.builtin.numbered_lines import (
    Lines,
    count_text,
    existing_part,
    resolve_line,
    resolve_range,
)
from satchel.errors import ToolError
from satchel.files.contained_files import ContainedFile, open_contained
from satchel.tools import tool

FILE_LIMIT = 5 * 1024 * 1024
"""The size in bytes of the largest file that is read or written."""
VIEW_LIMIT = 1024 * 1024
"""The size in bytes of the longest text that one call shows; the host's limit may be lower."""

_NEW_LINES_SHOWN = 20


@tool(state=["base_directory"], annotations={"readOnlyHint": True})
def view_text_file(path: str, ranges: list[int] | None = None, *, base_directory: Path) -> str:
    """Show a text file; each line begins with its number and a tab.

    Args:
        path: Path of the file, relative to the working folder.
        ranges: First and last line to show, such as [1, 20], or [-20, -1] for the last
            twenty lines. Leave it out to see the whole file.
        base_directory: The working folder.
    """
    with open_contained(base_directory, path) as file:
        lines = _lines(file)
    if not lines.items:
        return "[the file is empty]"
    first, last = existing_part(ranges, len(lines.items))
    shown = lines.numbered(first, last)
    if len(shown.encode()) > VIEW_LIMIT:
        raise ToolError(
            f"The range is too long: more than {VIEW_LIMIT} bytes. The file has {lines.count}; "
            "ask for a shorter range."
        )
    asked_range = (first, last) if ranges is None else tuple(ranges)
    is_cut = asked_range[0] < -len(lines.items) or asked_range[1] > len(lines.items)
    return f"{shown}\n[the file has {lines.count}]" if is_cut else shown


@tool(state=["base_directory"])
def write_text_file(
    path: str, content: str, ranges: list[int] | None = None, *, base_directory: Path
) -> str:
    """Create or overwrite a text file, or replace some of its lines.

    Missing folders are created.

    Args:
        path: Path of the file, relative to the working folder.
        content: The new text of the file; with ranges, the new text of those lines. An
            empty text removes the lines.
        ranges: First and last line to replace, such as [3, 5] or [-1, -1]. Leave it out to
            write the whole file.
        base_directory: The working folder.
    """
    with open_contained(base_directory, path, make_folders=ranges is None) as file:
        file.lock()
        if ranges is None:
            file.write(_encoded(content))
            return f"Wrote {Lines.of(content).count} to {file.quoted}."
        before = _lines(file)
        first, last = resolve_range(ranges, len(before.items))
        after = before.replaced(first, last, content)
        file.write(_encoded(after.text))
    done = f"Replaced lines {first} to {last} of {file.quoted}; it now has {after.count}."
    return done + _new_lines(after, first, last - first + 1 + len(after.items) - len(before.items))


@tool(state=["base_directory"])
def insert_text_file(path: str, content: str, line_number: int, *, base_directory: Path) -> str:
    """Insert lines into a text file, before the line with the given number.

    Args:
        path: Path of the file, relative to the working folder.
        content: The lines to insert; an empty text inserts an empty line.
        line_number: Number of the line to insert before. To append, give the number of
            lines plus 1.
        base_directory: The working folder.
    """
    with open_contained(base_directory, path) as file:
        file.lock()
        before = _lines(file)
        count = len(before.items)
        line = line_number if line_number == count + 1 else resolve_line(line_number, count)
        after = before.replaced(line, line - 1, content or "\n")
        file.write(_encoded(after.text))
    added = len(after.items) - count
    done = f"Inserted {count_text(added)} before line {line} of {file.quoted}"
    return f"{done}; it now has {after.count}." + _new_lines(after, line, added)


def _new_lines(after: Lines, first: int, count: int) -> str:
    """Return the new lines with their numbers, so that the model need not view the file again."""
    if count == 0:
        return ""
    shown = after.numbered(first, first + min(count, _NEW_LINES_SHOWN) - 1)
    rest = count - _NEW_LINES_SHOWN
    return f"\n{shown}" + (f"\n[{count_text(rest)} more]" if rest > 0 else "")


def _lines(file: ContainedFile) -> Lines:
    try:
        return Lines.of(file.read(FILE_LIMIT).decode())
    except UnicodeDecodeError:
        raise ToolError(
            f"{file.quoted} is not UTF-8 text. This tool reads and writes UTF-8 text only."
        ) from None


def _encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ToolError("The content contains an invalid Unicode character. Remove it.") from None
    if len(data) > FILE_LIMIT:
        raise ToolError(f"The text is too long: more than {FILE_LIMIT} bytes. Write less.")
    return data
