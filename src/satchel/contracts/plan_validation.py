"""Holding a plan to the contracts of its tools: each call is kept, corrected, pruned or rejected.

A call is held to its rules in the order in which they are declared. What is corrected is judged
anew, and so are the calls whose rules concern their siblings whenever one of these changed: the
plan that comes out keeps every rule, and validating it again changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from satchel.contracts.contract_config import resolve_config
from satchel.contracts.contract_errors import ContractError
from satchel.contracts.contract_parts import DROP_STEP, ToolInvariant
from satchel.contracts.plan import Plan, Validation, Verdict
from satchel.contracts.tool_contract import ToolContract
from satchel.text import visible
from satchel.tools import ArgumentError, ToolCall
from satchel.tools.argument_reading import read_arguments
from satchel.tools.empty_mapping import NOTHING

Misfit = Callable[[ToolCall], tuple[str, str] | None]
"""Tells the code and the words for a call that cannot be run as it is, or `None`."""

Config = Mapping[str, Any] | Callable[[int, ToolCall], Mapping[str, Any]]
"""What the host chose, for all calls or for each; it may raise `ContractError`."""

_UNFIT = "invalid_arguments"
REJECTED = "rejected"
"""The `error_code` of a call that breaks a rule."""


def validate(
    plan: Iterable[ToolCall],
    contracts: Mapping[str, ToolContract],
    state: Mapping[str, Any],
    config: Config = NOTHING,
    misfit: Misfit | None = None,
) -> Validation:
    """Return what is to be run of a plan, and what became of the rest.

    Calls without a contract pass. Neither the plan nor the state is changed.
    """
    seen = MappingProxyType(state if isinstance(state, dict) else dict(state))
    steps = [_Step(index, call, contract_of(contracts, call)) for index, call in enumerate(plan)]
    for step in steps:
        step.prepare(config, seen, misfit)
    waiting = [step for step in steps if step.has_rules]
    while waiting:
        changed = False
        calls, places = _left(steps)
        for step in waiting:
            if not step.is_out and step.judge(Plan(calls, places[step.index]), seen):
                changed = True
                calls, places = _left(steps)
        waiting = [step for step in waiting if step.sees_plan] if changed else []
    return Validation(
        tuple(step.call for step in steps if not step.is_out),
        tuple(step.verdict() for step in steps if step.corrections and not step.is_out),
        tuple(step.out for step in steps if step.out and not step.out.code),
        tuple(step.out for step in steps if step.out and step.out.code),
    )


def contract_of(contracts: Mapping[str, ToolContract], call: ToolCall) -> ToolContract | None:
    """Return what a call is held to; models also send names that are no text."""
    return contracts.get(call.name) if isinstance(call.name, str) else None


def schema_mismatch(contracts: Mapping[str, ToolContract]) -> Misfit:
    """Return what judges arguments by the schemas of the contracts alone."""

    def misfit(call: ToolCall) -> tuple[str, str] | None:
        contract = contract_of(contracts, call)
        try:
            if contract is not None:
                contract.check(read_arguments(call.name, call.arguments))
        except ArgumentError as problem:
            return _UNFIT, f"invalid arguments for {call.name}: {problem.message}"
        except RecursionError:  # what only a host can send
            return _UNFIT, f"invalid arguments for {call.name}: they are nested too deeply"
        return None

    return misfit


def _left(steps: list["_Step"]) -> tuple[tuple[ToolCall, ...], dict[int, int]]:
    """Return the calls that are left, and where each of the steps stands among them."""
    left = [step for step in steps if not step.is_out]
    return tuple(step.read for step in left), {step.index: at for at, step in enumerate(left)}


class _Step:
    """One call while its plan is validated."""

    def __init__(self, index: int, sent: ToolCall, contract: ToolContract | None) -> None:
        self.index, self.sent, self._contract = index, sent, contract
        self._rules = contract.invariants if contract is not None else ()
        self.call = self.read = sent
        """The call as it is to be run, and with its arguments as they can be read."""
        self.corrections: list[str] = []
        self.out: Verdict | None = None
        self._config: Mapping[str, Any] = NOTHING
        self._misfit: Misfit | None = None
        self._true: Mapping[str, Any] = NOTHING
        """The arguments that rules are shown, as they should be."""
        self._is_comparable = False
        """Whether a copy of them is equal to them; objects that a host sends need not be."""

    @property
    def is_out(self) -> bool:
        return self.out is not None

    @property
    def has_rules(self) -> bool:
        return bool(self._rules) and not self.is_out

    @property
    def sees_plan(self) -> bool:
        return self._contract is not None and self._contract.sees_plan

    def prepare(self, config: Config, state: Mapping[str, Any], misfit: Misfit | None) -> None:
        """Read the arguments, and settle the configuration; either may reject the call."""
        self._misfit = misfit
        if misfit is not None and (fault := misfit(self.sent)):
            self._reject((), fault[1], code=fault[0])
            return
        if self._contract is None:
            self._read(self.sent)
            return
        try:
            given = config(self.index, self.sent) if callable(config) else config
            self._config = MappingProxyType(resolve_config(self._contract, given, state))
        except ContractError as problem:
            self._reject((), problem.message, problem=problem.__cause__)
        else:
            self._read(self.sent)

    def _read(self, call: ToolCall) -> None:
        """Take a copy of a call, so that whatever a check does, nobody's plan is changed."""
        try:
            arguments = self._completed(deepcopy(dict(read_arguments(call.name, call.arguments))))
        except Exception:
            # What cannot be read is the tool's to refuse, unless there are rules to be kept.
            if self._rules:
                self._reject((), f"{call.name}: its arguments cannot be read", _UNFIT)
            arguments = {}  # the rules of its siblings look at it all the same
        self._look_at(arguments)

    def _look_at(self, arguments: dict[str, Any]) -> None:
        """Show these arguments to rules, and remember them: a rule may spoil what it is shown."""
        self.read = self.sent.changed(arguments=arguments)
        self._true = deepcopy(arguments) if self._rules else arguments
        self._is_comparable = bool(self._rules) and self._is_spoiled() is False

    def _completed(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments as the tool gets them, with the defaults of its schema."""
        return self._contract.with_defaults(arguments) if self._contract else arguments

    def judge(self, plan: Plan, state: Mapping[str, Any]) -> bool:
        """Hold the call to its rules; tell whether it changed or dropped out."""
        before = len(self.corrections)
        while not self.is_out and (broken := self._first_broken(plan, state)) is not None:
            self._correct(broken, plan, state)
            plan = replace(plan, calls=(*plan.before, self.read, *plan.after))
        return self.is_out or len(self.corrections) > before

    def _first_broken(self, plan: Plan, state: Mapping[str, Any]) -> ToolInvariant | None:
        if self._is_comparable and self._is_spoiled():  # by a rule of a sibling
            self._restore()
        for rule in self._rules:
            try:
                is_kept = rule.is_kept(self.read, state, self._config, plan)
                if self._is_comparable and self._is_spoiled():
                    self._restore()
                    raise TypeError("it changed the arguments of the call")  # noqa: TRY301 - as what it raises
                if not is_kept:
                    return rule
            except (Exception, SystemExit) as problem:
                self._reject_for(rule, "could not be checked", problem)
                return None
        return None

    def _is_spoiled(self) -> bool | None:
        """Tell whether the arguments are no longer what they were; `None` where nobody knows."""
        try:
            return bool(self.read.arguments != self._true)
        except Exception:  # a host may send objects that refuse to be compared
            return None

    def _restore(self) -> None:
        shown: Any = self.read.arguments
        shown.clear()
        shown.update(deepcopy(self._true))

    def _correct(self, rule: ToolInvariant, plan: Plan, state: Mapping[str, Any]) -> None:
        """Let a rule correct the call, or else put the call out."""
        if rule.correct is None:
            self._refuse(rule)
            return
        if len(self.corrections) >= len(self._rules):
            self._refuse(*(item for item in self._rules if item.id in self._fighting(rule)))
            return
        try:
            given = self.read.changed(arguments=deepcopy(self.read.arguments))
            answer = rule.corrected(given, state, self._config, plan)
            if answer is DROP_STEP:
                self._out((rule.id,), f"{self.sent.name} was left out: {rule.rule}")
                return
            made, is_corrected = answer
            if is_corrected:
                self._take(made, rule)
            else:
                self._refuse(rule)
        except (Exception, SystemExit) as problem:
            self._reject_for(rule, "could not be corrected", problem)

    def _fighting(self, broken: ToolInvariant) -> set[str]:
        """Return the rules that undo each other: what corrected since the broken one did last."""
        back = self.corrections[::-1]
        since = back.index(broken.id) if broken.id in back else len(back)
        return {broken.id, *back[:since]}

    def _take(self, made: Any, rule: ToolInvariant) -> None:
        """Take up the arguments of a corrected call; anything else of it stays as it was."""
        if not isinstance(made, ToolCall) or made.name != self.sent.name:
            raise TypeError("a corrector returns the call of the same tool")
        arguments = deepcopy(dict(read_arguments(made.name, made.arguments)))
        self._look_at(self._completed(deepcopy(arguments)))
        self.call = self.sent.changed(arguments=arguments)
        self.corrections.append(rule.id)
        if self._misfit is not None and (fault := self._misfit(self.call)):
            self._reject((rule.id,), fault[1], code=fault[0])

    def verdict(self) -> Verdict:
        """Return what became of a call that was corrected."""
        ids = tuple(dict.fromkeys(self.corrections))
        return Verdict(index=self.index, sent=self.sent, call=self.call, ids=ids)

    def _refuse(self, *rules: ToolInvariant) -> None:
        told = " ".join(rule.rule for rule in rules)
        self._reject(tuple(rule.id for rule in rules), f"{self.sent.name} was refused: {told}")

    def _reject_for(self, rule: ToolInvariant, what: str, problem: BaseException) -> None:
        told = f"{self.sent.name} was refused: its rule {rule.id!r} {what}"
        self._reject((rule.id,), told, problem=problem)

    def _reject(
        self,
        ids: tuple[str, ...],
        message: str,
        code: str = REJECTED,
        problem: BaseException | None = None,
    ) -> None:
        told = f"{type(problem).__name__}: {_text(problem)}" if problem is not None else ""
        self._out(ids, message, code, told)

    def _out(self, ids: tuple[str, ...], message: str, code: str = "", problem: str = "") -> None:
        told = visible(message)
        self.out = Verdict(
            index=self.index,
            sent=self.sent,
            call=None,
            ids=ids,
            message=told,
            code=code,
            problem=problem,
        )


def _text(problem: BaseException) -> str:
    try:
        return str(problem)
    except Exception:
        return "an error that cannot be written"
