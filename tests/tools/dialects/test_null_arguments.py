from satchel.tools.dialects import without_nulls

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "default": 3},
        "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "any": True,
        "odd": {"anyOf": [7, {"type": "string"}]},
        "stops": {"type": "array", "items": {"$ref": "#/$defs/Stop"}},
        "pet": {"oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]},
        "loop": {"$ref": "#/$defs/Loop"},
    },
    "required": ["city"],
    "$defs": {
        "Stop": {"type": "object", "properties": {"tag": {"enum": ["a"]}}},
        "Cat": {"properties": {"lives": {"type": "integer"}, "name": {"type": "string"}}},
        "Dog": {"properties": {"name": {"type": ["string", "null"]}}},
        "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}, {"type": "string"}]},
    },
}


def test_a_null_that_means_nothing_given_is_left_out():
    assert without_nulls(SCHEMA, {"city": "Oslo", "days": None}) == {"city": "Oslo"}
    assert without_nulls(SCHEMA, {"stops": [{"tag": None}, {"tag": "a"}]}) == {
        "stops": [{}, {"tag": "a"}]
    }
    assert without_nulls(SCHEMA, {"pet": {"lives": None}}) == {"pet": {}}
    assert without_nulls(SCHEMA, {"loop": None, "odd": None}) == {}


def test_a_null_that_is_a_value_or_a_fault_stays():
    for same in (
        {"unit": None},
        {"any": None},
        {"city": None},
        {"unknown": None},
        {"pet": {"name": None}},
        {"stops": [None]},
        {"city": ["x", None], "loop": {"x": [{"y": None}]}},
    ):
        assert without_nulls(SCHEMA, same) == same


def test_the_arguments_are_not_changed():
    sent = {"days": None, "stops": [{"tag": None}]}
    without_nulls(SCHEMA, sent)
    assert sent == {"days": None, "stops": [{"tag": None}]}
