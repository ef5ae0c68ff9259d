"""The fields of a JSON manifest: each wrong one is reported, on its line."""

import json

import pytest

from satchel.formats.json_fields import read_object


def read(limits, text, read_fields):
    data = (text if isinstance(text, str) else json.dumps(text, indent=0)).encode()
    return read_object(data, "plugin.json", "plugin-syntax", limits, read_fields)


def test_texts_and_lists_of_texts_are_read_and_may_be_missing(limits):
    values = {"a": "x", "b": ["y", "z"]}
    reading = read(
        limits, values, lambda it: (it.text("a"), it.texts("b"), it.text("c"), it.texts("d"))
    )
    assert (reading.value, reading.diagnostics) == (("x", ("y", "z"), "", ()), ())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "'a' is a number, not text"),
        ([], "'a' is a list, not text"),
        (None, "'a' is null, not text"),
    ],
)
def test_a_value_of_another_type_is_reported_on_its_line_and_costs_the_manifest(
    limits, value, message
):
    reading = read(limits, {"x": "1", "a": value}, lambda it: it.text("a"))
    (problem,) = reading.diagnostics
    assert (problem.code, problem.where.line) == ("plugin-field-type", 3)
    assert (reading.value, problem.message) == (None, message)


def test_a_list_with_one_wrong_item_is_wrong(limits):
    reading = read(limits, {"a": ["x", 1]}, lambda it: it.texts("a"))
    assert (reading.value, len(reading.diagnostics)) == (None, 1)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({}, "plugin-field-missing"),
        ({"name": 3}, "plugin-field-type"),
        ({"name": "A B"}, "plugin-name-shape"),
    ],
)
def test_a_name_that_is_missing_or_invalid_is_reported_once(limits, values, code, codes):
    reading = read(limits, values, lambda it: it.name(lambda _: "has a space"))
    assert codes(reading) == [code]


@pytest.mark.parametrize("text", ["[]", "3", "{", ""])
def test_a_file_that_is_no_object_has_no_value(limits, text, codes):
    reading = read(limits, text, lambda it: pytest.fail("there is nothing to read"))
    assert (reading.value, codes(reading)) == (None, ["plugin-syntax"])
