"""Gemini has no references: what they point at is written out, within bounds."""

import json

import pytest
from test_gemini_dialect import ANYTHING, INTEGER, NULL, STRING, described, shown

from satchel.tools.dialects.gemini_dialect import INLINED_SCHEMAS


def test_a_reference_is_written_out_and_what_stands_beside_it_wins():
    made = shown(
        {"$ref": "#/$defs/D", "description": "near", "default": {}},
        D={
            "type": "object",
            "description": "far",
            "default": None,
            "properties": {"b": {"$ref": "#/$defs/E"}},
        },
        E={"$ref": "#/$defs/F"},
        F=STRING,
    )
    assert made == {
        "type": "object",
        "description": "near",
        "default": {},
        "properties": {"b": STRING},
    }


@pytest.mark.parametrize(
    "ref", ["#/definitions/D", "#/properties/b", "#/x%7E1/0", "#/definitions/%C3%A9", "#/%zz"]
)
def test_references_lead_everywhere_in_the_schema(ref):
    made = described(
        {
            "properties": {"a": {"$ref": ref}, "b": INTEGER},
            "definitions": {"D": INTEGER, "é": INTEGER},
            "x/": [INTEGER],
            "%zz": INTEGER,
        }
    )
    assert made["properties"]["a"] == INTEGER


def test_all_of_is_merged():
    made = shown(
        {
            "allOf": [
                {"$ref": "#/$defs/D"},
                {"properties": {"c": INTEGER, "b": INTEGER}, "required": ["c"]},
            ],
            "description": "d",
        },
        D={"type": "object", "properties": {"b": STRING}, "required": ["b"]},
    )
    assert made == {
        "type": "object",
        "properties": {"b": STRING, "c": INTEGER},
        "required": ["b", "c"],
        "description": "d",
    }


def test_a_union_of_constraints_beside_a_shape_is_left_out():
    shape = {"type": "object", "properties": {"b": STRING, "c": STRING}}
    made = shown({**shape, "anyOf": [{"required": ["b"]}, {"required": ["c"]}]})
    assert made == shape


def test_a_shape_that_contains_itself_is_shown_twice():
    node = {
        "type": "object",
        "description": "A node.",
        "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, NULL]}},
    }
    end = {"type": "object", "description": "A node. The same shape again: Node.", "nullable": True}
    again = {"type": "object", "description": "A node.", "properties": {"next": end}}
    assert shown({"$ref": "#/$defs/Node"}, Node=node) == {
        **again,
        "properties": {"next": {**again, "nullable": True}},
    }


def test_a_union_that_contains_itself_ends_in_anything():
    made = shown(
        {"$ref": "#/$defs/Json"},
        Json={"anyOf": [STRING, {"type": "array", "items": {"$ref": "#/$defs/Json"}}]},
    )
    inner = made["anyOf"][1]["items"]["anyOf"][1]["items"]["anyOf"]
    assert inner[0] == {
        "type": "string",
        "description": "The same shape again: Json.",
        "nullable": True,
    }
    assert [kind["type"] for kind in inner] == [kind["type"] for kind in ANYTHING]


def test_definitions_that_only_refer_to_each_other_take_anything():
    made = shown({"$ref": "#/$defs/A"}, A={"$ref": "#/$defs/B"}, B={"$ref": "#/$defs/A"})
    assert [kind["type"] for kind in made["anyOf"]] == [kind["type"] for kind in ANYTHING]


def fan(levels):
    """Definitions each of which refers twice to the next: 2**levels schemas when written out."""
    made = {
        f"D{level}": {
            "type": "object",
            "properties": {side: {"$ref": f"#/$defs/D{level + 1}"} for side in ("l", "r")},
        }
        for level in range(levels)
    }
    return {**made, f"D{levels}": STRING}


def test_a_fan_of_references_is_followed_as_deep_as_the_bound_allows_on_every_side():
    made = described(
        {
            "type": "object",
            "properties": {name: {"$ref": "#/$defs/D0"} for name in ("first", "second")},
            "$defs": fan(60),
        }
    )
    first, second = made["properties"].values()
    assert first == second
    assert first["properties"]["l"] == first["properties"]["r"]
    text = json.dumps(made)
    assert "Not shown in full: D" in text
    assert 20 < text.count('"type"') < 3 * INLINED_SCHEMAS


def test_a_fan_within_the_bound_is_shown_in_full():
    assert "Not shown" not in json.dumps(shown({"$ref": "#/$defs/D0"}, **fan(5)))


def test_so_many_references_that_none_can_be_followed_still_show_what_has_no_parts():
    names = [f"n{number}" for number in range(4 * INLINED_SCHEMAS)]
    made = described(
        {
            "properties": {name: {"$ref": "#/$defs/D"} for name in names},
            "$defs": {"D": {"properties": dict.fromkeys("abcd", INTEGER)}},
        }
    )
    assert made["properties"]["n0"] == {
        "type": "object",
        "description": "Not shown in full: D.",
    }
    made = described(
        {"properties": {name: {"$ref": "#/$defs/D"} for name in names}, "$defs": {"D": INTEGER}}
    )
    assert made["properties"]["n7"] == INTEGER


def test_a_chain_of_references_ends_at_the_depth_where_schemas_end():
    chain = {
        f"D{at}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/D{at + 1}"}}}
        for at in range(300)
    }
    assert "Not shown in full" in json.dumps(shown({"$ref": "#/$defs/D0"}, **chain, D300=STRING))


def test_a_title_stays_unless_it_is_the_name_once_more():
    made = described(
        {
            "properties": {
                "city_name": {"type": "string", "title": "City Name"},
                "b": {"type": "string", "title": "The letter"},
                "c": {"$ref": "#/$defs/TheThing"},
            },
            "$defs": {"TheThing": {"type": "object", "title": "TheThing"}},
        }
    )
    titles = [item.get("title") for item in made["properties"].values()]
    assert titles == [None, "The letter", None]
