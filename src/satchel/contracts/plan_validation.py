"""Validate a plan against the contracts of its tools: keep, correct, prune or reject each call.

Rules are checked in the order of their declaration. A corrected call is checked again. When a
call changes, calls whose rules depend on the plan are checked again, too. The resulting plan
satisfies every rule, and validating it again changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from satchel.contracts.contract_binding import resolve_config
from satchel.contracts.contract_parts import DROP_STEP, ToolInvariant
from satchel.contracts.plan import Plan, Validation, Verdict
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import ContractError
from satchel.text import visible
from satchel.tools import ArgumentError, ToolCall
from satchel.tools.argument_reading import read_arguments
from satchel.tools.empty_mapping import NOTHING

FindMismatch = Callable[[ToolCall], tuple[str, str] | None]
"""Returns the error code and message for a call that does not fit its schema, or `None`."""

Config = Mapping[str, Any] | Callable[[int, ToolCall], Mapping[str, Any]]
"""The host's configuration for all calls, or a function of the index and the call.

The function may raise `ContractError`.
"""

_INVALID_ARGUMENTS = "invalid_arguments"
REJECTED = "rejected"
"""The `error_code` of a call that breaks a rule."""


def validate(
    plan: Iterable[ToolCall],
    contracts: Mapping[str, ToolContract],
    state: Mapping[str, Any],
    config: Config = NOTHING,
    find_mismatch: FindMismatch | None = None,
) -> Validation:
    """Return the calls to run, and the verdicts on the others.

    Calls without a contract pass. Neither the plan nor the state is changed.
    """
    read_only = MappingProxyType(state if isinstance(state, dict) else dict(state))
    items = [
        _CallValidation(index, call, contract_of(contracts, call))
        for index, call in enumerate(plan)
    ]
    for item in items:
        item.prepare(config, read_only, find_mismatch)
    waiting = [item for item in items if item.has_rules]
    while waiting:
        changed = False
        calls, positions = _remaining(items)
        for item in waiting:
            if not item.is_dropped and item.apply_rules(
                Plan(calls, positions[item.index]), read_only
            ):
                changed = True
                calls, positions = _remaining(items)
        waiting = [item for item in waiting if item.sees_plan] if changed else []
    kept = [item for item in items if not item.is_dropped]
    dropped = [item.dropped for item in items if item.dropped]
    return Validation(
        plan=tuple(item.call for item in kept),
        corrected=tuple(item.verdict() for item in kept if item.corrections),
        # A rejected call has an error code; a pruned one has none.
        pruned=tuple(verdict for verdict in dropped if not verdict.code),
        rejected=tuple(verdict for verdict in dropped if verdict.code),
    )


def faults_of(
    contract: ToolContract, call: ToolCall, state: Mapping[str, Any], config: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the messages about one call: of its schema, or of each rule that it breaks."""
    find_mismatch = schema_mismatch({call.name: contract})
    read_only = MappingProxyType(dict(state))
    messages = []
    for rule in (None, *contract.invariants):
        item = _CallValidation(0, call, contract)
        item.prepare(config, read_only, find_mismatch)
        if item.is_dropped:  # by its schema or its configuration, before any rule
            return (item.message,)
        if rule is not None and item.breaks(rule, read_only):
            messages.append(item.message)
    return tuple(messages)


def contract_of(contracts: Mapping[str, ToolContract], call: ToolCall) -> ToolContract | None:
    """Return the contract of a call, or `None`."""
    # Models also send names that are not strings.
    return contracts.get(call.name) if isinstance(call.name, str) else None


def schema_mismatch(contracts: Mapping[str, ToolContract]) -> FindMismatch:
    """Return a function that checks arguments against the schemas of the contracts."""

    def find_mismatch(call: ToolCall) -> tuple[str, str] | None:
        contract = contract_of(contracts, call)
        try:
            if contract is not None:
                contract.check(read_arguments(call.name, call.arguments))
        except ArgumentError as problem:
            return _INVALID_ARGUMENTS, f"invalid arguments for {call.name}: {problem.message}"
        except RecursionError:  # Only a host can send such arguments.
            return (
                _INVALID_ARGUMENTS,
                f"invalid arguments for {call.name}: they are nested too deeply",
            )
        return None

    return find_mismatch


