import asyncio
import sys
import threading
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.contracts.contract_parts import DROP_STEP, ToolConfigParam, ToolInvariant
from satchel.contracts.contract_set import Contracts
from satchel.contracts.plan import Plan, Validation
from satchel.contracts.plan_validation import contract_of, schema_mismatch, validate
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import ContractError
from satchel.tools import ToolCall


def judged(contract, *plan, state=None, **options):
    return validate(plan, {contract.name: contract}, state or {}, **options)


def with_(call, **arguments):
    """Return a call with other arguments beside its own."""
    return replace(call, arguments={**call.arguments, **arguments})


def has(name):
    return lambda call, state, config: name in call.arguments


def sets(name, value=1):
    return lambda call, state, config: (with_(call, **{name: value}), True)


# ---- the three outcomes -----------------------------------------------------------------------


def test_a_call_that_keeps_its_rules_is_left_as_it_was_sent(make, rule, call):
    sent = call(a=1)
    problems = judged(make(rule("a", has("a"))), sent)
    assert problems.plan == (sent,)
    assert problems.plan[0] is sent
    assert problems == Validation(plan=problems.plan)


def test_a_call_of_a_tool_without_a_contract_passes(make, rule, call):
    other = call("other", a=1)
    assert judged(make(rule("never", lambda *args: False)), other).plan == (other,)


def test_a_call_is_corrected_and_the_model_does_not_hear_of_it(make, rule, call):
    sent = replace(call(a=1), id="7")
    problems = judged(make(rule("b", has("b"), sets("b", 2))), sent)
    (fixed,) = problems.plan
    assert fixed == ToolCall(name="search", arguments={"a": 1, "b": 2}, id="7")
    (verdict,) = problems.corrected
    assert (verdict.index, verdict.sent, verdict.call) == (0, sent, fixed)
    assert (verdict.ids, verdict.message, verdict.code) == (("b",), "", "")
    assert sent.arguments == {"a": 1}


@pytest.mark.parametrize(
    "correct", [DROP_STEP, lambda *args: DROP_STEP, lambda *args: (DROP_STEP, True)]
)
def test_a_call_is_pruned(make, rule, call, correct):
    sent = call()
    problems = judged(make(rule("a", has("a"), correct)), sent)
    (verdict,) = problems.pruned
    assert problems == Validation(plan=(), pruned=(verdict,))
    assert (verdict.sent, verdict.call, verdict.ids) == (sent, None, ("a",))
    assert (verdict.message, verdict.code) == ("search was left out: Keep a.", "")


def test_without_a_corrector_a_call_is_rejected(make, rule, call):
    sent = call()
    problems = judged(make(rule("a", has("a"))), sent)
    (verdict,) = problems.rejected
    assert problems == Validation(plan=(), rejected=(verdict,))
    assert (verdict.sent, verdict.call, verdict.ids) == (sent, None, ("a",))
    assert (verdict.message, verdict.code) == ("search was refused: Keep a.", "rejected")
    assert verdict.problem == ""


def test_a_corrector_that_cannot_correct_rejects(make, rule, call):
    problems = judged(
        make(rule("a", has("a"), lambda call, *rest: (with_(call, a=1), False))), call()
    )
    (verdict,) = problems.rejected
    assert (verdict.ids, verdict.message) == (("a",), "search was refused: Keep a.")


def test_all_outcomes_come_in_the_order_of_the_plan(make, rule, call):
    contract = make(
        rule("good", lambda c, s, g: c.arguments["is"] != "bad"),
        rule("wanted", lambda c, s, g: c.arguments["is"] != "twice", lambda *args: DROP_STEP),
        rule("a", has("a"), sets("a")),
    )
    kinds = ["fine", "bad", "twice", "fine", "bad", "twice"]
    plan = [call(**{"is": kind, "n": n}) for n, kind in enumerate(kinds)]
    problems = judged(contract, *plan)
    assert [item.arguments["n"] for item in problems.plan] == [0, 3]
    assert [
        [item.index for item in some]
        for some in (problems.corrected, problems.pruned, problems.rejected)
    ] == [[0, 3], [2, 5], [1, 4]]


def test_no_plan_is_no_plan(make):
    assert judged(make()) == Validation(plan=())
    assert validate(iter(()), {}, {}) == Validation(plan=())


# ---- the order of rules, and rules that fight -------------------------------------------------


