from hypothesis import given
from hypothesis import strategies as st

from satchel.runtime.result_limits import limit_result
from satchel.settings import Limits
from satchel.tools import Audio, Image, Resource, ResourceLink, Text, ToolResult


def texts(*parts, **others):
    return ToolResult(content=tuple(map(Text, parts)), **others)


def test_text_within_the_limit_is_left_alone():
    result = texts("abcd", "åå")
    assert limit_result(result, Limits(result_text=8)) is result
    assert limit_result(result, Limits(result_text=100)) is result


def test_longer_text_is_cut_and_says_how_much_is_gone():
    cut = limit_result(texts("abcdef", call_id="1"), Limits(result_text=4))
    assert cut == texts("abcd", "[cut: 2 of 6 bytes left out, limit result_text]", call_id="1")


def test_the_limit_counts_for_all_blocks_together():
    cut = limit_result(texts("abc", "def", "ghi"), Limits(result_text=4))
    assert cut == texts("abc", "d", "[cut: 5 of 9 bytes left out, limit result_text]")


def test_a_letter_is_never_cut_in_two():
    assert limit_result(texts("aåå"), Limits(result_text=4)).text.startswith("aå\n")


def test_an_empty_text_that_lies_behind_the_cut_leaves_nothing():
    assert limit_result(texts("abcdef", ""), Limits(result_text=1)).text.startswith(
        "a\n[cut: 5 of 6"
    )


def test_the_text_of_a_resource_counts_too():
    result = ToolResult(content=(Resource("a:b", "abcdef"), Text("g")))
    assert limit_result(result, Limits(result_text=4)).content == (
        Resource("a:b", "abcd"),
        Text("[cut: 3 of 7 bytes left out, limit result_text]"),
    )


def test_a_link_is_kept():
    link = ResourceLink(uri="a:b", name="b")
    assert (
        limit_result(ToolResult(content=(link, Text("abc"))), Limits(result_text=1)).content[0]
        is link
    )


def test_a_file_that_is_too_big_is_left_out_and_says_so():
    big, small = b"x" * 5, b"x" * 4
    result = ToolResult(
        content=(Image(big), Image(small), Audio(big), Resource("a:b", big), Resource("a:b", small))
    )
    assert limit_result(result, Limits(resource=4)).content == (
        Text("[left out: image of 5 bytes, limit resource]"),
        Image(small),
        Text("[left out: audio of 5 bytes, limit resource]"),
        Text("[left out: resource of 5 bytes, limit resource]"),
        Resource("a:b", small),
    )


def test_files_within_the_limit_are_left_alone():
    result = ToolResult(content=(Image(b"x"), ResourceLink(uri="a:b", name="b")))
    assert limit_result(result, Limits()) is result


@given(st.lists(st.text()), st.integers(0, 20))
def test_never_more_than_the_limit_is_kept(parts, limit):
    result = texts(*parts)
    cut = limit_result(result, Limits(result_text=limit))
    size = sum(len(part.encode()) for part in parts)
    assert (cut is result) == (size <= limit)
    if cut is not result:
        assert sum(len(block.text.encode()) for block in cut.content[:-1]) <= limit
