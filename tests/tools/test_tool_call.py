import json
from dataclasses import FrozenInstanceError, replace

import pytest

from satchel.errors import DefinitionError
from satchel.tools import FunctionTool, ToolCall, ToolContext


def forecast(): ...


def test_a_call_needs_no_arguments_and_no_id():
    assert ToolCall(name="now") == ToolCall(name="now", arguments={}, id="")


def test_what_the_session_fills_in_does_not_make_calls_differ():
    filled = replace(
        ToolCall(name="forecast"),
        tool=FunctionTool(forecast),
        groups=("maps",),
        context=ToolContext(tool="x"),
    )
    assert filled == ToolCall(name="forecast")
    assert repr(filled) == repr(replace(ToolCall(name="forecast"), groups=("maps",)))


def test_the_group_of_a_call_is_the_first_of_its_groups():
    assert ToolCall(name="forecast", groups=("maps", "web")).group == "maps"
    assert ToolCall(name="forecast").group == ""


def test_no_two_calls_share_the_state_of_a_context():
    ToolCall(name="forecast").context.state["secret"] = 1
    assert ToolCall(name="forecast").context.state == {}


def test_a_call_is_frozen_and_can_be_hashed_if_its_arguments_can():
    assert hash(ToolCall(name="now")) == hash(ToolCall(name="now"))
    with pytest.raises(FrozenInstanceError):
        ToolCall(name="now").name = "later"


def test_a_call_is_copied_with_other_parts():
    call = ToolCall(name="say", arguments={"word": "a"}, id="1", groups=("talk",))
    changed = call.changed(arguments={"word": "b"})
    assert changed == replace(call, arguments={"word": "b"})
    assert (changed.groups, changed.context) == (call.groups, call.context)
    assert call.arguments == {"word": "a"}


@pytest.mark.parametrize("arguments", [{"a": [1]}, '{"a":', {}])
def test_a_call_is_the_same_after_json_but_never_approved(arguments):
    call = ToolCall(name="say", arguments=arguments, id="7", approved=True)
    again = ToolCall.from_dict(json.loads(json.dumps(call.to_dict())))
    assert again == call.changed(approved=False)


def test_the_id_and_the_arguments_may_be_left_out():
    assert ToolCall.from_dict({"name": "say"}) == ToolCall(name="say")


@pytest.mark.parametrize("value", [{}, {"name": 1}, {"name": "a", "arguments": 1}, [], "x", None])
def test_other_data_is_no_call(value):
    with pytest.raises(DefinitionError, match="not a tool call"):
        ToolCall.from_dict(value)
