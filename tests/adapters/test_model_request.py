"""What all adapters share: one request to a model."""

import pytest

from satchel import Satchel
from satchel.adapters.model_request import ModelRequest, ModelRequests, session_of
from satchel.runtime.middleware import approve
from satchel.tools import ToolCall


@pytest.fixture
def app():
    app = Satchel()
    app.register_tool(lambda word: f"said {word}", name="say", description="Say a word.")
    return app


def say(word, call_id="1") -> ToolCall:
    return ToolCall(name="say", arguments={"word": word}, id=call_id)


def test_a_session_source_must_return_a_session():
    with pytest.raises(TypeError, match="not str"):
        session_of(lambda _: "ada", None)


def test_a_call_that_the_model_did_not_name_is_judged_alone():
    app = Satchel()
    app.register_tool(lambda: "done", name="work", description="Work hard.")
    request = ModelRequest(app.session())
    request.message = [ToolCall(name="rest", id="r")]
    assert request.run_sync(ToolCall(name="work")).text == "done"
    assert not request.needs_approval(ToolCall(name="work"))


def test_arguments_that_were_changed_since_the_message_are_those_that_run(app):
    request = ModelRequest(app.session())
    sent = ToolCall(name="say", arguments='{"word": "no"}', id="1")
    request.message = [sent, say("other", "2")]
    assert request.run_sync(say("yes")).text == "said yes"
    assert request.run_sync(say("other", "2")).text == "said other"


def test_a_message_is_judged_once_though_its_arguments_come_as_text_and_as_data(app):
    judged = []
    session = app.session(plan_policy=lambda plan, state: judged.append(len(plan)))
    request = ModelRequest(session)
    request.message = [ToolCall(name="say", arguments='{"word": "a"}', id="1"), say("b", "2")]
    assert [request.run_sync(call).text for call in (say("a"), say("b", "2"))] == [
        "said a",
        "said b",
    ]
    assert judged == [2]


def test_a_call_runs_without_a_yes_only_if_its_framework_asks_before_it_runs_one(app):
    app.register_middleware(approve(needs=lambda _call: True))
    assert not ModelRequest(app.session()).must_ask(say("a"))
    assert ModelRequest(app.session()).run_sync(say("a")).is_error
    assert ModelRequest(app.session(), approvals=True).must_ask(say("a"))
    assert ModelRequest(app.session(), approvals=True).run_sync(say("a")).text == "said a"
    request = ModelRequest(app.session(), approvals=True)
    assert request.run_sync(say("a"), approved=False).is_error


def test_equal_calls_without_ids_are_claimed_once_each(app):
    request = ModelRequest(app.session())
    request.message = [say("a", "1"), say("a", "2")]
    claimed = [request.claim("say", {"word": "a"}).id for _ in range(3)]
    assert claimed == ["1", "2", ""]


def test_a_call_is_claimed_though_the_message_has_its_arguments_as_text(app):
    request = ModelRequest(app.session())
    request.message = [ToolCall(name="say", arguments='{"word": "a"}', id="1")]
    assert request.claim("say", {"word": "a"}).id == "1"


def test_a_tool_with_a_taken_name_is_left_out_and_logged(app, caplog):
    names = [tool.name for tool in ModelRequest(app.session()).tools({"say"})]
    assert "say" not in names
    assert "'say'" in caplog.text


def test_the_newest_request_of_a_session_is_kept_as_long_as_the_session(app):
    requests, session = ModelRequests(), app.session()
    first = requests.current(session)
    assert requests.current(session) is first
    assert requests.begin(session) is not first
    other = requests.current(app.session())
    assert other is not requests.current(session)
