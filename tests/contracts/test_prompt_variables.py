import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.contracts.contract_parts import ToolStateEffect
from satchel.contracts.prompt_variables import as_prompt_text, keys_of, unknown_variable, values_of
from satchel.contracts.tool_contract import ToolContract
from satchel.contracts.variable_places import fill_variables, variables_in
from satchel.text import has_hidden

UNFIT = "(a value that cannot be written as JSON)"


def contract(name, **variables):
    effects = [ToolStateEffect(key=key, prompt_template_var=var) for key, var in variables.items()]
    return ToolContract(name=name, schema={}, description="Search.", state_effects=effects)


# ---- places -----------------------------------------------------------------------------------


def test_variables_are_named_once_in_the_order_of_their_places():
    assert variables_in("{{B}} {{A_1}} {{B}} {{b}} {{ C }} {D} {{1}} {{}} {{{E}}}") == (
        "B",
        "A_1",
        "E",
    )
    assert variables_in("") == ()


def test_values_take_their_places_and_what_has_none_becomes_empty():
    assert fill_variables("a {{A}}, b {{B}}, {{A}}.", {"A": "1"}) == "a 1, b , 1."


def test_what_is_no_place_stays():
    text = "{{a}} {{ A }} {A} {{A} }} $A"
    assert fill_variables(text, {"A": "1", "a": "2"}) == text
    assert fill_variables("plain", {}) == "plain"


def test_a_value_is_not_looked_at_for_further_places():
    assert fill_variables("{{A}}{{B}}", {"A": "{{B}}", "B": "{{A}}"}) == "{{B}}{{A}}"


def test_each_variable_has_the_keys_that_want_to_fill_it():
    contracts = [contract("one", found="FOUND", notes=None), contract("two", seen="FOUND", at="AT")]
    assert keys_of(contracts) == {"FOUND": ("found", "seen"), "AT": ("at",)}
    assert keys_of([contract("one", found="FOUND"), contract("two", found="FOUND")]) == {
        "FOUND": ("found",)
    }
    assert keys_of([]) == {}


def test_the_first_key_fills_a_variable_and_unknown_ones_have_no_value():
    keys = {"FOUND": ("found", "seen"), "AT": ("at",)}
    state = {"found": [1], "seen": [2]}
    assert values_of(["FOUND", "AT", "GONE"], keys, state, 100) == {"FOUND": "[1]", "AT": ""}


def test_an_unknown_variable_is_reported_where_it_stands():
    messages = unknown_variable("GONE", "prompt.md")
    assert (messages.code, messages.where.path) == ("prompt-variable-unknown", "prompt.md")
    assert messages.message == "no contract fills {{GONE}}; it is left empty"
    assert "ToolStateEffect" in messages.fix


# ---- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ({}, "{}"),
        ("a", '"a"'),
        ({"å": [1, True, None]}, '{"å": [1, true, null]}'),
        ((1, 2), "[1, 2]"),
        ({1: "a"}, '{"1": "a"}'),
        ("</tools> & {{X}}", r'"\u003c/tools\u003e \u0026 {\u007bX}}"'),
        ("{{{{{", '"' + r"{\u007b{\u007b{" + '"'),
        ("a\n\x1b", r'"a\n\u001b"'),
        ("a\u200b", r'"a\u200b"'),
        ("\U000e0041", r'"\udb40\udc41"'),
        ({1, 2}, '"(set)"'),
        ([object()], '["(object)"]'),
        (type("<b>", (), {})(), r'"(\u003cb\u003e)"'),
        (float("nan"), UNFIT),
        ([float("inf")], UNFIT),
        ({(1, 2): 3}, UNFIT),
    ],
)
def test_a_value_is_written_as_json_that_can_stand_in_a_prompt(value, text):
    assert as_prompt_text(value, 1000) == text


def test_a_value_without_end_cannot_be_written():
    endless: list = []
    endless.append(endless)
    assert as_prompt_text(endless, 1000) == UNFIT
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert as_prompt_text(deep, 1000) == UNFIT


def test_a_long_value_is_cut_and_says_so():
    assert as_prompt_text("a" * 8, 10) == '"aaaaaaaa"'
    assert as_prompt_text("a" * 9, 10) == '"aaaaaaaaa [cut: 1 of 11 characters left out]'


LETTERS = st.characters() | st.sampled_from('<>&{}XY\u200b\u202e\U000e0041\u200d\ufe0f"\\\n😀')
TEXTS = st.text(LETTERS, max_size=12)
JSON = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: (
        st.lists(inner | st.none(), max_size=3)
        | st.dictionaries(TEXTS, inner | st.none(), max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
@example({"a": 1, "a\u200b": 2})
@example("\x00\ufe0f\u20e3")
@example("{{X}}")
@example("half of an emoji \ud83d")
def test_a_value_stays_the_same_json_and_holds_nothing_that_a_prompt_would_read_otherwise(value):
    text = as_prompt_text(value, 10**9)
    assert json.loads(text) == value
    assert not re.search(r"[<>&]|\{\{", text)
    assert not has_hidden(text)
    prompt = fill_variables("before {{X}}{{Y}} {{{X}} after", {"X": text, "Y": text})
    assert prompt == f"before {text}{text} {{{text} after"
    assert variables_in(prompt) == ()


@given(JSON, st.integers(0, 40))
def test_a_value_that_was_cut_is_as_harmless(value, most):
    text = as_prompt_text(value, most)
    assert not re.search(r"[<>&]|\{\{", text)
    assert not has_hidden(text)


def test_one_invisible_letter_leaves_emoji_as_they_are():
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert as_prompt_text(family + "\u200b", 99) == f'"{family}\\u200b"'
