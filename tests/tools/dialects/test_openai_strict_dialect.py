"""Strict mode: what is said otherwise, what is said in words, and what falls back."""

import pytest
from rules import against_strict

from satchel.tools.dialects import ToolShape, in_dialect

NULL = {"type": "null"}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"]}


def described(schema):
    function = in_dialect("openai-strict", ToolShape(name="t", description="d", parameters=schema))[
        "function"
    ]
    if function["strict"]:
        assert against_strict(function["parameters"]) == []
    return function


def strictly(item, needed=True, **definitions):
    """Return what becomes of one property, and the definitions if there are any."""
    schema = {"type": "object", "properties": {"a": item}, "required": ["a"] if needed else []}
    function = described({**schema, **({"$defs": definitions} if definitions else {})})
    if not function["strict"]:
        return None
    created = function["parameters"]
    return (
        (created["properties"]["a"], created["$defs"])
        if definitions
        else created["properties"]["a"]
    )


def test_the_flag_stands_in_the_function():
    converted = in_dialect(
        "openai-strict", ToolShape(name="t", description="d\u200b", parameters={"type": "object"})
    )
    assert converted == {
        "type": "function",
        "function": {
            "name": "t",
            "description": "d",
            "parameters": {
                "type": "object",
                "properties": {},
                "required": [],
                "additionalProperties": False,
            },
            "strict": True,
        },
    }


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, {"anyOf": [{"type": "string"}, NULL]}),
        ({"enum": ["a"]}, {"anyOf": [{"enum": ["a"], "type": "string"}, NULL]}),
        ({"enum": ["a", None]}, {"anyOf": [{"enum": ["a"], "type": "string"}, NULL]}),
        ({"const": 1}, {"anyOf": [{"const": 1, "type": "integer"}, NULL]}),
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, NULL]}),
        ({"type": "string", "nullable": True}, {"anyOf": [{"type": "string"}, NULL]}),
        ({"anyOf": [{"type": "string"}, NULL]}, {"anyOf": [{"type": "string"}, NULL]}),
        (
            {"anyOf": [{"type": "string"}, {"type": "number"}], "description": "d"},
            {"description": "d", "anyOf": [{"type": "string"}, {"type": "number"}, NULL]},
        ),
        (
            {"title": "T", "description": "d", "type": "string", "default": "x"},
            {"title": "T", "description": 'd Default: "x".', "anyOf": [{"type": "string"}, NULL]},
        ),
        (
            {"type": "string", "enum": ["a"], "nullable": True},
            {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]},
        ),
        (NULL, NULL),
    ],
)
def test_what_may_be_left_out_may_be_null_once(schema, expected):
    assert strictly(schema, needed=False) == expected


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (NULL, {"$ref": "#/$defs/D"}),
        ({"anyOf": [{"$ref": "#/$defs/D"}, NULL]}, {"$ref": "#/$defs/D"}),
        ({"type": ["string", "null"], "enum": ["a"]}, {"anyOf": [{"$ref": "#/$defs/D"}, NULL]}),
        ({"type": "string"}, {"anyOf": [{"$ref": "#/$defs/D"}, NULL]}),
        ({"anyOf": [{"$ref": "#/$defs/D"}]}, {"anyOf": [{"$ref": "#/$defs/D"}, NULL]}),
    ],
)
def test_whether_null_is_allowed_is_seen_through_references(definition, expected):
    assert strictly({"$ref": "#/$defs/D"}, needed=False, D=definition)[0] == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1},
            {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "description": "No duplicates.",
            },
        ),
        (
            {"type": "string", "minLength": 1, "maxLength": 5, "description": "Name."},
            {"type": "string", "description": "Name. Length at least 1. Length at most 5."},
        ),
        (
            {"type": "string", "format": "uri"},
            {"type": "string", "description": "Format: uri."},
        ),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        (
            {"type": "string", "pattern": "^(?!x)"},
            {"type": "string", "description": "Matches the pattern ^(?!x)."},
        ),
        ({"type": "string", "pattern": "^(?:x)"}, {"type": "string", "pattern": "^(?:x)"}),
        (
            {"type": "boolean", "default": False},
            {"type": "boolean", "description": "Default: false."},
        ),
        (
            {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "$comment": "x"},
            {"type": "integer", "minimum": 0},
        ),
        ({"type": "string", "minimum": 1, "uniqueItems": False}, {"type": "string"}),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": "1", "contains": {}},
            {"type": "array", "items": {"type": "string"}},
        ),
        ({"type": "string", "examples": ["a"], "deprecated": True}, {"type": "string"}),
    ],
)
def test_what_strict_mode_does_not_know_is_removed_and_said_in_words_if_that_is_simple(
    schema, expected
):
    assert strictly(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["integer", "number"]}, {"type": "number"}),
        (
            {"type": ["string", "array"], "items": {"type": "string"}, "pattern": "a"},
            {
                "anyOf": [
                    {"pattern": "a", "type": "string"},
                    {"items": {"type": "string"}, "type": "array"},
                ]
            },
        ),
        (
            {"enum": ["a", 1, 2.5, True]},
            {
                "anyOf": [
                    {"enum": ["a"], "type": "string"},
                    {"enum": [1, 2.5], "type": "number"},
                    {"enum": [True], "type": "boolean"},
                ]
            },
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "string"}], "discriminator": {}},
            {"anyOf": [{"type": "string"}]},
        ),
        (
            {"allOf": [{"type": "string"}], "description": "d"},
            {"type": "string", "description": "d"},
        ),
        (
            {"allOf": [{"type": "string", "description": "far"}], "description": "near"},
            {"type": "string", "description": "near"},
        ),
    ],
)
def test_what_strict_mode_says_otherwise(schema, expected):
    assert strictly(schema) == expected


