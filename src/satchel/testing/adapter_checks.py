"""Checks that every adapter to an agent framework must pass, with a scripted model.

An adapter's test gives an `AgentHost`, which runs the framework's own agent on a `ScriptedModel`.
Each check is a coroutine of the host; `CHECKS` has all of them by name.
"""

import asyncio
import base64
import gc
import importlib.util
import logging
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from satchel.errors import ToolError
from satchel.runtime.middleware import approve
from satchel.satchel import Satchel
from satchel.session.session import Session
from satchel.session.step import Step
from satchel.session.step_plan import StepPlan
from satchel.testing.sample_files import write_plugin, write_skill
from satchel.tools import Audio, Image, Resource, ResourceLink, Text, ToolCall, ToolResult

PATIENCE = 60.0
"""Seconds for one run of an agent."""

RUNS = 10
"""How many runs of one agent and session share the turns of a long conversation."""

TOGETHER = 0.95
"""Seconds within which two calls of half a second end if they run at the same time."""

CANCELLED = 0.1
"""Seconds within which a tool learns that the host's task was cancelled."""

SECOND_AND_LAST = (1, RUNS - 1)
"""The runs in which objects are counted, which takes long; a framework may keep the run before."""

SLACK = 6
"""How many objects more may live after many requests: those of the requests that still run."""

PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

TOOLS = '''
import asyncio
from pathlib import Path
from satchel import tool

VERSION = "old"

@tool
async def version_after_the_edit() -> str:
    """Wait until the file was edited, then return the version of this code."""
    while not Path(__file__).with_name("edited").exists():
        await asyncio.sleep(0.01)
    return VERSION
'''

USERS_TOOLS = '''
from satchel import ToolContext, tool

@tool
def {name}(context: ToolContext) -> str:
    """Say whose session it is."""
    return f"{{context.state['user']}} has {version}"
'''

NEW_TOOL = '''
@tool
def multiply(a: int, b: int) -> int:
    """Multiply two integers."""
    return a * b
'''


@dataclass(frozen=True)
class Answered:
    """What the model reads of one call."""

    text: str
    is_error: bool | None = None
    """`None` if the framework has no sign for an error."""
    media: int = 0
    """How many pictures and files it was given."""


@dataclass(frozen=True)
class SeenRequest:
    """What one request to the model contained."""

    tools: tuple[str, ...]
    prompt: str
    at: float


Turn = Sequence[ToolCall] | Callable[[], Sequence[ToolCall]]


class ScriptedModel:
    """Answers each request with the next calls of a script, then with the text `done`."""

    def __init__(self, *turns: Turn) -> None:
        self._turns = list(turns)
        self.requests: list[SeenRequest] = []
        self.answers: dict[str, Answered] = {}
        """What the model read of each call, by the call's id; the host fills it in."""
        self.chunks: list[str] = []
        """The texts of the chunks that reached the host; it fills them in."""

    def answer(self, tools: Collection[str], prompt: str | None) -> list[ToolCall]:
        """Return the calls of the next answer; none if the model is done."""
        number = len(self.requests)
        self.requests.append(SeenRequest(tuple(tools), prompt or "", time.monotonic()))
        turn = self._turns[number] if number < len(self._turns) else ()
        calls = turn() if callable(turn) else turn
        return [
            call if call.id else call.changed(id=f"call_{number}_{at}")
            for at, call in enumerate(calls)
        ]


@dataclass(frozen=True)
class Cannot:
    """Why a framework cannot pass a check, and the line of its source that shows it."""

    reason: str
    module: str
    line: str
    """The line without the space around it."""

    def place(self) -> str:
        """Return module and number of the line. Raises `AssertionError` if it is not there."""
        spec = importlib.util.find_spec(self.module)
        assert spec is not None, f"the framework has no module {self.module} now"
        lines = Path(str(spec.origin)).read_text(encoding="utf-8").splitlines()
        numbers = [at for at, line in enumerate(lines, 1) if line.strip() == self.line]
        assert numbers, f"{self.module} has no line {self.line!r} now: can the framework do it?"
        return f"{self.module}:{numbers[0]}"


