"""What is in a request to the model: the tools and the prompt of one step, and the host's own."""

import threading
from collections.abc import Sequence
from logging import getLogger
from logging.handlers import BufferingHandler

from satchel.satchel import Satchel
from satchel.testing.adapter_checks.agent_host import AgentHost
from satchel.testing.adapter_checks.sample_tools import add
from satchel.testing.adapter_checks.sample_world import World, call, played
from satchel.tools import ToolCall


async def tools_and_prompt_are_of_one_step(host: AgentHost, world: World) -> None:
    """A group that is activated is in the next request with its notes; deactivated, gone."""
    on, off = call("reset_equipped_tools", math=True), call("reset_equipped_tools", math=False)
    model = await played(host, world, [on], [off])
    first, second, third = model.requests
    for request, is_on in ((first, False), (second, True), (third, False)):
        assert ("version_after_the_edit" in request.tools) is is_on, request
        assert ("Use integers only." in request.prompt) is is_on, request
        assert request.prompt.count("How to calculate.") == 1, request


async def a_skill_is_loaded(host: AgentHost, world: World) -> None:
    """The model reads the text of a skill that it loads."""
    model = await played(host, world, [call("load_skill", "s", name="guide")])
    assert "Use tools." in model.answers["s"].text, model.answers


async def an_edit_is_in_the_next_request(host: AgentHost, world: World) -> None:
    """A file edited in a run counts from the next request; a running call ends as it began."""
    world.session().activate("math")

    def edited() -> Sequence[ToolCall]:
        threading.Timer(0.05, world.edit).start()
        return [call("version_after_the_edit", "v")]

    model = await played(host, world, edited, [call("multiply", "m", a=4, b=5)])
    assert "multiply" not in model.requests[0].tools
    assert "multiply" in model.requests[1].tools, model.requests
    assert "old" in model.answers["v"].text, model.answers
    assert "20" in model.answers["m"].text, model.answers


async def the_hosts_own_stays(host: AgentHost, world: World) -> None:
    """The host's own tools and prompt stay."""
    model = await played(host, world, [call(host.own_tool, "o")], prompt="Be brief.")
    for request in model.requests:
        assert host.own_tool in request.tools, request
        assert "Be brief." in request.prompt, request
        assert "guide" in request.prompt, request
    assert "own" in model.answers["o"].text, model.answers


async def a_name_clash_is_reported(host: AgentHost, world: World) -> None:
    """Two tools with one name: the host's own runs and a warning says so, or the run is refused."""
    world.app.register_tool(lambda: "not this", name=host.own_tool, description="Not this one.")
    log, records = getLogger("satchel.adapters"), BufferingHandler(capacity=1000)
    log.addHandler(records)
    try:
        model = await played(host, world, [call(host.own_tool, "o")])
    except (AssertionError, TimeoutError):
        raise
    except Exception as refused:  # the framework's own error
        if host.own_tool not in str(refused):
            raise AssertionError(f"the clash is not explained: {refused}") from refused
        return
    finally:
        log.removeHandler(records)
    assert model.requests[0].tools.count(host.own_tool) == 1, model.requests[0]
    assert "own" in model.answers["o"].text, model.answers
    warnings = [record.getMessage() for record in records.buffer]
    assert any(host.own_tool in warning for warning in warnings), warnings


async def an_agent_without_own_tools_runs(host: AgentHost, world: World) -> None:
    """An agent that has only the tools of Satchel runs, and so does one without any tool."""
    model = await played(host, world, [call("add", "a", a=1, b=2)], tools=())
    assert host.own_tool not in model.requests[0].tools, model.requests[0]
    assert "3" in model.answers["a"].text, model.answers
    empty = World(folder=world.folder, app=Satchel())
    model = await played(host, empty, tools=())
    assert len(model.requests) == 1, model.requests
    empty.app.register_tool(add)
    model = await played(host, empty, [call("add", "a", a=1, b=2)], tools=())
    assert "3" in model.answers["a"].text, model.answers


async def a_tool_of_the_provider_stays(host: AgentHost, world: World) -> None:
    """A tool that the model's provider runs is offered beside those of Satchel."""
    assert host.provider_tool, "the framework has no such tools"
    own = (host.provider_tool,)
    model = await played(host, world, [call("add", "a", a=1, b=2)], tools=own)
    for request in model.requests:
        assert {*own, "add"} <= {*request.tools}, request
    assert "3" in model.answers["a"].text, model.answers