def test_rules_are_judged_in_their_declared_order_and_again_after_a_correction(make, rule, call):
    judgements = []

    def noting(id_):
        def check(call, state, config):
            judgements.append((id_, tuple(sorted(call.arguments))))
            return id_ in call.arguments

        return rule(id_, check, sets(id_))

    problems = judged(make(noting("b"), noting("a")), call())
    assert judgements == [
        ("b", ()),
        ("b", ("b",)),
        ("a", ("b",)),
        ("b", ("a", "b")),
        ("a", ("a", "b")),
    ]
    (verdict,) = problems.corrected
    assert verdict.ids == ("b", "a")


def test_the_first_broken_rule_decides(make, rule, call):
    broken = [rule("first", has("a")), rule("second", has("a"), lambda *args: DROP_STEP)]
    assert judged(make(*broken), call()).rejected[0].ids == ("first",)
    assert judged(make(*broken[::-1]), call()).pruned[0].ids == ("second",)


def is_(value):
    return lambda call, state, config: call.arguments.get("v") == value


def test_rules_that_fight_are_named_and_no_other(make, rule, call):
    fine = rule("fine", lambda *args: True)
    once = rule("once", has("a"), sets("a"))
    ones, twos = rule("ones", is_(1), sets("v", 1)), rule("twos", is_(2), sets("v", 2))
    problems = judged(make(fine, once, ones, twos), call())
    (verdict,) = problems.rejected
    assert problems.corrected == ()
    assert verdict.ids == ("ones", "twos")
    assert verdict.message == "search was refused: Keep ones. Keep twos."


def test_a_corrector_that_fixes_nothing_stands_alone(make, rule, call):
    problems = judged(make(rule("a", has("a"), lambda call, *rest: (call, True))), call())
    assert problems.rejected[0].ids == ("a",)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_call_is_corrected_at_most_as_often_as_there_are_rules(make, rule, call, count):
    corrections = []

    def correct(call, state, config):
        corrections.append(call)
        return call, True

    rules = [rule("never", lambda *args: False, correct)]
    rules += [rule(f"fine-{n}", lambda *args: True) for n in range(count - 1)]
    assert judged(make(*rules), call()).rejected[0].ids == ("never",)
    assert len(corrections) == count


def test_as_many_corrections_as_rules_are_still_good(make, rule, call):
    rules = [rule(name, has(name), sets(name)) for name in "abc"]
    problems = judged(make(*rules), call())
    assert problems.plan[0].arguments == {"a": 1, "b": 1, "c": 1}
    assert problems.corrected[0].ids == ("a", "b", "c")


# ---- the whole plan ---------------------------------------------------------------------------


def no_twin(call, state, config, plan):
    return all(call.arguments != other.arguments for other in plan.before)


def test_rules_may_concern_the_siblings_of_a_call(make, rule, call):
    contract = make(rule("no-twin", no_twin, lambda *args: DROP_STEP))
    problems = judged(contract, call(a=1), call(a=2), call(a=1), call(a=1))
    assert problems.plan == (call(a=1), call(a=2))
    assert [item.index for item in problems.pruned] == [2, 3]


def test_a_rule_sees_the_calls_of_other_tools_and_those_without_a_contract(make, rule, call):
    def behind_login(call, state, config, plan):
        return any(other.name == "login" for other in plan.before)

    contract = make(rule("login", behind_login))
    assert judged(contract, call("login"), call()).rejected == ()
    assert judged(contract, call(), call("login")).rejected[0].index == 0


def test_a_sibling_is_seen_as_it_was_corrected_and_not_if_it_is_out(make, rule, call):
    def alone(call, state, config, plan):
        return plan.others == ()

    contract = make(
        rule("v", lambda c, s, g: c.arguments.get("v") != 0),
        rule("small", lambda c, s, g: c.arguments["v"] < 5, sets("v", 1)),
        rule("no-twin", no_twin, lambda *args: DROP_STEP),
    )
    problems = judged(contract, call(v=0), call(v=1), call(v=9))
    assert problems.plan == (call(v=1),)
    assert [item.index for item in problems.pruned] == [2]
    lonely = make(rule("alone", alone))
    assert judged(lonely, call()).plan == (call(),)


