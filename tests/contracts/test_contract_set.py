import json

import pytest

from satchel.contracts.contract_parts import ToolStateEffect, ToolStateRead
from satchel.contracts.contract_set import Contracts
from satchel.errors import ConflictError, ContractError, DefinitionError, NotFoundError
from satchel.tools import ToolCall, ToolResult, to_result


def test_they_are_a_mapping_by_the_name_of_the_tool_in_the_order_they_were_given(make):
    one, two = make(name="two"), make(name="one")
    contracts = Contracts([one, two])
    assert list(contracts) == ["two", "one"]
    assert (len(contracts), contracts["one"], contracts.get("gone")) == (2, two, None)
    assert repr(contracts) == "<Contracts of two, one>"
    assert repr(Contracts()) == "<Contracts of nothing>"


def test_they_never_change(make):
    parts = [make()]
    contracts = Contracts(parts)
    parts.append(make(name="other"))
    assert list(contracts) == ["search"]
    with pytest.raises(TypeError):
        contracts["other"] = parts[1]


def test_two_of_one_tool_are_refused_but_the_same_twice_is_one(make):
    contract = make()
    assert len(Contracts([contract, contract])) == 1
    with pytest.raises(ConflictError, match="two contracts for the tool 'search'"):
        Contracts([contract, make()])


@pytest.mark.parametrize("value", [None, "search", {"name": "search"}])
def test_what_is_no_contract_is_refused(value):
    with pytest.raises(DefinitionError, match="is not a ToolContract"):
        Contracts([value])


# ---- the planner ------------------------------------------------------------------------------


def test_a_planner_is_bound_to_the_names_the_descriptions_and_the_schemas(make):
    contract = make(schema={"query": "str - what"})
    (schema,) = Contracts([contract]).schemas()
    assert schema["function"] == {
        "name": "search",
        "description": "Do search.",
        "parameters": contract.parameters,
    }
    assert Contracts([contract]).schemas("anthropic")[0]["input_schema"] == contract.parameters


def test_what_the_planner_is_given_shares_nothing_with_the_contract(make):
    contract = make(schema={"query": "str - what"})
    before = json.dumps(contract.parameters)
    Contracts([contract]).schemas("openai")[0]["function"]["parameters"]["properties"].clear()
    assert json.dumps(contract.parameters) == before


def test_nothing_invisible_reaches_the_planner_and_all_else_word_for_word(make):
    from dataclasses import replace

    contract = replace(make(), description=" Find\u200b <it>.\n\n Twice. ")
    (schema,) = Contracts([contract]).schemas()
    assert schema["function"]["description"] == " Find <it>.\n\n Twice. "


def test_an_unknown_dialect_is_not_found(make):
    with pytest.raises(NotFoundError):
        Contracts([make()]).schemas("latin")


# ---- plans ------------------------------------------------------------------------------------


def test_a_plan_is_validated_by_schema_and_by_rule(make, rule, call):
    contract = make(
        rule("even", lambda call, state, config: call.arguments["n"] % 2 == 0),
        schema={"n": "int"},
        state_reads=[ToolStateRead("seen")],
    )
    plan = [call(n=2), call(n=1), call(n="x"), call(n=2, seen=1), call("free", n="x")]
    problems = Contracts([contract]).validate(plan)
    assert problems.plan == (plan[0], plan[4])
    assert [item.code for item in problems.rejected] == [
        "rejected",
        "invalid_arguments",
        "invalid_arguments",
    ]
    assert "'seen'" not in problems.rejected[1].message
    assert "seen: is set by the host" in problems.rejected[2].message


def test_rules_are_handed_the_state_and_the_configuration(make, rule, call):
    contract = make(rule("both", lambda call, state, config: state["a"] == config["b"]))
    contracts = Contracts([contract])
    assert contracts.validate([call()], {"a": 1}, {"b": 1}).plan == (call(),)
    assert contracts.validate([call()], {"a": 1}, {"b": 2}).plan == ()


@pytest.mark.parametrize("name", [None, ["search"], 3])
def test_a_name_that_is_no_text_ends_no_plan(make, call, name):
    odd = ToolCall(name=name)
    assert Contracts([make()]).validate([odd, call()]).plan == (odd, call())
    assert Contracts([make()]).collect_effects([odd], [to_result("a")]) == {}


# ---- effects ----------------------------------------------------------------------------------


def test_effects_are_collected_in_the_order_of_the_calls(make, call):
    contracts = Contracts([make(state_effects=[ToolStateEffect(key="found", merge="append")])])
    plan = [call(), call("free"), call()]
    results = [to_result("a"), to_result("b"), to_result("c")]
    assert contracts.collect_effects(plan, results) == {"found": ["a", "c"]}
    assert contracts.collect_effects(plan, results, {"found": ["z"]}) == {"found": ["z", "a", "c"]}


def test_an_effect_that_cannot_be_merged_leaves_the_state_as_it_was(make, call):
    contracts = Contracts([make(state_effects=[ToolStateEffect(key="found", merge="append")])])
    state = {"found": "text"}
    with pytest.raises(ContractError, match="'found' cannot be written"):
        contracts.collect_effects([call()], [to_result("a")], state)
    assert state == {"found": "text"}


def test_each_call_has_its_result(make, call):
    with pytest.raises(ValueError, match="shorter"):
        Contracts([make()]).collect_effects([call(), call()], [ToolResult()])


def test_a_new_turn_clears_what_is_not_preserved(make):
    contracts = Contracts(
        [
            make(state_effects=[ToolStateEffect(key="found"), ToolStateEffect(key="notes")]),
            make(
                name="o", state_effects=[ToolStateEffect(key="notes", preserve_across_turns=True)]
            ),
        ]
    )
    state = {"found": 1, "notes": 2, "other": 3}
    assert contracts.cleared == {"found"}
    assert contracts.new_turn(state) == {"notes": 2, "other": 3}
    assert state == {"found": 1, "notes": 2, "other": 3}


def test_prompt_variables_have_the_keys_that_fill_them(make):
    effect = ToolStateEffect(key="found", prompt_template_var="FOUND")
    assert Contracts([make(state_effects=[effect])]).prompt_variables == {"FOUND": ("found",)}
