"""A plan: the calls of one model message, and the result of validating them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, overload

from satchel.lazy_dataclass import dataclass
from satchel.tools import ToolCall


@dataclass(frozen=True, slots=True)
class Plan(Sequence[ToolCall]):
    """The plan as a rule sees it: all calls that were not dropped, and the call being checked."""

    calls: tuple[ToolCall, ...]
    at: int
    """The index of the call being checked."""

    @property
    def before(self) -> tuple[ToolCall, ...]:
        """The calls before the one being checked."""
        return self.calls[: self.at]

    @property
    def after(self) -> tuple[ToolCall, ...]:
        """The calls after it."""
        return self.calls[self.at + 1 :]

    @property
    def others(self) -> tuple[ToolCall, ...]:
        """All calls except the one being checked."""
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
    """The result of validating one call of a plan."""

    index: int
    """Its index in the plan as sent."""
    sent: ToolCall
    call: ToolCall | None
    """The corrected call; `None` if the call is not run."""
    ids: tuple[str, ...] = ()
    """The invariants that corrected, pruned or rejected it."""
    message: str = ""
    """Text for the model."""
    code: str = ""
    """The `error_code` of a call that was rejected."""
    problem: str = ""
    """The error of a check, corrector or normalizer; for developers only."""


class Validation(NamedTuple):
    """A validated plan: the calls to run, and the verdicts on the others, in order.

    Hosts unpack it: `plan, corrected, pruned, rejected = ...`.
    """

    plan: tuple[ToolCall, ...]
    corrected: tuple[Verdict, ...] = ()
    pruned: tuple[Verdict, ...] = ()
    rejected: tuple[Verdict, ...] = ()


class PlanPolicy(Protocol):
    """`policy(plan, state)` returns why a plan is refused as a whole, or `None`."""

    def __call__(self, plan: Sequence[ToolCall], state: Any, /) -> str | None:
        """Return why the plan is refused, or `None`."""