class AgentHost(Protocol):
    """Runs the agent of a framework."""

    name: str
    cannot: Mapping[str, Cannot]
    """The checks that the framework cannot pass."""
    own_tool: str
    """The name of a tool of the host. It returns "own"."""
    provider_tool: str
    """The name of a tool that the model's provider runs; `""` if the framework has none."""

    def make(
        self,
        source: Any,
        model: Callable[[Any], ScriptedModel],
        prompt: str,
        tools: Collection[str],
    ) -> Any:
        """Return an agent with the adapter for `source`, and these tools beside those of Satchel.

        `model(context)` returns the script of a run, where `context` is what `user_of` takes.
        """

    async def run(self, agent: Any, user: str, model: ScriptedModel) -> None:
        """Run the agent for a user until the model is done, and fill in `model.answers`."""

    async def run_asking(
        self, session: Callable[[], Session], model: ScriptedModel, *, answer: bool
    ) -> int:
        """Run an agent whose adapter asks by the framework's own confirmation; answer each time.

        Return how often it asked. Begin with the session that `session()` returns. A framework that
        can save a run resumes it with new objects, and with what a second `session()` returns. A
        host whose framework has no confirmation leaves this out.
        """

    def user_of(self, context: Any) -> str:
        """Return the user of a run from what the adapter passes to a session source."""


@dataclass(kw_only=True)
class World:
    """A satchel with a plugin, a skill and tools of the host, and its sessions by user."""

    folder: Path
    app: Satchel
    turns: int = 60
    """How many requests the longest checks make."""
    sessions: dict[str, Session] = field(default_factory=dict)
    cancelled_at: list[float] = field(default_factory=list)
    started: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)
    """Ends what a framework cannot cancel."""

    def session(self, user: str = "ada") -> Session:
        """Return the session of a user; its group `math` is off."""
        if user not in self.sessions:
            self.sessions[user] = self.app.session()
        return self.sessions[user]

    def edit(self) -> None:
        """Change the plugin's file, load it, and let the running tool end."""
        tools = self.folder / "plugins" / "math" / "tools.py"
        tools.write_text(TOOLS.replace('"old"', '"new"') + NEW_TOOL, encoding="utf-8")
        self.app.refresh()
        tools.with_name("edited").touch()


def make_world(folder: Path, turns: int = 60) -> World:
    """Write a plugin and a skill into a folder, and return a satchel with them."""
    write_plugin(folder / "plugins", "math", TOOLS, notes="Use integers only.", active=False)
    write_skill(folder / "skills", "guide", description="How to calculate.", body="Use tools.\n")
    app = Satchel(skills=[folder / "skills"], plugins=[folder / "plugins"])
    world = World(folder=folder, app=app, turns=turns)
    for function in _tools_of(world):
        app.register_tool(function)
    return world


def _tools_of(world: World) -> list[Callable[..., Any]]:
    async def hang() -> str:
        world.started.set()
        try:
            # The event may be set in a thread; a tool that cannot be cancelled waits for it.
            while not world.is_over.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            world.cancelled_at.append(time.monotonic())
            raise
        return ""

    plain = (add, nap, fail, crash, picture, count, everything, nothing, failed_picture)
    return [*plain, fail_silently, hang]


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


async def nap(seconds: float) -> str:
    """Sleep for a while."""
    await asyncio.sleep(seconds)
    return "slept"


def fail() -> str:
    """Fail with words for the model."""
    raise ToolError("the archive is closed; try tomorrow")


def crash() -> str:
    """Fail with an exception."""
    raise KeyError("secret detail")


def picture() -> Image:
    """Draw a picture."""
    return Image(base64.b64decode(PICTURE))


