"""The text of a loaded skill: its instructions and the list of its files.

Format: agentskills.io, "structured wrapping" in the guide for clients.
"""

from collections.abc import Sequence

from satchel.prompt.forged_frames import without_tags
from satchel.text import visible, xml, xml_path

_MAX_FILES = 50
_AROUND = "skill_content|skill_resources"
"""The tags around instructions, which these must not open or close."""


def render_content(
    name: str,
    body: str,
    folder: str,
    files: Sequence[str],
    *,
    remarks: Sequence[str] = (),
    has_reader: bool = True,
    origin: str = "",
) -> str:
    """Return the instructions of a skill in tags that the instructions cannot close or forge.

    `files` are the other files of the skill; the first 50 are listed. `remarks` follow them.
    `has_reader`: the model can call `read_skill_file`. `origin` is where the skill
    comes from, such as `the MCP server docs`; `""` for one in a folder. A command has no `folder`.
    """
    instructions = without_tags(visible(body), _AROUND).strip("\n")
    location = _location(folder, has_reader, origin)
    parts = [instructions, location, _resources(files), *map(xml, remarks)]
    content = "\n\n".join(part for part in parts if part)
    return f'<skill_content name="{xml(name)}">\n{content}\n</skill_content>'


def _location(folder: str, has_reader: bool, origin: str) -> str:
    if not folder:
        return ""
    hint = " Read its files with read_skill_file." if has_reader else ""
    if origin:
        return (
            f"Skill of {xml(origin)}, at {xml_path(folder)}\n"
            f"Relative paths are relative to that; no folder on this machine has the files.{hint}"
        )
    return f"Skill folder: {xml_path(folder)}\nRelative paths are relative to this folder.{hint}"


def _resources(files: Sequence[str]) -> str:
    if not files:
        return ""
    lines = [f"  <file>{xml_path(file)}</file>" for file in files[:_MAX_FILES]]
    rest = len(files) - len(lines)
    if rest:
        lines.append(f"  <!-- {rest} more {'file is' if rest == 1 else 'files are'} not listed -->")
    return "\n".join(["<skill_resources>", *lines, "</skill_resources>"])
