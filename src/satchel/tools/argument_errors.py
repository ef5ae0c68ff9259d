"""A call that does not fit its tool, as data; what the model reads of it is the runtime's."""

from collections.abc import Iterable
from dataclasses import dataclass

from satchel.errors import SatchelError

SET_BY_HOST = "is set by the host; leave it out"


@dataclass(frozen=True, slots=True)
class ArgumentFault:
    """One argument that does not fit: where it stands, and what was expected there."""

    argument: str
    """Path to the value, such as `days` or `stops[0].city`; empty for the arguments as a whole."""
    expected: str

    def __str__(self) -> str:
        return f"{self.argument}: {self.expected}" if self.argument else self.expected


class ArgumentError(SatchelError):
    """The arguments do not fit the tool; carries every fault, never the value that was sent."""

    def __init__(self, tool: str, faults: Iterable[ArgumentFault]) -> None:
        self.tool, self.faults = tool, tuple(faults)
        super().__init__("; ".join(map(str, self.faults)), where=tool)
