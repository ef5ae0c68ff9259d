"""A whole agent over the library of Anthropic.

`await run_anthropic(AsyncAnthropic(), session, messages, model="...")` asks the model and runs its
calls until it makes no more. Nothing of Anthropic is imported: the client is yours.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

from satchel.adapters.provider_loop import Event, Message, ProviderLibrary, ProviderLoop
from satchel.provider_messages.message_parts import plain
from satchel.session.recording import Recording
from satchel.session.session import Session
from satchel.session.step import Step


async def run_anthropic(
    client: Any,
    session: Session,
    messages: list[Message],
    *,
    model: str,
    system: str | None = None,
    max_tokens: int = 4096,
    record: Recording | None = None,
    **options: Any,
) -> str:
    """Run an agent on an `AsyncAnthropic` until it is done; return its last text.

    `messages` has the conversation, and grows. `system` stands before the prompt of the session.
    `record` writes the conversation down. The run ends with `SatchelError` after `max_requests`
    requests, by default 100. Other `options` go to `messages.create`.
    """
    given = {"model": model, "max_tokens": max_tokens, **options}
    return _text(await _loop(client, session, messages, system, given, record=record).run())


def run_anthropic_sync(
    client: Any,
    session: Session,
    messages: list[Message],
    *,
    model: str,
    system: str | None = None,
    max_tokens: int = 4096,
    record: Recording | None = None,
    **options: Any,
) -> str:
    """Do the same with an `Anthropic` client, without an event loop."""
    given = {"model": model, "max_tokens": max_tokens, **options}
    return _text(_loop(client, session, messages, system, given, record=record).run_sync())


def stream_anthropic(
    client: Any,
    session: Session,
    messages: list[Message],
    *,
    model: str,
    system: str | None = None,
    max_tokens: int = 4096,
    record: Recording | None = None,
    **options: Any,
) -> AsyncIterator[Event]:
    """Do the same as `run_anthropic`; yield the model's text, tools' chunks and their results."""
    given = {"model": model, "max_tokens": max_tokens, **options}
    return _loop(client, session, messages, system, given, record=record).stream()


def _loop(
    client: Any,
    session: Session,
    messages: list[Message],
    system: str | None,
    options: dict[str, Any],
    *,
    record: Recording | None,
) -> ProviderLoop:
    library = ProviderLibrary(
        dialect="anthropic",
        create=lambda client: client.messages.create,
        arguments=_arguments,
        message=_message,
        stream=_stream,
    )
    return ProviderLoop(
        library=library,
        client=client,
        session=session,
        messages=messages,
        system=system,
        options=options,
        record=record,
    )


def _arguments(step: Step, messages: Sequence[Message], system: str | None) -> dict[str, Any]:
    prompt = "\n\n".join(part for part in (system, step.prompt()) if part)
    return {"messages": list(messages), **({"system": prompt} if prompt else {})}


def _message(response: Any) -> Message:
    return {"role": "assistant", "content": plain(response.content)}


def _text(message: Message) -> str:
    return "".join(part["text"] for part in message["content"] if part.get("type") == "text")


async def _stream(client: Any, arguments: dict[str, Any]) -> AsyncGenerator[str | Message, None]:
    """Yield the text as it comes, and last the whole message."""
    async with client.messages.stream(**arguments) as stream:
        async for text in stream.text_stream:
            yield text
        yield _message(await stream.get_final_message())
