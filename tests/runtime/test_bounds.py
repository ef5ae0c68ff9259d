from hypothesis import given
from hypothesis import strategies as st

from satchel.runtime.bounds import bounded
from satchel.settings import Limits
from satchel.tools import Text, ToolResult


def texts(*parts, **others):
    return ToolResult(tuple(map(Text, parts)), **others)


def test_text_within_the_limit_is_left_alone():
    result = texts("abcd", "åå")
    assert bounded(result, Limits(result_text=8)) is result
    assert bounded(result, Limits(result_text=100)) is result


def test_longer_text_is_cut_and_says_how_much_is_gone():
    cut = bounded(texts("abcdef", call_id="1"), Limits(result_text=4))
    assert cut == texts("abcd", "[cut: 2 of 6 bytes left out, limit result_text]", call_id="1")


def test_the_limit_counts_for_all_blocks_together():
    cut = bounded(texts("abc", "def", "ghi"), Limits(result_text=4))
    assert cut == texts("abc", "d", "[cut: 5 of 9 bytes left out, limit result_text]")


def test_a_letter_is_never_cut_in_two():
    assert bounded(texts("aåå"), Limits(result_text=4)).text.startswith("aå\n")


@given(st.lists(st.text()), st.integers(0, 20))
def test_never_more_than_the_limit_is_kept(parts, limit):
    result = texts(*parts)
    cut = bounded(result, Limits(result_text=limit))
    size = sum(len(part.encode()) for part in parts)
    assert (cut is result) == (size <= limit)
    if cut is not result:
        assert sum(len(block.text.encode()) for block in cut.content[:-1]) <= limit
