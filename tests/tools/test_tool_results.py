import json
import math
from collections import OrderedDict, UserDict
from dataclasses import FrozenInstanceError, dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import DefinitionError
from satchel.tools import (
    Audio,
    Image,
    Resource,
    ResourceLink,
    Text,
    ToolChunk,
    ToolResult,
    failure,
    to_result,
)
from satchel.tools.tool_results import _is_flat, result_of_nothing, text_of, to_json


class Point(pydantic.BaseModel):
    x: float
    y: float = 0


@dataclass
class Trip:
    start: Point
    tags: set[str] = field(default_factory=set)


class Holder(pydantic.BaseModel):
    x: Any


@pydantic.dataclasses.dataclass
class Leg:
    km: int


class Colour(Enum):
    RED = "red"


class Sky(StrEnum):
    CLEAR = "clear"


class Odd(str, Enum):  # noqa: UP042 - its str() is not its value
    ONE = "one"


def test_nothing_becomes_an_empty_text():
    assert to_result(None) == ToolResult()
    assert to_result(None).text == ""
    assert result_of_nothing("7").text == "Done. The tool returned no value."
    assert result_of_nothing("7").call_id == "7"
    assert to_result("") == ToolResult()


@pytest.mark.parametrize(
    ("value", "text"), [("Rain\n å", "Rain\n å"), (Sky.CLEAR, "clear"), (Odd.ONE, "one")]
)
def test_text_stays_as_it_is(value, text):
    assert to_result(value) == ToolResult(content=(Text(text),))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (True, "true"),
        (1.5, "1.5"),
        ({"a": [1, None, "å"]}, '{"a":[1,null,"å"]}'),
        ((1, 2), "[1,2]"),
        ({"b", "a"}, '["a","b"]'),
        (frozenset(), "[]"),
        (Point(x=1), '{"x":1.0,"y":0.0}'),
        ([Point(x=1)], '[{"x":1.0,"y":0.0}]'),
        (Trip(Point(x=1), {"b", "a"}), '{"start":{"x":1.0,"y":0.0},"tags":["a","b"]}'),
        (Leg(3), '{"km":3}'),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        (UserDict(a=1), '{"a":1}'),
        (Colour.RED, '"red"'),
        (date(2024, 1, 2), '"2024-01-02"'),
        (datetime(2024, 1, 2, tzinfo=UTC), '"2024-01-02T00:00:00Z"'),
        (Decimal("1.10"), '"1.10"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Path("a/b"), '"a/b"'),
    ],
)
def test_any_other_value_is_structured_and_compact_json(value, text):
    result = to_result(value)
    assert result.text == text
    assert result.structured == json.loads(text)
    assert not result.is_error


def test_the_structured_value_is_not_shared_with_the_tool():
    value = {"a": [1]}
    result = to_result(value)
    value["a"].append(2)
    assert result.structured == {"a": [1]}


def cyclic():
    value = []
    value.append(value)
    return value


def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


class Broken:
    __slots__ = ()

    def __str__(self):
        raise RuntimeError("secret")

    __repr__ = __str__


