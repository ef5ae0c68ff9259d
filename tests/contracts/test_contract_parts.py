import asyncio
import pickle
import threading
from collections import UserDict
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import pytest

from satchel.contracts.contract_parts import (
    DROP_STEP,
    ToolConfigParam,
    ToolInvariant,
    ToolStateEffect,
    ToolStateRead,
)
from satchel.contracts.contract_set import Contracts
from satchel.contracts.plan import Plan
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import DefinitionError
from satchel.tools import ToolCall

CALL = ToolCall(name="search", arguments={"query": "a"})
PLAN = Plan((CALL,), 0)


def invariant(check, correct=None):
    return ToolInvariant(id="brief", rule="Be brief.", check=check, correct=correct)


def handed(check):
    """Return what a check is handed, and whether it sees the plan."""
    seen = []
    rule = invariant(check(seen))
    rule.is_kept(CALL, {"s": 1}, {"c": 1}, PLAN)
    return seen, rule.sees_plan


# ---- checks and correctors --------------------------------------------------------------------

THREE = [CALL, {"s": 1}, {"c": 1}]


class Noting:
    def __init__(self, seen):
        self.seen = seen

    def __call__(self, call, state, config):
        self.seen += [call, state, config]

    def with_plan(self, call, state, config, around):
        self.seen += [call, state, config, around]


@pytest.mark.parametrize(
    "check",
    [
        lambda seen: lambda call, state, config: seen.extend([call, state, config]),
        lambda seen: lambda *args: seen.extend(args),
        lambda seen: lambda call, *rest: seen.extend([call, *rest]),
        lambda seen: lambda call, state, config, strict=True: seen.extend([call, state, config]),
        lambda seen: lambda a, b, c, **others: seen.extend([a, b, c, *others]),
        lambda seen: lambda plan, state, config: seen.extend([plan, state, config]),
        lambda seen: lambda call, state, *plan: seen.extend([call, state, *plan]),
        lambda seen: partial(
            lambda out, call, state, config: out.extend([call, state, config]), seen
        ),
        Noting,
        lambda seen: Noting(seen).__call__,
    ],
)
def test_a_check_of_three_is_handed_the_call_the_state_and_the_configuration(check):
    assert handed(check) == (THREE, False)


@pytest.mark.parametrize(
    "check",
    [
        lambda seen: lambda call, state, config, plan: seen.extend([call, state, config, plan]),
        lambda seen: lambda call, state, config, p: seen.extend([call, state, config, p]),
        lambda seen: lambda call, state, config, plan=(): seen.extend([call, state, config, plan]),
        lambda seen: lambda call, state, config, *, plan: seen.extend([call, state, config, plan]),
        lambda seen: lambda call, state, config, p, q=1: seen.extend([call, state, config, p]),
        lambda seen: Noting(seen).with_plan,
        lambda seen: partial(Noting(seen).with_plan),
    ],
)
def test_a_fourth_argument_or_one_named_plan_is_the_plan(check):
    assert handed(check) == ([*THREE, PLAN], True)


def test_a_corrector_may_see_the_plan_where_the_check_does_not():
    rule = invariant(lambda *args: False, lambda call, state, config, plan: (plan, True))
    assert rule.sees_plan
    assert rule.corrected(CALL, {}, {}, PLAN) == (PLAN, True)


@pytest.mark.parametrize("answer", [(False, "why"), (), DROP_STEP, CALL, NotImplemented])
def test_what_only_a_corrector_answers_is_no_answer_of_a_check(answer):
    with pytest.raises(TypeError, match="whether the rule is kept"):
        invariant(lambda *args: answer).is_kept(CALL, {}, {}, PLAN)


def test_the_records_of_a_contract_can_be_copied_and_pickled():
    contract = ToolContract(
        name="search",
        schema={"query": "str"},
        description="Search.",
        invariants=[invariant(is_brief)],
    )
    for copied in (deepcopy(contract), pickle.loads(pickle.dumps(contract))):
        assert copied == contract
        assert copied.parameters == contract.parameters
    assert deepcopy(Contracts([contract])) == Contracts([contract])


def is_brief(call, state, config):
    return len(call.arguments["query"]) < 9


@pytest.mark.parametrize("builtin", [dict, type, print])
def test_a_builtin_that_reports_nothing_of_its_arguments_is_taken(builtin):
    assert not invariant(builtin).sees_plan


async def coroutine_check(call, state, config):
    return True


def generator_check(call, state, config):
    yield True


async def stream_check(call, state, config):
    yield True


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (None, "NoneType"),
        (True, "bool"),
        ("len", "str"),
        (coroutine_check, "a coroutine function"),
        (partial(coroutine_check), "a coroutine function"),
        (generator_check, "a generator function"),
        (stream_check, "a generator function"),
        (lambda: True, r"does not take \(call, state, config\)"),
        (lambda call: True, "does not take"),
        (lambda call, state: True, "does not take"),
        (lambda a, b, c, d, e: True, "does not take"),
        (lambda a, b, c, *, strict: True, "does not take"),
        (any, "does not take"),
    ],
)
def test_what_cannot_be_a_check_is_refused(function, message):
    with pytest.raises(DefinitionError, match=f"invariant 'brief': its check .*{message}"):
        invariant(function)
    if function is not None:
        with pytest.raises(DefinitionError, match=f"invariant 'brief': its corrector .*{message}"):
            invariant(lambda *args: True, function)


