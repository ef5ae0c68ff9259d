from satchel.tools.dialects.schema_walk import references


def test_references_are_found_wherever_schemas_stand():
    schema = {
        "$ref": "a",
        "properties": {"x": {"$dynamicRef": "b"}, "$ref": {"type": "string"}},
        "allOf": [{"items": {"$recursiveRef": "c"}}],
        "$defs": {"y": {"additionalProperties": {"$ref": "d"}}},
    }
    assert sorted(references(schema)) == ["a", "b", "c", "d"]


def test_data_that_looks_like_a_reference_is_none():
    schema = {"default": {"$ref": "a"}, "enum": [{"$ref": "b"}], "const": {"$ref": "c"}}
    assert list(references(schema)) == []


def test_what_is_no_schema_refers_to_nothing():
    assert list(references(None)) == list(references({"$ref": 3})) == []
