"""Docket with JSON in place of pickle, for our queues only.

Docket pickles arguments and exceptions. Who can write to redis could then run any code in a worker,
before a message is opened. We send one text for each call, so JSON is enough. Other code of the
process may use docket, too, and keeps its pickles.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

import cloudpickle  # type: ignore[import-untyped]
import docket.docket
import docket.execution
import docket.strikelist
import docket.worker
from docket import Docket
from docket.execution import Execution

from satchel.errors import DefinitionError
from satchel.remote.remote_keys import TASK

_SCHEMES = {"redis", "rediss", "unix", "memory", "redis+sentinel", "rediss+sentinel"}

_is_ours: ContextVar[bool] = ContextVar("satchel_json_only", default=False)


class _Listed(tuple[Any, ...]):
    """Positional arguments, which are invalid as named ones. Docket looks at both unprotected."""

    __slots__ = ()

    def __new__(cls, value: object) -> Self:
        return super().__new__(cls, value if isinstance(value, list) else ())

    def keys(self) -> tuple[str, ...]:
        return ()

    items = keys


class _Named(dict[str, Any]):
    """Named arguments, which are invalid as positional ones."""

    def __getitem__(self, key: Any) -> Any:
        return () if isinstance(key, slice) else super().__getitem__(key)


class _JsonIfOurs:
    """Has the two functions of `cloudpickle` that docket uses."""

    @staticmethod
    def dumps(value: Any) -> bytes:
        if not _is_ours.get():
            return bytes(cloudpickle.dumps(value))
        return json.dumps(value, default=repr).encode()

    @staticmethod
    def loads(data: bytes) -> Any:
        if not _is_ours.get():
            return cloudpickle.loads(data)
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None  # not from one of us
        return _Named(value) if isinstance(value, dict) else _Listed(value)


class _CheckedExecution(Execution):
    """A call in a queue. One that docket cannot read is read as one that is not from us.

    Docket would end the worker instead, and the next one that gets it.
    """

    @classmethod
    async def from_message(
        cls, docket: Docket, message: Any, *positional: Any, **named: Any
    ) -> Self:
        """Read the call."""
        try:
            return await super().from_message(docket, message, *positional, **named)
        except (KeyError, TypeError, ValueError):
            if not _is_ours.get():
                raise
            return await super().from_message(docket, _of_others(), *positional, **named)


def _of_others() -> dict[bytes, bytes]:
    own = {b"function": TASK.encode(), b"key": uuid4().hex.encode(), b"attempt": b"1"}
    return {**own, b"when": b"2026-01-01T00:00:00+00:00", b"args": b"[]", b"kwargs": b"{}"}


@contextmanager
def json_only(*, is_ours: bool = True) -> Iterator[None]:
    """Let docket write and read JSON inside, also in the tasks that begin there."""
    token = _is_ours.set(is_ours)
    try:
        yield
    finally:
        _is_ours.reset(token)


def _make_docket_careful() -> None:
    """Let docket read JSON in place of pickle, and outlive what it cannot read.

    Raises `RuntimeError` if docket has changed and this cannot be done.
    """
    for module in (docket.execution, docket.strikelist, docket.worker):
        if not hasattr(module, "cloudpickle"):
            raise RuntimeError(f"{module.__name__} has changed; its messages may be pickles")
        module.__dict__["cloudpickle"] = _JsonIfOurs
    if not hasattr(docket.worker, "Execution"):
        raise RuntimeError("docket.worker has changed; a record could end a worker")
    docket.worker.__dict__["Execution"] = _CheckedExecution


def checked_url(url: str) -> str:
    """Return the URL of a redis. Raises `DefinitionError`, without it: it may have a password."""
    fix = "write redis://, rediss:// or unix://, and in a password %2F for / and %40 for @"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it is the check
    except ValueError:
        raise DefinitionError("the URL of redis is not valid", fix=fix) from None
    if parts.scheme not in _SCHEMES:
        raise DefinitionError("the URL of redis has no known scheme", fix=fix)
    return url


def open_docket(url: str, name: str, mark: str) -> Docket:
    """Return the queue of one version of a plugin; calls for it reach only workers that have it.

    `mark` is that of the version, so workers with another key have another queue. Enter and
    use it inside `json_only`.
    """
    _make_docket_careful()
    queue = Docket(
        name=f"{name}:{mark}",
        url=url,
        heartbeat_interval=timedelta(seconds=1),
        execution_ttl=timedelta(minutes=5),
    )
    queue.tasks.clear()  # docket's own tasks need no key
    queue.register(_runs_on_a_worker, names=[TASK])
    return queue


async def _runs_on_a_worker(message: str) -> None:
    """Stand for the function that workers register under this name."""
    raise NotImplementedError
