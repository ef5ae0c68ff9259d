import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from satchel.tools import Text, ToolCall, ToolContext, ToolResult
from satchel.tools.fast_construction import construct_fast

CONTEXT = ToolContext()

PAIRS = [
    (construct_fast(ToolResult), ToolResult()),
    (
        construct_fast(ToolResult, content=(Text("a"),), call_id="1"),
        ToolResult(content=(Text("a"),), call_id="1"),
    ),
    (construct_fast(ToolResult, structured={"a": 1}), ToolResult(structured={"a": 1})),
    (
        construct_fast(ToolCall, name="now", arguments={"a": 1}, id="1", context=CONTEXT),
        ToolCall(name="now", arguments={"a": 1}, id="1", context=CONTEXT),
    ),
    (construct_fast(ToolCall, name="now", context=CONTEXT), ToolCall(name="now", context=CONTEXT)),
]


@pytest.mark.parametrize(("made", "ordinary"), PAIRS)
def test_a_quick_value_is_equal_to_an_ordinary_one(made, ordinary):
    assert made == ordinary
    assert ordinary == made
    assert repr(made) == repr(ordinary)
    assert type(made) is type(ordinary)


@pytest.mark.parametrize(("made", "ordinary"), PAIRS)
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, replace, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_a_quick_value_is_copied_like_an_ordinary_one(made, ordinary, again):
    assert again(made) == again(ordinary) == ordinary


def test_a_quick_value_has_the_hash_of_an_ordinary_one():
    made = construct_fast(ToolResult, content=(Text("a"),))
    assert hash(made) == hash(ToolResult(content=(Text("a"),)))
    assert {made: 1}[ToolResult(content=(Text("a"),))] == 1


def test_fields_of_a_quick_value_are_replaced_one_by_one():
    made = replace(construct_fast(ToolResult, content=(Text("a"),)), call_id="1")
    assert made == ToolResult(content=(Text("a"),), call_id="1")


def test_a_quick_value_is_frozen():
    with pytest.raises(FrozenInstanceError):
        construct_fast(ToolResult).call_id = "1"
