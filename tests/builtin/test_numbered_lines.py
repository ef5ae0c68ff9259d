import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.builtin.numbered_lines import Lines, resolve_line, resolve_range
from satchel.errors import ToolError

texts = st.text(alphabet="ab\r\n\ufeff\u2028\x0cå")


@given(texts)
def test_a_text_that_is_cut_is_still_the_same(text):
    assert Lines.of(text).text == text


@given(texts, texts)
def test_an_insertion_changes_no_line_but_its_own(text, content):
    before = Lines.of(text)
    after = before.replaced(1, 0, content)
    kept = after.items[len(after.items) - len(before.items) :]
    assert [line.rstrip("\r\n") for line in kept] == [line.rstrip("\r\n") for line in before.items]
    assert after.mark == before.mark


@pytest.mark.parametrize(
    ("text", "place", "content", "expected"),
    [
        ("a\nb\nc\n", (2, 2), "B", "a\nB\nc\n"),
        ("a\nb\nc\n", (2, 2), "B\n", "a\nB\nc\n"),
        ("a\nb\nc\n", (2, 3), "1\n2\n3", "a\n1\n2\n3\n"),
        ("a\nb\nc\n", (2, 2), "", "a\nc\n"),
        ("a\nb\nc\n", (2, 2), "\n", "a\n\nc\n"),
        ("a\nb\nc\n", (1, 3), "", ""),
        ("a\nb", (2, 2), "B\n", "a\nB"),
        ("a\nb", (2, 2), "", "a"),
        ("a\nb", (3, 2), "c", "a\nb\nc"),
        ("a\nb\n", (3, 2), "c", "a\nb\nc\n"),
        ("", (1, 0), "a", "a\n"),
        ("a\r\nb\r\n", (1, 1), "A\nx", "A\r\nx\r\nb\r\n"),
        ("a\r\nb", (3, 2), "c", "a\r\nb\r\nc"),
        ("a\nb\r\nc\n", (1, 1), "A\r\n", "A\nb\r\nc\n"),
        ("\ufeffa\nb\n", (1, 1), "A", "\ufeffA\nb\n"),
        ("a\u2028b\x0cc\nd\n", (1, 1), "x", "x\nd\n"),
    ],
)
def test_only_the_lines_that_are_meant_change(text, place, content, expected):
    assert Lines.of(text).replaced(*place, content).text == expected


def test_lines_are_shown_behind_numbers_of_one_width():
    lines = Lines.of("".join(f"line {number}\r\n" for number in range(1, 12)))
    assert lines.numbered(9, 11) == " 9\tline 9\n10\tline 10\n11\tline 11"


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [(None, (1, 9)), ([2, 3], (2, 3)), ([-2, -1], (8, 9)), ([1, -1], (1, 9)), ([9, 9], (9, 9))],
)
def test_a_range_counts_from_either_end(ranges, expected):
    assert resolve_range(ranges, 9) == expected


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([1, 10], "There is no line 10: the file has 9 lines."),
        ([-10, 1], "There is no line -10: the file has 9 lines."),
        ([0, 1], "Line numbers begin at 1"),
        ([3, 2], "ends before it begins"),
        ([1], "two numbers"),
        ([], "two numbers"),
        ([1, 2, 3], "two numbers"),
        ([10**30, 10**30], "the file has 9 lines"),
    ],
)
def test_a_range_that_is_not_there_is_reported_with_the_number_of_lines(ranges, message):
    with pytest.raises(ToolError, match=message):
        resolve_range(ranges, 9)


@pytest.mark.parametrize(("count", "message"), [(0, "is empty"), (1, "has 1 line\\.")])
def test_the_number_of_lines_has_the_form_that_fits(count, message):
    with pytest.raises(ToolError, match=message):
        resolve_line(2, count)
