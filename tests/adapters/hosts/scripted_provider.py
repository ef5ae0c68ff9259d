"""Answers the requests of a provider's library without a network."""

import inspect
import json
from types import MappingProxyType

from satchel.testing.adapter_checks import Answered, Cannot

LOOP = "satchel.adapters.provider_loop"
EXECUTES = "results = answers_to_cut_off(answer, calls) or await step.execute(calls)"
RUNS_ALL = Cannot(
    "a loop has no functions but those of the satchel: register them",
    LOOP,
    EXECUTES,
)
CANNOT = MappingProxyType(
    {
        "the_hosts_own_stays": RUNS_ALL,
        "a_name_clash_is_reported": RUNS_ALL,
        "the_framework_asks_for_approval": Cannot(
            "a loop has no confirmation of its own: approve(ask)",
            LOOP,
            EXECUTES,
        ),
    }
)
RETURNS_THE_END = Cannot("it returns the end: use the streaming function", LOOP, EXECUTES)
WAITS_IN_A_THREAD = Cannot(
    "a thread that waits cannot be cancelled",
    "asyncio.threads",
    "return await loop.run_in_executor(None, func_call)",
)


WEB_SEARCH = {"type": "web_search", "name": "web_search"}
"""A tool that the provider runs, which the host passes as an option."""


def http_library(client_class):
    """Return the HTTP library that a client is made for, httpx or its successor."""
    hints = str(inspect.signature(client_class.__init__))
    return __import__("httpx2" if "httpx2" in hints else "httpx")


def events(*pairs):
    """Return the body of a stream of server-sent events."""
    lines = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in pairs]
    return "".join(lines).encode()


def openai_answer(body, script):
    for message in body["messages"]:
        if message["role"] == "tool":
            script.answers[message["tool_call_id"]] = Answered(message["content"])
        elif isinstance(message["content"], list):
            for part in message["content"]:
                if part["type"] == "text":
                    call_id = part["text"].rpartition("(")[2].removesuffix("):")
                elif part["type"] in {"image_url", "file"}:
                    before = script.answers[call_id]
                    script.answers[call_id] = Answered(before.text, None, before.media + 1)
    first = body["messages"][0]
    prompt = first["content"] if first["role"] == "system" else ""
    return script.answer(
        [tool.get("function", tool)["name"] for tool in body.get("tools", [])], prompt
    )


def openai_body(calls):
    message = {"role": "assistant", "content": None if calls else "done"}
    if calls:
        message["tool_calls"] = [openai_call(call) for call in calls]
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"object": "chat.completion", "choices": [choice], **OPENAI}


OPENAI = MappingProxyType({"id": "x", "created": 0, "model": "m"})


def openai_call(call):
    function = {"name": call.name, "arguments": json.dumps(dict(call.arguments))}
    return {"id": call.id, "type": "function", "function": function}


def openai_stream(calls):
    deltas = [{"role": "assistant", "content": None if calls else "do"}]
    if not calls:
        deltas.append({"content": "ne"})
    for at, call in enumerate(calls):
        whole = openai_call(call)
        text = whole["function"]["arguments"]
        head = {"name": call.name, "arguments": text[:1]}
        deltas.append({"tool_calls": [{**whole, "index": at, "function": head}]})
        deltas.append({"tool_calls": [{"index": at, "function": {"arguments": text[1:]}}]})
    choices = [{"index": 0, "delta": delta} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    chunks = [
        {"object": "chat.completion.chunk", "choices": [choice], **OPENAI} for choice in choices
    ]
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def anthropic_answer(body, script):
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "tool_result":
                content = part["content"]
                if isinstance(content, str):
                    content = [{"type": "text", "text": content}]
                text = " ".join(item.get("text", "") for item in content)
                media = sum(item["type"] in {"image", "document"} for item in content)
                is_error = part.get("is_error", False)
                script.answers[part["tool_use_id"]] = Answered(text, is_error, media)
    return script.answer([tool["name"] for tool in body.get("tools", [])], body.get("system", ""))


def anthropic_parts(calls):
    return [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
        for call in calls
    ] or [{"type": "text", "text": "done"}]


def anthropic_body(calls, *, content=None):
    return {
        "id": "x",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": anthropic_parts(calls) if content is None else content,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def anthropic_stream(calls):
    pairs = [
        ("message_start", {"message": anthropic_body(calls, content=[])}),
    ]
    for at, part in enumerate(anthropic_parts(calls)):
        if part["type"] == "text":
            start, delta = {**part, "text": ""}, {"type": "text_delta", "text": part["text"]}
        else:
            text = json.dumps(part["input"])
            start = {**part, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": text}
        pairs += [
            ("content_block_start", {"index": at, "content_block": start}),
            ("content_block_delta", {"index": at, "delta": delta}),
            ("content_block_stop", {"index": at}),
        ]
    end = {
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 1},
    }
    pairs += [("message_delta", end), ("message_stop", {})]
    return events(*((name, {"type": name, **data}) for name, data in pairs))
