from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.contracts.contract_parts import ToolStateEffect
from satchel.contracts.contract_set import Contracts
from satchel.contracts.state_effects import effects_of, kept_keys
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import ContractError
from satchel.tools import ToolCall, ToolResult, to_result


def contract(*effects, name="search"):
    return ToolContract(name=name, schema={}, description="Search.", state_effects=effects)


def written(effect, value, state=None):
    return effects_of(contract(effect), to_result(value), state or {})


# ---- what a tool writes -----------------------------------------------------------------------

FOUND, NOTES = ToolStateEffect(key="found"), ToolStateEffect(key="notes", merge="append")


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"found": 1, "other": 2}, {"found": 1}),
        ({"found": None}, {"found": None}),
        ({"other": 2}, {"found": {"other": 2}}),
        ([1, 2], {"found": [1, 2]}),
        (0, {"found": 0}),
        ("some text", {"found": "some text"}),
        (None, {}),
        ("", {}),
    ],
)
def test_the_one_effect_is_the_value_of_its_key_or_else_the_whole_value(value, result):
    assert written(FOUND, value) == result


class Documents(TypedDict):
    a: int


def test_an_object_that_lacks_the_key_is_the_value_only_where_one_is_hinted_at():
    assert written(ToolStateEffect(key="found", type_hint=list), {"status": "none"}) == {}
    assert written(ToolStateEffect(key="found", type_hint=list[str]), {"status": "none"}) == {}
    for hint in ("Documents", Any, Documents, dict | None, Mapping):
        assert written(ToolStateEffect(key="found", type_hint=hint), {"a": 1}) == {
            "found": {"a": 1}
        }
    assert written(ToolStateEffect(key="found", type_hint=dict[str, int]), {"a": 1}) == {
        "found": {"a": 1}
    }


def test_several_effects_are_written_by_key():
    both = contract(FOUND, NOTES)
    assert effects_of(both, to_result({"notes": "a", "found": 1}), {}) == {
        "found": 1,
        "notes": ["a"],
    }
    assert effects_of(both, to_result({"notes": "a"}), {}) == {"notes": ["a"]}
    assert effects_of(both, to_result({"other": "a"}), {}) == {}
    assert effects_of(both, to_result("text"), {}) == {}


def test_what_a_result_says_to_the_host_alone_counts():
    result = ToolResult(structured={"found": 1}, metadata={"effects": {"found": 2}})
    assert effects_of(contract(FOUND), result, {}) == {"found": 2}
    typo = ToolResult(metadata={"effects": {"fuond": 2}})
    with pytest.raises(ContractError, match=r"no effect 'fuond'; did you mean 'found'\?") as caught:
        effects_of(contract(FOUND), typo, {})
    assert caught.value.key == "fuond"
    nonsense = ToolResult(structured={"found": 1}, metadata={"effects": "nonsense"})
    assert effects_of(contract(FOUND), nonsense, {}) == {"found": 1}


def test_a_contract_without_effects_writes_nothing():
    assert effects_of(contract(), to_result({"found": 1}), {}) == {}


@pytest.mark.parametrize("flaw", ["is_error", "is_interrupted"])
def test_a_call_that_brought_nothing_writes_nothing(flaw):
    result = ToolResult(structured={"found": 1}, **{flaw: True})
    assert effects_of(contract(FOUND), result, {}) == {}


def test_what_is_written_shares_nothing_with_the_result():
    held = {"effects": {"found": MappingProxyType({"a": ([1],)})}}
    value = effects_of(contract(FOUND), ToolResult(metadata=held), {})["found"]
    assert value == {"a": [[1]]}
    value["a"][0].append(2)
    assert held["effects"]["found"]["a"] == ([1],)


