from dataclasses import FrozenInstanceError

import pytest

from satchel.tools import Audio, Image, Resource, ResourceLink, Text
from satchel.tools.content_blocks import BLOCKS


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (Text("Rain"), {"type": "text", "text": "Rain"}),
        (Image(b"\0\xff"), {"type": "image", "data": "AP8=", "mimeType": "image/png"}),
        (Image(b"", "image/gif"), {"type": "image", "data": "", "mimeType": "image/gif"}),
        (Audio(b"a"), {"type": "audio", "data": "YQ==", "mimeType": "audio/wav"}),
        (
            Resource("file:///a", "text", "text/plain"),
            {
                "type": "resource",
                "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "text"},
            },
        ),
        (
            Resource("file:///a", b"a"),
            {"type": "resource", "resource": {"uri": "file:///a", "blob": "YQ=="}},
        ),
        (
            ResourceLink(uri="file:///a", name="a"),
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
        ),
        (
            ResourceLink(
                uri="file:///a", name="a", description="All of it.", mime_type="text/plain"
            ),
            {
                "type": "resource_link",
                "uri": "file:///a",
                "name": "a",
                "description": "All of it.",
                "mimeType": "text/plain",
            },
        ),
    ],
)
def test_a_block_is_written_in_the_shape_of_mcp(block, expected):
    assert isinstance(block, BLOCKS)
    assert block.to_dict() == expected


@pytest.mark.parametrize("block", [Text("a"), Image(b"a"), Audio(b"a"), Resource("a", "b")])
def test_blocks_are_frozen_values(block):
    assert hash(block) == hash(block)
    field = next(iter(block.__slots__))
    with pytest.raises(FrozenInstanceError):
        setattr(block, field, "other")
