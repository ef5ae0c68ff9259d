"""All checks of adapters by name, and how one is run."""

import tempfile
from collections.abc import Awaitable, Callable, Mapping
from inspect import iscoroutinefunction
from pathlib import Path
from types import MappingProxyType

from satchel.testing.adapter_checks import (
    call_checks,
    long_checks,
    request_checks,
    result_checks,
    user_checks,
)
from satchel.testing.adapter_checks.agent_host import AgentHost
from satchel.testing.adapter_checks.sample_world import World, make_world

Check = Callable[[AgentHost, World], Awaitable[None]]

_SUBJECTS = (request_checks, result_checks, call_checks, user_checks, long_checks)

CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        name: value
        for subject in _SUBJECTS
        for name, value in vars(subject).items()
        if iscoroutinefunction(value) and value.__module__ == subject.__name__ and name[0] != "_"
    }
)
"""Every check by its name: the public coroutine functions of the modules of checks."""


async def run_check(host: AgentHost, name: str, *, turns: int = 60) -> None:
    """Run one check in a world of its own. Raises `AssertionError` if the adapter fails it."""
    with tempfile.TemporaryDirectory(prefix="satchel-adapter-") as folder:
        await CHECKS[name](host, make_world(Path(folder), turns))
