"""What loading a skill answers with: its instructions, and where its files are.

Format: agentskills.io, "structured wrapping" in the guide for clients.
"""

import re
from collections.abc import Sequence

from satchel.text import visible, xml, xml_path

_OURS = re.compile(r"<(?=[\s/]*skill_(?:content|resources))", re.IGNORECASE)


def render_content(
    name: str,
    body: str,
    folder: str,
    files: Sequence[str],
    *,
    more: Sequence[str] = (),
    most: int = 50,
    reader: bool = True,
    server: str = "",
) -> str:
    """Return the instructions of a skill between tags that nothing in them can close or forge.

    `files` are its other files, of which `most` are listed; `more` are sentences of ours;
    `reader` tells whether the model can call `read_skill_file`; `server` is the remote server
    that the skill is of, if it is not on this machine.
    """
    instructions = _OURS.sub("&lt;", visible(body)).strip("\n")
    parts = [instructions, _note(folder, reader, server), _resources(files, most), *map(xml, more)]
    inside = "\n\n".join(part for part in parts if part)
    return f'<skill_content name="{xml(name)}">\n{inside}\n</skill_content>'


def _note(folder: str, reader: bool, server: str) -> str:
    how = " Read its files with read_skill_file." if reader else ""
    if server:
        return (
            f"Skill of the MCP server {xml(server)}, at {xml_path(folder)}\n"
            f"Relative paths are relative to that; none of it is on this machine.{how}"
        )
    return f"Skill folder: {xml_path(folder)}\nRelative paths are relative to it.{how}"


def _resources(files: Sequence[str], most: int) -> str:
    if not files:
        return ""
    lines = [f"  <file>{xml_path(file)}</file>" for file in files[:most]]
    left = len(files) - len(lines)
    if left:
        lines.append(f"  <!-- {left} more {'file is' if left == 1 else 'files are'} not listed -->")
    return "\n".join(["<skill_resources>", *lines, "</skill_resources>"])