def test_what_was_judged_before_a_sibling_changed_is_judged_again(make, rule, call):
    def last_has_a(call, state, config, plan):
        return "a" in plan[-1].arguments

    watcher = make(rule("watch", last_has_a, lambda *args: DROP_STEP), name="watch")
    fixer = make(
        rule(
            "a",
            lambda c, s, g: "a" not in c.arguments,
            lambda c, s, g: (replace(c, arguments={}), True),
        ),
        name="fix",
    )
    contracts = Contracts([watcher, fixer])
    plan = [call("watch"), call("fix", a=1)]
    problems = validate(plan, contracts, {})
    assert problems.plan == (call("fix"),)
    assert [item.ids for item in problems.pruned] == [("watch",)]


def test_a_corrector_is_handed_the_plan_as_it_stands(make, rule, call):
    seen = []

    def correct(call, state, config, plan):
        seen.append(plan)
        return with_(call, n=len(plan)), True

    contract = make(rule("n", has("n"), correct))
    problems = judged(contract, call(), call())
    assert [item.arguments for item in problems.plan] == [{"n": 2}, {"n": 2}]
    assert seen == [
        Plan((call(), call()), 0),
        Plan((call(n=2), call()), 1),
    ]


# ---- what raises ------------------------------------------------------------------------------


class Vague:
    """Its truth cannot be told, as of an array."""

    def __bool__(self):
        raise ValueError("the truth value of an array is ambiguous")


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def raising(problem):
    def function(*args):
        raise problem

    return function


async def later(*args):
    return True


PROBLEMS = [
    (raising(KeyError("gone")), "KeyError: 'gone'"),
    (raising(SystemExit(3)), "SystemExit: 3"),
    (raising(RecursionError("deep")), "RecursionError: deep"),
    (raising(MuteError()), "MuteError: an error that cannot be written"),
    (lambda *args: Vague(), "ValueError: the truth value of an array is ambiguous"),
    (lambda *args: later(), "TypeError: it must return a value, not an awaitable or a generator"),
    (lambda *args: sys.exit("secret"), "SystemExit: secret"),
    (dict, "TypeError: dict expected at most 1 argument, got 3"),
]


@pytest.mark.parametrize(("check", "problem"), PROBLEMS)
def test_a_check_that_raises_rejects_its_call_with_its_id_and_no_other(
    make, rule, call, check, problem
):
    contract = make(rule("fine", lambda *args: True), rule("a", check))
    other = make(name="other")
    problems = validate([call(), call("other")], Contracts([contract, other]), {})
    assert problems.plan == (call("other"),)
    (verdict,) = problems.rejected
    assert (verdict.ids, verdict.code, verdict.problem) == (("a",), "rejected", problem)
    assert verdict.message == "search was refused: its rule 'a' could not be checked"


NO_ANSWER = "TypeError: a corrector returns (call, True), (call, False) or DROP_STEP"


@pytest.mark.parametrize(
    ("correct", "problem"),
    [
        *((function, problem) for function, problem in PROBLEMS[:4]),
        (lambda *args: None, NO_ANSWER),
        (lambda call, *rest: call, NO_ANSWER),
        (lambda call, *rest: (call, True, 1), NO_ANSWER),
        (lambda call, *rest: (call, "no"), NO_ANSWER),
        (lambda call, *rest: (call, Vague()), NO_ANSWER),
        (
            lambda call, *rest: (call.arguments, True),
            "TypeError: a corrector must return a call of the same tool",
        ),
        (
            lambda call, *rest: (replace(call, name="rm"), True),
            "TypeError: a corrector must return a call of the same tool",
        ),
        (
            lambda call, *rest: (replace(call, arguments="{"), True),
            "ArgumentError: search: they are not valid JSON",
        ),
        (
            lambda call, *rest: (with_(call, lock=threading.Lock()), True),
            "TypeError: cannot pickle '_thread.lock' object",
        ),
        (
            lambda *args: later(),
            "TypeError: it must return a value, not an awaitable or a generator",
        ),
    ],
)
def test_a_corrector_that_raises_or_answers_nonsense_rejects_its_call_with_its_id(
    make, rule, call, correct, problem
):
    problems = judged(make(rule("a", has("a"), correct)), call())
    (verdict,) = problems.rejected
    assert problems.plan == ()
    assert (verdict.ids, verdict.code, verdict.problem) == (("a",), "rejected", problem)
    assert verdict.message == "search was refused: its rule 'a' could not be corrected"


@pytest.mark.parametrize("problem", [KeyboardInterrupt, asyncio.CancelledError])
def test_an_interruption_and_a_cancellation_go_through(make, rule, call, problem):
    with pytest.raises(problem):
        judged(make(rule("a", raising(problem))), call())
    with pytest.raises(problem):
        judged(make(rule("a", has("a"), raising(problem))), call())


