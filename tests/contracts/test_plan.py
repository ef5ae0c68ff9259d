import pytest

from satchel.contracts.plan import Plan, Validation, Verdict
from satchel.tools import ToolCall

A, B, C = (ToolCall(name=name) for name in "abc")


def test_a_plan_is_a_sequence_of_its_calls():
    plan = Plan((A, B, C), 1)
    assert list(plan) == [A, B, C]
    assert (len(plan), plan[0], plan[-1], plan[1:]) == (3, A, C, (B, C))
    assert B in plan
    assert plan.index(C) == 2


def test_a_plan_knows_what_stands_around_the_call_that_is_judged():
    plan = Plan((A, B, C), 1)
    assert (plan.before, plan.after, plan.others) == ((A,), (C,), (A, C))
    alone = Plan((A,), 0)
    assert (alone.before, alone.after, alone.others) == ((), (), ())


def test_neither_a_plan_nor_a_verdict_can_be_changed():
    with pytest.raises(AttributeError):
        Plan((A,), 0).at = 1
    with pytest.raises(AttributeError):
        Verdict(index=0, sent=A, call=None).call = A


def test_a_validation_of_nothing_else_has_only_its_plan():
    assert Validation(plan=(A,)) == Validation(plan=(A,), corrected=(), pruned=(), rejected=())
