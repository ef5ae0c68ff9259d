"""An orchestrator that knows no tool: their contracts contain all that it needs.

python docs/examples/orchestrator.py [PLAN]
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from satchel import Satchel, Session, ToolCall, ToolContext, ToolResult, Validation

HERE = Path(__file__).parent

Planner = Callable[[str, list[dict[str, Any]]], Sequence[ToolCall]]
"""Answers a prompt and the schemas of the tools with a plan."""


class Turn(NamedTuple):
    """The outcome of one turn."""

    validation: Validation
    results: list[ToolResult]
    prompt: str
    """The system prompt of the next step."""


async def take_turn(session: Session, planner: Planner, config: Mapping[str, Any] = {}) -> Turn:
    """Get a plan, validate it, and run it."""
    session.new_turn()  # drops the documents of the last question
    prompt = f"{session.prompt()}\n\n{session.tool_guide()}"
    plan = planner(prompt, session.schemas())
    validation = session.validate(plan, config=config)  # runs nothing
    # Execute the whole plan: pruned and rejected calls need a result as well.
    results = await session.execute(plan, context=ToolContext(config=config))
    return Turn(validation, results, session.prompt())


def planned(name: str) -> Planner:
    """Return a planner that answers with a prepared plan, in place of a model."""

    def plan(prompt: str, schemas: list[dict[str, Any]]) -> list[ToolCall]:
        plans = json.loads((HERE / "plans.json").read_text())
        return [ToolCall(**call, id=str(number)) for number, call in enumerate(plans[name])]

    return plan


def report(turn: Turn) -> str:
    """Return the outcome of each call, then the prompt of the next step."""
    validation = turn.validation
    lines = [f"{item.index} corrected by {', '.join(item.ids)}" for item in validation.corrected]
    lines += [f"{item.index} pruned: {item.message}" for item in validation.pruned]
    lines += [f"{item.index} rejected: {item.message}" for item in validation.rejected]
    lines += [f"{number}: {result.text}" for number, result in enumerate(turn.results)]
    return "\n".join([*lines, "", turn.prompt])


if __name__ == "__main__":
    app = Satchel(plugins=[HERE / "retrieval"])
    plan_name = sys.argv[1] if len(sys.argv) > 1 else "mixed"
    print(report(asyncio.run(take_turn(app.session(), planned(plan_name)))))