def everything() -> list[Any]:
    """Return a block of each kind."""
    return [
        Text("look at this"),
        picture(),
        Audio(b"RIFF", mime_type="audio/wav"),
        Resource(uri="file:///report.pdf", content=b"%PDF", mime_type="application/pdf"),
        ResourceLink(uri="https://example.org/", name="more"),
    ]


def nothing() -> None:
    """Return nothing."""


def failed_picture() -> ToolResult:
    """Fail with a picture of what is wrong."""
    return ToolResult(content=(picture(),), is_error=True)


def fail_silently() -> None:
    """Fail without a word."""
    raise ToolError("")


async def count(to: int) -> AsyncIterator[str]:
    """Count in parts."""
    for number in range(to):
        yield f"part {number}"


def call(name: str, call_id: str = "", /, **arguments: Any) -> ToolCall:
    """Return a call of the scripted model."""
    return ToolCall(name=name, arguments=arguments, id=call_id)


async def played(
    host: AgentHost,
    world: World,
    *turns: Turn,
    prompt: str = "",
    user: str = "ada",
    tools: Collection[str] | None = None,
) -> ScriptedModel:
    """Run a new agent of the host with a script, and return what its model saw.

    `tools` are those of the host; by default its own tool.
    """
    model = ScriptedModel(*turns)
    own = (host.own_tool,) if tools is None else tools
    agent = host.make(world.session(user), lambda _context: model, prompt, own)
    # Every request carries all messages before it, so a long run takes long.
    await asyncio.wait_for(host.run(agent, user, model), PATIENCE + len(turns))
    return model


# ---- the checks ---------------------------------------------------------------------------


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
    records = _Records()
    logging.getLogger("satchel.adapters").addHandler(records)
    try:
        model = await played(host, world, [call(host.own_tool, "o")])
    except (AssertionError, TimeoutError):
        raise
    except Exception as refused:  # the framework's own error
        if host.own_tool not in str(refused):
            raise AssertionError(f"the clash is not explained: {refused}") from refused
        return
    finally:
        logging.getLogger("satchel.adapters").removeHandler(records)
    assert model.requests[0].tools.count(host.own_tool) == 1, model.requests[0]
    assert "own" in model.answers["o"].text, model.answers
    assert any(host.own_tool in text for text in records.texts), records.texts


async def errors_are_word_for_word(host: AgentHost, world: World) -> None:
    """The text of a `ToolError` arrives unchanged; an unexpected exception shows no detail."""
    model = await played(host, world, [call("fail", "f"), call("crash", "c")])
    text = model.answers["f"].text
    assert "the archive is closed; try tomorrow" in text, text
    assert "secret detail" not in model.answers["c"].text, model.answers
    assert "tool failed" in model.answers["c"].text, model.answers


async def errors_are_marked(host: AgentHost, world: World) -> None:
    """An error is marked as one, and a success is not."""
    model = await played(host, world, [call("fail", "f"), call("add", "a", a=1, b=2)])
    assert model.answers["f"].is_error is True, model.answers
    assert not model.answers["a"].is_error, model.answers


async def bad_arguments_are_explained(host: AgentHost, world: World) -> None:
    """Invalid arguments are explained in Satchel's words; convertible ones are converted."""
    model = await played(
        host, world, [call("add", "bad", a="x", b=1), call("add", "good", a="3", b=1)]
    )
    expected = (await world.session().call("add", {"a": "x", "b": 1})).text
    assert expected in model.answers["bad"].text, model.answers
    assert "4" in model.answers["good"].text, model.answers


async def pictures_arrive(host: AgentHost, world: World) -> None:
    """A picture reaches the model."""
    model = await played(host, world, [call("picture", "p")])
    assert model.answers["p"].media == 1, model.answers


