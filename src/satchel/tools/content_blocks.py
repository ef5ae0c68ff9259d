"""The content blocks of a result; they follow the content types of MCP."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from satchel.lazy_dataclass import dataclass
from satchel.tools.empty_mapping import NOTHING


@dataclass(frozen=True, slots=True)
class ContentBlock:
    """What all blocks have in common."""

    mcp_fields: Mapping[str, Any] = field(default=NOTHING, kw_only=True, repr=False, hash=False)
    """Further fields of the block for MCP clients, such as `annotations`; no model sees them."""


@dataclass(frozen=True, slots=True)
class Text(ContentBlock):
    """A block of text."""

    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the block as JSON, in the shape of MCP."""
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class Image(ContentBlock):
    """A picture, as the bytes of its file."""

    data: bytes
    mime_type: str = "image/png"

    def to_dict(self) -> dict[str, Any]:
        """Return the block as JSON, in the shape of MCP."""
        return {"type": "image", "data": base64_text(self.data), "mimeType": self.mime_type}


@dataclass(frozen=True, slots=True)
class Audio(ContentBlock):
    """A recording, as the bytes of its file."""

    data: bytes
    mime_type: str = "audio/wav"

    def to_dict(self) -> dict[str, Any]:
        """Return the block as JSON, in the shape of MCP."""
        return {"type": "audio", "data": base64_text(self.data), "mimeType": self.mime_type}


@dataclass(frozen=True, slots=True)
class Resource(ContentBlock):
    """An embedded document: its URI and its content."""

    uri: str
    content: str | bytes
    mime_type: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the block as JSON, in the shape of MCP."""
        if isinstance(self.content, str):
            content = {"text": self.content}
        else:
            content = {"blob": base64_text(self.content)}
        fields = _without_none(uri=self.uri, mimeType=self.mime_type)
        return {"type": "resource", "resource": fields | content}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLink(ContentBlock):
    """The URI of a document that the client may fetch."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the block as JSON, in the shape of MCP."""
        return {"type": "resource_link"} | _without_none(
            uri=self.uri, name=self.name, description=self.description, mimeType=self.mime_type
        )


Block = Text | Image | Audio | Resource | ResourceLink
"""One part of the content of a result."""

BLOCKS = (Text, Image, Audio, Resource, ResourceLink)


def block_from_dict(encoded: Mapping[str, Any]) -> Block:
    """Return the block for what `to_dict` returned. Raises `KeyError` or `ValueError` otherwise."""
    match encoded:
        case {"type": "text"}:
            return Text(encoded["text"])
        case {"type": "image"}:
            return Image(b64decode(encoded["data"]), encoded["mimeType"])
        case {"type": "audio"}:
            return Audio(b64decode(encoded["data"]), encoded["mimeType"])
        case {"type": "resource_link"}:
            return ResourceLink(
                uri=encoded["uri"],
                name=encoded["name"],
                description=encoded.get("description"),
                mime_type=encoded.get("mimeType"),
            )
        case {"type": "resource", "resource": inside}:
            content = inside["text"] if "text" in inside else b64decode(inside["blob"])
            return Resource(inside["uri"], content, inside.get("mimeType"))
    raise ValueError(f"an unknown type of block: {encoded.get('type')!r}")


def base64_text(data: bytes) -> str:
    """Return bytes as text, for JSON."""
    return b64encode(data).decode()


def _without_none(**values: str | None) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
