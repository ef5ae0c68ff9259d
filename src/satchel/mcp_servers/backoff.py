"""Exponential backoff with jitter."""

from random import uniform

_FIRST, _MAX = 0.1, 30.0


class Backoff:
    """The pauses between attempts: each doubles, up to 30 seconds."""

    def __init__(self) -> None:
        self._next = _FIRST

    def next(self) -> float:
        """Return the next pause in seconds."""
        pause, self._next = self._next, min(self._next * 2, _MAX)
        return pause * uniform(0.5, 1.0)  # noqa: S311 - not for security

    def reset(self) -> None:
        """Start again with the shortest pause, after a success."""
        self._next = _FIRST
