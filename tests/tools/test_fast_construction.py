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


@pytest.mark.parametrize(("function_tool", "ordinary"), PAIRS)
def test_a_quick_value_is_equal_to_an_ordinary_one(function_tool, ordinary):
    assert function_tool == ordinary
    assert ordinary == function_tool
    assert repr(function_tool) == repr(ordinary)
    assert type(function_tool) is type(ordinary)


@pytest.mark.parametrize(("function_tool", "ordinary"), PAIRS)
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, replace, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_a_quick_value_is_copied_like_an_ordinary_one(function_tool, ordinary, again):
    assert again(function_tool) == again(ordinary) == ordinary


def test_a_quick_value_has_the_hash_of_an_ordinary_one():
    created = construct_fast(ToolResult, content=(Text("a"),))
    assert hash(created) == hash(ToolResult(content=(Text("a"),)))
    assert {created: 1}[ToolResult(content=(Text("a"),))] == 1


def test_fields_of_a_quick_value_are_replaced_one_by_one():
    created = replace(construct_fast(ToolResult, content=(Text("a"),)), call_id="1")
    assert created == ToolResult(content=(Text("a"),), call_id="1")


def test_a_quick_value_is_frozen():
    with pytest.raises(FrozenInstanceError):
        construct_fast(ToolResult).call_id = "1"
