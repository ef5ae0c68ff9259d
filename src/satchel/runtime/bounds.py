"""Keeping what goes to the model within its limit."""

from dataclasses import replace

from satchel.tools import Text, ToolResult


def bounded(result: ToolResult, limit: int) -> ToolResult:
    """Cut the text of a result at `limit` bytes of UTF-8, and say how much is gone."""
    # A letter takes four bytes at most: nearly every result ends here.
    if sum(len(block.text) for block in result.content) * 4 <= limit:
        return result
    kept: list[Text] = []
    left, gone = limit, 0
    for block in result.content:
        data = block.text.encode(errors="replace")
        head = data[:left].decode(errors="ignore")
        size = len(head.encode())
        left -= size
        gone += len(data) - size
        if head:
            kept.append(Text(head))
    if not gone:
        return result
    marker = Text(f"[cut: {gone} of {gone + limit - left} bytes left out, limit result_text]")
    return replace(result, content=(*kept, marker))
