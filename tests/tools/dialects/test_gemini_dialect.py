"""Gemini: one schema without references, of the fields that it knows."""

import pytest
from rules import against_gemini

from satchel.tools.dialects import ToolShape, in_dialect

PLAIN = [{"type": kind} for kind in ("string", "number", "boolean", "object")]
ANYTHING = [
    {**kind, "nullable": True} for kind in [*PLAIN, {"type": "array", "items": {"anyOf": PLAIN}}]
]
STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


def described(schema):
    made = in_dialect("gemini", ToolShape(name="t", description="d\u200b", parameters=schema))
    assert (made["name"], made["description"]) == ("t", "d")
    assert against_gemini(made.get("parameters", {"type": "object"})) == []
    return made.get("parameters")


def shown(item, **definitions):
    """Return what becomes of one property."""
    made = described({"type": "object", "properties": {"a": item}, "$defs": definitions})
    return made["properties"]["a"]


def test_a_tool_without_parameters_has_no_schema():
    for schema in (
        {"type": "object", "properties": {}},
        {"type": "object", "additionalProperties": True},
        {"type": "object", "properties": {"a": False}},
    ):
        assert described(schema) is None


def test_a_property_that_may_not_be_sent_is_not_shown():
    made = described({"properties": {"a": False, "b": True}, "required": ["a", "b", "c", "b"]})
    assert (list(made["properties"]), made["required"]) == (["b"], ["b"])


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"anyOf": [STRING, NULL]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": "string", "nullable": True}, {"type": "string", "nullable": True}),
        ({"enum": ["a", None]}, {"enum": ["a"], "type": "string", "nullable": True}),
        (NULL, {"type": "string", "description": "Always null.", "nullable": True}),
        (
            {"anyOf": [STRING, {"oneOf": [INTEGER, NULL]}]},
            {"anyOf": [{**STRING, "nullable": True}, {**INTEGER, "nullable": True}]},
        ),
        ({"type": ["string", "integer"]}, {"anyOf": [STRING, INTEGER]}),
        ({"anyOf": [STRING, STRING]}, STRING),
        (
            {"anyOf": [{"maxLength": 1}, {"pattern": "^a"}], "type": "string"},
            {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "string", "pattern": "^a"}]},
        ),
        ({"anyOf": [True], "type": "string"}, {"anyOf": ANYTHING}),
        ({"anyOf": []}, {"anyOf": ANYTHING}),
        ({}, {"anyOf": ANYTHING}),
    ],
)
def test_unions_and_null(given, made):
    assert shown(given) == made


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": [1, 2]}, {"type": "integer", "description": "One of: 1, 2."}),
        ({"const": 1.5}, {"type": "number", "description": "Only 1.5."}),
        ({"enum": ["", "a"]}, {"type": "string", "description": 'One of: "", "a".'}),
        (
            {"const": [1], "items": INTEGER},
            {"type": "array", "items": INTEGER, "description": "Only [1]."},
        ),
        ({"enum": [{"a": 1}]}, {"type": "object", "description": 'Only {"a": 1}.'}),
        (
            {"enum": [1], "description": "How many."},
            {"type": "integer", "description": "How many. Only 1."},
        ),
    ],
)
def test_only_strings_are_listed_as_values(given, made):
    assert shown(given) == made


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "integer", "exclusiveMaximum": 9}, {"type": "integer", "maximum": 8}),
        ({"type": "integer", "exclusiveMinimum": 1.5}, {"type": "integer", "minimum": 2}),
        ({"type": "integer", "exclusiveMaximum": 1.5}, {"type": "integer", "maximum": 1}),
        (
            {"type": "integer", "minimum": 5, "exclusiveMinimum": 1},
            {"type": "integer", "minimum": 5},
        ),
        (
            {"type": "integer", "exclusiveMinimum": 1e300},
            {"type": "integer", "minimum": 1e300},
        ),
        (
            {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            {"type": "number", "minimum": 0, "maximum": 1, "description": "Greater than 0."},
        ),
        (
            {"type": "number", "exclusiveMaximum": 1, "multipleOf": 0.5},
            {
                "type": "number",
                "maximum": 1,
                "description": "Less than 1. A multiple of 0.5.",
            },
        ),
        (
            {"type": "number", "minimum": float("nan"), "maximum": float("inf")},
            {"type": "number"},
        ),
        (
            {"type": "number", "minimum": 1, "exclusiveMinimum": True},
            {"type": "number", "minimum": 1},
        ),
    ],
)
def test_bounds_include_their_ends(given, made):
    assert shown(given) == made


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "string", "format": "uuid"}, {"type": "string", "description": "Format: uuid."}),
        ({"type": "integer", "format": "int32"}, {"type": "integer", "format": "int32"}),
        ({"type": "integer", "format": "uint8"}, {"type": "integer"}),
        (
            {"type": "string", "pattern": "(?=a)", "minLength": 1, "maxLength": "x"},
            {"type": "string", "minLength": 1, "description": "Matches the pattern (?=a)."},
        ),
        (
            {"type": "array", "items": STRING, "uniqueItems": True, "maxItems": 2},
            {"type": "array", "items": STRING, "maxItems": 2, "description": "No duplicates."},
        ),
        (
            {"type": "object", "additionalProperties": INTEGER, "minProperties": 1},
            {
                "type": "object",
                "minProperties": 1,
                "description": "Free keys; each value: integer.",
            },
        ),
        ({"type": "object", "additionalProperties": False, "$schema": "x"}, {"type": "object"}),
        ({"type": "string", "default": "a"}, {"type": "string", "default": "a"}),
        (
            {"type": ["string", "integer"], "default": 1, "description": "d"},
            {"anyOf": [{"type": "string", "description": "d Default: 1."}, INTEGER]},
        ),
    ],
)
def test_unknown_fields_go_and_are_said_in_words_if_they_help(given, made):
    assert shown(given) == made


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"type": "array", "items": {"$ref": "#/$defs/D"}}, "array of D"),
        ({"type": "array"}, "array"),
        ({"minLength": 1}, "anything"),
        ({"type": ["string", "null"]}, "string or null"),
    ],
)
def test_free_keys_are_said_in_words(values, words):
    made = shown({"type": "object", "additionalProperties": values}, D=STRING)
    assert made["description"] == f"Free keys; each value: {words}."


def test_words_for_free_keys_end():
    values = STRING
    for _ in range(30):
        values = {"type": "array", "items": values}
    made = shown({"type": "object", "additionalProperties": values})
    assert made["description"].endswith("array of anything.")


@pytest.mark.parametrize(
    "given",
    [
        {"prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2},
        {"prefixItems": [INTEGER, STRING], "minItems": 2, "items": False},
        {"items": [INTEGER, STRING], "minItems": 2, "additionalItems": False},
    ],
)
def test_a_tuple_is_an_array_of_any_of_its_items(given):
    assert shown(given) == {
        "type": "array",
        "items": {"anyOf": [INTEGER, STRING]},
        "minItems": 2,
        "maxItems": 2,
        "description": "In this order: integer, string.",
    }


def test_the_rest_of_a_tuple_counts():
    made = shown({"prefixItems": [True, STRING], "items": INTEGER})
    assert made["items"]["anyOf"][-1] == {**INTEGER, "nullable": True}
    assert made["description"] == "In this order: anything, string."
