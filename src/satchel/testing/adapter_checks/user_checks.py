"""Users and agents at once: none gets the session, the calls or the trouble of another."""

import asyncio
from typing import Any

from satchel.session.session import Session
from satchel.testing.adapter_checks.agent_host import AgentHost, ScriptedModel
from satchel.testing.adapter_checks.sample_world import PATIENCE, World, call


async def two_users_do_not_share_a_session(host: AgentHost, world: World) -> None:
    """One agent serves two users at once; what one switches on is off for the other."""
    nap = [call("nap", seconds=0.05)]
    scripts = {
        "ada": ScriptedModel([call("reset_equipped_tools", math=True)], nap),
        "bob": ScriptedModel(nap, nap),
    }
    agent = host.make(
        lambda context: world.session(host.user_of(context)),
        lambda context: scripts[host.user_of(context)],
        "",
        (host.own_tool,),
    )
    await asyncio.gather(*(host.run(agent, user, scripts[user]) for user in scripts))
    assert "version_after_the_edit" in scripts["ada"].requests[1].tools
    for request in scripts["bob"].requests:
        assert "version_after_the_edit" not in request.tools, request
    assert world.sessions.keys() == scripts.keys()


async def trouble_of_one_user_stays_there(host: AgentHost, world: World) -> None:
    """Of three users of one agent, one has no session and one cancels; the third has only its own.

    A session source that raises ends the run, or leaves it without any tool of Satchel.
    """
    again = [call("add", a=1, b=2)]
    users = ("ada", "bob", "eve")
    scripts = {user: ScriptedModel(again, again) for user in users}
    scripts["eve"] = ScriptedModel([call("reset_equipped_tools", math=True)], [call("hang")])

    def source(context: Any) -> Session:
        if host.user_of(context) == "bob":
            raise LookupError("bob has no session")
        return world.session(host.user_of(context))

    agent = host.make(source, lambda context: scripts[host.user_of(context)], "", (host.own_tool,))
    runs = {user: asyncio.ensure_future(host.run(agent, user, scripts[user])) for user in users}
    await asyncio.to_thread(world.started.wait, PATIENCE)
    runs["eve"].cancel()
    await asyncio.wait([runs["ada"], runs["bob"]], timeout=PATIENCE)
    world.is_over.set()
    await asyncio.gather(*runs.values(), return_exceptions=True)
    runs["ada"].result()
    assert all("version_after_the_edit" not in item.tools for item in scripts["ada"].requests)
    assert len(scripts["ada"].requests) == len([again, again, "done"]), scripts["ada"].requests
    for request in scripts["bob"].requests:
        assert {*request.tools} <= {host.own_tool}, request
    assert world.sessions.keys() == {"ada", "eve"}


async def parallel_agents_do_not_mix(host: AgentHost, world: World) -> None:
    """Two agents with one session run at once, then one agent twice; calls have the same ids.

    A rule sees the whole message of each, and each call runs once.
    """
    seen: list[list[str]] = []

    def add_needed(plan: Any, _state: Any) -> str | None:
        seen.append([item.name for item in plan])
        return None if "add" in seen[-1] else "Add first."

    world.session().plan_policy = add_needed
    turn = [call("nap", seconds=0.05), call("add", a=1, b=2)]
    models = [ScriptedModel(turn, turn), ScriptedModel(turn, turn)]

    def agent_of(model: ScriptedModel) -> Any:
        return host.make(world.session(), lambda _context: model, "", (host.own_tool,))

    agents = [agent_of(model) for model in models]
    runs = (host.run(agent, "ada", one) for agent, one in zip(agents, models, strict=True))
    await asyncio.wait_for(asyncio.gather(*runs), PATIENCE)
    users = {"ada": ScriptedModel(turn, turn), "bob": ScriptedModel(turn, turn)}
    agent = host.make(
        world.session(), lambda context: users[host.user_of(context)], "", (host.own_tool,)
    )
    runs = (host.run(agent, user, one) for user, one in users.items())
    await asyncio.wait_for(asyncio.gather(*runs), PATIENCE)
    for model in [*models, *users.values()]:
        texts = [item.text for item in model.answers.values()]
        for expected in ("slept", "3"):
            assert len([text for text in texts if expected in text]) == len([turn, turn]), texts
    assert seen == [["nap", "add"]] * 8, seen
