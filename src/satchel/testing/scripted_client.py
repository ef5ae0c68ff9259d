"""A client of a model provider that answers by a script, to test an agent without a network."""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from satchel.tools import ToolCall

Answer = str | Sequence[ToolCall]
"""What the model says, or what it calls."""


class ScriptedClient:
    """Looks like `AsyncOpenAI` and `AsyncAnthropic`, and gives one answer to each request.

    `client.chat.completions.create` and `client.messages.create` work, without streaming. With
    `blocking=True` they return at once, as the clients `OpenAI` and `Anthropic` do. A request after
    the last answer raises `AssertionError`.
    """

    def __init__(self, *answers: Answer, blocking: bool = False) -> None:
        self._answers, self._blocking = list(answers), blocking
        self.requests: list[dict[str, Any]] = []
        """The arguments of each request."""
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._complete))
        self.messages = SimpleNamespace(create=self._create)

    def _complete(self, **arguments: Any) -> Any:
        """Answer as Chat Completions does."""
        answer = self._next(arguments)
        text, calls = (answer, []) if isinstance(answer, str) else (None, list(answer))
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [_function_call(call) for call in calls]
        return self._given(SimpleNamespace(choices=[SimpleNamespace(message=message)]))

    def _create(self, **arguments: Any) -> Any:
        """Answer as the Messages API does."""
        answer = self._next(arguments)
        if isinstance(answer, str):
            return self._given(SimpleNamespace(content=[{"type": "text", "text": answer}]))
        uses = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments(call)}
            for call in answer
        ]
        return self._given(SimpleNamespace(content=uses))

    def _next(self, arguments: dict[str, Any]) -> Answer:
        # A copy: the host's list of messages grows after this.
        self.requests.append({**arguments, "messages": list(arguments["messages"])})
        assert self._answers, "the script has no answer to this request"
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            return answer
        turn = len(self.requests)
        return [
            call if call.id else call.changed(id=f"call_{turn}_{at}")
            for at, call in enumerate(answer, 1)
        ]

    def _given(self, response: Any) -> Any:
        return response if self._blocking else _later(response)


async def _later(response: Any) -> Any:
    return response


def _function_call(call: ToolCall) -> dict[str, Any]:
    arguments = _arguments(call)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": call.name, "arguments": text}
    return {"id": call.id, "type": "function", "function": function}


def _arguments(call: ToolCall) -> dict[str, Any] | str:
    return call.arguments if isinstance(call.arguments, str) else dict(call.arguments)