class Rude(UserDict):
    def __iter__(self):
        raise LookupError("secret")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "a number that JSON cannot represent"),
        ({"a": math.inf}, "a number that JSON cannot represent"),
        ([Point(x=math.nan)], "a number that JSON cannot represent"),
        (10**5000, "a number that JSON cannot represent"),
        (cyclic(), "a value that contains itself"),
        (deep(), "nested too deeply"),
        (b"secret", "of type bytes"),
        ({"a": bytearray(b"secret")}, "of type bytearray"),
        (memoryview(b"secret"), "of type memoryview"),
        ("\ud800", "an invalid Unicode character"),
        (["\ud800"], "an invalid Unicode character"),
        (iter([1]), "of type list_iterator"),
        ({"a": (x for x in "ab")}, "of type generator"),
        (object(), "of type object"),
        (Point, "of type ModelMetaclass"),
        (Broken(), "of type Broken"),
        ({(1, 2): 3}, "a value that JSON cannot represent"),
        (Rude(a=1), "a value that JSON cannot represent"),
        (ToolResult(content=(3,)), "of type int"),
        (ToolResult(content=(Text("\ud800"),)), "an invalid Unicode character"),
        (ToolResult(structured=math.nan), "a number that JSON cannot represent"),
        (ToolResult(content=3), "a value that JSON cannot represent"),
        (ToolResult(content="Rain"), "of type str"),
        (ToolResult(content=(Text(3),)), "a value that JSON cannot represent"),
        (ToolChunk(content=(3,)), "of type int"),
        (ToolChunk(structured=b"secret"), "of type bytes"),
        (Text("\ud800"), "an invalid Unicode character"),
        (Image("secret"), "a value that JSON cannot represent"),
        (Resource("\ud800", "secret"), "an invalid Unicode character"),
        ([Text("a"), b"secret"], "of type bytes"),
        ({"picture": Image(b"secret")}, "of type bytes"),
        (Holder(x=object()), "of type object"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_carry_is_an_error_result_that_quotes_nothing(value, reason):
    result = to_result(value)
    assert result.is_error
    assert result.error_code == "invalid_result"
    assert result.structured is None
    assert reason in result.text
    assert "secret" not in result.text


def test_a_result_that_the_tool_made_itself_is_kept():
    result = ToolResult(
        content=(Text("a"), Image(b"i"), Text("b")), metadata={"cost": 1}, is_error=True
    )
    assert to_result(result) is result
    assert result.text == "a\nb"


def test_a_result_knows_whose_call_it_answers():
    result = ToolResult(content=(Text("a"),))
    assert to_result(result, "1") == ToolResult(content=(Text("a"),), call_id="1")
    assert to_result(ToolResult(content=(Text("a"),), call_id="0"), "1").call_id == "1"
    assert result.call_id is None
    for value in ["text", None, {"a": 1}, Text("a"), ToolChunk(), b"broken"]:
        assert to_result(value, "1").call_id == "1"


def test_blocks_of_a_result_may_be_given_as_any_iterable():
    assert to_result(ToolResult(content=[Text("a")])) == ToolResult(content=(Text("a"),))


@pytest.mark.parametrize("kind", [ToolResult, ToolChunk])
def test_the_structured_value_of_a_result_becomes_json_that_is_shared_with_no_one(kind):
    flat, nested = {"a": 1}, {"a": [1]}
    assert to_result(kind(structured=flat)).structured == flat
    assert to_result(kind(structured=flat)).structured is not flat
    assert to_result(kind(structured=nested)).structured["a"] is not nested["a"]
    assert to_result(kind(structured=Point(x=1))).structured == {"x": 1.0, "y": 0.0}
    assert to_result(kind(structured=Trip(Point(x=1)))).structured["tags"] == []
    assert to_result(kind(structured=[])).structured == []


def test_a_chunk_becomes_a_result():
    chunk = ToolChunk(
        content=(Text("a"), Text("b")), structured={"a": 1}, metadata={"cost": 1}, call_id="0"
    )
    assert chunk.text == "a\nb"
    assert to_result(chunk) == ToolResult(
        content=(Text("a"), Text("b")), structured={"a": 1}, metadata={"cost": 1}
    )


@pytest.mark.parametrize(
    "block",
    [
        Text("a"),
        Image(b"a"),
        Audio(b"a"),
        Resource("u", "a"),
        Resource("u", b"a"),
        ResourceLink(uri="u", name="n"),
    ],
    ids=lambda block: type(block).__name__,
)
def test_a_block_is_the_content_of_its_result(block):
    assert to_result(block) == ToolResult(content=(block,))


@pytest.mark.parametrize("kind", [list, tuple])
def test_text_beside_blocks_is_text_and_data_beside_them_is_json(kind):
    value = kind([Text("a"), "b", Sky.CLEAR, Image(b"i"), {"c": [1]}, 2, [Text("d"), "e"], ["f"]])
    assert to_result(value) == ToolResult(
        content=(
            *(Text("a"), Text("b"), Text("clear"), Image(b"i"), Text('{"c":[1]}'), Text("2")),
            *(Text("d"), Text("e"), Text('["f"]')),
        )
    )


def test_nothing_beside_blocks_is_nothing():
    assert to_result([None, Image(b"i"), ""]) == ToolResult(content=(Image(b"i"),))


def test_a_list_without_blocks_is_data():
    assert to_result(["a", "b"]).structured == ["a", "b"]


def test_a_list_of_blocks_that_contains_itself_is_an_error_result():
    value = [Text("a")]
    value.append(value)
    assert to_result(value).error_code == "invalid_result"


def test_the_text_of_blocks_leaves_out_what_is_no_text():
    assert text_of((Text("a"), Image(b"i"), Text("b"))) == "a\nb"
    assert text_of(()) == ""


def test_a_failure_says_why():
    assert failure("timeout", "too slow") == ToolResult(
        content=(Text("too slow"),), is_error=True, error_code="timeout"
    )
    assert failure("timeout", "too slow", "1").call_id == "1"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.sets(st.integers() | st.text())
    ),
)