def test_a_check_that_spoils_the_arguments_costs_only_its_call(make, rule, call):
    def spoil(call, state, config):
        call.arguments["lock"] = threading.Lock()
        return False

    problems = judged(make(rule("a", spoil, sets("a"))), call())
    assert problems.rejected[0].ids == ("a",)


def test_words_for_the_model_hold_nothing_invisible(make, call):
    hidden = ToolInvariant(id="a", rule="Be\u200b brief\U000e0041.", check=has("a"))
    assert judged(make(hidden), call()).rejected[0].message == "search was refused: Be brief."


# ---- arguments that cannot be read ------------------------------------------------------------

_DEEP: dict = {}
for _ in range(20_000):
    _DEEP = {"a": _DEEP}

UNREADABLE = ["{", '["a"]', 3, {1: 2}, {"a": "\ud800"}, _DEEP, {"lock": threading.Lock()}]


@pytest.mark.parametrize("arguments", UNREADABLE)
def test_rules_cannot_be_kept_of_what_cannot_be_read(make, rule, arguments):
    sent = ToolCall(name="search", arguments=arguments)
    problems = judged(make(rule("fine", lambda *args: True)), sent)
    assert problems.rejected[0].code == "invalid_arguments"
    assert problems.rejected[0].message == "search: its arguments cannot be read"
    passed = judged(make(), sent)
    assert passed.plan[0] is sent


@pytest.mark.parametrize("arguments", UNREADABLE)
@pytest.mark.parametrize("name", ["other", ["no", "text"], None])
def test_what_cannot_be_read_of_a_call_costs_no_other(make, rule, call, name, arguments):
    contract = make(rule("no-twin", no_twin))
    problems = judged(contract, ToolCall(name=name, arguments=arguments), call(a=1))
    assert len(problems.plan) == 2


def test_arguments_may_be_json_text_and_stay_so_unless_they_are_corrected(make, rule):
    contract = make(rule("b", lambda c, s, g: c.arguments != {"a": 1}, sets("b", 2)))
    fine, broken = (
        ToolCall(name="search", arguments='{"a": 2}'),
        ToolCall(name="search", arguments='{"a": 1}'),
    )
    assert judged(contract, fine).plan[0] is fine
    assert judged(contract, broken).plan[0].arguments == {"a": 1, "b": 2}


@pytest.mark.parametrize("name", [None, 3, ["search"], {}])
def test_a_name_that_is_no_text_has_no_contract(make, name):
    assert contract_of({"search": make()}, ToolCall(name=name)) is None
    assert schema_mismatch({"search": make()})(ToolCall(name=name)) is None


# ---- what does not fit ------------------------------------------------------------------------


def test_a_call_that_does_not_fit_is_rejected_before_any_rule(make, rule, call):
    problems = judged(
        make(rule("a", raising(AssertionError()))),
        call(),
        find_mismatch=lambda call: ("odd", "It is odd."),
    )
    (verdict,) = problems.rejected
    assert (verdict.code, verdict.message, verdict.ids) == ("odd", "It is odd.", ())


def test_a_correction_that_does_not_fit_is_rejected_and_names_the_rule(make, rule, call):
    def find_mismatch(call):
        return ("odd", "It is odd.") if call.arguments else None

    (verdict,) = judged(
        make(rule("a", has("a"), sets("a"))), call(), find_mismatch=find_mismatch
    ).rejected
    assert (verdict.code, verdict.message, verdict.ids) == ("odd", "It is odd.", ("a",))


def test_the_schema_of_a_contract_judges_its_calls(make, call):
    find_mismatch = schema_mismatch({"search": make(schema={"n": "int"})})
    assert find_mismatch(call(n=1)) is None
    assert find_mismatch(call("other", n="x")) is None
    assert find_mismatch(call()) == (
        "invalid_arguments",
        "invalid arguments for search: n: is required",
    )
    assert find_mismatch(ToolCall(name="search", arguments="{"))[0] == "invalid_arguments"
    assert find_mismatch(ToolCall(name="search", arguments=_DEEP)) == (
        "invalid_arguments",
        "invalid arguments for search: they are nested too deeply",
    )


# ---- configuration and state ------------------------------------------------------------------


def test_rules_are_handed_the_settled_configuration_and_the_state(make, rule, call):
    seen = []
    contract = make(
        rule("note", lambda call, state, config: seen.append((dict(state), dict(config))) or True),
        config_params=[ToolConfigParam("limit", "3", int)],
    )
    judged(contract, call(), state={"s": 1}, config={"other": 2})
    assert seen == [({"s": 1}, {"other": 2, "limit": 3})]


