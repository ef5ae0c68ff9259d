"""Lists, page by page."""

import pytest

from satchel.mcp.pagination import PAGE, PagedList, StaleCursorError


def things(count):
    return [{"name": str(number)} for number in range(count)]


def read(listing):
    item, cursor, pages = [], None, 0
    while True:
        items, cursor = listing.page(cursor)
        item, pages = item + items, pages + 1
        if cursor is None:
            return item, pages


@pytest.mark.parametrize("count", [0, 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 7])
def test_all_pages_together_are_the_list(count):
    item, pages = read(PagedList.of(things(count)))
    assert item == things(count)
    assert pages == max(1, -(-count // PAGE))


def test_a_cursor_of_another_list_is_refused():
    _, cursor = PagedList.of(things(PAGE + 1)).page(None)
    with pytest.raises(StaleCursorError):
        PagedList.of(things(PAGE + 2)).page(cursor)


@pytest.mark.parametrize(
    "cursor", ["", "x", "{}-0", "{}-1", "{}-99000", "{}-", "{}-\u0661\u0660\u0660\u0660", "{}--1"]
)
def test_what_never_was_a_cursor_is_refused(cursor):
    listing = PagedList.of(things(PAGE + 1))
    with pytest.raises(StaleCursorError):
        listing.page(cursor.format(listing.digest))


def test_equal_lists_have_equal_digests_and_others_do_not():
    assert PagedList.of(things(3)).digest == PagedList.of(things(3)).digest
    assert PagedList.of(things(3)).digest != PagedList.of(things(2)).digest
    assert PagedList.of(things(3), ["a"]).digest != PagedList.of(things(3), ["b"]).digest
