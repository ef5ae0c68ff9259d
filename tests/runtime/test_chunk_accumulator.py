from hypothesis import given
from hypothesis import strategies as st

from satchel.runtime.chunk_accumulator import ChunkAccumulator
from satchel.settings import Limits
from satchel.tools import Image, Text, ToolChunk, ToolResult, failure, to_result


def collected(*values, limits=None):
    chunks = ChunkAccumulator(limits or Limits())
    for value in values:
        chunks.add(value if isinstance(value, ToolChunk | ToolResult) else to_result(value))
    return chunks


def test_nothing_sent_is_an_empty_result():
    chunks = collected()
    assert chunks.result("call-1") == ToolResult(call_id="call-1")
    assert chunks.count == 0


def test_pieces_of_running_text_join():
    assert collected("Hel", "lo ", "there").result().content == (Text("Hello there"),)


def test_the_words_of_structured_values_stay_apart():
    result = collected({"a": 1}, {"a": 2}).result()
    assert result.content == (Text('{"a":1}'), Text('{"a":2}'))
    assert result.structured == [{"a": 1}, {"a": 2}]


def test_one_structured_value_is_not_put_into_a_list():
    assert collected("so: ", {"a": 1}).result().structured == {"a": 1}


def test_text_after_a_value_or_a_picture_begins_again():
    picture = Image(b"p")
    messages = collected("a", {"b": 1}, "c", "d", picture, "e").result()
    assert messages.content == (Text("a"), Text('{"b":1}'), Text("cd"), picture, Text("e"))


def test_metadata_joins_and_the_last_word_counts():
    chunks = collected(ToolChunk(metadata={"a": 1, "b": 1}), ToolChunk(metadata={"b": 2}))
    assert chunks.result().metadata == {"a": 1, "b": 2}


def test_an_error_among_the_items_is_an_error():
    chunks = collected("a", failure("tool_error", "b"), "c")
    result = chunks.result()
    assert (result.is_error, result.error_code) == (True, "tool_error")
    assert result.text == "abc"


def test_each_item_comes_back_as_the_chunk_that_fits():
    chunks = ChunkAccumulator(Limits(result_text=4))
    assert chunks.add(ToolChunk(content=(Text("abc"),))).text == "abc"
    assert chunks.add(
        ToolResult(content=(Text("def"),), structured={"x": 1}, metadata={"m": 1})
    ) == ToolChunk(content=(Text("d"),), structured={"x": 1}, metadata={"m": 1})
    assert chunks.add(ToolChunk(content=(Text("ghi"),))).content == ()
    assert chunks.count == 3
    result = chunks.result()
    assert [block.text for block in result.content[-1:]] == [
        "[cut: 5 of 9 bytes left out, limit result_text]"
    ]


def test_what_ended_a_call_stands_below_its_chunks():
    chunks = collected("half", ToolChunk(structured=[1], metadata={"a": 1}))
    last = ToolResult(
        content=(Text("over"),), is_error=True, call_id="1", metadata={"leaked": True}
    )
    ended = chunks.followed_by(last)
    assert ended.content == (Text("half"), Text("over"))
    assert ended.structured == [1]
    assert ended.metadata == {"a": 1, "leaked": True}
    assert (ended.is_error, ended.call_id) == (True, "1")


def test_what_ended_a_call_without_a_chunk_stands_alone():
    last = failure("timeout", "over")
    assert collected().followed_by(last) is last


@given(st.lists(st.text()), st.integers(0, 30))
def test_the_chunks_that_were_sent_make_up_the_result(texts, limit):
    chunks = ChunkAccumulator(Limits(result_text=limit))
    messages = "".join(chunks.add(ToolChunk(content=(Text(text),))).text for text in texts)
    kept = "".join(block.text for block in chunks.result().content)
    assert kept.startswith(messages)
    assert len(messages.encode()) <= limit
    assert "".join(texts).startswith(messages)


def test_the_blocks_of_a_whole_result_stay_apart():
    chunks = ChunkAccumulator(Limits())
    chunks.add(ToolChunk(metadata={"progress": 1}))
    chunks.add(ToolResult(content=(Text("one"), Text("two"))), is_whole=True)
    assert chunks.result().content == (Text("one"), Text("two"))
