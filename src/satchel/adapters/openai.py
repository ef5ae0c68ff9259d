"""A whole agent over the library of OpenAI, or of any provider with Chat Completions.

`await run_openai(AsyncOpenAI(), session, messages, model="...")` asks the model and runs its calls
until it makes no more. Nothing of OpenAI is imported: the client is yours.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from satchel.adapters.model_request import joined
from satchel.adapters.provider_loop import STREAM_ENDED, Event, Message, ModelAnswer, ProviderLoop
from satchel.provider_messages.message_parts import plain
from satchel.session.recording import Recording
from satchel.session.session import Session


async def run_openai(
    client: Any,
    session: Session,
    messages: list[Message],
    *,
    model: str,
    system: str | None = None,
    record: Recording | None = None,
    **options: Any,
) -> str:
    """Run an agent on an `AsyncOpenAI` until it is done; return its last text.

    `messages` has the conversation without a system message, and grows. `system` stands before the
    prompt of the session. `record` writes the conversation down. The run ends with
    `SatchelError` after `max_requests` requests, by default 100. Other `options` go to
    `chat.completions.create`.
    """
    options |= {"model": model, "system": system, "record": record}
    return await OpenAILoop(client, session, messages, **options).run()


def run_openai_sync(
    client: Any,
    session: Session,
    messages: list[Message],
    *,
    model: str,
    system: str | None = None,
    record: Recording | None = None,
    **options: Any,
) -> str:
    """Do the same with an `OpenAI` client, without an event loop."""
    options |= {"model": model, "system": system, "record": record}
    return OpenAILoop(client, session, messages, **options).run_sync()


def stream_openai(
    client: Any,
    session: Session,
    messages: list[Message],
    *,
    model: str,
    system: str | None = None,
    record: Recording | None = None,
    **options: Any,
) -> AsyncIterator[Event]:
    """Do the same as `run_openai`; yield the model's text, the tools' chunks and their results."""
    options |= {"model": model, "system": system, "record": record}
    return OpenAILoop(client, session, messages, **options).stream()


class OpenAILoop(ProviderLoop):
    """A conversation in Chat Completions."""

    dialect = "openai"

    def _send(self, arguments: dict[str, Any]) -> Any:
        return self._client.chat.completions.create(**arguments)

    async def _stream(self, arguments: dict[str, Any]) -> AsyncGenerator[str | ModelAnswer, None]:
        message: Message = {"role": "assistant", "content": None}
        calls: list[tuple[int | None, Message]] = []
        stop_reason = None
        async for chunk in await self._send({**arguments, "stream": True}):
            for choice in chunk.choices[:1]:
                stop_reason = getattr(choice, "finish_reason", None) or stop_reason
                delta = plain(choice.delta) or {}
                for piece in delta.pop("tool_calls", ()):
                    _add_piece(calls, piece)
                delta.pop("role", None)
                _add(message, delta)
                if text := self._text(delta):
                    yield text
        if calls:
            message["tool_calls"] = [call for _, call in calls]
        # Some servers never give a reason; then whole arguments show that nothing is missing.
        if stop_reason is None and not (calls and all(_is_whole(call) for _, call in calls)):
            stop_reason = STREAM_ENDED
        yield ModelAnswer(message, stop_reason)

    def _prompted(self, prompt: str) -> dict[str, Any]:
        system = joined(self._system, prompt)
        first = [{"role": "system", "content": system}] if system else []
        return {"messages": [*first, *self._messages]}

    def _answer(self, response: Any) -> ModelAnswer:
        choice = response.choices[0]
        # Some servers that copy this interface refuse a message without `content`.
        message = {"content": None, **plain(choice.message)}
        return ModelAnswer(message, getattr(choice, "finish_reason", None))

    def _text(self, message: Message) -> str:
        return str(message.get("content") or message.get("refusal") or "")


def _is_whole(call: Message) -> bool:
    try:
        return isinstance(json.loads(call["function"]["arguments"]), dict)
    except (KeyError, TypeError, ValueError):
        return False


def _add(whole: Message, delta: Message) -> None:
    """Add what a piece has: the rest of a text, or something whole."""
    for key, value in delta.items():
        is_rest = isinstance(value, str) and isinstance(whole.get(key), str)
        whole[key] = whole[key] + value if is_rest else value


def _add_piece(calls: list[tuple[int | None, Message]], piece: Message) -> None:
    """Add a piece of a call: the first has id and name, each has a part of the arguments.

    Some servers give all calls one index, or none, or repeat id and name in each piece.
    """
    index, call_id = piece.pop("index", None), piece.pop("id", "")
    function = piece.pop("function", {})
    call = next((call for at, call in reversed(calls) if at == index), None)
    if call is None or (call_id and call["id"] and call["id"] != call_id):
        call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        calls.append((index, call))
    if function.get("name") == call["function"]["name"]:
        del function["name"]
    _add(call["function"], function)
    call.update(piece, id=call_id or call["id"])
