import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from satchel.mcp_servers.tame_json import readable, tamed

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_what_can_be_read_stays_as_it_is(value):
    text = json.dumps(value).encode("utf-8", "surrogatepass")
    assert readable(text) == text
    assert json.loads(tamed(json.dumps(value))) == value


@pytest.mark.parametrize("levels", [200, 3_000, 100_000])
def test_what_is_too_deep_is_cut(levels):
    text = b'{"good": 1, "bad": ' + b"[" * levels + b"1" + b"]" * levels + b', "last": 2}'
    value = from_json(readable(text))
    assert (value["good"], value["last"]) == (1, 2)
    depth, item = 0, value["bad"]
    while item:
        item, depth = item[0], depth + 1
    assert 140 < depth < 160


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud800"', "\ufffd"),
        (r'"a\uDFFFb"', "a\ufffdb"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\\ud800"', r"\ud800"),
        ("9" * 5_000, None),
        ('"' + "9" * 5_000 + '"', "9" * 5_000),
    ],
)
def test_half_characters_and_endless_numbers_are_replaced(text, value):
    assert from_json(readable(f"[{text}]".encode())) == [value]


@given(st.binary(max_size=200))
def test_any_bytes_are_taken(data):
    readable(data)