def _remaining(items: list["_CallValidation"]) -> tuple[tuple[ToolCall, ...], dict[int, int]]:
    """Return the remaining calls, and the position of each among them, by its index."""
    remaining = [item for item in items if not item.is_dropped]
    positions = {item.index: at for at, item in enumerate(remaining)}
    return tuple(item.parsed for item in remaining), positions


class _CallValidation:
    """One call while its plan is validated."""

    def __init__(self, index: int, sent: ToolCall, contract: ToolContract | None) -> None:
        self.index, self.sent, self._contract = index, sent, contract
        self._rules = contract.invariants if contract is not None else ()
        self.call = self.parsed = sent
        """The call to run, and the call with its parsed arguments."""
        self.corrections: list[str] = []
        self.dropped: Verdict | None = None
        self._config: Mapping[str, Any] = NOTHING
        self._find_mismatch: FindMismatch | None = None
        self._original: Mapping[str, Any] = NOTHING
        """A copy of the arguments for the rules, to detect rules that change them."""
        self._is_comparable = False
        """Whether a copy equals the arguments. Some host objects do not equal their copy."""

    @property
    def is_dropped(self) -> bool:
        return self.dropped is not None

    @property
    def has_rules(self) -> bool:
        return bool(self._rules) and not self.is_dropped

    @property
    def sees_plan(self) -> bool:
        return self._contract is not None and self._contract.sees_plan

    def prepare(
        self, config: Config, state: Mapping[str, Any], find_mismatch: FindMismatch | None
    ) -> None:
        """Parse the arguments and resolve the configuration; either may reject the call."""
        self._find_mismatch = find_mismatch
        if find_mismatch is not None and (mismatch := find_mismatch(self.sent)):
            self._reject((), mismatch[1], code=mismatch[0])
            return
        if self._contract is None:
            self._parse(self.sent)
            return
        try:
            values = config(self.index, self.sent) if callable(config) else config
            self._config = MappingProxyType(resolve_config(self._contract, values, state))
        except ContractError as problem:
            self._reject((), problem.message, problem=problem.__cause__)
        else:
            self._parse(self.sent)

    def _parse(self, call: ToolCall) -> None:
        """Copy the arguments, so that a check cannot change the caller's plan."""
        try:
            arguments = self._with_defaults(
                deepcopy(dict(read_arguments(call.name, call.arguments)))
            )
        except Exception:
            # Without rules, the tool itself refuses arguments that cannot be parsed.
            if self._rules:
                self._reject((), f"{call.name}: its arguments cannot be read", _INVALID_ARGUMENTS)
            arguments = {}  # Rules of other calls still see this call.
        self._set_arguments(arguments)

    def _set_arguments(self, arguments: dict[str, Any]) -> None:
        """Set the arguments for the rules, with a copy to detect a rule that changes them."""
        self.parsed = self.sent.changed(arguments=arguments)
        self._original = deepcopy(arguments) if self._rules else arguments
        self._is_comparable = bool(self._rules) and self._has_changed() is False

    def _with_defaults(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return self._contract.with_defaults(arguments) if self._contract else arguments

    @property
    def message(self) -> str:
        """Why the call is dropped, for the model; `""` if it is not."""
        return self.dropped.message if self.dropped is not None else ""

    def breaks(self, rule: ToolInvariant, state: Mapping[str, Any]) -> bool:
        """Return whether the call, alone in its plan, breaks one rule; if so, reject it."""
        self._rules = (replace(rule, correct=None),)
        return self.apply_rules(Plan((self.parsed,), 0), state)

    def apply_rules(self, plan: Plan, state: Mapping[str, Any]) -> bool:
        """Check and correct the call; return whether it changed or was dropped."""
        before = len(self.corrections)
        while not self.is_dropped and (broken := self._first_broken(plan, state)) is not None:
            self._correct(broken, plan, state)
            plan = replace(plan, calls=(*plan.before, self.parsed, *plan.after))
        return self.is_dropped or len(self.corrections) > before

    def _first_broken(self, plan: Plan, state: Mapping[str, Any]) -> ToolInvariant | None:
        if self._is_comparable and self._has_changed():  # a rule of another call changed them
            self._restore()
        for rule in self._rules:
            try:
                is_kept = rule.is_kept(self.parsed, state, self._config, plan)
                if self._is_comparable and self._has_changed():
                    self._restore()
                    raise TypeError("it changed the arguments of the call")  # noqa: TRY301 - handled like its own errors
                if not is_kept:
                    return rule
            except (Exception, SystemExit) as problem:
                self._reject_failed(rule, "could not be checked", problem)
                return None
        return None

    def _has_changed(self) -> bool | None:
        """Return whether a rule changed the arguments; `None` if they cannot be compared."""
        try:
            return bool(self.parsed.arguments != self._original)
        except Exception:  # Objects from the host may refuse to be compared.
            return None

    def _restore(self) -> None:
        arguments: Any = self.parsed.arguments
        arguments.clear()
        arguments.update(deepcopy(self._original))

    def _correct(self, rule: ToolInvariant, plan: Plan, state: Mapping[str, Any]) -> None:
        """Let a rule correct the call, or drop the call."""
        if rule.correct is None:
            self._reject_broken(rule)
            return
        if len(self.corrections) >= len(self._rules):
            self._reject_broken(
                *(item for item in self._rules if item.id in self._conflicting(rule))
            )
            return
        try:
            copy = self.parsed.changed(arguments=deepcopy(self.parsed.arguments))
            answer = rule.corrected(copy, state, self._config, plan)
            if answer is DROP_STEP:
                self._drop((rule.id,), f"{self.sent.name} was left out: {rule.rule}")
                return
            corrected, is_corrected = answer
            if is_corrected:
                self._accept(corrected, rule)
            else:
                self._reject_broken(rule)
        except (Exception, SystemExit) as problem:
            self._reject_failed(rule, "could not be corrected", problem)

    def _conflicting(self, broken: ToolInvariant) -> set[str]:
        """Return the ids of the rules that undo each other.

        These are the broken rule, and those that corrected the call after it did.
        """
        newest_first = self.corrections[::-1]
        count = newest_first.index(broken.id) if broken.id in newest_first else len(newest_first)
        return {broken.id, *newest_first[:count]}

    def _accept(self, corrected: Any, rule: ToolInvariant) -> None:
        """Accept the arguments of a corrected call; its other fields are ignored."""
        if not isinstance(corrected, ToolCall) or corrected.name != self.sent.name:
            raise TypeError("a corrector must return a call of the same tool")
        arguments = deepcopy(dict(read_arguments(corrected.name, corrected.arguments)))
        self._set_arguments(self._with_defaults(deepcopy(arguments)))
        self.call = self.sent.changed(arguments=arguments)
        self.corrections.append(rule.id)
        if self._find_mismatch is not None and (mismatch := self._find_mismatch(self.call)):
            self._reject((rule.id,), mismatch[1], code=mismatch[0])

    def verdict(self) -> Verdict:
        """Return the verdict on a corrected call."""
        ids = tuple(dict.fromkeys(self.corrections))
        return Verdict(index=self.index, sent=self.sent, call=self.call, ids=ids)

    def _reject_broken(self, *rules: ToolInvariant) -> None:
        texts = " ".join(rule.rule for rule in rules)
        self._reject(tuple(rule.id for rule in rules), f"{self.sent.name} was refused: {texts}")

    def _reject_failed(self, rule: ToolInvariant, failure: str, problem: BaseException) -> None:
        message = f"{self.sent.name} was refused: its rule {rule.id!r} {failure}"
        self._reject((rule.id,), message, problem=problem)

    def _reject(
        self,
        ids: tuple[str, ...],
        message: str,
        code: str = REJECTED,
        problem: BaseException | None = None,
    ) -> None:
        detail = f"{type(problem).__name__}: {_text(problem)}" if problem is not None else ""
        self._drop(ids, message, code, detail)

    def _drop(self, ids: tuple[str, ...], message: str, code: str = "", problem: str = "") -> None:
        self.dropped = Verdict(
            index=self.index,
            sent=self.sent,
            call=None,
            ids=ids,
            message=visible(message),
            code=code,
            problem=problem,
        )


def _text(problem: BaseException) -> str:
    try:
        return str(problem)
    except Exception:
        return "an error that cannot be written"
