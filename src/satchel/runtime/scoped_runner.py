"""Which calls the runners of the host run, in place of the runner of the tool."""

from collections.abc import Callable, Iterable

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.tools import ToolCall
from satchel.tools.runner import Runner

Route = Callable[[ToolCall], tuple[Runner, ToolCall]]
"""Returns the runner of a call that has a tool, and the call as that runner needs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedRunner:
    """A runner, and the tool or the group that it is for."""

    runner: Runner
    group: str | None = None
    """The group, or `None` for all groups."""
    tool: str | None = None
    """The tool, or `None` for all tools."""
    name: str | None = None
    """The name by which tools ask for it; `None` if it runs also those that do not ask."""

    def __post_init__(self) -> None:
        if not isinstance(self.runner, Runner):
            raise DefinitionError(
                f"a runner is a Runner, not {self.runner!r}", fix="subclass satchel.tools.Runner"
            )


def unknown_runner(name: str, tool: str) -> Diagnostic:
    """Return the diagnostic for a tool that asks for a runner that the host has not registered."""
    return make_diagnostic(
        "runner-unknown",
        Where(f"tool:{tool}"),
        f"tool {tool!r} asks for the runner {name!r}, which is not registered; it runs here",
        "Register it with register_runner(runner, name=...), or remove the name.",
    )


def runner_for(runners: Iterable[ScopedRunner], call: ToolCall, name: str) -> Runner | None:
    """Return the runner of a call whose tool asks for the runner `name`, if it asks for one.

    A runner for the tool comes before one for its group, and that before one by name; of equal
    ones the last.
    """
    matching = [
        item
        for item in runners
        if item.tool in {None, call.name}
        and (item.group is None or item.group in call.groups)
        and item.name in {None, name}
    ]
    ranked = sorted(
        matching,
        key=lambda item: (item.tool is not None, item.group is not None, item.name is not None),
    )
    return ranked[-1].runner if ranked else None
