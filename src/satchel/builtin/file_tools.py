"""The file tools: viewing and editing text inside one folder."""

from pathlib import Path

from satchel.builtin.numbered_lines import Lines, count_of, line_in, range_in
from satchel.errors import ToolError
from satchel.sources.contained_files import ContainedFile, open_contained
from satchel.tools import tool

FILE_LIMIT = 5 * 1024 * 1024
"""Bytes of the largest file that is read or written."""
VIEW_LIMIT = 1024 * 1024
"""Bytes of the longest text that is shown at once; the host's own limit may be lower."""


@tool(state=["base_directory"], annotations={"readOnlyHint": True})
def view_text_file(path: str, ranges: list[int] | None = None, *, base_directory: Path) -> str:
    """Show a text file, each line behind its number and a tab.

    Args:
        path: Path of the file, relative to the working folder.
        ranges: First and last line to show, such as [1, 20], or [-20, -1] for the last
            twenty; the whole file if it is left out.
        base_directory: The working folder.
    """
    with open_contained(base_directory, path) as file:
        lines = _lines(file)
    if not lines.items:
        return "[the file is empty]"
    shown = lines.numbered(*range_in(ranges, len(lines.items)))
    if len(shown.encode()) > VIEW_LIMIT:
        raise ToolError(f"That is too much to show of {lines.count}; ask for a shorter range.")
    return shown


@tool(state=["base_directory"])
def write_text_file(
    path: str, content: str, ranges: list[int] | None = None, *, base_directory: Path
) -> str:
    """Create or overwrite a text file, or replace some of its lines.

    Missing folders are created.

    Args:
        path: Path of the file, relative to the working folder.
        content: The whole new text; with ranges, the lines that take the place of those
            named, where an empty text removes them.
        ranges: First and last line to replace, such as [3, 5] or [-1, -1]; the whole file
            if it is left out.
        base_directory: The working folder.
    """
    with open_contained(base_directory, path, make_folders=ranges is None) as file:
        file.lock()
        if ranges is None:
            file.write(_encoded(content))
            return f"Wrote {count_of(len(Lines.of(content).items))} to {file.written}."
        before = _lines(file)
        first, last = range_in(ranges, len(before.items))
        after = before.replaced(first, last, content)
        file.write(_encoded(after.text))
    return f"Replaced lines {first} to {last} of {file.written}; it has {after.count} now."


@tool(state=["base_directory"])
def insert_text_file(path: str, content: str, line_number: int, *, base_directory: Path) -> str:
    """Insert lines into a text file, before the line of a number.

    Args:
        path: Path of the file, relative to the working folder.
        content: The lines to insert; an empty text inserts an empty line.
        line_number: Line that the new ones come before; one more than there are lines puts
            them at the end.
        base_directory: The working folder.
    """
    with open_contained(base_directory, path) as file:
        file.lock()
        before = _lines(file)
        count = len(before.items)
        place = line_number if line_number == count + 1 else line_in(line_number, count)
        after = before.replaced(place, place - 1, content or "\n")
        file.write(_encoded(after.text))
    added = count_of(len(after.items) - count)
    return f"Inserted {added} before line {place} of {file.written}; it has {after.count} now."


def _lines(file: ContainedFile) -> Lines:
    try:
        return Lines.of(file.read(FILE_LIMIT).decode())
    except UnicodeDecodeError:
        raise ToolError(f"{file.written} is not UTF-8 text; only such text can be used.") from None


def _encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ToolError("The content holds a broken character; write it anew.") from None
    if len(data) > FILE_LIMIT:
        raise ToolError(f"The text is too long: more than {FILE_LIMIT} bytes; write less.")
    return data
