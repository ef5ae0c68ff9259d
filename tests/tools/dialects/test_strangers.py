"""Schemas that nobody's type checker has seen."""

import copy
import json
from types import MappingProxyType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rules import against_gemini, against_strict

from satchel.errors import DefinitionError
from satchel.tools.dialects import DIALECTS, ToolShape, in_dialect

KEYWORDS = [
    *("$ref", "type", "properties", "required", "items", "prefixItems", "anyOf", "oneOf", "allOf"),
    *("enum", "const", "additionalProperties", "patternProperties", "$defs", "definitions"),
    *("description", "title", "default", "nullable", "format", "pattern", "minimum", "maxLength"),
    *("exclusiveMinimum", "exclusiveMaximum", "minItems", "uniqueItems", "not", "a", "b"),
]
NAMES = st.sampled_from(KEYWORDS)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from(["object", "array", "string", "integer", "number", "null", "boolean"]),
    st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/definitions/a", "#/properties/a", "http:x"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=30,
)
SCHEMAS = st.recursive(
    st.just({}) | st.booleans() | SCALARS,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "$ref": SCALARS,
            "type": SCALARS | st.lists(SCALARS, max_size=3),
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES | VALUES, max_size=3),
            "items": inner | st.lists(inner, max_size=2),
            "prefixItems": st.lists(inner, max_size=2),
            "anyOf": st.lists(inner, max_size=3),
            "oneOf": st.lists(inner, max_size=3),
            "allOf": st.lists(inner, max_size=2),
            "enum": st.lists(VALUES, max_size=3),
            "const": VALUES,
            "additionalProperties": inner,
            "default": VALUES,
            "nullable": SCALARS,
            "minimum": SCALARS,
            "exclusiveMaximum": SCALARS,
            "format": SCALARS,
            "pattern": SCALARS,
            "description": SCALARS,
            "title": SCALARS,
        },
    ),
    max_leaves=20,
)
ROOTS = st.builds(
    lambda top, definitions: {**top, "$defs": definitions} if isinstance(top, dict) else top,
    SCHEMAS,
    st.dictionaries(st.sampled_from(["a", "b"]), SCHEMAS),
)


def in_all(schema, output=None):
    shape = ToolShape(name="t", description="d", parameters=schema, output=output)
    return {dialect: in_dialect(dialect, shape) for dialect in DIALECTS}


@given(VALUES | SCHEMAS | ROOTS)
@example({"type": "object", "properties": {"a": True, "b": False}})
@example({"required": [["a"]], "anyOf": [{"required": [{}]}], "properties": {"a": {"type": ["x"]}}})
def test_whatever_looks_like_a_schema_is_described_and_left_as_it_was(schema):
    before = copy.deepcopy(schema)
    converted = in_all(schema, schema)
    assert repr(schema) == repr(before)
    json.dumps(converted)


@given(SCHEMAS | ROOTS)
def test_whatever_comes_out_keeps_the_rules_of_its_provider(schema):
    converted = in_all(schema)
    if converted["openai-strict"]["function"]["strict"]:
        assert against_strict(converted["openai-strict"]["function"]["parameters"]) == []
    if "parametersJsonSchema" in converted["gemini"]:
        assert against_gemini(converted["gemini"]["parametersJsonSchema"]) == []


def nested(levels, inside):
    schema = {"type": "string"}
    for _ in range(levels):
        schema = inside(schema)
    return {"type": "object", "properties": {"a": schema}}


NESTINGS = [
    lambda inner: {"type": "object", "properties": {"a": inner}},
    lambda inner: {"type": "array", "items": inner},
    lambda inner: {"anyOf": [inner, {"type": "integer"}]},
    lambda inner: {"allOf": [inner]},
    lambda inner: {"type": "array", "prefixItems": [inner]},
    lambda inner: {"type": "object", "additionalProperties": inner},
]


@pytest.mark.parametrize("inside", NESTINGS)
def test_two_hundred_levels_are_described(inside):
    converted = in_all(nested(200, inside))
    assert json.loads(json.dumps(converted)) == converted


@pytest.mark.parametrize("inside", [*NESTINGS, lambda inner: {"default": [inner]}])
def test_thousands_of_levels_are_refused(inside):
    shape = ToolShape(name="t", description="d", parameters=nested(5_000, inside))
    for dialect in DIALECTS:
        with pytest.raises(DefinitionError, match="nested deeper than 256"):
            in_dialect(dialect, shape)


def test_a_schema_that_contains_itself_is_refused():
    schema = {"type": "object", "properties": {}}
    schema["properties"]["a"] = schema
    with pytest.raises(DefinitionError):
        in_dialect("openai", ToolShape(name="t", description="d", parameters=schema))


NOWHERE = [
    "#/$defs/Missing",
    "#/properties/a/items/7",
    "http://example.com/schema.json",
    "other.json#/$defs/A",
    "#anchor",
    7,
    "#/$defs/Loop",
]


@pytest.mark.parametrize("ref", NOWHERE)
def test_a_reference_to_nowhere_takes_anything(ref):
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": ref}, "b": {"type": "integer"}},
        "$defs": {"Loop": {"$ref": "#/$defs/Pool"}, "Pool": {"$ref": "#/$defs/Loop"}},
    }
    converted = in_all(schema)
    assert converted["openai"]["function"]["parameters"]["properties"]["a"] == {"$ref": ref}
    assert converted["openai-strict"]["function"]["strict"] is False


def test_a_top_that_is_no_object_becomes_one_without_properties():
    for schema in (True, None, [], "x", {}, {"type": "string"}, {"properties": [1]}):
        converted = in_all(schema)
        empty = {"type": "object", "properties": {}}
        assert converted["openai"]["function"]["parameters"] == empty
        assert converted["anthropic"]["input_schema"] == empty
        assert converted["mcp"]["inputSchema"]["type"] == "object"
        assert converted["gemini"].keys() == {"name", "description"}


def test_mappings_and_tuples_that_json_does_not_know_become_what_it_knows():
    schema = MappingProxyType({"type": "object", "properties": MappingProxyType({}), "x": (1, 2)})
    converted = in_dialect("anthropic", ToolShape(name="t", description="d", parameters=schema))[
        "input_schema"
    ]
    assert json.dumps(converted) == '{"type": "object", "properties": {}, "x": [1, 2]}'