def test_a_reference_stands_alone():
    string = {"type": "string"}
    ref = {"$ref": "#/$defs/D"}
    wrapped = {"anyOf": [ref], "description": "d"}
    for schema, created in (
        (ref, ref),
        ({**ref, "default": None}, ref),
        ({**ref, "type": "string"}, ref),
        ({**ref, "description": "d"}, wrapped),
        ({"allOf": [ref], "description": "d"}, wrapped),
        ({"allOf": [ref], "$ref": ref["$ref"]}, ref),
        ({**ref, "maxLength": 7}, None),
        ({"allOf": [ref], "pattern": "a"}, None),
    ):
        result = strictly(schema, D=string)
        assert result == (created and (created, {"D": string}))


def test_recursion_stays_and_only_the_definitions_in_use_do():
    created = strictly({"$ref": "#/$defs/Node"}, Other={"type": "object"}, Node=NODE)
    assert created[1] == {"Node": {**NODE, "additionalProperties": False}}
    assert strictly({"anyOf": [{"$ref": "#"}, NULL]}) == {"anyOf": [{"$ref": "#"}, NULL]}


def test_definitions_of_older_drafts_move_and_keep_their_order():
    created = described(
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/definitions/A%3Cint%3E"}},
            "definitions": {"B": {"type": "string"}, "A<int>": {"$ref": "#/definitions/B"}},
        }
    )["parameters"]
    assert list(created["$defs"]) == ["B", "A_int_"]
    assert created["$defs"]["A_int_"] == {"$ref": "#/$defs/B"}
    assert created["properties"]["a"]["anyOf"][0] == {"$ref": "#/$defs/A_int_"}


STRING = {"type": "string"}
NOT_STRICT = [
    True,
    False,
    {},
    {"type": "object"},
    {"type": "object", "additionalProperties": True},
    {"type": "object", "additionalProperties": {}, "properties": {"b": STRING}},
    {"type": "object", "additionalProperties": STRING},
    {"type": "object", "properties": {}, "unevaluatedProperties": STRING},
    {"type": "object", "properties": {}, "patternProperties": {"^x": STRING}},
    {"type": "object", "properties": {}, "required": ["b"]},
    {"type": "object", "properties": {}, "enum": [{}]},
    {"type": "array"},
    {"type": "array", "items": {}},
    {"type": "array", "items": [STRING]},
    {"type": "array", "prefixItems": [STRING], "items": False},
    {"type": "array", "items": STRING, "const": []},
    {"type": "file"},
    {"type": "string", "enum": [1]},
    {"anyOf": []},
    {"anyOf": [{}]},
    {"anyOf": [STRING], "oneOf": [STRING]},
    {"anyOf": [STRING], "type": "string"},
    {"allOf": [STRING, {"minLength": 1}]},
    {"allOf": [True]},
    {"allOf": [{"type": "string"}], "type": "integer"},
    {"$ref": "#/properties/b"},
    {"$ref": "#/$defs/Missing"},
    {"$ref": "http://example.com/"},
]


@pytest.mark.parametrize("item", NOT_STRICT, ids=str)
def test_what_cannot_be_said_strictly_is_said_plainly(item):
    schema = {"type": "object", "properties": {"a": item, "b": {"type": "string"}}}
    function = described(schema)
    assert function["strict"] is False
    assert function["parameters"] == schema


def test_definitions_that_cannot_be_distinguished_are_said_plainly():
    schema = {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": STRING}}
    assert described({**schema, "definitions": {"A": STRING}})["strict"] is True
    assert described({**schema, "definitions": {"A": NULL}})["strict"] is False
    assert described({**schema, "definitions": [1]})["strict"] is True


def test_an_object_that_may_be_null_is_no_object_at_the_top():
    assert described({"type": "object", "nullable": True})["strict"] is False


def nest(levels):
    schema = STRING
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_what_is_too_large_for_strict_mode_is_said_plainly():
    names = [f"n{number}" for number in range(5_001)]
    assert described(nest(10))["strict"] is True
    assert described(nest(11))["strict"] is False
    for size, strict in ((5_000, True), (5_001, False)):
        properties = dict.fromkeys(names[:size], NULL)
        assert described({"properties": properties})["strict"] is strict
    for size, strict in ((999, True), (1_000, False)):
        values = {"a": {"enum": names[:size]}, "b": {"const": "x"}}
        assert described({"properties": values})["strict"] is strict
    assert described({"properties": {"a" * 120_001: STRING}})["strict"] is False