def test_each_call_may_have_a_configuration_of_its_own(make, rule, call):
    contract = make(
        rule("odd", lambda call, state, config: config["limit"] % 2),
        config_params=[ToolConfigParam("limit")],
    )
    plan = [call(), call("free"), call()]
    asked = []

    def config(index, sent):
        asked.append((index, sent))
        return {"limit": index + 1}

    problems = judged(contract, *plan, config=config)
    assert asked == [(0, plan[0]), (2, plan[2])]
    assert problems.rejected == ()


def test_a_normalizer_that_raises_rejects_the_calls_of_its_tool_alone(make, call):
    contract = make(config_params=[ToolConfigParam("limit", "x", int)])
    problems = judged(contract, call(), call("free"))
    assert problems.plan == (call("free"),)
    (verdict,) = problems.rejected
    assert verdict.message == "search: the configured value of 'limit' is invalid"
    assert verdict.problem.startswith("ValueError: invalid literal")
    assert verdict.code == "rejected"


def test_what_the_host_says_is_missing_rejects_the_call(make, call):
    def config(index, sent):
        raise ContractError("search", "limit", "no limit")

    (verdict,) = judged(make(), call(), config=config).rejected
    assert (verdict.message, verdict.problem) == ("search: no limit", "")


def test_a_rule_cannot_set_a_key_of_the_state(make, rule, call):
    def write(call, state, config):
        state["s"] = 2
        return True

    state = {"s": 1}
    problems = judged(make(rule("write", write)), call(), state=state)
    assert problems.rejected[0].problem.startswith("TypeError")
    assert state == {"s": 1}


def test_whatever_rules_do_to_a_call_the_plan_that_was_sent_stays(make, rule):
    def spoil(call, state, config):
        call.arguments["list"].append(2)
        return True

    sent = ToolCall(name="search", arguments={"list": [1]})
    problems = judged(make(rule("spoil", spoil)), sent)
    assert sent.arguments == {"list": [1]}
    (verdict,) = problems.rejected
    assert (verdict.ids, verdict.problem) == (
        ("spoil",),
        "TypeError: it changed the arguments of the call",
    )


def test_no_rule_makes_another_judge_what_will_not_run(make, rule):
    def spoil_others(call, state, config, plan):
        for other in plan.others:
            other.arguments["n"] = 1
        return True

    few = rule("few", lambda call, state, config: call.arguments["n"] < 5)
    problems = judged(
        make(rule("spoil", spoil_others), few),
        *(ToolCall(name="search", arguments={"n": n}) for n in (2, 9)),
    )
    assert [call.arguments for call in problems.plan] == [{"n": 2}]
    assert problems.rejected[0].ids == ("few",)


def test_rules_cannot_change_the_configuration(make, rule, call):
    def choose(call, state, config):
        config["limit"] = 999
        return True

    (verdict,) = judged(make(rule("choose", choose)), call()).rejected
    assert verdict.problem.startswith("TypeError: ")


def test_a_corrected_call_shares_nothing_with_the_state(make, rule, call):
    state = {"ids": [1]}
    correct = lambda call, state, config: (with_(call, ids=state["ids"]), True)  # noqa: E731
    problems = judged(make(rule("ids", has("ids"), correct)), call(), state=state)
    problems.plan[0].arguments["ids"].append(2)
    assert state == {"ids": [1]}


def test_a_huge_plan_is_judged(make, rule, call):
    contract = make(rule("first", lambda c, s, g, plan: plan.at == 0, lambda *args: DROP_STEP))
    problems = judged(contract, *(call(n=n) for n in range(300)))
    assert problems.plan == (call(n=0),)
    assert len(problems.pruned) == 299


# ---- whatever the rules are -------------------------------------------------------------------

KEYS = "abc"
VALUES = st.integers(0, 2)
ARGUMENTS = st.dictionaries(st.sampled_from(KEYS), VALUES)


def total(call):
    return sum(value for value in call.arguments.values() if isinstance(value, int))


def boom(*args):
    raise ValueError("boom")


