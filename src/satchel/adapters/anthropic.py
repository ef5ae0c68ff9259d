"""A whole agent over the library of Anthropic.

`await run_anthropic(AsyncAnthropic(), session, messages, model="...")` asks the model and runs its
calls until it makes no more. Nothing of Anthropic is imported: the client is yours.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from satchel.adapters.model_request import joined
from satchel.adapters.provider_loop import STREAM_ENDED, Event, Message, ModelAnswer, ProviderLoop
from satchel.provider_messages.message_parts import plain
from satchel.session.recording import Recording
from satchel.session.session import Session

MAX_TOKENS = 4096


async def run_anthropic(
    client: Any,
    session: Session,
    messages: list[Message],
    *,
    model: str,
    system: str | list[Message] | None = None,
    max_tokens: int = MAX_TOKENS,
    record: Recording | None = None,
    **options: Any,
) -> str:
    """Run an agent on an `AsyncAnthropic` until it is done; return its last text.

    `messages` has the conversation, and grows. `system`, a text or blocks, stands before the prompt
    of the session. `record` writes the conversation down. The run ends with `SatchelError` after
    `max_requests` requests, by default 100. Other `options` go to `messages.create`.
    """
    options |= {"model": model, "max_tokens": max_tokens, "system": system, "record": record}
    return await AnthropicLoop(client, session, messages, **options).run()


def run_anthropic_sync(
    client: Any,
    session: Session,
    messages: list[Message],
    *,
    model: str,
    system: str | list[Message] | None = None,
    max_tokens: int = MAX_TOKENS,
    record: Recording | None = None,
    **options: Any,
) -> str:
    """Do the same with an `Anthropic` client, without an event loop."""
    options |= {"model": model, "max_tokens": max_tokens, "system": system, "record": record}
    return AnthropicLoop(client, session, messages, **options).run_sync()


def stream_anthropic(
    client: Any,
    session: Session,
    messages: list[Message],
    *,
    model: str,
    system: str | list[Message] | None = None,
    max_tokens: int = MAX_TOKENS,
    record: Recording | None = None,
    **options: Any,
) -> AsyncIterator[Event]:
    """Do the same as `run_anthropic`; yield the model's text, tools' chunks and their results."""
    options |= {"model": model, "max_tokens": max_tokens, "system": system, "record": record}
    return AnthropicLoop(client, session, messages, **options).stream()


class AnthropicLoop(ProviderLoop):
    """A conversation in the Messages API."""

    dialect = "anthropic"

    def _send(self, arguments: dict[str, Any]) -> Any:
        return self._client.messages.create(**arguments)

    async def _stream(self, arguments: dict[str, Any]) -> AsyncGenerator[str | ModelAnswer, None]:
        async with self._client.messages.stream(**arguments) as stream:
            async for text in stream.text_stream:
                yield text
            answer = self._answer(await stream.get_final_message())
            yield answer._replace(stop_reason=answer.stop_reason or STREAM_ENDED)

    def _prompted(self, prompt: str) -> dict[str, Any]:
        system = self._system
        if isinstance(system, list):
            system = [*system, {"type": "text", "text": prompt}] if prompt else system
        else:
            system = joined(system, prompt)
        return {"messages": [*self._messages], **({"system": system} if system else {})}

    def _answer(self, response: Any) -> ModelAnswer:
        message = {"role": "assistant", "content": plain(response.content)}
        return ModelAnswer(message, getattr(response, "stop_reason", None))

    def _text(self, message: Message) -> str:
        parts = message["content"]
        return "".join(part["text"] for part in parts if part.get("type") == "text")
