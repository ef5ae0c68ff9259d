"""What a model reads: its tools, the prompt, and the results of failing calls."""

import asyncio
import json
import re

import pytest
from inputs import GOOD

from satchel import (
    Limits,
    Satchel,
    Settings,
    ToolCall,
    ToolContract,
    ToolError,
    ToolInvariant,
    tool,
)
from satchel.runtime.executors import CircuitBreaker, Sequential
from satchel.runtime.middleware import approve, authorize, limit_time


@tool
def weather(city: str, days: int = 1) -> str:
    """Tell the weather."""
    if days < 0:
        raise ToolError("There is no weather of the past. Ask for days from 0 to 7.")
    return f"{city}: sun"


@tool
def broken() -> str:
    """Break."""
    raise RuntimeError("a secret")


@tool(timeout=0.05)
async def slow() -> str:
    """Take long."""
    await asyncio.sleep(60)
    return ""


@tool
def unsendable() -> bytes:
    """Return what JSON does not have."""
    return b""


@tool(background=True)
async def research(topic: str) -> str:
    """Look for long."""
    return topic


@tool
def long() -> str:
    """Tell too much."""
    return "x" * 9000


@pytest.fixture
def satchel(tmp_path):
    for name in ("pdf", "poems"):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(GOOD.format(name=name))
    for name in ("scripts/run.py", "scripts/run.xyz", "guide.md", "data.bin"):
        path = tmp_path / "skills" / "pdf" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"\xff\x00" if name == "data.bin" else b"A guide.")
    with Satchel(tmp_path / "skills", settings=Settings(limits=Limits(result_text=4000))) as app:
        app.create_group("maps", "Routes.", notes="Geocode first.")
        app.create_group("vault", "Secrets.", requires=["VAULT_KEY"])
        app.register_tool(weather, name="route", group="maps", description="Find a way.")
        app.register_tool(weather, name="unlock", group="vault", description="Open the vault.")
        app.tools.register_many([weather, broken, slow, unsendable, research, long])
        yield app


CALLS = {
    "unknown tool, with a near name": [("wether", {})],
    "unknown tool": [("nowhere", {})],
    "tool of a group that is not active": [("route", {"city": "Oslo"})],
    "tool of a group that is unavailable": [("unlock", {"city": "Oslo"})],
    "missing argument": [("weather", {})],
    "wrong type and unknown argument": [("weather", {"city": [1], "days": "x", "town": "y"})],
    "arguments that are not JSON": [("weather", '{"city": ')],
    "arguments that are a list": [("weather", "[1]")],
    "error that the tool raises for the model": [("weather", {"city": "Oslo", "days": -1})],
    "tool that breaks": [("broken", {})],
    "timeout": [("slow", {})],
    "result that is not JSON": [("unsendable", {})],
    "result that is too long": [("long", {})],
    "background task": [("research", {"topic": "x"}), ("view_task", {"task_id": "0"})],
    "groups": [
        ("reset_equipped_tools", {"maps": True}),
        ("reset_equipped_tools", {"vault": True}),
        ("reset_equipped_tools", {"map": True}),
        ("reset_equipped_tools", {"maps": "yes"}),
        ("reset_equipped_tools", {}),
    ],
    "skills": [
        ("load_skill", {"name": "pfd"}),
        ("read_skill_file", {"skill": "pdf", "path": "guide.md"}),
        ("load_skill", {"name": "pdf"}),
        ("load_skill", {"name": "pdf"}),
        ("read_skill_file", {"skill": "pdf", "path": "guide.md"}),
        ("read_skill_file", {"skill": "pdf", "path": "guide.md"}),
        ("read_skill_file", {"skill": "pdf", "path": "guide.md", "offset": 99}),
        ("read_skill_file", {"skill": "pdf", "path": "guid.md"}),
        ("read_skill_file", {"skill": "pdf", "path": "data.bin"}),
        ("run_skill_script", {"skill": "pdf", "script": "scripts/run.xyz"}),
        ("run_skill_script", {"skill": "pdf", "script": "scripts/go.py"}),
    ],
    "search": [
        ("search_tools", {"words": "way"}),
        ("search_tools", {"words": "submarine"}),
        ("search_skills", {"words": "pdf"}),
        ("search_skills", {"words": ""}),
    ],
}


