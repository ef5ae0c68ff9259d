"""A plan: the calls of one step of the model, and what became of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, overload

from satchel.tools import ToolCall


@dataclass(frozen=True, slots=True)
class Plan(Sequence[ToolCall]):
    """The calls around one, as they stand while it is judged; what was dropped is not there."""

    calls: tuple[ToolCall, ...]
    at: int
    """Where the call that is judged stands among them."""

    @property
    def before(self) -> tuple[ToolCall, ...]:
        """Return the calls ahead of the one that is judged."""
        return self.calls[: self.at]

    @property
    def after(self) -> tuple[ToolCall, ...]:
        """Return the calls behind it."""
        return self.calls[self.at + 1 :]

    @property
    def others(self) -> tuple[ToolCall, ...]:
        """Return all calls but the one that is judged."""
        return self.before + self.after

    @overload
    def __getitem__(self, index: int) -> ToolCall: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ToolCall, ...]: ...
    def __getitem__(self, index: int | slice) -> ToolCall | tuple[ToolCall, ...]:
        return self.calls[index]

    def __len__(self) -> int:
        return len(self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one call of a plan."""

    index: int
    """Its place in the plan as it was sent."""
    sent: ToolCall
    call: ToolCall | None
    """The call as it was corrected; `None` if it is not to be run."""
    ids: tuple[str, ...] = ()
    """The invariants that corrected, pruned or rejected it."""
    message: str = ""
    """What the model may be told."""
    code: str = ""
    """The `error_code` of a call that was rejected."""
    problem: str = ""
    """What a check, a corrector or a normalizer raised; for developers alone."""


class Validation(NamedTuple):
    """A plan that was validated: what is to be run, and what became of the rest, in its order."""

    plan: tuple[ToolCall, ...]
    corrected: tuple[Verdict, ...] = ()
    pruned: tuple[Verdict, ...] = ()
    rejected: tuple[Verdict, ...] = ()


class PlanPolicy(Protocol):
    """`policy(plan, state)`: says why a plan is not acceptable as a whole, or returns `None`."""

    def __call__(self, plan: Sequence[ToolCall], state: Any, /) -> str | None:
        """Say why the plan is not acceptable, or return `None`."""
