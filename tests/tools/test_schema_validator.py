import pytest

from satchel.errors import DefinitionError
from satchel.tools import ArgumentError, ArgumentFault
from satchel.tools.schema_validator import DEEPEST, SchemaValidator


def faults(schema, arguments):
    return SchemaValidator(schema, "here").faults(arguments)


def prop(schema):
    return {"properties": {"a": schema}}


@pytest.mark.parametrize(
    ("schema", "arguments", "expected"),
    [
        ({}, {"a": 1}, []),
        (prop({"type": "integer"}), {"a": 1}, []),
        (prop({"type": "integer"}), {"a": "secret"}, [("a", 'it is not of type "integer"')]),
        (prop({"enum": ["x", "y"]}), {"a": "secret"}, [("a", 'it is not one of "x" or "y"')]),
        ({"required": ["a", "b"]}, {}, [("a", "is required"), ("b", "is required")]),
        (
            prop({"properties": {"b": {"required": ["c"]}}}),
            {"a": {"b": {}}},
            [("a.b.c", "is required")],
        ),
        (
            prop({"items": {"additionalProperties": False}}),
            {"a": [{}, {"x": "secret"}]},
            [("a[1]", "is not allowed here")],
        ),
        (
            prop({"items": {"properties": {}, "additionalProperties": False}}),
            {"a": [{}, {"x": "secret", "y": 1}]},
            [("a[1].x", "there is no such argument"), ("a[1].y", "there is no such argument")],
        ),
        (
            {"additionalProperties": False},
            {"a": "secret"},
            [("a", "there is no such argument")],
        ),
        (
            {"unevaluatedProperties": False},
            {"a": "secret"},
            [("a", "there is no such argument")],
        ),
        (prop({"items": {"type": "string"}}), {"a": [1]}, [("a[0]", 'it is not of type "string"')]),
    ],
)
def test_what_does_not_fit_is_reported_by_its_place_and_without_its_value(
    schema, arguments, expected
):
    assert faults(schema, arguments) == [ArgumentFault(*fault) for fault in expected]


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(?=a)(a+)+$", "^(?:(a+)+)(?!c)$", r"^(a*)*\1b$"])
def test_no_pattern_takes_for_ever(pattern):
    (fault,) = faults(prop({"pattern": pattern}), {"a": "a" * 4000 + "!"})
    assert fault.argument == "a"


def test_patterns_with_look_around_work():
    schema = prop({"pattern": "^a(?=b)"})
    assert faults(schema, {"a": "ab"}) == []
    assert faults(schema, {"a": "ac"}) != []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        prop({"pattern": "("}),
        prop({"$ref": "http://example.com/schema.json"}),
        prop({"$ref": "file:///etc/passwd"}),
        prop({"$ref": "#/$defs/missing"}),
        prop({1, 2}),
        {"$schema": "http://example.com/meta"},
        {"required": [["a"]]},
        3,
    ],
    ids=str,
)
def test_a_schema_that_cannot_be_used_is_refused_without_fetching_anything(schema):
    with pytest.raises(
        DefinitionError, match=r"here: its parameters are not a usable JSON Schema.*inside it"
    ):
        SchemaValidator(schema, "here")


def cyclic():
    schema = {}
    schema["properties"] = {"a": schema}
    return schema


def nested(levels, wrap=lambda inner: [inner]):
    value = wrap(0)
    for _ in range(levels - 1):
        value = wrap(value)
    return value


@pytest.mark.parametrize("schema", [cyclic, lambda: nested(100_000, prop)], ids=["cyclic", "deep"])
def test_a_schema_without_end_is_refused(schema):
    with pytest.raises(DefinitionError, match="its parameters are not a usable JSON Schema"):
        SchemaValidator(schema(), "here")


RECURSIVE = {
    "$defs": {"n": {"type": ["array", "object", "integer"], "items": {"$ref": "#/$defs/n"}}},
    "properties": {"a": {"$ref": "#/$defs/n"}},
}


def test_a_schema_may_point_into_itself():
    (fault,) = faults(RECURSIVE, {"a": [[1], [["x"]]]})
    assert fault.argument == "a[1][0][0]"


@pytest.mark.parametrize("wrap", [lambda it: [it], lambda it: (it,), lambda it: {"k": it}])
@pytest.mark.parametrize("levels", [DEEPEST, 100_000])
def test_arguments_that_are_nested_too_deeply_are_refused_before_they_do_harm(levels, wrap):
    # The compiled code would end the process.
    assert faults(RECURSIVE, {"a": nested(levels, wrap)}) == [
        ArgumentFault("", "they are nested too deeply")
    ]


def test_arguments_may_be_nested_as_deep_as_anybody_needs():
    assert faults(RECURSIVE, {"a": nested(DEEPEST - 1)}) == []


def test_arguments_that_contain_themselves_are_refused():
    value = []
    value += [value, value]
    assert faults({}, {"a": value}) == [ArgumentFault("", "they are nested too deeply")]


@pytest.mark.parametrize("value", [{1}, object(), "\ud800"])
def test_what_only_a_host_can_send_is_a_fault_too(value):
    (fault,) = faults(prop({"type": "integer"}), {"a": value})
    assert fault.argument == ""


SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "note": {"type": ["string", "null"]},
        "stop": {"type": "object", "properties": {"km": {"type": "number"}}},
        "key": {"type": "string"},
    },
    "required": ["city", "key"],
}


def test_arguments_that_fit_are_handed_over_as_a_copy():
    sent = {"city": "Oslo", "days": 3}
    checked = SchemaValidator(SCHEMA, "here", ["key"]).check("forecast", sent)
    assert checked == sent
    assert checked is not sent


def test_arguments_that_do_not_fit_are_all_reported():
    with pytest.raises(ArgumentError) as caught:
        SchemaValidator(SCHEMA, "here").check("forecast", {"days": "x", "stop": None})
    assert caught.value.tool == "forecast"
    assert {fault.argument for fault in caught.value.faults} == {"days", "stop", "city", "key"}


def test_a_null_that_the_schema_does_not_allow_means_left_out():
    validator = SchemaValidator(SCHEMA, "here", ["key"])
    sent = {"city": "Oslo", "days": None, "note": None, "stop": {"km": None}}
    assert validator.check("forecast", sent) == {"city": "Oslo", "note": None, "stop": {}}
    assert sent["days"] is None
    with pytest.raises(ArgumentError, match="city"):
        validator.check("forecast", {"city": None})


def test_what_only_the_host_sets_is_neither_shown_nor_taken():
    validator = SchemaValidator(SCHEMA, "here", ["key"])
    assert "key" not in validator.schema["properties"]
    assert validator.schema["required"] == ["city"]
    for value in ["mine", None]:
        with pytest.raises(ArgumentError, match="key: is set by the host; leave it out"):
            validator.check("forecast", {"city": "Oslo", "key": value})


def test_a_schema_that_requires_only_what_the_host_sets_requires_nothing():
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "required": ["key"]}
    assert "required" not in SchemaValidator(schema, "here", ["key"]).schema


def test_a_schema_is_never_changed_and_changing_it_changes_nothing():
    schema = {"properties": {"a": {"type": "integer"}, "key": {}}, "required": ["key"]}
    validator = SchemaValidator(schema, "here", ["key"])
    assert schema == {"properties": {"a": {"type": "integer"}, "key": {}}, "required": ["key"]}
    schema["properties"]["a"]["type"] = "string"
    assert validator.faults({"a": 1}) == []
    assert validator.schema == {"properties": {"a": {"type": "integer"}}}
