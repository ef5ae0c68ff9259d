"""The chunks of a call, joined while they arrive."""

from dataclasses import replace
from typing import Any

from satchel.runtime.result_limits import TextBudget
from satchel.settings import Limits
from satchel.tools import Block, Text, ToolChunk, ToolResult
from satchel.tools.fast_construction import construct_fast


class ChunkAccumulator:
    """The chunks of a call so far, within the limits."""

    def __init__(self, limits: Limits) -> None:
        self._budget = TextBudget(limits)
        self._content: list[Block] = []
        self._is_running_text = False
        self._structured: list[Any] = []
        self._metadata: dict[str, Any] = {}
        self._is_error = False
        self._error_code: str | None = None
        self.count = 0

    def add(
        self, item: ToolChunk | ToolResult, call_id: str | None = None, *, is_whole: bool = False
    ) -> ToolChunk:
        """Add one item, and return the part of it that fits, as a chunk of the call.

        The blocks of a whole result (`is_whole`) are not joined with others.
        """
        self.count += 1
        content = tuple([block for raw in item.content if (block := self._budget.take(raw))])
        # Pieces of running text are joined; the text of structured values is not.
        is_running_text = item.structured is None and not is_whole
        for block in content:
            last = self._content[-1] if self._content else None
            if (
                is_running_text
                and self._is_running_text
                and isinstance(block, Text)
                and isinstance(last, Text)
            ):
                self._content[-1] = Text(last.text + block.text)
            else:
                self._content.append(block)
                self._is_running_text = is_running_text
        if item.structured is not None:
            self._structured.append(item.structured)
        if item.metadata:
            self._metadata |= item.metadata
        if isinstance(item, ToolResult) and item.is_error:
            self._is_error, self._error_code = True, item.error_code
        return construct_fast(
            ToolChunk,
            content=content,
            structured=item.structured,
            metadata=item.metadata,
            call_id=call_id,
        )

    def result(self, call_id: str | None = None) -> ToolResult:
        """Return everything so far; several structured values become a list."""
        has_several = len(self._structured) > 1
        return ToolResult(
            content=(*self._content, *self._budget.marker()),
            structured=list(self._structured)
            if has_several
            else next(iter(self._structured), None),
            is_error=self._is_error,
            error_code=self._error_code,
            call_id=call_id,
            metadata=dict(self._metadata),
        )

    def followed_by(self, last: ToolResult) -> ToolResult:
        """Return the last result of the call, with the chunks before it."""
        if not self.count:
            return last
        partial = self.result(last.call_id)
        return replace(
            last,
            content=(*partial.content, *last.content),
            structured=partial.structured,
            metadata={**partial.metadata, **last.metadata},
        )
