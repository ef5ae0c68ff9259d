import json
import math
from collections import OrderedDict, UserDict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.tools import Text, ToolCall, ToolResult, failure, to_result


class Point(pydantic.BaseModel):
    x: float
    y: float = 0


@dataclass
class Trip:
    start: Point
    tags: set[str] = field(default_factory=set)


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
    assert to_result("") == ToolResult()


@pytest.mark.parametrize(
    ("value", "text"), [("Rain\n å", "Rain\n å"), (Sky.CLEAR, "clear"), (Odd.ONE, "one")]
)
def test_text_stays_as_it_is(value, text):
    assert to_result(value) == ToolResult((Text(text),))


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
        (math.nan, "a number that JSON lacks"),
        ({"a": math.inf}, "a number that JSON lacks"),
        ([Point(x=math.nan)], "a number that JSON lacks"),
        (10**5000, "a number that JSON lacks"),
        (cyclic(), "a value that contains itself"),
        (deep(), "nested too deeply"),
        (b"secret", "of type bytes"),
        ({"a": bytearray(b"secret")}, "of type bytearray"),
        (memoryview(b"secret"), "of type memoryview"),
        ("\ud800", "a broken character"),
        (["\ud800"], "a broken character"),
        (iter([1]), "of type list_iterator"),
        ({"a": (x for x in "ab")}, "of type generator"),
        (object(), "of type object"),
        (Point, "of type ModelMetaclass"),
        (Broken(), "of type Broken"),
        ({(1, 2): 3}, "a value that JSON cannot carry"),
        (Rude(a=1), "a value that JSON cannot carry"),
        (ToolResult((3,)), "of type int"),
        (ToolResult((Text("\ud800"),)), "a broken character"),
        (ToolResult(structured=math.nan), "a number that JSON lacks"),
        (ToolResult(3), "a value that JSON cannot carry"),
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
    result = ToolResult((Text("a"), Text("b")), structured={"a": 1})
    assert to_result(result) is result
    assert result.text == "a\nb"


def test_a_failure_says_why():
    assert failure("timeout", "too slow") == ToolResult(
        (Text("too slow"),), is_error=True, error_code="timeout"
    )


def test_a_call_needs_no_arguments_and_no_id():
    assert ToolCall("now") == ToolCall(name="now", arguments={}, id="")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.sets(st.integers() | st.text())
    ),
)


@settings(deadline=None)
@given(VALUES)
def test_every_value_gives_a_result_that_can_be_sent(value):
    result = to_result(value)
    result.text.encode()
    json.dumps(result.structured, allow_nan=False)
    assert result.is_error == (result.error_code == "invalid_result")
