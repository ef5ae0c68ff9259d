"""The instructions of a server: how it says that its tools are used.

They become the notes of its group. Like a tool, they are pinned: a server can change them after a
person approved them.
"""

from dataclasses import replace

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.mcp_servers.pin_store import ToolDrift
from satchel.mcp_servers.tool_definitions import ServerSnapshot, ToolDefinition
from satchel.text import shorten, visible

INSTRUCTIONS = "@instructions"
"""Stands for the instructions of a server where its tools are named; no tool has such a name."""

_LONGEST = 4_000
"""Characters of instructions that are used."""


def with_instructions(listing: ServerSnapshot, text: str | None) -> ServerSnapshot:
    """Add the instructions of a server to what it lists."""
    text = shorten(visible(text or "").strip(), _LONGEST)
    if not text:
        return listing
    definition = ToolDefinition(name=INSTRUCTIONS, description=text)
    return replace(listing, instructions=text, pinned=(*listing.tools, definition))


def notes_of(server: str, snapshot: ServerSnapshot) -> str:
    """Return the instructions of a server as notes, each line marked as the server's."""
    if not snapshot.instructions:
        return ""
    # A line cannot pose as a heading or a frame of the prompt.
    lines = snapshot.instructions.replace("<", "&lt;").splitlines()
    quoted = "\n".join(f"> {line}".rstrip() for line in lines)
    return f"The MCP server {server!r} says:\n\n{quoted}"


def changed_instructions(
    server: str, where: Where, drift: ToolDrift, *, is_held: bool
) -> Diagnostic:
    """Return the diagnostic for instructions that differ from what was approved."""
    held = "; they are not in the prompt until they are approved" if is_held else ""
    why = drift.why.replace("is ", "are ", 1) if drift.why.startswith("is ") else drift.why
    return make_diagnostic(
        "mcp-instructions-changed",
        where,
        f"the instructions of MCP server {server!r}: they {why}{held}",
        f"satchel mcp approve {server} {INSTRUCTIONS} --digest {drift.digest}",
    )
