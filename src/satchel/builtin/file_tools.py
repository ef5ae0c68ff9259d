"""The file tools: view and edit text files inside one folder."""

from pathlib import Path

from satchel.builtin.numbered_lines import Lines, count_text, resolve_line, resolve_range
from satchel.errors import ToolError
from satchel.sources.contained_files import ContainedFile, open_contained
from satchel.tools import tool

FILE_LIMIT = 5 * 1024 * 1024
"""The size in bytes of the largest file that is read or written."""
VIEW_LIMIT = 1024 * 1024
"""The size in bytes of the longest text that one call shows; the host's limit may be lower."""


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
    shown = lines.numbered(*resolve_range(ranges, len(lines.items)))
    if len(shown.encode()) > VIEW_LIMIT:
        raise ToolError(
            f"The range is too long: more than {VIEW_LIMIT} bytes. The file has {lines.count}; "
            "ask for a shorter range."
        )
    return shown


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
            return f"Wrote {Lines.of(content).count} to {file.written}."
        before = _lines(file)
        first, last = resolve_range(ranges, len(before.items))
        after = before.replaced(first, last, content)
        file.write(_encoded(after.text))
    return f"Replaced lines {first} to {last} of {file.written}; it now has {after.count}."


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
    added = count_text(len(after.items) - count)
    return f"Inserted {added} before line {line} of {file.written}; it now has {after.count}."


def _lines(file: ContainedFile) -> Lines:
    try:
        return Lines.of(file.read(FILE_LIMIT).decode())
    except UnicodeDecodeError:
        raise ToolError(
            f"{file.written} is not UTF-8 text. This tool reads and writes UTF-8 text only."
        ) from None


def _encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ToolError("The content contains an invalid Unicode character. Remove it.") from None
    if len(data) > FILE_LIMIT:
        raise ToolError(f"The text is too long: more than {FILE_LIMIT} bytes. Write less.")
    return data
