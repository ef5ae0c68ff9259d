"""A list that clients fetch page by page."""

import hashlib
import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

PAGE = 1_000
"""How many things are on one page; many a client reads only the first."""


class StaleCursorError(ValueError):
    """The list is not the one that the cursor was made for, or it never was a cursor."""


@dataclass(frozen=True)
class PagedList:
    """Things as they go over the wire; `marks` are what else makes it another list."""

    items: tuple[dict[str, Any], ...]
    marks: tuple[str, ...] = ()
    on_wire: dict[Hashable, dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)
    """Answers as they were sent, by what they depend on beside the list."""

    @classmethod
    def of(cls, items: Iterable[dict[str, Any]], marks: Iterable[str] = ()) -> "PagedList":
        """Make a list."""
        return cls(tuple(items), tuple(marks))

    @cached_property
    def digest(self) -> str:
        """Name what it says: equal lists have equal digests, also after a restart."""
        text = json.dumps([self.items, self.marks], separators=(",", ":"), default=str)
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=9).hexdigest()

    def page(self, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
        """Return the things of one page, and the cursor of the next, if there is one.

        Raises `StaleCursorError`: whoever goes on in another list would miss some.
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