class Later:
    """A callable object that is async, which its signature does not tell."""

    def __init__(self, function):
        self.function = function

    def __call__(self, call, state, config):
        return self.function(call, state, config)


@pytest.mark.parametrize("function", [coroutine_check, generator_check, stream_check])
def test_an_answer_that_must_be_waited_for_is_an_error_and_not_true(function):
    rule = invariant(Later(function), Later(function))
    with pytest.raises(TypeError, match="must return a value"):
        rule.is_kept(CALL, {}, {}, PLAN)
    with pytest.raises(TypeError, match="must return a value"):
        rule.corrected(CALL, {}, {}, PLAN)


def test_a_future_is_no_answer():
    async def main():
        future = asyncio.get_running_loop().create_future()
        with pytest.raises(TypeError, match="must return a value"):
            invariant(lambda *args: future).is_kept(CALL, {}, {}, PLAN)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "is_kept"), [(1, True), ("x", True), (None, False), ([], False)]
)
def test_an_answer_counts_as_python_has_it(answer, is_kept):
    assert invariant(lambda *args: answer).is_kept(CALL, {}, {}, PLAN) is is_kept


def test_what_a_check_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        invariant(lambda *args: 1 / 0).is_kept(CALL, {}, {}, PLAN)


@pytest.mark.parametrize("part", ["id", "rule"])
@pytest.mark.parametrize("value", ["", " ", None, 3])
def test_an_invariant_has_an_id_and_a_rule_of_text(part, value):
    with pytest.raises(DefinitionError, match=f"the {part} of an invariant is"):
        ToolInvariant(**{"id": "a", "rule": "b", "check": lambda *args: True, part: value})


@dataclass
class AtMost:
    """A check with settings, which Python cannot hash."""

    count: int

    def __call__(self, call, state, config):
        return len(call.arguments) <= self.count


def test_an_invariant_of_objects_is_compared_and_hashed():
    one, other = invariant(AtMost(1), AtMost(2)), invariant(AtMost(1), AtMost(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != invariant(AtMost(2))


def test_the_sign_for_dropping_a_call_says_its_name():
    assert repr(DROP_STEP) == "DROP_STEP"


# ---- configuration, reads and effects ---------------------------------------------------------


@pytest.mark.parametrize("record", [ToolConfigParam, ToolStateRead, ToolStateEffect])
@pytest.mark.parametrize("key", ["", "\n", None, 1])
def test_a_key_is_text(record, key):
    with pytest.raises(
        DefinitionError, match=r"^the key of a (config param|state (read|effect)) is"
    ):
        record(key=key)


@pytest.mark.parametrize("record", [ToolConfigParam, ToolStateRead])
def test_a_default_that_no_call_could_have_a_copy_of_is_refused(record):
    with pytest.raises(DefinitionError, match="'held': its default, a lock, cannot be copied"):
        record("held", threading.Lock())


@pytest.mark.parametrize("record", [ToolConfigParam, ToolStateRead])
def test_an_unhashable_default_is_fine(record):
    created = record("held", {"a": [1]})
    assert hash(created) == hash(record("held", UserDict()))
    assert created == record("held", {"a": [1]})
    assert created != record("held", {"a": [2]})


@pytest.mark.parametrize(
    "normalizer", [3, "int", coroutine_check, generator_check, partial(coroutine_check)]
)
def test_what_cannot_normalize_is_refused(normalizer):
    with pytest.raises(DefinitionError, match="config param 'limit': its normalizer is"):
        ToolConfigParam("limit", 1, normalizer)


@pytest.mark.parametrize("normalizer", [None, int, str.strip, AtMost(1)])
def test_anything_that_can_be_called_normalizes(normalizer):
    assert hash(ToolConfigParam("limit", 1, normalizer))


def test_a_read_without_a_default_is_required_and_none_is_a_default():
    assert ToolStateRead("seen").is_required
    assert repr(ToolStateRead("seen")) == "ToolStateRead(key='seen', default=required)"
    assert not ToolStateRead("seen", None).is_required


def test_an_effect_replaces_and_a_new_turn_clears_it_unless_it_says_otherwise():
    created = ToolStateEffect(key="found")
    assert (created.type_hint, created.merge) == (dict, "replace")
    assert (created.preserve_across_turns, created.prompt_template_var) == (False, None)


@pytest.mark.parametrize("merge", ["", "extend", None, ["append"]])
def test_another_way_to_merge_is_refused(merge):
    with pytest.raises(DefinitionError, match="state effect 'found': 'merge' of 'found' is"):
        ToolStateEffect(key="found", merge=merge)


@pytest.mark.parametrize("variable", ["", "found", "A-B", "1A", "_A", "A\n", "Ä", 3])
def test_another_name_of_a_prompt_variable_is_refused(variable):
    with pytest.raises(DefinitionError, match="'prompt_template_var' of 'found' is"):
        ToolStateEffect(key="found", prompt_template_var=variable)


@pytest.mark.parametrize("variable", [None, "A", "FOUND_2"])
def test_capitals_digits_and_underscores_name_a_prompt_variable(variable):
    assert (
        ToolStateEffect(key="found", prompt_template_var=variable).prompt_template_var == variable
    )
