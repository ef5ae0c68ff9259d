"""What the messages of all providers are made of."""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

from satchel.tools import (
    Audio,
    Image,
    Resource,
    ResourceLink,
    Text,
    ToolCall,
    ToolChunk,
    ToolResult,
)
from satchel.tools.content_blocks import Block, base64_text

Message = dict[str, Any]
NOTHING_SAID = "(no output)"
"""Some providers refuse an empty answer."""


def plain(value: Any) -> Any:
    """Return a message of a provider's library as dicts and lists; `None` values are left out."""
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items() if item is not None}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def encodable(value: Any) -> Any:
    """Return a plain message without lone surrogates, which no request may contain."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    return [encodable(item) for item in value] if isinstance(value, list) else value


def items_of(message: Any, *keys: str) -> list[Message]:
    """Return the dicts in a list below a message, or in the message itself if it is a list."""
    value = plain(message)
    for key in keys:
        value = value.get(key) or [] if isinstance(value, dict) else value
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def either(item: Mapping[str, Any], camel: str, snake: str) -> Any:
    """Return a value that REST and libraries spell differently."""
    return item.get(camel, item.get(snake))


def call_of(name: Any, arguments: Any, call_id: Any) -> ToolCall:
    """Return a call; missing parts are empty, so that running it says what is wrong."""
    is_given = isinstance(arguments, str | Mapping)
    return ToolCall(
        name=name if isinstance(name, str) else "",
        arguments=arguments if is_given else {},
        id=call_id if isinstance(call_id, str) else "",
    )


def custom_call_of(name: Any, text: Any, call_id: Any) -> ToolCall:
    """Return a call of OpenAI's type `custom`: the model's text is its one argument, `input`."""
    arguments = {"input": text} if isinstance(text, str) else {}
    return call_of(name, arguments, call_id).changed(custom=True)


def data_url(data: bytes, mime_type: str) -> str:
    """Return bytes as a `data:` address."""
    return f"data:{mime_type};base64,{base64_text(data)}"


def words_for(block: Block) -> str:
    """Return a text for a block: its own, or what a provider cannot take, in words."""
    match block:
        case Text(text=text):
            return text
        case Resource(content=str() as text, uri=uri):
            return f"[{uri}]\n{text}"
        case ResourceLink(name=name, uri=uri, description=description):
            about = f": {description}" if description else ""
            return f"[link to {name} at {uri}{about}]"
        case Image(data=data, mime_type=kind):
            return _cannot_show("a picture", kind, len(data))
        case Audio(data=data, mime_type=kind):
            return _cannot_show("a recording", kind, len(data))
        case Resource(content=content, mime_type=kind, uri=uri):
            return _cannot_show(f"the document {uri}", kind or "unknown type", len(content))


def _cannot_show(medium: str, kind: str, size: int) -> str:
    return f"[{medium} ({kind}, {size:,} bytes) that cannot be shown here]"


def text_only(result: ToolResult) -> str:
    """Return all of a result as text; never an empty one."""
    return "\n".join(map(words_for, result.content)).strip() or NOTHING_SAID


def parts_of(
    item: ToolResult | ToolChunk,
    show: Callable[[Any], Any],
    say: Callable[[str], Any],
    *,
    media: Any = Image,
) -> list[Any]:
    """Return the parts of a message for a result, at least one.

    `show` returns the part for a block of the types `media`; pictures that most models refuse are
    in words.
    """
    parts = []
    for block in item.content:
        shown = _showable(block) if isinstance(block, media) else None
        parts.append(say(words_for(block) or NOTHING_SAID) if shown is None else show(shown))
    return parts or [say(NOTHING_SAID)]


def _showable(block: Block) -> Block | None:
    if not isinstance(block, Image):
        return block
    media = media_of(block, PICTURES)
    return Image(*media) if media else None


def text_or_parts(
    result: ToolResult, show: Callable[[Any], Any], say: Callable[[str], Any], *, media: Any = Image
) -> Any:
    """Return one text, or the parts of a result with media; most frameworks take both."""
    if any(isinstance(block, media) for block in result.content):
        return parts_of(result, show, say, media=media)
    return text_only(result)


PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What OpenAI, Anthropic and Bedrock take, and so what a framework can send to most models."""

_PDF = "application/pdf"

TAKEN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "openai": PICTURES | {_PDF, "audio/wav", "audio/mp3"},
        "openai-responses": PICTURES | {_PDF},
        "anthropic": PICTURES | {_PDF},
        "gemini": frozenset(
            {
                _PDF,
                *(f"image/{kind}" for kind in ("png", "jpeg", "webp", "heic", "heif")),
                *(f"audio/{kind}" for kind in ("wav", "mp3", "aiff", "aac", "ogg", "flac")),
                *(f"audio/{kind}" for kind in ("m4a", "mp4", "webm")),
                *(f"video/{kind}" for kind in ("mp4", "mpeg", "mpg", "webm", "wmv", "3gpp")),
                *(f"video/{kind}" for kind in ("quicktime", "mov", "avi", "x-flv")),
                *(f"text/{kind}" for kind in ("plain", "html", "css", "csv", "xml", "md", "rtf")),
            }
        ),
    }
)
"""By dialect; MCP takes any."""

_OTHER_NAMES = MappingProxyType(
    {
        "image/jpg": "image/jpeg",
        "audio/x-wav": "audio/wav",
        "audio/wave": "audio/wav",
        "audio/mpeg": "audio/mp3",
        "text/markdown": "text/md",
    }
)


def media_of(block: Block, taken: Collection[str]) -> tuple[bytes, str] | None:
    """Return the bytes and the type of a block, or `None` if the type is not one of those taken."""
    match block:
        case Image(data=bytes() as data, mime_type=name) | Audio(data=data, mime_type=name):
            pass
        case Resource(content=bytes() as data, mime_type=str() as name):
            pass
        case _:
            return None
    kind = name.partition(";")[0].strip().lower()
    kind = _OTHER_NAMES.get(kind, kind)
    return (data, kind) if kind in taken else None
