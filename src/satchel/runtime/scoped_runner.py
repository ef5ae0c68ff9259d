"""Which calls the runners of the host run, in place of the runner of the tool."""

from collections.abc import Callable, Collection, Iterable

from satchel.errors import DefinitionError
from satchel.lazy_dataclass import dataclass
from satchel.tools import ToolCall
from satchel.tools.runner import Runner

Route = Callable[[ToolCall], tuple[Runner, ToolCall]]
"""Returns the runner of a call that has a tool, and the call as that runner needs it."""


@dataclass(frozen=True, slots=True)
class ScopedRunner:
    """A runner, and the tool or the group that it is for."""

    runner: Runner
    group: str | None = None
    """The group, or `None` for all groups."""
    tool: str | None = None
    """The tool, or `None` for all tools."""

    def __post_init__(self) -> None:
        if not isinstance(self.runner, Runner):
            raise DefinitionError(
                f"a runner is a Runner, not {self.runner!r}", fix="subclass satchel.tools.Runner"
            )


def runner_for(
    runners: Iterable[ScopedRunner], tool: str, groups: Collection[str]
) -> Runner | None:
    """Return the runner of one tool: its own before that of a group; of equal ones the last."""
    matching = [
        item
        for item in runners
        if item.tool in {None, tool} and (item.group is None or item.group in groups)
    ]
    ranked = sorted(matching, key=lambda item: (item.tool is not None, item.group is not None))
    return ranked[-1].runner if ranked else None
