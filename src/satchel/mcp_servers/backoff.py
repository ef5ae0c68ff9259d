"""Exponential backoff with jitter."""

from random import uniform


class Backoff:
    """The pauses between attempts, in seconds: each doubles, up to the longest."""

    def __init__(self, first: float = 0.1, longest: float = 30.0) -> None:
        self._first, self._longest = first, longest
        self._next = first

    def next(self) -> float:
        """Return the next pause in seconds."""
        pause, self._next = self._next, min(self._next * 2, self._longest)
        return pause * uniform(0.5, 1.0)  # noqa: S311 - not for security

    def reset(self) -> None:
        """Start again with the shortest pause, after a success."""
        self._next = self._first
