"""A list that clients fetch page by page."""

import hashlib
import json
from collections.abc import Hashable, Iterable
from dataclasses import field
from functools import cached_property
from typing import Any

from satchel.lazy_dataclass import dataclass

PAGE = 1_000
"""How many items are on a page; many clients read only the first page."""


class StaleCursorError(ValueError):
    """The cursor is invalid, or was made for another version of the list."""


@dataclass(frozen=True)
class PagedList:
    """Items as they are sent; `marks` are further values that make it another list."""

    items: tuple[dict[str, Any], ...]
    marks: tuple[str, ...] = ()
    encoded_pages: dict[Hashable, dict[str, Any]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Responses as they were sent, by what they depend on besides the list."""

    @classmethod
    def of(cls, items: Iterable[dict[str, Any]], marks: Iterable[str] = ()) -> "PagedList":
        """Return a list of items."""
        return cls(tuple(items), tuple(marks))

    @cached_property
    def digest(self) -> str:
        """Return a digest of the content: equal for equal lists, also after a restart."""
        text = json.dumps([self.items, self.marks], separators=(",", ":"), default=str)
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=9).hexdigest()

    def page(self, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
        """Return the items of a page, and the cursor of the next page or `None`.

        Raises `StaleCursorError`: a client that continues in another list would miss items.
        """
        start = self._start(cursor) if cursor is not None else 0
        end = start + PAGE
        following = f"{self.digest}-{end}" if end < len(self.items) else None
        return list(self.items[start:end]), following

    def _start(self, cursor: str) -> int:
        digest, _, number = cursor.partition("-")
        is_ours = digest == self.digest and number.isascii() and number.isdecimal()
        start = int(number) if is_ours and len(number) < len(str(len(self.items))) + 1 else 0
        if not start or start % PAGE or start >= len(self.items):
            raise StaleCursorError
        return start
