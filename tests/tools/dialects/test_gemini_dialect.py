"""Gemini: JSON Schema, in which references lead into `$defs` and stand nearly alone."""

import pytest
from rules import against_gemini

from satchel.tools.dialects import ToolShape, in_dialect


def made(properties, **root):
    schema = {"type": "object", "properties": properties, **root}
    return in_dialect("gemini", ToolShape(name="t", description="d", parameters=schema))[
        "parametersJsonSchema"
    ]


def test_a_schema_stays_as_it_is():
    schema = {"a": {"type": ["string", "null"], "pattern": "x"}, "b": {"oneOf": [{}, {}]}}
    assert made(schema, required=["a"], additionalProperties=False) == {
        "type": "object",
        "properties": schema,
        "required": ["a"],
        "additionalProperties": False,
    }


def test_a_tool_without_parameters_has_no_schema():
    assert in_dialect("gemini", ToolShape(name="t", description="d", parameters={})) == {
        "name": "t",
        "description": "d",
    }


def test_only_a_description_and_a_default_stand_beside_a_reference():
    node = {"$ref": "#/$defs/A", "description": "x", "default": {"$ref": 1}, "title": "T"}
    schema = made({"a": node}, **{"$defs": {"A": {"type": "string"}}, "$schema": "http:x"})
    assert schema["properties"]["a"] == {
        "$ref": "#/$defs/A",
        "description": "x",
        "default": {"$ref": 1},
    }
    assert schema.keys() == {"type", "properties", "$defs"}


def test_older_definitions_become_defs():
    tree = {"type": "object", "properties": {"kids": {"items": {"$ref": "#/definitions/T"}}}}
    schema = made({"a": {"$ref": "#/definitions/T"}}, definitions={"T": tree})
    assert schema["properties"]["a"] == {"$ref": "#/$defs/T"}
    assert schema["$defs"]["T"]["properties"]["kids"]["items"] == {"$ref": "#/$defs/T"}
    assert "definitions" not in schema
    assert against_gemini(schema) == []


@pytest.mark.parametrize(
    ("ref", "becomes"),
    [
        ("#", {"type": "object"}),
        ("#/properties/b", {}),
        ("#/$defs/Gone", {}),
        ("http://x/y", {}),
        (7, {}),
    ],
)
def test_a_reference_elsewhere_becomes_a_type(ref, becomes):
    schema = made({"a": {"$ref": ref, "description": "d"}, "b": {"type": "string"}})
    assert schema["properties"]["a"] == {**becomes, "description": "d"}


def test_a_constant_becomes_an_enum_of_one():
    schema = made({"a": {"const": "x"}, "b": {"const": None}, "c": {"const": 0}})
    assert schema["properties"] == {"a": {"enum": ["x"]}, "b": {"const": None}, "c": {"enum": [0]}}
