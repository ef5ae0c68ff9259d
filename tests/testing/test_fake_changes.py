"""A feed stands in for a watch."""

import asyncio

import pytest

from satchel import Change, Event, Satchel
from satchel.testing import change, feed


def test_a_change_is_made_with_few_words():
    created = change("changed", "tool", "forecast", message="why")
    assert created == Change(
        event=Event.CHANGED,
        kind="tool",
        name="forecast",
        source="plugins",
        generation=1,
        message="why",
    )
    with pytest.raises(ValueError, match="exploded"):
        change("exploded", "tool", "forecast")


def test_a_host_that_reads_a_watch_reads_a_feed(monkeypatch):
    async def host(app):
        async with app.watch() as changes:
            return [str(item.event) async for item in changes]

    app = Satchel()
    created = [change("added", "tool", "a"), change("removed", "tool", "a", generation=2)]
    monkeypatch.setattr(app, "watch", lambda: feed(created))
    assert asyncio.run(host(app)) == ["added", "removed"]


@pytest.mark.parametrize("number", [0, 1, 1_000])
def test_all_changes_come_in_their_order_and_then_it_ends(number):
    created = [change("changed", "skill", str(at)) for at in range(number)]

    async def read():
        async with feed(created) as changes:
            return [item async for item in changes]

    assert asyncio.run(read()) == created