@given(VALUES)
def test_every_value_gives_a_result_that_can_be_sent(value):
    result = to_result(value)
    result.text.encode()
    json.dumps(result.structured, allow_nan=False)
    assert result.is_error == (result.error_code == "invalid_result")


class Letters(str):
    __slots__ = ()

    def __str__(self):
        return "other"


class Number(int):
    def __repr__(self):
        return "other"


class Fraction(float):
    def __repr__(self):
        return "other"


class Level(IntEnum):
    LOW = 1


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.builds(Letters, st.text())
    | st.builds(Number, st.integers())
    | st.builds(Fraction, st.floats())
    | st.sampled_from([Sky.CLEAR, Odd.ONE, Level.LOW, Colour.RED])
)
KEYS = (
    st.text()
    | st.builds(Letters, st.text())
    | st.integers()
    | st.booleans()
    | st.none()
    | st.sampled_from([Sky.CLEAR, Odd.ONE, Level.LOW])
)


def kinds(value):
    """Return a value with the type of each of its parts: `True` is not `1` here."""
    if isinstance(value, dict):
        return [(kinds(key), kinds(item)) for key, item in value.items()]
    return type(value), repr(value)


@given(st.dictionaries(KEYS, SCALARS))
def test_the_quick_path_and_the_slow_one_agree(value):
    result = to_result(value)
    if not result.is_error:
        assert result.text == to_json(value)
        assert kinds(result.structured) == kinds(json.loads(result.text))
        assert result.structured is not value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, True),
        ({"a": "b", "c": 1, "d": 1.5, "e": True, "f": None}, True),
        ({"a": []}, False),
        ({"a": Letters("b")}, False),
        ({"a": Level.LOW}, False),
        ({Letters("a"): 1}, False),
        ({1: 1}, False),
        (OrderedDict(a=1), False),
        (3, False),
    ],
    ids=repr,
)
def test_only_plain_dicts_of_plain_scalars_are_flat(value, expected):
    assert _is_flat(value) is expected


def test_results_and_chunks_are_frozen():
    for value in [ToolResult(), ToolChunk()]:
        with pytest.raises(FrozenInstanceError):
            value.call_id = "1"
        with pytest.raises(TypeError):
            value.metadata["a"] = 1


def test_a_result_is_the_same_after_json():
    result = ToolResult(
        content=(
            Text("a"),
            Image(b"\x89PNG"),
            Audio(b"RIFF", "audio/mpeg"),
            Resource("file:///a", "text", "text/plain"),
            Resource("file:///b", b"\0"),
            ResourceLink(uri="file:///c", name="c", description="d"),
        ),
        structured={"n": [1, None]},
        is_error=True,
        is_interrupted=True,
        error_code="denied",
        call_id="7",
        metadata={"cached": True},
    )
    assert ToolResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_what_json_cannot_represent_is_left_out_of_a_stored_result():
    result = ToolResult(metadata={"open": object(), "n": 1}, structured={1: {object()}})
    assert ToolResult.from_dict(result.to_dict()) == ToolResult(metadata={"n": 1})


@pytest.mark.parametrize("value", [{}, [], None, {"content": [{"type": "film"}]}, {"content": 1}])
def test_other_data_is_no_result(value):
    with pytest.raises(DefinitionError, match="not the result"):
        ToolResult.from_dict(value)
