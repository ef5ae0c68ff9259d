import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import DefinitionError
from satchel.mcp_servers.schema_bounds import BoundedValidator, beside, is_quick, require_bounded
from satchel.mcp_servers.tool_definitions import ToolDefinition, check_definition
from satchel.settings import Limits
from satchel.tools.schema_validator import SchemaValidator


def doubling(steps, key="allOf"):
    """A short schema, each part of which refers to the next one twice."""
    parts = {
        f"a{n}": {key: [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]}
        for n in range(steps)
    }
    return {"type": "object", "$defs": {**parts, f"a{steps}": {}}, "$ref": "#/$defs/a0"}


@pytest.mark.parametrize("key", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("where", ["parameters", "output"])
def test_a_short_schema_that_expands_without_measure_is_refused(key, where):
    with pytest.raises(DefinitionError, match="expands to more than 10,000"):
        check_definition(ToolDefinition(name="a", **{where: doubling(28, key)}), Limits())
    check_definition(ToolDefinition(name="a", **{where: doubling(8, key)}), Limits())


def test_so_is_one_that_does_so_only_somewhere_inside():
    inside = {"type": "object", "properties": {"a": doubling(28)}}
    inside["$defs"] = inside["properties"]["a"].pop("$defs")
    with pytest.raises(DefinitionError, match="expands"):
        require_bounded(inside)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}]}}},
        {"dependentSchemas": {"a": {"not": {"$ref": "#"}}}},
    ],
)
def test_a_schema_that_is_itself_at_once_is_refused(schema):
    with pytest.raises(DefinitionError, match="without end"):
        require_bounded(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#here", "$defs": {"a": {"$anchor": "here"}}},
        {"$dynamicRef": "#"},
        {"properties": {"a": {"$id": "https://a.org", "$ref": "#/$defs/b"}}},
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {"a": {"id": "https://a.org"}},
        },
    ],
)
def test_a_reference_that_cannot_be_followed_here_is_refused(schema):
    with pytest.raises(DefinitionError, match="id or anchors"):
        require_bounded(schema)


def test_what_people_write_is_taken():
    names = {"$id": {"type": "string"}, "id": {"const": "x"}, "$ref": {}, "not": {"not": {}}}
    tree = {"type": "object", "properties": {"inside": {"items": {"$ref": "#"}}, **names}}
    require_bounded({"$id": "https://a.org/tree", **tree})
    assert is_quick(tree, {"inside": [{"inside": [{}]}, {"id": "x"}]})


