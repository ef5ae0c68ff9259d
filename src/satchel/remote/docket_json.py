"""Docket with JSON in place of pickle.

Docket pickles arguments and exceptions. Who can write to redis could then run any code in a worker,
before a signature is checked. We send one text for each call, so JSON is enough.
"""

import json
from datetime import timedelta
from typing import Any

import docket.docket
import docket.execution
import docket.strikelist
import docket.worker
from docket import Docket

from satchel.remote.remote_keys import TASK


class _Json:
    """Has the two functions of `cloudpickle` that docket uses."""

    @staticmethod
    def dumps(value: Any) -> bytes:
        return json.dumps(value, default=repr).encode()

    @staticmethod
    def loads(data: bytes) -> Any:
        try:
            value = json.loads(data)
        except ValueError:
            return {}  # not from one of us: no arguments, and so no call
        return tuple(value) if isinstance(value, list) else value


def without_pickle() -> None:
    """Let docket write and read JSON in this process; raise if it has changed and cannot."""
    for module in (docket.execution, docket.strikelist, docket.worker):
        if not hasattr(module, "cloudpickle"):
            raise RuntimeError(f"{module.__name__} has changed; its messages may be pickles")
        module.__dict__["cloudpickle"] = _Json


def open_docket(url: str, name: str, digest: str) -> Docket:
    """Return the queue of one version of a plugin; calls for it reach only workers that have it."""
    without_pickle()
    queue = Docket(
        name=f"{name}:{digest[:24]}",
        url=url,
        heartbeat_interval=timedelta(seconds=1),
        execution_ttl=timedelta(minutes=5),
    )
    queue.register(_runs_on_a_worker, names=[TASK])
    return queue


async def _runs_on_a_worker(message: str) -> None:
    """Stand for the function that workers register under this name."""
    raise NotImplementedError
