"""The satchel of a check, with a plugin and a skill, and a run of an agent with it."""

import asyncio
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from satchel.satchel import Satchel
from satchel.session.session import Session
from satchel.testing.adapter_checks.agent_host import AgentHost, ScriptedModel, Turn
from satchel.testing.adapter_checks.sample_tools import SAMPLE_TOOLS
from satchel.testing.sample_files import write_plugin, write_skill
from satchel.tools import ToolCall

PATIENCE = 60.0
"""Seconds for one run of an agent."""

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

NEW_TOOL = '''
@tool
def multiply(a: int, b: int) -> int:
    """Multiply two integers."""
    return a * b
'''


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

    async def hang(self) -> str:
        """Wait for ever."""
        self.started.set()
        try:
            # The event may be set in a thread; a tool that cannot be cancelled waits for it.
            while not self.is_over.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled_at.append(time.monotonic())
            raise
        return ""

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
    for function in (*SAMPLE_TOOLS, world.hang):
        app.register_tool(function)
    return world


def call(name: str, call_id: str = "", /, **arguments: Any) -> ToolCall:
    """Return a call of the scripted model."""
    return ToolCall(name=name, arguments=arguments, id=call_id)


async def played(
    host: AgentHost,
    world: World,
    *turns: Turn,
    prompt: str = "",
    tools: Collection[str] | None = None,
) -> ScriptedModel:
    """Run a new agent of the host with a script, and return what its model saw.

    `tools` are those of the host; by default its own tool.
    """
    model = ScriptedModel(*turns)
    own = (host.own_tool,) if tools is None else tools
    agent = host.make(world.session(), lambda _context: model, prompt, own)
    # Every request has all messages before it, so a long run takes long.
    await asyncio.wait_for(host.run(agent, "ada", model), PATIENCE + len(turns))
    return model
