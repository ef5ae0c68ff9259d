"""Calls in the messages of providers, and the messages for their results."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from satchel import (
    Audio,
    Image,
    NotFoundError,
    Resource,
    ResourceLink,
    Satchel,
    Text,
    ToolCall,
    ToolResult,
    calls_in,
    result_messages,
)
from satchel.provider_messages.message_parts import parts_of
from satchel.tools.dialects import DIALECTS

ARGUMENTS = {"city": "Oslo"}
WITH_CALL = {
    "openai": {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "forecast", "arguments": json.dumps(ARGUMENTS)},
            }
        ],
    },
    "openai-responses": {
        "output": [
            {"type": "reasoning", "summary": []},
            {
                "type": "function_call",
                "id": "item",
                "call_id": "c1",
                "name": "forecast",
                "arguments": json.dumps(ARGUMENTS),
            },
        ]
    },
    "anthropic": {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "c1", "name": "forecast", "input": ARGUMENTS},
        ],
    },
    "gemini": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "Let me see."},
                        {"functionCall": {"id": "c1", "name": "forecast", "args": ARGUMENTS}},
                    ],
                }
            }
        ]
    },
    "mcp": {
        "id": "c1",
        "method": "tools/call",
        "params": {"name": "forecast", "arguments": ARGUMENTS},
    },
}
WITH_CALL["openai-strict"] = WITH_CALL["openai"]
CALL = ToolCall(name="forecast", arguments=ARGUMENTS, id="c1")
PICTURE = Image(b"\x89PNG\r", "image/png")
SOUND = Audio(b"RIFF", "audio/wav")
PDF = Resource("file:///a.pdf", b"%PDF", "application/pdf")
NOTE = Resource("file:///a.txt", "Rain.", "text/plain")
LINK = ResourceLink(uri="https://example.org/a", name="a", description="More.")
ODD = Resource("file:///a.bin", b"12345", "application/x-odd")
EVERYTHING = ToolResult(content=(Text("Sunny."), PICTURE, SOUND, PDF, NOTE, LINK, ODD))


class Model:
    """A message as the libraries return it."""

    def __init__(self, value):
        self.value = value

    def model_dump(self):
        return self.value


def answer(dialect, result=None):
    result = ToolResult(content=(Text("Sunny."),)) if result is None else result
    return result_messages([CALL], [result], dialect)


def test_every_dialect_of_schemas_has_messages():
    assert set(WITH_CALL) == set(DIALECTS)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_calls_of_a_message_are_read(dialect):
    for message in (WITH_CALL[dialect], Model(WITH_CALL[dialect])):
        (call,) = calls_in(message, dialect)
        assert (call.name, call.id) == ("forecast", "c1")
        arguments = call.arguments
        assert (json.loads(arguments) if isinstance(arguments, str) else arguments) == ARGUMENTS


def test_the_snake_case_of_a_library_is_read_too():
    part = {"function_call": {"id": None, "name": "forecast", "args": ARGUMENTS}}
    (call,) = calls_in({"parts": [part, {"text": "x", "function_call": None}]}, "gemini")
    assert (call.name, call.id, call.arguments) == ("forecast", "", ARGUMENTS)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "message",
    [
        {},
        [],
        None,
        "text",
        {"content": "text"},
        {"tool_calls": None},
        {"content": [1]},
        {"output": 3},
    ],
)
def test_a_message_without_calls_gives_none(dialect, message):
    assert calls_in(message, dialect) == []


def test_a_broken_call_is_kept_so_that_the_model_learns_of_it():
    (call,) = calls_in({"tool_calls": [{"id": "c1", "function": {"name": 3, "arguments": None}}]})
    assert (call.name, call.arguments, call.id) == ("", {}, "c1")


def test_a_whole_response_of_openai_is_read_as_its_message_is():
    response = {"choices": [{"index": 0, "message": WITH_CALL["openai"]}], "usage": {}}
    for message in (response, Model(response)):
        assert calls_in(message) == calls_in(WITH_CALL["openai"])
    assert calls_in({"choices": [{"message": {"content": "Done."}}]}) == []
    assert calls_in({"choices": []}) == []


CUSTOM = ToolCall(name="sql", arguments={"input": "select 1"}, id="c1", custom=True)
CUSTOM_ITEM = {
    "type": "custom_tool_call",
    "id": "item",
    "call_id": "c1",
    "name": "sql",
    "input": "select 1",
}


def test_the_text_of_a_custom_call_of_openai_is_its_argument():
    custom = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    assert calls_in({"tool_calls": [custom]}) == [CUSTOM]
    assert calls_in({"output": [CUSTOM_ITEM]}, "openai-responses") == [CUSTOM]
    assert calls_in([{**CUSTOM_ITEM, "input": '{"a": 1}'}], "openai-responses") == [
        CUSTOM.changed(arguments={"input": '{"a": 1}'})
    ]
    assert calls_in([{"type": "custom_tool_call"}], "openai-responses") == [
        ToolCall(name="", custom=True)
    ]
    broken = {"id": "c1", "function": "forecast", "custom": 3}
    assert calls_in({"tool_calls": [broken]}) == [ToolCall(name="", id="c1")]


def test_a_custom_call_is_answered_in_its_form_also_after_a_restart():
    calls = calls_in([CUSTOM_ITEM, *WITH_CALL["openai-responses"]["output"]], "openai-responses")
    calls = [ToolCall.from_dict(json.loads(json.dumps(call.to_dict()))) for call in calls]
    results = [ToolResult(content=(Text("1"),)), ToolResult(content=(Text("Sunny."),))]
    assert result_messages(calls, results, "openai-responses") == [
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c1", "output": "Sunny."},
    ]


@pytest.mark.parametrize(
    ("sql", "is_error", "message"),
    [
        (lambda input: f"ran {input}", False, "ran select 1"),  # noqa: A006
        (lambda query: f"ran {query}", True, "query"),
    ],
)
def test_a_custom_call_runs_a_tool_with_that_argument_and_another_says_what_is_wrong(
    sql, is_error, message
):
    app = Satchel()
    app.register_tool(sql, name="sql", description="Ask.")
    [result] = asyncio.run(app.session().step().execute([CUSTOM]))
    assert (result.is_error, message in result.text) == (is_error, True)


def test_a_text_is_sent_as_each_provider_wants_it():
    assert answer("openai") == [{"role": "tool", "tool_call_id": "c1", "content": "Sunny."}]
    assert answer("openai-responses") == [
        {"type": "function_call_output", "call_id": "c1", "output": "Sunny."}
    ]
    assert answer("anthropic") == [
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "Sunny."}],
                }
            ],
        }
    ]
    assert answer("gemini") == [
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "forecast",
                        "response": {"output": "Sunny."},
                        "id": "c1",
                    }
                }
            ],
        }
    ]
    assert answer("mcp") == [{"content": [{"type": "text", "text": "Sunny."}], "isError": False}]


def test_an_error_is_marked_where_there_is_a_mark_and_its_text_is_sent():
    failed = ToolResult(content=(Text("No such city."),), is_error=True)
    assert answer("openai", failed)[0]["content"] == "No such city."
    assert answer("anthropic", failed)[0]["content"][0]["is_error"] is True
    response = answer("gemini", failed)[0]["parts"][0]["functionResponse"]["response"]
    assert response == {"error": "No such city."}
    assert answer("mcp", failed)[0]["isError"] is True


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "mcp"])
def test_nothing_is_said_in_words(dialect):
    for empty in (ToolResult(), ToolResult(content=(Text(""),))):
        assert "(no output)" in json.dumps(answer(dialect, empty))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_part_of_a_result_is_lost(dialect):
    sent = json.dumps(answer(dialect, EVERYTHING))
    for shown in ("Sunny.", "Rain.", "https://example.org/a", "file:///a.bin"):
        assert shown in sent
    assert "iVBORw" in sent  # hidden in base64: the picture
    assert "JVBERg" in sent  # the PDF
    if dialect == "mcp":
        return
    assert "application/x-odd" in sent
    if dialect in {"anthropic", "openai-responses"}:
        assert "[a recording (audio/wav, 4 bytes) that cannot be shown here]" in sent
    else:
        assert "UklGRg" in sent  # the sound


def test_pictures_follow_the_texts_of_all_tools_for_openai():
    calls = [CALL, ToolCall(name="draw", id="c2")]
    results = [ToolResult(content=(PICTURE,)), ToolResult(content=(Text("done"), PICTURE))]
    first, second, shown = result_messages(calls, results)
    assert first["content"] == "[attachments in the next message: 1]"
    assert second["content"] == "done\n[attachments in the next message: 1]"
    assert [part["type"] for part in shown["content"]] == ["text", "image_url"] * 2
    assert shown["content"][2]["text"] == "Attachments of draw (c2):"
    assert shown["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")


TIFF = "[a picture (image/tiff, 2,000 bytes) that cannot be shown here]"


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "mcp"])
def test_a_picture_of_a_type_that_a_provider_refuses_becomes_words(dialect):
    sent = json.dumps(answer(dialect, ToolResult(content=(Image(b"x" * 2_000, "image/tiff"),))))
    assert TIFF in sent
    assert "eHh4" not in sent  # its bytes
    assert "attachments" not in sent


def test_gemini_takes_other_pictures_than_the_others():
    for kind, taken in (("image/gif", False), ("image/heic", True)):
        sent = ToolResult(content=(Image(b"GIF89a", kind),))
        assert ("inlineData" in json.dumps(answer("gemini", sent))) is taken
        assert ("image_url" in json.dumps(answer("openai", sent))) is not taken


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "mcp"])
def test_a_type_with_another_name_has_the_one_that_providers_know(dialect):
    for name in ("image/jpg", "IMAGE/JPEG", "image/jpeg; q=1"):
        sent = json.dumps(answer(dialect, ToolResult(content=(Image(b"x", name),))))
        assert "image/jpeg" in sent
        assert "cannot be shown" not in sent
    for picture in (PICTURE, Resource("file:///a", PICTURE.data, PICTURE.mime_type)):
        assert "iVBORw" in json.dumps(answer(dialect, ToolResult(content=(picture,))))


def test_a_framework_gets_pictures_that_most_models_take_and_words_for_others():
    content = (Image(b"x" * 2_000, "image/tiff"), Image(b"x", "image/jpg"))
    parts = parts_of(ToolResult(content=content), lambda block: block.mime_type, str)
    assert parts == [TIFF, "image/jpeg"]


def test_structured_values_are_kept_for_mcp():
    (message,) = answer("mcp", ToolResult(content=(Text("{}"),), structured={"a": 1}))
    assert message["structuredContent"] == {"a": 1}


def test_each_call_needs_its_result():
    with pytest.raises(ValueError, match="calls and results are not as many: 1 and 0"):
        result_messages([CALL], [])
    assert result_messages([], [], "anthropic") == []


def test_an_unknown_dialect_is_refused_with_its_like():
    for ask in (lambda: calls_in({}, "opena"), lambda: result_messages([], [], "opena")):
        with pytest.raises(NotFoundError) as caught:
            ask()
        assert "openai" in caught.value.near


def test_an_object_without_model_dump_has_no_calls():
    assert calls_in(SimpleNamespace(tool_calls=[])) == []
