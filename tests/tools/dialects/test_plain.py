"""The dialects that take JSON Schema as it is, and what all dialects have in common."""

import copy
import json

import pytest

from satchel.errors import NotFoundError
from satchel.tools.dialects import DIALECTS, ToolShape, in_dialect, shown

TREE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/Tree", "description": "All of it."}},
    "required": ["tree"],
    "$defs": {
        "Tree": {
            "type": "object",
            "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
        }
    },
}


def plain(schema):
    return in_dialect("openai", ToolShape(name="t", description="d", parameters=schema))[
        "function"
    ]["parameters"]


def mcp(schema, **others):
    return in_dialect("mcp", ToolShape(name="t", description="d", parameters=schema, **others))


def test_there_are_six_dialects():
    assert DIALECTS == ("openai", "openai-strict", "openai-responses", "anthropic", "gemini", "mcp")


@pytest.mark.parametrize(
    ("name", "near"), [("openai_strict", "openai-strict"), ("Gemini", "gemini"), ("zzz", "")]
)
def test_an_unknown_dialect_is_not_found_and_its_near_misses_are(name, near):
    with pytest.raises(NotFoundError) as caught:
        in_dialect(name, ToolShape(name="t", description="d", parameters={}))
    assert (caught.value.kind, caught.value.name) == ("dialect", name)
    assert (near in caught.value.near) is bool(near)


def test_openai_gets_a_function_with_its_definitions():
    assert in_dialect(
        "openai", ToolShape(name="t", description="Do\u200b it.", parameters=TREE)
    ) == {
        "type": "function",
        "function": {"name": "t", "description": "Do it.", "parameters": TREE},
    }


def test_anthropic_gets_an_input_schema():
    converted = in_dialect(
        "anthropic", ToolShape(name="t", description="Do it.\u202e", parameters=TREE)
    )
    assert converted == {"name": "t", "description": "Do it.", "input_schema": TREE}


def test_mcp_gets_both_schemas_and_the_hints():
    output = {"type": "object", "properties": {"a": {"type": "string"}}}
    hints = {"title": "Forecast", "readOnlyHint": True, "openWorldHint": False}
    created = mcp(TREE, output=output, annotations=hints)
    assert list(created) == [
        *("name", "title", "description", "inputSchema", "outputSchema", "annotations"),
    ]
    assert created["title"] == "Forecast"
    assert (created["inputSchema"], created["outputSchema"]) == (TREE, output)
    assert created["annotations"] == hints
    assert list(mcp(TREE)) == ["name", "description", "inputSchema"]
    assert "title" not in mcp(TREE, annotations={"readOnlyHint": True})


@pytest.mark.parametrize(
    "output",
    [
        None,
        {"type": "string"},
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "array"}}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
        {"anyOf": [{"type": "object"}, {"type": "null"}]},
        True,
    ],
)
def test_mcp_gets_no_output_schema_that_is_of_no_object(output):
    assert "outputSchema" not in mcp(TREE, output=output)


def test_mcp_gets_an_output_schema_that_refers_to_an_object_and_says_so_at_its_top():
    output = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}
    assert mcp(TREE, output=output)["outputSchema"] == {**output, "type": "object"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_handed_out_shares_nothing_with_the_tool(dialect):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "enum": ["x"], "default": "x"}, "b": {"$ref": "#"}},
    }
    hints = {"title": "T", "extra": {"a": []}}
    before = copy.deepcopy((schema, hints))
    converted = in_dialect(
        dialect,
        ToolShape(name="t", description="d", parameters=schema, output=schema, annotations=hints),
    )
    spoil(converted)
    assert (schema, hints) == before


def spoil(value):
    for inner in list(value.values() if isinstance(value, dict) else value):
        if isinstance(inner, dict | list):
            spoil(inner)
    value.clear()


@pytest.mark.parametrize("dialect", ["openai", "openai-strict", "anthropic", "mcp"])
def test_the_keywords_stay_in_their_order(dialect):
    inner = '{"description": "d", "type": "string", "pattern": "^a$"}'
    text = f'{{"properties": {{"b": {inner}, "a": {inner}}}, "required": ["b", "a"], '
    text += '"additionalProperties": false, "type": "object"}'
    assert text in json.dumps(
        in_dialect(dialect, ToolShape(name="t", description="d", parameters=json.loads(text)))
    )


def test_texts_lose_what_cannot_be_seen():
    schema = {"description": "a\u200bb", "title": "c\u202ed", "$comment": "e\u2060f"}
    assert shown(schema) == {"description": "ab", "title": "cd", "$comment": "ef"}
    for keyword in ("items", "additionalProperties", "not"):
        assert shown({keyword: schema}) == {keyword: shown(schema)}
    for keyword in ("anyOf", "prefixItems", "items"):
        assert shown({keyword: [schema]}) == {keyword: [shown(schema)]}
    for keyword in ("properties", "$defs", "definitions", "patternProperties"):
        assert shown({keyword: {"x": schema}}) == {keyword: {"x": shown(schema)}}


def test_what_is_only_called_description_stays_as_it_is():
    same = {
        "properties": {"description": {"type": "string"}, "title": True},
        "$defs": {"description": {"enum": ["a\u200b"]}},
        "default": {"description": "a\u200b"},
        "const": {"description": "a\u200b"},
        "examples": [{"description": "a\u200b"}],
        "x-note": {"description": "a\u200b"},
        "description": ["a\u200b"],
    }
    assert shown(same) == same
    named = {"properties": {"description": {"description": "a\u200b"}}}
    assert shown(named) == {"properties": {"description": {"description": "a"}}}


def test_a_reference_at_the_top_is_followed_for_who_wants_an_object_there():
    schema = {
        "$ref": "#/$defs/In",
        "description": "near",
        "$defs": {
            "In": {"type": "object", "description": "far", "properties": {"a": {"$ref": "#"}}},
        },
    }
    converted = plain(schema)
    assert converted["properties"] == {"a": {"$ref": "#"}}
    assert (converted["type"], converted["description"]) == ("object", "near")
    assert "$ref" not in converted
    assert converted["$defs"] == schema["$defs"]
    assert mcp(schema)["inputSchema"] == {**schema, "type": "object"}


def test_a_union_at_the_top_becomes_one_object_that_allows_all_of_it():
    schema = {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id", "id", 7],
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "n": {}, "id": {}}, "required": ["kind", "n"]},
            {"$ref": "#/$defs/B"},
        ],
        "$defs": {"B": {"properties": {"kind": {"const": "b"}, "n": {}}, "required": ["kind"]}},
    }
    converted = plain(schema)
    assert converted["properties"] == {
        "id": {"type": "string"},
        "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]},
        "n": {},
    }
    assert converted["required"] == ["id", "kind"]
    assert "oneOf" not in converted
    assert mcp(schema)["inputSchema"] == schema


def test_all_of_at_the_top_is_merged():
    one = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    two = {"properties": {"b": {"type": "string"}, "a": {}}, "required": ["b"]}
    converted = plain({"allOf": [one, {"allOf": [two, True]}]})
    assert converted == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["a", "b"],
    }
