"""The types of media that each provider takes; one of another type fails the whole request."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from satchel.tools import Audio, Image, Resource
from satchel.tools.content_blocks import Block

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
