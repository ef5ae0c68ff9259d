"""The names of what hosts and workers keep in redis beside docket's own."""

import asyncio
import hashlib
from collections.abc import Collection

from redis.exceptions import RedisError

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

    def tries(self, call: str) -> str:
        """Return the set of the runs of a call that were begun."""
        return f"satchel:{self.name}:tries:{call}"

    def workers(self, digest: str) -> str:
        """Return the set of the workers that have a version of a plugin."""
        return f"satchel:{self.name}:workers:{digest}"

    def slots(self, group: str) -> str:
        """Return the set of the calls of a group that are under way, if their number is limited."""
        return f"satchel:{self.name}:slots:{group}"

    @property
    def hosts(self) -> str:
        """The set of the hosts, each with the catalog that it serves."""
        return f"satchel:{self.name}:hosts"

    @property
    def catalog(self) -> str:
        """Where the catalog is that all are to serve."""
        return f"satchel:{self.name}:catalog"


TASK = "satchel_call"
"""The name of the task that runs a call."""
CALL, ITEM, CATALOG = "call", "item", "catalog"
"""The kinds of messages."""
RESULT_TTL = 3_600
"""Seconds that a result, and the mark that a call was begun, are kept."""
LONGEST_WAIT = RESULT_TTL / 2
"""Seconds after which a call is not begun any more: its mark must outlive every copy of it."""
INBOX_LENGTH = 10_000
"""Messages that wait for a host; older ones are dropped, and the result has all chunks."""
UNREACHABLE = (RedisError, OSError)
"""What is raised while redis does not answer."""
TRIES = 3
"""How often a call is begun: after that many lost workers, the call itself may end them."""
BACKOFF = 0.5
"""Seconds between two tries to reach redis."""


def queue_name_for(digest: str, groups: Collection[str]) -> str:
    """Return the name of the queue of those tools of a version that are in the same groups.

    A worker that runs only some groups runs all tools of a queue, or none.
    """
    if not groups:
        return digest
    return hashlib.sha256("\n".join((digest, *sorted(groups))).encode()).hexdigest()


def loop_time() -> float:
    """Return the time of the running event loop, which a simulation can set."""
    return asyncio.get_running_loop().time()