async def a_result_is_never_empty(host: AgentHost, world: World) -> None:
    """What a framework cannot carry becomes words: sound, files, links, nothing, empty errors."""
    names = ("everything", "nothing", "failed_picture", "fail_silently")
    calls = [call("picture", "p"), *(call(name, name) for name in names)]
    model = await played(host, world, calls)
    for name in ("p", *names):
        answer = model.answers[name]
        assert answer.text.strip() or answer.media, (name, model.answers)
    text, media = model.answers["everything"].text, model.answers["everything"].media
    assert "look at this" in text, model.answers
    assert "example.org" in text, model.answers
    assert "report.pdf" in text or media > 1, model.answers


async def chunks_reach_the_host(host: AgentHost, world: World) -> None:
    """The parts of a result reach the host while the tool runs; the model reads all of it."""
    model = await played(host, world, [call("count", "n", to=3)])
    assert [text for text in model.chunks if "part" in text], model.chunks
    assert "part 2" in model.answers["n"].text, model.answers


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
        found = session_of(user)
        found.plan_policy = lambda plan, _state: seen.append([item.name for item in plan])
        return found

    for user, answer in (("yes", True), ("no", False)):
        model = ScriptedModel([call("add", "a", a=1, b=2), call("nap", "n", seconds=0.01)])
        asked = await host.run_asking(partial(session, user), model, answer=answer)
        assert asked == 1, asked
        assert ("3" in model.answers["a"].text) is answer, model.answers
        assert "slept" in model.answers["n"].text, model.answers
    assert seen == [["add", "nap"]] * len(seen), seen


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