ROWS = {"items": {"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}}


def test_large_values_of_usual_schemas_are_judged():
    assert is_quick(ROWS, [{"id": n, "name": "x" * 20} for n in range(50_000)])


def wrapped(levels, wrap, leaf):
    for _ in range(levels):
        leaf = wrap(leaf)
    return leaf


@pytest.mark.parametrize(
    "wrap",
    [
        lambda s: {"allOf": [s], "unevaluatedProperties": {"type": "integer"}},
        lambda s: {"contains": s, "minContains": 1, "unevaluatedItems": False},
        lambda s: {"allOf": [{"contains": s}], "unevaluatedItems": False},
    ],
)
def test_what_looks_at_the_unevaluated_inside_the_unevaluated_is_refused(wrap):
    with pytest.raises(DefinitionError, match=r"expands|compiled"):
        require_bounded({"properties": {"a": wrapped(20, wrap, {"type": "string"})}})
    require_bounded({"properties": {"a": wrapped(5, wrap, {"type": "string"})}})


def test_closed_objects_inside_closed_objects_are_taken():
    def closed(inner):
        return {"properties": {"a": inner, "b": {}, "c": {}}, "unevaluatedProperties": False}

    require_bounded(wrapped(6, closed, {}))


def test_many_patterns_of_many_places_are_refused():
    with pytest.raises(DefinitionError, match="compiled"):
        require_bounded({"anyOf": [{"pattern": rf"\p{{L}}{{400}}{n}"} for n in range(99)]})
    require_bounded({"pattern": "a{" + "0" * 5_000 + "1}"})
    require_bounded({"anyOf": [{"pattern": rf"^[\p{{L}} -]{{1,64}}{n}$"} for n in range(20)]})


def test_usual_patterns_are_held_against_many_texts():
    uuid = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
    assert is_quick({"items": {"pattern": uuid}}, ["0" * 36] * 10_000)
    assert is_quick({"items": {"pattern": "^(?!-)[a-z-]{1,63}$"}}, ["example.org"] * 200)
    assert is_quick({"pattern": "^.{0,4000}$"}, "x" * 4_000)


MANY_PLACES = "^[ab]*a[ab]{500}c$"

RECURSIVE = {
    "$defs": {
        "n": {"properties": {"c": {"allOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}}}
    },
    "$ref": "#/$defs/n",
}
SLOW = r"^(?:a|aa)+(?=b)$"


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"c": value}
    return value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (RECURSIVE, nested(60)),
        ({"items": {"allOf": [{}] * 1_000}}, [0] * 10_000),
        ({"additionalProperties": {"allOf": [{}] * 1_000}}, dict.fromkeys(map(str, range(9_999)))),
        (
            {"patternProperties": {str(n): {} for n in range(999)}},
            dict.fromkeys(map(str, range(999))),
        ),
        ({"propertyNames": {"allOf": [{}] * 1_000}}, dict.fromkeys(map(str, range(9_999)))),
        ({"items": {"required": [*map(str, range(1_000))]}}, [{}] * 1_000),
        ({"items": {"enum": [*range(4_000)]}}, [0] * 100_000),
        ({"allOf": [{"pattern": "x"}] * 1_000}, "x" * 1_000_000),
        ({"items": {"pattern": SLOW}}, ["aaa"] * 10_000),
        ({"patternProperties": {SLOW: {}}}, dict.fromkeys(map(str, range(9_999)))),
        ({"items": {}}, [0] * 1_000_000),
        ({"pattern": MANY_PLACES}, "ab" * 200_000),
        ({"pattern": MANY_PLACES.replace("{500}", "{50} {10}")}, "ab" * 200_000),
        ({"patternProperties": {MANY_PLACES: {}}}, {"ab" * 200_000: 0}),
        ({"propertyNames": {"pattern": MANY_PLACES}}, {"ab" * 200_000: 0}),
        ({"pattern": "^(?:(?![ab]*c)[ab])*$"}, "ab" * 50_000),
        (
            {"items": wrapped(5, lambda s: {"contains": s, "unevaluatedItems": False}, {})},
            [wrapped(5, lambda v: [v], 0)] * 2_000,
        ),
    ],
)
def test_what_would_take_long_is_not_even_begun(schema, value):
    require_bounded(schema)
    assert not is_quick(schema, value)
    assert is_quick(schema, value[:3] if isinstance(value, list | str) else {"c": {}})


def test_what_is_too_much_is_a_fault_of_the_arguments():
    judge = BoundedValidator(RECURSIVE, "")
    assert [fault.expected for fault in judge.faults(nested(60))] == [
        "it is too large to validate; send less"
    ]
    assert judge.faults(nested(5)) == []


def test_a_pattern_is_given_up_that_is_tried_in_too_many_ways():
    (fault,) = SchemaValidator({"properties": {"a": {"pattern": SLOW}}}, "").faults({"a": "a" * 60})
    assert "backtracking" in fault.expected


SCHEMAS = st.recursive(
    st.just({}) | st.just({"$ref": "#/$defs/leaf"}),
    lambda inner: (
        st.dictionaries(st.sampled_from(["not", "if", "then", "else"]), inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["allOf", "anyOf", "oneOf"]), st.lists(inner, min_size=1), max_size=2
        )
    ),
    max_leaves=10,
)


@given(SCHEMAS)
def test_the_count_is_that_of_all_schemas_at_one_place(schema):
    root = {"$defs": {"leaf": {}}, "allOf": [schema]}

    def count(part):
        return 1 + sum(count(inner) for inner in beside(part, root))

    require_bounded(root)
    assert count(root) < 10_000