def test_the_answers_of_calls_are_as_they_were_reviewed(satchel, snapshot, tmp_path):
    entries = []
    for title, calls in CALLS.items():
        session = satchel.session(scripts=True, search=True)
        entries.append(title)
        entries += [
            _answer(session, ToolCall(name=name, arguments=arguments)) for name, arguments in calls
        ]
    entries += ["interrupted", asyncio.run(_interrupted(satchel))]
    for title, layer in LAYERS.items():
        undo = satchel.register_middleware(layer)
        call = (
            ToolCall(name="slow")
            if "deadline" in title
            else ToolCall(name="weather", arguments={"city": "Oslo"})
        )
        entries += [title, _answer(satchel.session(), call)]
        undo()
    satchel.register_contract(CONTRACT)
    session = satchel.session()
    session.plan_policy = lambda plan, _state: "Ask for one city." if len(plan) > 1 else None
    entries += [
        "rule of a contract",
        _answer(session, ToolCall(name="weather", arguments={"city": "Rome"})),
    ]
    both = asyncio.run(session.execute([ToolCall(name="weather", arguments={"city": "Oslo"})] * 2))
    entries += ["plan that is refused", _shown(both[0])]
    breaking = CircuitBreaker(Sequential(), failures=1)
    rested = asyncio.run(
        satchel.session().execute([ToolCall(name="broken")] * 2, executor=breaking)
    )
    entries += ["tool that rests after failures", _shown(rested[1])]
    snapshot("calls", [_normal(entry, tmp_path) for entry in entries])


LAYERS = {
    "denied": approve(lambda _call: False),
    "denied with a reason": approve(lambda _call: "the user said no"),
    "approval that breaks": approve(lambda _call: 1 / 0),
    "not allowed": authorize(deny=("weather",)),
    "deadline of the host": limit_time(0.001),
}
CONTRACT = ToolContract(
    name="weather",
    schema={"city": "str - a city", "days": "int = 1 - how many"},
    description="Tell the weather.",
    invariants=[
        ToolInvariant(
            id="north",
            rule="Only northern cities.",
            check=lambda call, _s, _p: call.arguments["city"] != "Rome",
        )
    ],
)


async def _interrupted(satchel):
    begun = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.sleep(60)
        return ""

    satchel.register_tool(wait)
    session = satchel.session()
    work = asyncio.create_task(session.call("wait", {}))
    await begun.wait()
    session.interrupt()
    return f"  wait {{}}\n{_shown(await work)}"


def _answer(session, call):
    result = asyncio.run(session.call(call.name, call.arguments))
    arguments = (
        call.arguments if isinstance(call.arguments, str) else json.dumps({**call.arguments})
    )
    return f"  {call.name} {arguments}\n{_shown(result)}"


def _shown(result):
    text = re.sub(r"\n(?=.)", "\n        ", result.text)
    return f"    {result.error_code or 'ok'}: {text}"


def _normal(text, folder):
    text = re.sub(r"\(id [0-9a-f]{8}\)", "(id ID)", text.replace(str(folder), "."))
    return re.sub(r"\bx{9,}", "xxx", text)


def test_what_a_model_is_shown_is_as_it_was_reviewed(satchel, snapshot, tmp_path):
    session = satchel.session(scripts=True, search=True)
    session.activate("maps")
    session.load_skill("pdf")
    asyncio.run(session.call("research", {"topic": "x"}))
    own = [schema["function"] for schema in session.schemas()]
    lines = [f"prompt: {session.prompt()}"]
    for schema in own:
        lines.append(f"{schema['name']}: {schema['description']}")
        properties = schema["parameters"].get("properties", {})
        lines += [f"    {name}: {json.dumps(item)}" for name, item in properties.items()]
    snapshot("shown", [_normal(line, tmp_path) for line in lines])