# ---- how it merges ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("merge", "before", "value", "after"),
    [
        ("replace", {"a": 1}, {"b": 2}, {"b": 2}),
        ("append", [], "a", ["a"]),
        ("append", None, "a", ["a"]),
        ("append", [1], [2, 3], [1, 2, 3]),
        ("append", [1], {"a": 2}, [1, {"a": 2}]),
        ("append", [1], [], [1]),
        ("append", [1], None, [1, None]),
        ("merge_dict", None, {"a": 1}, {"a": 1}),
        ("merge_dict", {"a": 1, "b": 1}, {"b": 2, "c": 3}, {"a": 1, "b": 2, "c": 3}),
        ("merge_dict", {"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"y": 2}}),
    ],
)
def test_a_value_joins_what_is_there_and_leaves_the_old_value_alone(merge, before, value, after):
    state = {"found": before}
    sent = deepcopy(state)
    effect = ToolStateEffect(key="found", merge=merge)
    assert written(effect, {"found": value}, state) == {"found": after}
    assert state == sent


@pytest.mark.parametrize(
    ("merge", "before", "value", "message"),
    [
        ("append", {"a": 1}, 1, "the state holds a value of type dict, not a list"),
        ("append", "", 1, "the state holds a value of type str, not a list"),
        ("merge_dict", [], {"a": 1}, "the state holds a value of type list, not a dict"),
        ("merge_dict", 0, {"a": 1}, "the state holds a value of type int, not a dict"),
        ("merge_dict", {"a": 1}, [1], "the tool returned a value of type list, not a dict"),
        ("merge_dict", {"a": 1}, None, "the tool returned a value of type NoneType, not a dict"),
    ],
)
def test_what_cannot_be_merged_is_an_error_and_writes_nothing_of_the_call(
    merge, before, value, message
):
    both = contract(ToolStateEffect(key="first"), ToolStateEffect(key="found", merge=merge))
    state = {"found": before}
    sent = deepcopy(state)
    with pytest.raises(ContractError) as caught:
        effects_of(both, to_result({"first": 1, "found": value}), state)
    assert state == sent
    assert (caught.value.tool, caught.value.key) == ("search", "found")
    assert caught.value.message == f"search: 'found' cannot be written: {message}"


def test_a_value_without_end_is_an_error():
    endless = []
    endless.append(endless)
    result = ToolResult(metadata={"effects": {"found": endless}})
    with pytest.raises(ContractError, match="'found' cannot be written"):
        effects_of(contract(FOUND), result, {})


# ---- turns ------------------------------------------------------------------------------------


def test_a_key_is_kept_over_a_turn_if_one_of_its_tools_says_so():
    kept = ToolStateEffect(key="notes", preserve_across_turns=True)
    assert kept_keys([contract(FOUND, NOTES), contract(kept)]) == {"found": False, "notes": True}
    assert kept_keys([contract(kept), contract(FOUND, NOTES)]) == {"notes": True, "found": False}
    assert kept_keys([]) == {}


# ---- a random plan ----------------------------------------------------------------------------

KEYS = ("a", "b", "c")
VALUES = (
    st.integers()
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.sampled_from("xyz"), st.integers(), max_size=2)
)
STATES = st.dictionaries(st.sampled_from(KEYS), VALUES | st.none())
WAYS = st.sampled_from(["replace", "append", "merge_dict"])
CALLS = st.tuples(
    st.sampled_from(["one", "two", "free"]),
    st.dictionaries(st.sampled_from(KEYS), VALUES | st.none(), min_size=1),
    st.booleans(),
)


def by_hand(ways, calls, state):
    """Return the state after calls one by one, or the key at which they come to a halt."""
    state = deepcopy(state)
    for tool, brought, failed in calls:
        if failed or tool == "free":
            continue
        for key in KEYS:
            if key not in brought or key not in ways[tool]:
                continue
            value, way, old = brought[key], ways[tool][key], state.get(key)
            if way == "replace":
                state[key] = value
            elif way == "append":
                if not (old is None or isinstance(old, list)):
                    return key
                state[key] = (old or []) + (value if isinstance(value, list) else [value])
            else:
                if not (old is None or isinstance(old, dict)) or not isinstance(value, dict):
                    return key
                state[key] = (old or {}) | value
    return state


@given(
    st.fixed_dictionaries(
        {tool: st.dictionaries(st.sampled_from(KEYS), WAYS) for tool in ("one", "two")}
    ),
    st.lists(CALLS, max_size=6),
    STATES,
)
def test_the_effects_of_a_plan_are_those_of_its_calls_one_after_the_other(ways, calls, state):
    contracts = Contracts(
        contract(
            *(ToolStateEffect(key=key, merge=ways[tool][key]) for key in KEYS if key in ways[tool]),
            name=tool,
        )
        for tool in ways
    )
    plan = [ToolCall(name=tool) for tool, _, _ in calls]
    results = [
        ToolResult(
            metadata={
                "effects": {key: brought[key] for key in brought if key in ways.get(tool, ())}
            },
            is_error=failed,
        )
        for tool, brought, failed in calls
    ]
    sent = deepcopy((state, calls))
    expected = by_hand(ways, calls, state)
    if isinstance(expected, str):
        with pytest.raises(ContractError) as caught:
            contracts.collect_effects(plan, results, state)
        assert caught.value.key == expected
    else:
        assert state | contracts.collect_effects(plan, results, state) == expected
    assert (state, calls) == sent
