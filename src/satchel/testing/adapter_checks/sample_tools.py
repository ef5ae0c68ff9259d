"""Tools of the application: they answer with all that a framework has to pass on."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

from satchel.errors import ToolError
from satchel.tools import Audio, Image, Resource, ResourceLink, Text, ToolResult

_PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


async def nap(seconds: float) -> str:
    """Sleep for a while."""
    await asyncio.sleep(seconds)
    return "slept"


def fail() -> str:
    """Fail with a message for the model."""
    raise ToolError("the archive is closed; try tomorrow")


def crash() -> str:
    """Fail with an exception."""
    raise KeyError("secret detail")


def picture() -> Image:
    """Draw a picture."""
    return Image(base64.b64decode(_PICTURE))


def everything() -> list[Any]:
    """Return a block of each kind."""
    return [
        Text("look at this"),
        picture(),
        Audio(b"RIFF", mime_type="audio/wav"),
        Resource(uri="file:///report.pdf", content=b"%PDF", mime_type="application/pdf"),
        ResourceLink(uri="https://example.org/", name="more"),
    ]


def nothing() -> None:
    """Return nothing."""


def failed_picture() -> ToolResult:
    """Fail with a picture of what is wrong."""
    return ToolResult(content=(picture(),), is_error=True)


def fail_silently() -> None:
    """Fail without a message."""
    raise ToolError("")


async def count(to: int) -> AsyncIterator[str]:
    """Count in parts."""
    for number in range(to):
        yield f"part {number}"


SAMPLE_TOOLS = (
    add,
    nap,
    fail,
    crash,
    picture,
    everything,
    nothing,
    failed_picture,
    fail_silently,
    count,
)