CHECKS = st.one_of(
    st.builds(
        lambda key, value: lambda call, state, config: call.arguments.get(key) == value,
        st.sampled_from(KEYS),
        VALUES,
    ),
    st.builds(lambda n: lambda call, state, config: total(call) <= n + state["s"], VALUES),
    st.builds(lambda n: lambda call, state, config, plan: plan.at <= n, VALUES),
    st.builds(lambda n: lambda c, s, g, plan: sum(map(total, plan)) % 3 != n, VALUES),
    st.just(no_twin),
    st.just(lambda c, s, g, plan: all(total(c) >= total(other) for other in plan.others)),
    st.sampled_from([boom, lambda *args: Vague(), lambda *args: True, lambda *args: False]),
)
CORRECTORS = st.one_of(
    st.none(),
    st.builds(sets, st.sampled_from(KEYS), VALUES),
    st.builds(
        lambda key: lambda c, s, g: (with_(c, **{key: (c.arguments.get(key, 0) + 1) % 3}), True),
        st.sampled_from(KEYS),
    ),
    st.just(lambda c, s, g, plan: (with_(c, a=len(plan) % 3), True)),
    st.just(lambda c, s, g: (replace(c, arguments={}), True)),
    st.sampled_from([boom, lambda *args: DROP_STEP, lambda *args: None, lambda c, *r: (c, False)]),
)


@st.composite
def contracts(draw):
    created = []
    for name in ("one", "two"):
        rules = [
            ToolInvariant(id=f"{name}-{n}", rule=f"Rule {n}.", check=check, correct=correct)
            for n, (check, correct) in enumerate(
                draw(st.lists(st.tuples(CHECKS, CORRECTORS), max_size=4))
            )
        ]
        created.append(
            ToolContract(name=name, schema={"type": "object"}, description="Do.", invariants=rules)
        )
    return Contracts(created)


PLANS = st.lists(
    st.builds(ToolCall, name=st.sampled_from(["one", "two", "free"]), arguments=ARGUMENTS),
    max_size=6,
).map(lambda plan: [replace(call, id=str(n)) for n, call in enumerate(plan)])


@given(contracts(), PLANS, VALUES)
def test_what_comes_out_keeps_every_rule_and_never_grows_and_keeps_its_order(created, plan, value):
    state = {"s": value}
    sent = deepcopy((plan, state))
    problems = created.validate(plan, state)
    assert (plan, state) == sent

    kept = [call.id for call in problems.plan]
    out = [item.sent.id for item in (*problems.pruned, *problems.rejected)]
    assert sorted(kept + out) == [call.id for call in plan]
    assert kept == sorted(kept)
    for verdicts in (problems.corrected, problems.pruned, problems.rejected):
        assert [item.index for item in verdicts] == sorted(item.index for item in verdicts)
        assert all(plan[item.index] is item.sent for item in verdicts)

    corrected = {item.index: item for item in problems.corrected}
    for call in problems.plan:
        before = plan[int(call.id)]
        assert call.name == before.name
        if int(call.id) in corrected:
            assert corrected[int(call.id)].call is call
            assert corrected[int(call.id)].ids
        else:
            assert call is before

    again = created.validate(problems.plan, state)
    assert again == Validation(plan=problems.plan)

    for at, call in enumerate(problems.plan):
        for rule in created[call.name].invariants if call.name in created else ():
            assert rule.is_kept(call, state, {}, Plan(problems.plan, at))


@given(contracts(), PLANS, VALUES)
def test_the_same_plan_with_the_same_state_gives_the_same_verdicts(created, plan, value):
    state = {"s": value}
    assert created.validate(plan, state) == created.validate(deepcopy(plan), dict(state))


def test_rules_see_the_defaults_of_what_was_left_out_and_the_plan_stays_as_it_was_sent():
    schema = {"query": "str", "most": "int = 3"}
    seen = []

    def check(call, state, config):
        seen.append(call.arguments)
        return True

    held = ToolContract(
        name="search",
        schema=schema,
        description="S.",
        invariants=ToolInvariant(id="a", rule="Keep a.", check=check),
    )
    plan = [
        ToolCall(name="search", arguments={"query": "x"}),
        ToolCall(name="search", arguments={"query": "x", "most": None}),
    ]
    assert Contracts([held]).validate(plan).plan == tuple(plan)
    assert seen == [{"query": "x", "most": 3}] * 2


@pytest.mark.parametrize("value", [object(), Vague()])
def test_values_that_cannot_be_compared_cost_no_call(make, rule, value):
    problems = judged(
        make(rule("a", lambda *args: True)), ToolCall(name="search", arguments={"x": value})
    )
    assert problems.rejected == ()
