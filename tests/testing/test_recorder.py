"""The recorder keeps every call, and answers in place of tools or lets them run."""

import asyncio

import pytest

from satchel import Satchel, ToolCall, ToolContext, ToolError, ToolResult
from satchel.runtime.executors import CircuitBreaker
from satchel.testing import Recorder


@pytest.fixture
def app():
    def echo(text: str) -> str:
        """Echo."""
        return f"real {text}"

    app = Satchel()
    app.register_tool(echo)
    return app


def run(app, recorder, *texts):
    calls = [ToolCall(name="echo", arguments={"text": text}, id=text) for text in texts]
    return asyncio.run(app.session().execute(calls, executor=recorder))


def test_without_answers_tools_are_run_and_calls_are_kept(app):
    recorder = Recorder()
    assert [result.text for result in run(app, recorder, "a", "b")] == ["real a", "real b"]
    assert [(call.name, call.arguments) for call in recorder.calls] == [
        ("echo", {"text": "a"}),
        ("echo", {"text": "b"}),
    ]
    assert [result.text for result in recorder.results] == ["real a", "real b"]


def test_a_mapping_answers_by_the_name_of_the_tool(app):
    recorder = Recorder({"echo": {"said": 1}, "gone": "there is no such tool here"})
    (result,) = run(app, recorder, "a")
    assert (result.structured, result.call_id) == ({"said": 1}, "a")
    calls = [ToolCall(name="gone")]
    (result,) = asyncio.run(app.session().execute(calls, executor=recorder))
    assert result.text == "there is no such tool here"
    assert [call.name for call in recorder.calls] == ["echo", "gone"]


def test_a_list_answers_one_call_after_another_and_then_tools_run(app):
    recorder = Recorder(["one", ToolError("two fails")])
    first, second, third = run(app, recorder, "a", "b", "c")
    assert first.text == "one"
    assert (second.text, second.error_code, second.is_error) == ("two fails", "tool_error", True)
    assert third.text == "real c"


def test_a_result_is_given_as_it_is_but_for_the_id_of_its_call(app):
    created = ToolResult(is_interrupted=True, call_id="other", metadata={"k": 1})
    (result,) = run(app, Recorder([created]), "a")
    assert (result.is_interrupted, result.call_id, result.metadata) == (True, "a", {"k": 1})


def test_the_context_of_a_call_is_kept(app):
    recorder = Recorder()
    call = ToolCall(
        name="echo", arguments={"text": "a"}, context=ToolContext(metadata={"user": "u1"})
    )
    asyncio.run(app.session().execute([call], executor=recorder))
    assert recorder.calls[0].context.get_metadata("user") == "u1"


def test_it_stands_inside_other_executors(app):
    recorder = Recorder({"echo": "canned"})
    assert [item.text for item in run(app, CircuitBreaker(recorder), "a")] == ["canned"]
    assert len(recorder.calls) == 1
