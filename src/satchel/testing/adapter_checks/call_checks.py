"""How the calls of a message run: together, until they are cancelled, and judged as one plan."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from satchel.runtime.middleware import approve
from satchel.session.session import Session
from satchel.testing.adapter_checks.agent_host import AgentHost, ScriptedModel
from satchel.testing.adapter_checks.sample_world import PATIENCE, World, call, make_world, played

TOGETHER = 0.95
"""Seconds within which two calls of half a second end if they run at the same time."""

CANCELLED = 0.1
"""Seconds within which a tool learns that the host's task was cancelled."""


async def calls_of_a_message_run_together(host: AgentHost, world: World) -> None:
    """Two calls of half a second take less than a second."""
    await played(host, world)  # whatever the framework loads late
    model = await played(host, world, [call("nap", seconds=0.5), call("nap", seconds=0.5)])
    first, second = model.requests
    assert second.at - first.at < TOGETHER, second.at - first.at


async def cancelling_reaches_the_tool(host: AgentHost, world: World) -> None:
    """A tool learns at once that the host's task was cancelled."""
    model = ScriptedModel([call("hang")])
    agent = host.make(world.session(), lambda _context: model, "", (host.own_tool,))
    task = asyncio.ensure_future(host.run(agent, "ada", model))
    await asyncio.to_thread(world.started.wait, PATIENCE)
    began = time.monotonic()
    task.cancel()
    await asyncio.wait([task], timeout=2)
    world.is_over.set()
    with suppress(asyncio.CancelledError, Exception):
        await task
    assert world.cancelled_at, "the tool was not cancelled"
    assert world.cancelled_at[0] - began < CANCELLED, world.cancelled_at[0] - began


async def a_plan_is_judged_once(host: AgentHost, world: World) -> None:
    """A rule over all calls of a message sees all of them, though each runs alone."""
    seen: list[list[str]] = []

    def read_first(plan: Any, _state: Any) -> str | None:
        names = [item.name for item in plan]
        seen.append(names)
        return None if "add" in names else "Add first."

    world.session().plan_policy = read_first
    model = await played(host, world, [call("nap", "n", seconds=0.01), call("add", "a", a=1, b=2)])
    assert "slept" in model.answers["n"].text, model.answers
    assert "3" in model.answers["a"].text, model.answers
    assert seen == [["nap", "add"]], seen


async def approval_is_asked_for(host: AgentHost, world: World) -> None:
    """A call that the host's `approve` denies does not run, and the model reads why."""
    world.app.register_middleware(approve(lambda _call: "not today", lambda c: c.name == "add"))
    model = await played(host, world, [call("add", "a", a=1, b=2)])
    assert "not today" in model.answers["a"].text, model.answers


async def the_framework_asks_for_approval(host: AgentHost, world: World) -> None:
    """The framework's own confirmation asks before a call, and a yes or a no resumes the run.

    A rule about the whole message sees all of it, before the answer and after a yes.
    """
    world.app.register_middleware(approve(needs=lambda item: item.name == "add"))
    await _ask_and_answer(host, world.session)


async def an_approval_survives_a_restart(host: AgentHost, world: World) -> None:
    """The same in another process, which loads what the framework and the session saved."""
    if not hasattr(host, "run_asking"):
        return  # the check above says so

    def restarted(user: str) -> Session:
        saved = world.session(user).state_dict()
        world.app = make_world(world.folder).app
        world.app.register_middleware(approve(needs=lambda item: item.name == "add"))
        session = world.sessions[user] = world.app.session()
        session.load_state_dict(saved)
        return session

    await _ask_and_answer(host, restarted)


async def _ask_and_answer(host: AgentHost, session_of: Callable[[str], Session]) -> None:
    assert hasattr(host, "run_asking"), "the host has no such run"
    seen: list[list[str]] = []

    def session(user: str) -> Session:
        watched = session_of(user)
        watched.plan_policy = lambda plan, _state: seen.append([item.name for item in plan])
        return watched

    for user, answer in (("yes", True), ("no", False)):
        model = ScriptedModel([call("add", "a", a=1, b=2), call("nap", "n", seconds=0.01)])
        asked = await host.run_asking(partial(session, user), model, answer=answer)
        assert asked == 1, asked
        assert ("3" in model.answers["a"].text) is answer, model.answers
        assert "slept" in model.answers["n"].text, model.answers
    assert seen == [["add", "nap"]] * len(seen), seen
