"""Pauses between attempts: longer each time, and never the same for all who wait."""

from random import uniform

_FIRST, _LONGEST = 0.1, 30.0


class Backoff:
    """The pauses of one who tries again and again."""

    def __init__(self) -> None:
        self._next = _FIRST

    def next(self) -> float:
        """Return the seconds of the next pause."""
        pause, self._next = self._next, min(self._next * 2, _LONGEST)
        return pause * uniform(0.5, 1.0)  # noqa: S311 - this keeps no secret

    def reset(self) -> None:
        """Begin anew, after a success."""
        self._next = _FIRST