async def many_turns_do_not_grow(host: AgentHost, world: World) -> None:
    """Ten runs of one agent in one session: no objects of Satchel remain of earlier requests."""
    counts: list[int] = []

    def counted() -> Sequence[ToolCall]:
        counts.append(_live_objects())
        return quiet

    quiet = [call("add", a=1, b=2)]
    half: list[Turn] = [quiet] * (world.turns // RUNS // 2 - 1)
    scripts: list[ScriptedModel] = []
    agent = host.make(world.session(), lambda _context: scripts[-1], "", (host.own_tool,))
    for run in range(RUNS):
        counting = counted if run in SECOND_AND_LAST else quiet
        scripts[:] = [ScriptedModel(*half, counting, *half, counting)]
        await asyncio.wait_for(host.run(agent, "ada", scripts[0]), PATIENCE + world.turns)
    assert max(counts[1:]) <= counts[0] + SLACK, counts


async def two_users_run_for_long(host: AgentHost, world: World) -> None:
    """Two users use one agent at once, each with a group and files that are edited meanwhile.

    Neither sees a tool, a note or a result of the other, and nothing remains of earlier requests.
    """
    talks = {"ada": _LongTalk(world, "ada", "maps"), "bob": _LongTalk(world, "bob", "music")}
    scripts: dict[str, ScriptedModel] = {}
    agent = host.make(
        lambda context: world.session(host.user_of(context)),
        lambda context: scripts[host.user_of(context)],
        "",
        (host.own_tool,),
    )
    for run in range(RUNS):
        turns, counting = world.turns // RUNS // len(talks), run in SECOND_AND_LAST
        scripts.update({user: talk.script(turns, counts=counting) for user, talk in talks.items()})
        both = asyncio.gather(*(host.run(agent, user, scripts[user]) for user in scripts))
        await asyncio.wait_for(both, PATIENCE + world.turns)
        for user, talk in talks.items():
            talk.check(scripts[user])
    counts = talks["ada"].counts
    assert max(counts[1:]) <= counts[0] + SLACK, counts


_ON, _EDIT, _OFF, _CYCLE = 0, 2, 4, 5
"""The places of some answers in a cycle of answers, and how long that is."""


class _LongTalk:
    """The conversation of one user: a group is on for some requests, in which its file changes."""

    def __init__(self, world: World, user: str, group: str) -> None:
        self._world, self._user, self._group = world, user, group
        self._version, self._counts = 0, False
        self.counts: list[int] = []
        """How many steps and plans live, early and late in each run."""
        self._expected: list[str] = []
        self._says: dict[str, str] = {}
        world.session(user).state["user"] = user
        self._write()

    def script(self, turns: int, *, counts: bool) -> ScriptedModel:
        """Return a script; `check` compares what its model saw."""
        self._expected, self._says, self._counts = [], {}, counts
        return ScriptedModel(*[self._next] * (max(turns // _CYCLE, 1) * _CYCLE), self._end)

    def check(self, model: ScriptedModel) -> None:
        """Raise `AssertionError` if the model saw something else than what is its user's."""
        seen = [_of_users(request) for request in model.requests]
        assert seen == [*self._expected, ""], (self._user, seen)
        for call_id, text in self._says.items():
            assert text in model.answers[call_id].text, (self._user, call_id, model.answers)

    def _next(self) -> Sequence[ToolCall]:
        """Return the calls of the next answer: switch on, call, edit and call, call, switch off."""
        number = len(self._expected)
        name, place = f"{self._group}_{self._version}", number % _CYCLE
        self._expected.append("" if place == _ON else f"{name} {self._group}")
        if number == 1:
            self._count()
        if place in {_ON, _OFF}:
            return [call("reset_equipped_tools", **{self._group: place == _ON})]
        calls = [call(name, f"{number}a"), call("add", f"{number}b", a=number, b=1000)]
        self._says[calls[0].id] = f"{self._user} has {self._version}"
        self._says[calls[1].id] = f"{number + 1000}"
        if place == _EDIT:
            self._version += 1
            self._write()
        return calls

    def _end(self) -> Sequence[ToolCall]:
        self._count()
        return ()

    def _count(self) -> None:
        if self._counts:
            self.counts.append(_live_steps())

    def _write(self) -> None:
        tools = USERS_TOOLS.format(name=f"{self._group}_{self._version}", version=self._version)
        folder, notes = self._world.folder / "plugins", f"Notes on {self._group}."
        write_plugin(folder, self._group, tools, notes=notes, active=False)
        self._world.app.refresh()


def _of_users(request: SeenRequest) -> str:
    """Return the tools and the notes in a request that belong to one user alone."""
    tools = [name for name in request.tools if name.startswith(("maps_", "music_"))]
    notes = [group for group in ("maps", "music") if f"Notes on {group}." in request.prompt]
    return " ".join(tools + notes)


def _live_steps() -> int:
    gc.collect()
    return sum(type(item) in {Step, StepPlan} for item in gc.get_objects())


def _live_objects() -> int:
    """Return how many objects of Satchel's classes live, without those of this kit."""
    gc.collect()
    modules = (str(type(item).__module__) for item in gc.get_objects())
    return sum(name.startswith("satchel.") and "testing" not in name for name in modules)


Check = Callable[[AgentHost, World], Awaitable[None]]

CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        check.__name__: check
        for check in (
            tools_and_prompt_are_of_one_step,
            a_skill_is_loaded,
            an_edit_is_in_the_next_request,
            the_hosts_own_stays,
            a_name_clash_is_reported,
            errors_are_word_for_word,
            errors_are_marked,
            bad_arguments_are_explained,
            pictures_arrive,
            a_result_is_never_empty,
            chunks_reach_the_host,
            calls_of_a_message_run_together,
            cancelling_reaches_the_tool,
            two_users_do_not_share_a_session,
            trouble_of_one_user_stays_there,
            a_plan_is_judged_once,
            approval_is_asked_for,
            the_framework_asks_for_approval,
            an_approval_survives_a_restart,
            an_agent_without_own_tools_runs,
            a_tool_of_the_provider_stays,
            parallel_agents_do_not_mix,
            many_turns_do_not_grow,
            two_users_run_for_long,
        )
    }
)
"""Every check by its name, in the order of the table."""


async def run_check(host: AgentHost, name: str, *, turns: int = 60) -> None:
    """Run one check in a world of its own. Raises `AssertionError` if the adapter fails it."""
    with tempfile.TemporaryDirectory(prefix="satchel-adapter-") as folder:
        await CHECKS[name](host, make_world(Path(folder), turns))


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
