"""The parts of a contract: rules, configuration, and what a tool reads of the state and writes."""

import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, Final, Literal

from satchel.errors import DefinitionError
from satchel.formats.read_result import quoted
from satchel.names import near_misses
from satchel.tools import ToolCall

Merge = Literal["replace", "append", "merge_dict"]
"""How a value joins what the state holds."""

_MERGES: tuple[Merge, ...] = ("replace", "append", "merge_dict")

VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
"""What the name of a prompt variable looks like."""

STATE_CONFIG = "config"
"""The key of the state under which a session keeps its configuration."""


class _Drop(Enum):
    """What a corrector returns to take the call out of the plan."""

    STEP = "DROP_STEP"

    def __repr__(self) -> str:
        return self.value


DROP_STEP: Final = _Drop.STEP

Check = Callable[..., bool]
"""`check(call, state, config)` or `check(call, state, config, plan)`: whether the rule is kept."""

Correct = Callable[..., "tuple[ToolCall, bool] | _Drop"]
"""As a check; returns the call with whether it was corrected, or `DROP_STEP`."""


class _Required(Enum):
    """Stands as the default of a state read that has none."""

    REQUIRED = "required"

    def __repr__(self) -> str:
        return self.value


REQUIRED: Final = _Required.REQUIRED


@dataclass(frozen=True, slots=True)
class ToolConfigParam:
    """A value that the host chooses: for one call, for a session, or the declared default.

    `normalizer` is given the value that was chosen, unless that is `None`.
    """

    key: str
    default: Any = field(default=None, hash=False)
    normalizer: Callable[[Any], Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        require_text("key", "a config param", self.key)
        place = f"config param {self.key!r}"
        _require_copyable(self.default, place)
        if self.normalizer is not None:
            _require_function(self.normalizer, "normalizer", place)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInvariant:
    """A rule that every call of a tool keeps; `rule` is told to the model before and after.

    Both functions get the call, the state and the configuration; a fourth argument, or one named
    `plan`, is the `Plan` around the call. They must be quick, and change nothing. Without
    `correct` a call that breaks the rule is refused.
    """

    id: str
    rule: str
    check: Check = field(hash=False)
    correct: Correct | _Drop | None = field(default=None, hash=False)
    """Or `DROP_STEP` itself, for a rule that drops every call which breaks it."""
    sees_plan: bool = field(init=False, repr=False, compare=False)
    """Whether the rule concerns the siblings of a call."""
    _checked: Callable[..., Any] = field(init=False, repr=False, compare=False)
    _corrected: Callable[..., Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_text("id", "an invariant", self.id)
        place = f"invariant {self.id!r}"
        require_text("rule", "an invariant", self.rule, place)
        checked, sees_plan = _with_plan(self.check, "check", place)
        object.__setattr__(self, "_checked", checked)
        corrected: Callable[..., Any] = _dropped
        if self.correct is not None and self.correct is not DROP_STEP:
            corrected, also = _with_plan(self.correct, "corrector", place)
            sees_plan = sees_plan or also
        object.__setattr__(self, "_corrected", corrected)
        object.__setattr__(self, "sees_plan", sees_plan)

    def is_kept(
        self, call: ToolCall, state: Mapping[str, Any], config: Mapping[str, Any], plan: Any
    ) -> bool:
        """Tell whether a call keeps the rule; raises what the check raises."""
        answer = require_sync(self._checked(call, state, config, plan))
        # What a corrector returns is always true.
        if isinstance(answer, tuple | ToolCall | _Drop) or answer is NotImplemented:
            raise TypeError(f"a check returns whether the rule is kept, not {answer!r:.100}")
        return bool(answer)

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("id", "rule", "check", "correct")
        return partial(ToolInvariant, **{name: getattr(self, name) for name in names}), ()

    def corrected(
        self, call: ToolCall, state: Mapping[str, Any], config: Mapping[str, Any], plan: Any
    ) -> Any:
        """Return what the corrector makes of a call; raises what it raises."""
        answer = require_sync(self._corrected(call, state, config, plan))
        match answer:
            case _Drop.STEP | (_, bool()):
                return answer
        raise TypeError("a corrector returns (call, True), (call, False) or DROP_STEP")


@dataclass(frozen=True, slots=True)
class ToolStateRead:
    """A value of the session's state that the tool is handed, and the model neither sees nor sets.

    Without a default the call fails where the state has no such key.
    """

    key: str
    default: Any = field(default=REQUIRED, hash=False)

    def __post_init__(self) -> None:
        require_text("key", "a state read", self.key)
        _require_copyable(self.default, f"state read {self.key!r}")

    @property
    def is_required(self) -> bool:
        """Tell whether there is no default."""
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStateEffect:
    """A value that the tool writes back into the session's state.

    `append` adds one item to a list, or the items of a list; `merge_dict` sets the keys of a
    dict. A new turn clears it unless it is to be preserved. `type_hint` is for readers; where it is
    no kind of object, an answer that is one and lacks the key is not the value.
    """

    key: str
    type_hint: Any = field(default=dict, hash=False)
    merge: Merge = "replace"
    preserve_across_turns: bool = False
    prompt_template_var: str | None = None
    """Where the value enters the system prompt: at `{{NAME}}`."""

    def __post_init__(self) -> None:
        require_text("key", "a state effect", self.key)
        place = f"state effect {self.key!r}"
        if self.key == STATE_CONFIG:
            raise DefinitionError(
                "a session keeps its configuration there", where=place, fix="choose another key"
            )
        if self.merge not in _MERGES:
            message = f"'merge' of {quoted(self.key)} is {_described(self.merge)}"
            near = near_misses(self.merge, _MERGES, most=1) if isinstance(self.merge, str) else ()
            fix = f"Write '{near[0]}'." if near else f"Write one of {', '.join(_MERGES)}."
            raise DefinitionError(message, where=place, fix=fix)
        name = self.prompt_template_var
        if name is not None and not (isinstance(name, str) and VARIABLE.fullmatch(name)):
            message = f"'prompt_template_var' of {quoted(self.key)} is {_described(name)}"
            fix = "Write capitals, digits and '_', with a letter first."
            raise DefinitionError(message, where=place, fix=fix)


def require_text(key: str, noun: str, given: Any, place: str = "") -> None:
    """Raise `DefinitionError` for what is no text, or an empty one."""
    if not (isinstance(given, str) and given.strip()):
        message = f"the {key} of {noun} is {_described(given)}"
        raise DefinitionError(message, where=place, fix="Write some text.")


def _described(value: Any) -> str:
    """Say what a value is that does not fit."""
    if not isinstance(value, str):
        return "no text"
    return quoted(value) if value.strip() else "empty"


def _require_copyable(default: Any, place: str) -> None:
    """Raise `DefinitionError` for a default of which no call could have one of its own."""
    try:
        deepcopy(default)
    except Exception as problem:
        told = f"its default, a {type(default).__name__}, cannot be copied"
        raise DefinitionError(told, where=place, fix="let the tool itself hold it") from problem


def _require_function(function: Any, what: str, place: str) -> None:
    """Raise `DefinitionError` for what cannot be called, or does not answer at once."""
    kind = ""
    if not callable(function):
        kind = type(function).__name__
    elif inspect.iscoroutinefunction(function):
        kind = "a coroutine function"
    elif inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        kind = "a generator function"
    if kind:
        raise DefinitionError(f"its {what} is {kind}, not a function", where=place)


def _dropped(*_: Any) -> _Drop:
    return DROP_STEP


def _with_plan(function: Any, what: str, place: str) -> tuple[Callable[..., Any], bool]:
    """Return a function of four arguments, and whether it makes use of the fourth, the plan."""
    _require_function(function, what, place)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some callables of C tell nothing
        return _without_plan(function), False
    if "plan" in signature.parameters and _takes(signature, 3, plan=None):
        return lambda call, state, config, plan: function(call, state, config, plan=plan), True
    if _takes(signature, 3):
        return _without_plan(function), False
    if _takes(signature, 4):
        return function, True
    raise DefinitionError(
        f"its {what} does not take (call, state, config)",
        where=place,
        fix="a fourth argument is the plan, and there are no others",
    )


def _without_plan(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda call, state, config, _: function(call, state, config)


def _takes(signature: inspect.Signature, count: int, **named: Any) -> bool:
    try:
        signature.bind(*range(count), **named)
    except TypeError:
        return False
    return True


def require_sync(value: Any) -> Any:
    """Return a value, unless it is one to be waited for: that would count as true."""
    if inspect.iscoroutine(value):
        value.close()
    if isinstance(value, Awaitable | Generator | AsyncGenerator):
        raise TypeError("it must answer at once, with a value")
    return value
