"""Checks that every adapter to an agent framework must pass, with a scripted model.

The test of an adapter writes an `AgentHost`, which runs the framework's own agent on a
`ScriptedModel`, and calls `run_check` for each name in `CHECKS`.
"""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.testing.adapter_checks.agent_host import (
        AgentHost,
        Answered,
        Cannot,
        ScriptedModel,
    )
    from satchel.testing.adapter_checks.check_runner import CHECKS, run_check
    from satchel.testing.adapter_checks.sample_world import NEW_TOOL, World, call, make_world
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "agent_host": "AgentHost Answered Cannot ScriptedModel",
            "check_runner": "CHECKS run_check",
            "sample_world": "NEW_TOOL World call make_world",
        },
    )

__all__ = [
    "CHECKS",
    "NEW_TOOL",
    "AgentHost",
    "Answered",
    "Cannot",
    "ScriptedModel",
    "World",
    "call",
    "make_world",
    "run_check",
]
