"""Cut what goes to the model at its limits."""

from dataclasses import replace

from satchel.settings import Limits
from satchel.tools import Block, Resource, ResourceLink, Text, ToolResult


def limit_result(result: ToolResult, limits: Limits) -> ToolResult:
    """Cut the text of a result at its limit, and say how much was cut; leave out huge files."""
    content = result.content
    if len(content) == 1 and type(block := content[0]) is Text:  # as nearly all are
        is_small = len(block.text) * 4 <= limits.result_text  # a character takes at most 4 bytes
        if is_small:
            return result
    budget = TextBudget(limits)
    content = tuple(part for item in content if (part := budget.take(item)))
    return replace(result, content=content + budget.marker()) if budget.is_cut else result


class TextBudget:
    """How much text may still be added to one result."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._left = limits.result_text
        self._gone = 0
        self.is_cut = False
        """Whether anything was left out."""

    def take(self, block: Block) -> Block | None:
        """Return the part of a block that fits, or `None`."""
        match block:
            case Text():
                return replace(block, text=text) if (text := self._fitting(block.text)) else None
            case ResourceLink():
                return block
            case Resource(content=str() as content):
                return replace(block, content=self._fitting(content))
        data = block.content if isinstance(block, Resource) else block.data
        if len(data) <= self._limits.resource:
            return block
        kind = type(block).__name__.lower()
        self.is_cut = True
        return Text(f"[left out: {kind} of {len(data)} bytes, limit resource]")

    def marker(self) -> tuple[Text, ...]:
        """Return the line that says how much was cut, or nothing."""
        if not self._gone:
            return ()
        total = self._gone + self._limits.result_text - self._left
        return (Text(f"[cut: {self._gone} of {total} bytes left out, limit result_text]"),)

    def _fitting(self, text: str) -> str:
        if not self._gone and len(text) <= self._left and text.isascii():  # as nearly all is
            self._left -= len(text)
            return text
        data = text.encode(errors="replace")
        # Once something is cut, nothing later is kept: a hole in the middle would not be seen.
        head = data[: 0 if self._gone else self._left].decode(errors="ignore")
        size = len(head.encode())
        self._left -= size
        self._gone += len(data) - size
        self.is_cut = self.is_cut or self._gone > 0
        return head
