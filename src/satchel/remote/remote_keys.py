"""The names of what hosts and workers keep in redis beside docket's own."""

from satchel.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RemoteKeys:
    """The keys of one group of hosts and workers; `name` is what they have in common."""

    name: str

    def inbox(self, host: str) -> str:
        """Return the stream on which a host receives chunks and results."""
        return f"satchel:{self.name}:inbox:{host}"

    def result(self, call: str) -> str:
        """Return where the result of a call is kept."""
        return f"satchel:{self.name}:result:{call}"

    def started(self, call: str) -> str:
        """Return the mark that a worker has begun to run a call."""
        return f"satchel:{self.name}:started:{call}"


TASK = "satchel_call"
"""The name of the task that runs a call."""
CALL, ITEM = "call", "item"
"""The kinds of messages."""
RESULT_TTL = 3_600
"""Seconds that a result is kept."""
INBOX_LENGTH = 10_000
"""Messages that wait for a host; older ones are dropped, and the result has all chunks."""
