"""The parts of a contract: rules, configuration, state reads and state effects."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from copy import deepcopy
from dataclasses import field
from enum import Enum
from functools import partial
from typing import Any, Final, Literal

from satchel.contracts.variable_places import VARIABLE
from satchel.errors import DefinitionError
from satchel.formats.read_result import quoted
from satchel.lazy_dataclass import dataclass
from satchel.names import near_misses
from satchel.tools import ToolCall

Merge = Literal["replace", "append", "merge_dict"]
"""How a new value is combined with the value in the state."""

_MERGES: tuple[Merge, ...] = ("replace", "append", "merge_dict")

STATE_CONFIG = "config"
"""The key of the state under which a session keeps its configuration."""


class _Drop(Enum):
    """What a corrector returns to remove the call from the plan."""

    STEP = "DROP_STEP"

    def __repr__(self) -> str:
        return self.value


DROP_STEP: Final = _Drop.STEP

Check = Callable[..., bool]
"""Takes `(call, state, config)`, optionally `plan`; returns whether the call keeps the rule."""

Correct = Callable[..., "tuple[ToolCall | _Drop, bool] | _Drop"]
"""Takes the same arguments; returns `(call, is_corrected)`, `DROP_STEP` or `(DROP_STEP, True)`."""


class _Required(Enum):
    """The default of a state read without a default."""

    REQUIRED = "required"

    def __repr__(self) -> str:
        return self.value


REQUIRED: Final = _Required.REQUIRED


@dataclass(frozen=True, slots=True)
class ToolConfigParam:
    """A value that the host sets for one call or for a session, or else the default.

    `normalizer` receives the chosen value, unless that is `None`.
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
    """A rule for the calls of a tool. The model reads `rule` in advance and after a violation.

    Both functions receive the call, the state and the configuration; a fourth argument, or one
    named `plan`, is the `Plan` around the call. They must be quick and must not change anything.
    Without `correct`, a call that breaks the rule is refused.
    """

    id: str
    rule: str
    check: Check = field(hash=False)
    correct: Correct | _Drop | None = field(default=None, hash=False)
    """A function, or `DROP_STEP` to drop every call that breaks the rule."""
    sees_plan: bool = field(init=False, repr=False, compare=False)
    """Whether the rule depends on the other calls of the plan."""
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
            corrected, corrector_sees_plan = _with_plan(self.correct, "corrector", place)
            sees_plan = sees_plan or corrector_sees_plan
        object.__setattr__(self, "_corrected", corrected)
        object.__setattr__(self, "sees_plan", sees_plan)

    def is_kept(
        self, call: ToolCall, state: Mapping[str, Any], config: Mapping[str, Any], plan: Any
    ) -> bool:
        """Return whether a call keeps the rule; raises what the check raises."""
        answer = require_sync(self._checked(call, state, config, plan))
        # A corrector passed as a check would always count as true.
        if isinstance(answer, tuple | ToolCall | _Drop) or answer is NotImplemented:
            raise TypeError(f"a check returns whether the rule is kept, not {answer!r:.100}")
        return bool(answer)

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("id", "rule", "check", "correct")
        return partial(ToolInvariant, **{name: getattr(self, name) for name in names}), ()

    def corrected(
        self, call: ToolCall, state: Mapping[str, Any], config: Mapping[str, Any], plan: Any
    ) -> Any:
        """Return the corrector's answer for a call; raises what the corrector raises."""
        answer = require_sync(self._corrected(call, state, config, plan))
        match answer:
            case (_Drop.STEP, True):
                return DROP_STEP
            case _Drop.STEP | (_, bool()):
                return answer
        raise TypeError("a corrector returns (call, True), (call, False) or DROP_STEP")


@dataclass(frozen=True, slots=True)
class ToolStateRead:
    """A value of the session's state that is passed to the tool and hidden from the model.

    Without a default, the call fails if the state does not have the key.
    """

    key: str
    default: Any = field(default=REQUIRED, hash=False)

    def __post_init__(self) -> None:
        require_text("key", "a state read", self.key)
        _require_copyable(self.default, f"state read {self.key!r}")

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStateEffect:
    """A value that the tool writes to the session's state.

    `append` adds one item or the items of a list; `merge_dict` sets the keys of a dict. A new turn
    clears the value unless `preserve_across_turns` is set. `type_hint` is for readers. If it is not
    an object type, a result that is an object without the key is not taken as the value.
    """

    key: str
    type_hint: Any = field(default=dict, hash=False)
    merge: Merge = "replace"
    preserve_across_turns: bool = False
    prompt_template_var: str | None = None
    """The value is inserted into the system prompt at `{{NAME}}`."""

    def __post_init__(self) -> None:
        require_text("key", "a state effect", self.key)
        place = f"state effect {self.key!r}"
        if self.key == STATE_CONFIG:
            raise DefinitionError(
                "the session stores its configuration under this key",
                where=place,
                fix="choose another key",
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


def require_text(key: str, noun: str, value: Any, place: str = "") -> None:
    """Raise `DefinitionError` unless a value is a string that is not blank."""
    if not (isinstance(value, str) and value.strip()):
        message = f"the {key} of {noun} is {_described(value)}"
        raise DefinitionError(message, where=place, fix="Write some text.")


def _described(value: Any) -> str:
    if not isinstance(value, str):
        return "not a string"
    return quoted(value) if value.strip() else "empty"


def _require_copyable(default: Any, place: str) -> None:
    """Raise `DefinitionError` for a default that cannot be copied for each call."""
    try:
        deepcopy(default)
    except Exception as problem:
        message = f"its default, a {type(default).__name__}, cannot be copied"
        raise DefinitionError(message, where=place, fix="store it in the tool itself") from problem


def _require_function(function: Any, role: str, place: str) -> None:
    """Raise `DefinitionError` unless a value is a synchronous function."""
    kind = ""
    if not callable(function):
        kind = type(function).__name__
    elif inspect.iscoroutinefunction(function):
        kind = "a coroutine function"
    elif inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        kind = "a generator function"
    if kind:
        raise DefinitionError(f"its {role} is {kind}, not a function", where=place)


def _dropped(*_: Any) -> _Drop:
    return DROP_STEP


def _with_plan(function: Any, role: str, place: str) -> tuple[Callable[..., Any], bool]:
    """Return a function of four arguments, and whether it uses the fourth, the plan."""
    _require_function(function, role, place)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # Some C callables have no signature.
        return _without_plan(function), False
    if "plan" in signature.parameters and _takes(signature, 3, plan=None):
        return lambda call, state, config, plan: function(call, state, config, plan=plan), True
    if _takes(signature, 3):
        return _without_plan(function), False
    if _takes(signature, 4):
        return function, True
    raise DefinitionError(
        f"its {role} does not take (call, state, config)",
        where=place,
        fix="take three arguments, and optionally the plan as the fourth",
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
    """Return a value; raise `TypeError` for an awaitable or generator: it would count as true."""
    if inspect.iscoroutine(value):
        value.close()
    if isinstance(value, Awaitable | Generator | AsyncGenerator):
        raise TypeError("it must return a value, not an awaitable or a generator")
    return value
