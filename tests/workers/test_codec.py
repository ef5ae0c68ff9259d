"""What a host and the process of a plugin say to each other comes over as it was said."""

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import ToolError
from satchel.tools import (
    Audio,
    Image,
    Resource,
    ResourceLink,
    Text,
    ToolChunk,
    ToolContext,
    ToolResult,
)
from satchel.workers.codec import (
    RESULT,
    apply_changes,
    changes_of,
    decode_chunk,
    decode_context,
    decode_result,
    encode_chunk,
    encode_context,
    encode_result_extras,
    exact,
    exact_part,
    is_exact,
    to_json_value,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=8,
)
STATES = st.dictionaries(st.sampled_from("abc"), VALUES)
BLOCKS = (
    Text("a\n  b"),
    Image(b"\x00\xff", "image/gif"),
    Audio(b"x"),
    Resource("a://b", "text", "text/plain"),
    Resource("a://b", b"\x00"),
    ResourceLink(uri="a://b", name="name", description="description", mime_type="text/plain"),
    ResourceLink(uri="a://b", name="name"),
)


@given(VALUES, STATES)
def test_a_chunk_comes_over(value, metadata):
    chunk = ToolChunk(content=BLOCKS, structured=value, metadata=metadata)
    text = encode_chunk(chunk)
    assert text.isascii()
    assert "\n" not in text
    assert decode_chunk(text) == chunk


@given(STATES, st.booleans(), st.none() | st.text(st.characters(codec="utf-8")))
def test_what_of_a_result_the_protocol_has_no_word_for_comes_over(metadata, is_true, code):
    result = ToolResult(
        content=BLOCKS,
        structured={"x": 1},
        is_error=is_true,
        is_interrupted=not is_true,
        error_code=code,
        metadata=metadata,
    )
    messages = json.loads(json.dumps(encode_result_extras(result, {})))
    answered = ToolResult(content=BLOCKS, structured={"x": 1}, metadata={RESULT: messages})
    assert decode_result(answered) == (result, {})


def test_an_answer_without_that_is_a_result_as_it_stands():
    result = ToolResult(content=BLOCKS, metadata={"a": 1})
    assert decode_result(result) == (result, {})


@given(STATES, STATES)
def test_a_state_that_was_changed_there_is_changed_here(before, after):
    state = dict(before)
    apply_changes(state, json.loads(json.dumps(changes_of(before, after))))
    assert state == after


def test_what_cannot_be_sent_stays_as_it_was():
    kept = object()
    assert changes_of({"a": 1}, {"a": 1, "b": kept, "c": (1,)}) == {
        "lost": ["b", "c"],
        "set": {},
        "gone": [],
    }
    assert exact_part({"a": 1, "b": kept}) == {"a": 1}


@pytest.mark.parametrize(
    "value", [object(), (1,), {1: 2}, float("nan"), "\ud800", {1}, b"x", [[(1,)]]]
)
def test_what_json_would_make_another_of_is_not_sent(value):
    assert not is_exact(value)
    with pytest.raises(ToolError, match="the word contains a value that JSON cannot represent"):
        exact(value, "the word")


def test_arguments_come_over_as_a_model_would_have_sent_them():
    assert to_json_value({"ids": ("a", "b")}, "it") == {"ids": ["a", "b"]}
    endless = []
    endless.append(endless)
    for value in (object(), "\ud800", float("inf"), endless):
        with pytest.raises(ToolError):
            to_json_value(value, "it")


def test_every_field_of_a_context_comes_over_but_what_stays_with_its_process():
    sent = ToolContext(
        metadata={"user": 7},
        config={"unit": "km"},
        messages=("hello",),
        state={"seen": [1]},
        preapproved=("Bash",),
        agent_id="a",
        run_id="r",
        iteration=3,
        programs=object(),
        call_id="c",
        tool="echo",
    )
    received = decode_context(json.loads(json.dumps(encode_context(sent))))
    default = ToolContext()
    differing = {
        item.name
        for item in fields(sent)
        if getattr(received, item.name) != getattr(sent, item.name)
    }
    assert differing == {"messages", "programs", "tool"}
    assert all(getattr(sent, item.name) != getattr(default, item.name) for item in fields(sent))
