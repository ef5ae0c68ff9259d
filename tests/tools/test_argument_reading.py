from collections import UserDict
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.tools import ArgumentError
from satchel.tools.argument_reading import read_arguments


@pytest.mark.parametrize("nothing", ["", " \n", "{}", "null", {}, None])
def test_nothing_is_a_way_to_send_no_arguments(nothing):
    assert read_arguments("probe", nothing) == {}


@pytest.mark.parametrize(
    "sent",
    [
        {"city": "Oslo", "days": 1},
        '{"city": "Oslo", "days": 1}',
        ' {"city": "Oslo", "days": 1}\n',
        MappingProxyType({"city": "Oslo", "days": 1}),
        UserDict(city="Oslo", days=1),
    ],
)
def test_arguments_are_a_mapping_or_json_text(sent):
    read = read_arguments("probe", sent)
    assert read == {"city": "Oslo", "days": 1}
    assert type(read) is dict


def test_arguments_that_are_fine_are_not_copied():
    sent = {"a": [1, "b", {"c": None}]}
    assert read_arguments("probe", sent) is sent


@pytest.mark.parametrize(
    "sent", ["{", "secret", '{"city": NaN}', '{"a": Infinity}', "[" * 200_000, '{"a": "\ud83d"}']
)
def test_text_that_is_no_json_is_refused(sent):
    with pytest.raises(ArgumentError, match="they are not valid JSON") as caught:
        read_arguments("probe", sent)
    assert "secret" not in str(caught.value)
    assert caught.value.tool == "probe"


@pytest.mark.parametrize(
    "sent", ['["secret"]', '"secret"', "1", ["secret"], 1, {1: "secret"}, UserDict({1: "secret"})]
)
def test_what_is_no_object_is_refused(sent):
    with pytest.raises(ArgumentError, match="they must be one JSON object") as caught:
        read_arguments("probe", sent)
    assert "secret" not in str(caught.value)


class Words(str):
    __slots__ = ()


BROKEN = "half of an emoji \ud83d"


@pytest.mark.parametrize(
    "sent",
    [
        {"a": BROKEN},
        {BROKEN: "a"},
        {"a": Words(BROKEN)},
        {"a": ["fine", [BROKEN]]},
        {"a": ("fine", BROKEN)},
        {"a": {"b": {BROKEN: 1}}},
        {"a": {"b": {"c": BROKEN}}},
    ],
)
def test_text_that_cannot_be_sent_anywhere_is_refused(sent):
    with pytest.raises(ArgumentError, match="an invalid Unicode character"):
        read_arguments("probe", sent)


@pytest.mark.parametrize("fine", ["å", Words("å"), ["å", ("ø",)], {"æ": {"å": "ø"}}, b"x", 1.5])
def test_text_in_any_language_is_fine(fine):
    assert read_arguments("probe", {"a": fine}) == {"a": fine}


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        read = read_arguments("probe", text)
    except ArgumentError:
        return
    assert type(read) is dict
