"""A whole agent over the library of OpenAI, or of any provider with Chat Completions.

`await run_openai(AsyncOpenAI(), session, messages, model="...")` asks the model and runs its calls
until it makes no more. Nothing of OpenAI is imported: the client is yours.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

from satchel.adapters.provider_loop import Event, Message, ProviderLibrary, ProviderLoop
from satchel.provider_messages.message_parts import plain
from satchel.session.recording import Recording
from satchel.session.session import Session
from satchel.session.step import Step


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
    prompt of the session. `record` writes the conversation down. `options` go to
    `chat.completions.create`.
    """
    loop = _loop(client, session, messages, system, {"model": model, **options}, record=record)
    return _text(await loop.run())


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
    loop = _loop(client, session, messages, system, {"model": model, **options}, record=record)
    return _text(loop.run_sync())


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
    return _loop(
        client, session, messages, system, {"model": model, **options}, record=record
    ).stream()


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
        dialect="openai",
        create=lambda client: client.chat.completions.create,
        arguments=_arguments,
        # Some servers that copy this interface refuse a message without `content`.
        message=lambda response: {"content": None, **plain(response.choices[0].message)},
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
    first = [{"role": "system", "content": prompt}] if prompt else []
    return {"messages": [*first, *messages]}


def _text(message: Message) -> str:
    return str(message.get("content") or "")


async def _stream(client: Any, arguments: dict[str, Any]) -> AsyncGenerator[str | Message, None]:
    """Yield the text as it comes, and last the message that the pieces make."""
    texts: list[str] = []
    calls: dict[int, Message] = {}
    async for chunk in await client.chat.completions.create(**arguments, stream=True):
        for choice in chunk.choices[:1]:
            if choice.delta.content:
                texts.append(choice.delta.content)
                yield choice.delta.content
            for piece in choice.delta.tool_calls or ():
                _add_piece(calls, piece)
    message: Message = {"role": "assistant", "content": "".join(texts) or None}
    if calls:
        message["tool_calls"] = [calls[at] for at in sorted(calls)]
    yield message


def _add_piece(calls: dict[int, Message], piece: Any) -> None:
    """Add a piece of a call: the first has id and name, each has a part of the arguments."""
    call = calls.setdefault(
        piece.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
    )
    call["id"] = piece.id or call["id"]
    function = call["function"]
    function["name"] += (piece.function and piece.function.name) or ""
    function["arguments"] += (piece.function and piece.function.arguments) or ""
