"""Invalid arguments of a call, as data; the runtime turns them into text for the model."""

from collections.abc import Iterable

from satchel.errors import SatchelError
from satchel.lazy_dataclass import dataclass

SET_BY_HOST = "is set by the host; leave it out"


@dataclass(frozen=True, slots=True)
class ArgumentFault:
    """One invalid argument: its path, and what was expected there."""

    argument: str
    """Path to the value, such as `days` or `stops[0].city`; empty for the arguments as a whole."""
    expected: str

    def __str__(self) -> str:
        return f"{self.argument}: {self.expected}" if self.argument else self.expected


class ArgumentError(SatchelError):
    """The arguments are invalid. It has all faults, but never the values that were sent."""

    def __init__(self, tool: str, faults: Iterable[ArgumentFault]) -> None:
        self.tool, self.faults = tool, tuple(faults)
        super().__init__("; ".join(map(str, self.faults)), where=tool)
