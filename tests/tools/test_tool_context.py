from dataclasses import FrozenInstanceError

import pytest

from satchel.tools import ToolContext


def test_a_context_is_empty_unless_the_host_fills_it():
    context = ToolContext()
    assert (context.metadata, context.config, context.messages, context.state) == ({}, {}, (), {})
    assert (context.call_id, context.tool) == ("", "")


def test_single_values_are_read_with_a_default():
    context = ToolContext(metadata={"user": "u1"}, config={"unit": "C"})
    assert context.get_metadata("user") == "u1"
    assert context.get_metadata("trace") is None
    assert context.get_metadata("trace", "none") == "none"
    assert context.get_config("unit") == "C"
    assert context.get_config("lang", "en") == "en"


def test_no_two_contexts_share_their_state():
    one, other = ToolContext(), ToolContext()
    one.state["seen"] = True
    assert other.state == {}


def test_a_context_is_frozen():
    with pytest.raises(FrozenInstanceError):
        ToolContext().tool = "other"
