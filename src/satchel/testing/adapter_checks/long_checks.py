"""Long conversations: nothing of earlier requests remains, and two users do not mix."""

import asyncio
import gc
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from satchel.session.step import Step
from satchel.session.step_plan import StepPlan
from satchel.testing.adapter_checks.agent_host import AgentHost, ScriptedModel, SeenRequest, Turn
from satchel.testing.adapter_checks.sample_world import PATIENCE, World, call
from satchel.testing.sample_files import write_plugin
from satchel.tools import ToolCall

RUNS = 10
"""How many runs of one agent and session share the turns of a long conversation."""

SECOND_AND_LAST = (1, RUNS - 1)
"""The runs in which objects are counted, which takes long; a framework may keep the run before."""

SLACK = 6
"""How many objects more may live after many requests: those of the requests that still run."""

USERS_TOOLS = '''
from satchel import ToolContext, tool

@tool
def {name}(context: ToolContext) -> str:
    """Say whose session it is."""
    return f"{{context.state['user']}} has {version}"
'''


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
    kinds = _live_kinds()
    return kinds[Step] + kinds[StepPlan]


def _live_objects() -> int:
    """Return how many objects of Satchel's classes live, without those of this kit."""
    modules = ((str(kind.__module__), number) for kind, number in _live_kinds().items())
    return sum(
        number for name, number in modules if name.startswith("satchel.") and "testing" not in name
    )


def _live_kinds() -> Counter[type]:
    """Return how many objects of each class live.

    Only code in C runs between the list of all objects and its end, so no other thread does: a
    tuple that one is making must not be in a list, or CPython raises `SystemError` in that thread.
    """
    gc.collect()
    return Counter(map(type, chain.from_iterable(map(gc.get_objects, [None]))))
