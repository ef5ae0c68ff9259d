import mcp_types as types
import pytest

from satchel import Limits
from satchel.mcp_servers.protocol_fields import FieldReader

LIMITS = Limits(mcp_schema=2_000, mcp_listing=3_000)


def read(reader=None, **fields):
    item = {"uri": "note://a", "name": "a", **fields}
    return (reader or FieldReader(LIMITS)).read(types.Resource, item, used=("uri", "name"))


def test_texts_of_fields_are_bounded_and_visible():
    reader = FieldReader(Limits())
    meta = {"x": {"title": "c\u202ed" * 600}}
    assert read(reader, title="a\u200bb" * 600, size=0, _meta=meta) == {
        "title": "ab" * 499 + "a…",
        "size": 0,
        "_meta": {"x": {"title": "cd" * 600}},
    }


@pytest.mark.parametrize(
    "fields",
    [{"icons": 3}, {"_meta": {"x": "x" * 2_000}}],
    ids=["invalid", "large"],
)
def test_an_item_with_other_fields_has_none(fields):
    assert read(title="a", **fields) == {}


def test_all_fields_of_a_list_are_bounded():
    reader = FieldReader(LIMITS)
    assert [bool(read(reader, _meta={"x": "x" * 1_400})) for _ in range(3)] == [True, True, False]
