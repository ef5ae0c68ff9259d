import asyncio
import logging
import time

import pytest

from satchel import Satchel, Settings, tool
from satchel.settings import Limits

QUICK = Settings(limits=Limits(loop_blocked=0.1))


@tool
async def stuck(seconds: float = 0.5) -> str:
    """Block the loop."""
    time.sleep(seconds)
    return "done"


@tool
async def stuck_later(first: float = 0.0) -> str:
    """Wait, then block the loop."""
    await asyncio.sleep(first)
    time.sleep(0.5)
    return "done"


@tool
async def patient() -> str:
    """Wait without blocking."""
    await asyncio.sleep(0.5)
    return "done"


@tool
def threaded() -> str:
    """Block a thread."""
    time.sleep(0.5)
    return "done"


def warnings_of(caplog, name, **arguments):
    app = Satchel(settings=QUICK)
    for item in (stuck, stuck_later, patient, threaded):
        app.register_tool(item)
    with caplog.at_level(logging.WARNING, logger="satchel.runtime"):
        assert asyncio.run(app.session().call(name, arguments)).text == "done"
    return [item.getMessage() for item in caplog.records if "blocks the event loop" in item.message]


@pytest.mark.parametrize(("name", "first"), [("stuck", None), ("stuck_later", 0.01)])
def test_an_async_tool_that_blocks_the_loop_is_named_once_with_its_line(caplog, name, first):
    arguments = {} if first is None else {"first": first}
    (message,) = warnings_of(caplog, name, **arguments)
    assert message.startswith(f"tool {name} blocks the event loop at ")
    assert "test_loop_watch.py:" in message


def test_a_tool_that_blocks_long_after_the_last_call_began_is_named(caplog):
    (message,) = warnings_of(caplog, "stuck_later", first=2.5)
    assert message.startswith("tool stuck_later blocks")


@pytest.mark.parametrize("name", ["patient", "threaded"])
def test_a_tool_that_waits_or_has_a_thread_is_not_named(caplog, name):
    assert warnings_of(caplog, name) == []


def test_no_thread_stays_when_the_loop_is_gone():
    import threading

    app = Satchel(settings=QUICK)
    app.register_tool(stuck)
    asyncio.run(app.session().call("stuck", {"seconds": 0}))
    deadline = time.monotonic() + 20
    while any(it.name == "satchel-loop-watch" for it in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
