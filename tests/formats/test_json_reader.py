import inspect
import json
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.formats.json_reader import json_type_name, read_json
from satchel.settings import Limits


def read(text, **limits):
    data = text if isinstance(text, bytes) else text.encode()
    return read_json(data, "x.json", "mcp-invalid", Limits(**limits))


def fault(text, **limits):
    reading = read(text, **limits)
    assert reading.value is None
    (item,) = reading.diagnostics
    assert (item.code, item.where.path) == ("mcp-invalid", "x.json")
    return item.where.line, item.message


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def as_floats(value):
    match value:
        case bool() | None | str():
            return value
        case dict():
            return {key: as_floats(item) for key, item in value.items()}
        case list():
            return [*map(as_floats, value)]
    return float(value)


@given(JSON, st.sampled_from([None, 0, 2]), st.booleans())
def test_what_the_standard_library_writes_is_read_as_it_was(value, indent, escaped):
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert read(text).value.value == as_floats(value)


@given(st.binary() | st.text().map(str.encode))
def test_whatever_is_taken_for_json_the_standard_library_takes_too(data):
    reading = read(data)
    if reading.value is not None:
        json.loads(data.decode("utf-8-sig").replace("\r", "\n"))
    else:
        assert reading.diagnostics


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "{",
        "[",
        '{"a"',
        '{"a":',
        '{"a":1',
        '{"a":1,',
        '{"a":1,}',
        "[1,]",
        "[,]",
        "{,}",
        "[1 2]",
        "{1:2}",
        '{"a" 1}',
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "0x1",
        "'a'",
        '"a',
        '"\\x"',
        '"\\u12"',
        '"\t"',
        "nul",
        "True",
        "{} {}",
        "[1]]",
        "// no",
        "{}#",
        "NaN",
        "-Infinity",
        "[NaN]",
        "Infinity",
        "\xa01",
        "\uff11",
    ],
)
def test_what_is_not_json_is_refused(text):
    fault(text)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('{\n"a": 1,\n"b": NaN\n}', 3, "it is not JSON here"),
        ('{\n"a": 1\n', 3, "the text ends too early"),
        ('{\n\n"a" 1}', 3, "expected :"),
        ("[1\n2]", 2, "expected , or ]"),
        ("[\n:]", 2, "expected a value"),
        ("{}\n\n1", 3, "there is more text after the end of the value"),
    ],
)
def test_a_fault_is_reported_with_its_line(text, line, message):
    assert fault(text) == (line, message)


def test_a_text_may_begin_with_a_byte_order_mark_and_have_any_line_ends():
    assert read(b'\xef\xbb\xbf{"a":\r\n1}').value.value == {"a": 1.0}


@pytest.mark.parametrize("data", [b"\xff\xfe{\0}\0", b"{\0}", b'{"a": "\xff"}'])
def test_a_text_is_utf8(data):
    fault(data)


def test_each_key_has_its_line():
    document = read('{\n"a": {\n"b": [\n1,\n2]}}').value
    assert document.lines == {
        (): 1,
        ("a",): 2,
        ("a", "b"): 3,
        ("a", "b", "0"): 4,
        ("a", "b", "1"): 5,
    }
    assert document.line(("a", "nowhere", "else")) == 2


def test_a_key_that_is_given_twice_is_known_and_the_last_counts():
    document = read('{"a": 1, "b": {"c": 1, "\\u0063": 2}, "a": 3}').value
    assert document.value == {"a": 3.0, "b": {"c": 2.0}}
    assert document.duplicates == (("b", "c"), ("a",))


def test_half_a_character_becomes_the_sign_for_what_cannot_be_shown():
    assert read(r'["\ud800", "\ud83d\ude00", "a\udc00b"]').value.value == ["�", "😀", "a�b"]


@pytest.mark.parametrize("mark", ["[", '{"a":', '[{"a":'])
def test_deep_nesting_is_refused_before_it_harms(mark):
    assert "json_depth" in fault(mark * 10_000)[1]


def test_nesting_up_to_the_limit_is_read():
    assert read("[[1]]", json_depth=2).value
    assert fault("[[[1]]]", json_depth=2) == (1, "it is nested deeper than 2 (limit json_depth)")


def test_a_large_text_is_refused_unread():
    assert fault(b"\xff" * 3000, json_file=2048) == (
        None,
        "it is larger than 2 KiB (limit json_file)",
    )


def test_a_number_too_long_for_python_is_a_number():
    assert read("1" * 10_000).value.value == math.inf


def test_kinds_are_named_as_people_call_them():
    kinds = [json_type_name(value) for value in (None, True, 1.0, "", [], {})]
    assert kinds == ["null", "true or false", "a number", "text", "a list", "an object"]


def test_a_fix_names_the_limit():
    for text, limits in (("[[1]]", {"json_depth": 1}), (b" " * 3000, {"json_file": 2048})):
        (problem,) = read(text, **limits).diagnostics
        assert next(iter(limits)) in problem.fix


def test_a_caller_that_stands_deep_already_gets_a_diagnostic():
    def below(depth):
        return below(depth - 1) if depth else read("[" * 190 + "]" * 190)

    depth = sys.getrecursionlimit() - len(inspect.stack()) - 150
    (problem,) = below(depth).diagnostics
    assert "deep" in problem.message


def test_the_lines_of_many_deep_values_do_not_fill_the_memory():
    text = "[" * 100 + ",".join("0" for _ in range(10_000)) + "]" * 100
    assert len(read(text).value.lines) < 100
