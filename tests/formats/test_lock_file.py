"""A lock file is written and read back, and a broken one is refused."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import SatchelError
from satchel.formats.lock_file import Lock, LockEntry, read_lock

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
FIELDS = st.sampled_from(["digest", "version", "from", "notes", "reached"])
ENTRIES = st.builds(
    LockEntry,
    kind=st.sampled_from(["skill", "plugin", "server", "tool", "group"]),
    place=TEXTS,
    name=TEXTS,
    values=st.dictionaries(FIELDS, TEXTS, max_size=4),
)


@given(st.lists(ENTRIES, max_size=8))
def test_what_is_written_is_read_back_and_is_sorted(entries):
    lock = Lock(entries)
    again = read_lock(lock.text.encode(), "satchel.lock")
    assert again.entries == lock.entries
    assert again.text == Lock(reversed(lock.entries.values())).text
    assert lock.differences(again) == ()


def test_what_only_informs_the_reader_is_no_difference():
    old, new = (
        Lock([LockEntry(kind="server", place="p", name="x", values={"digest": "d", "reached": it})])
        for it in ("a", "b")
    )
    assert old.differences(new) == ()


@given(st.lists(ENTRIES, max_size=4), st.lists(ENTRIES, max_size=4))
def test_the_differences_lead_from_one_to_the_other(before, after):
    old, new = Lock(before), Lock(after)
    entries = dict(old.entries)
    for item in old.differences(new):
        if item.now is None:
            del entries[item.entry.key]
        else:
            entries[item.entry.key] = item.now
    assert {key: it.served for key, it in entries.items()} == {
        key: it.served for key, it in new.entries.items()
    }


@given(st.binary(max_size=60))
def test_any_other_file_is_one_clear_error(data):
    with pytest.raises(SatchelError, match="is not a lock file") as caught:
        read_lock(data, "satchel.lock")
    assert caught.value.where == "satchel.lock"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it has no version"),
        ("version = 2", "newer version of Satchel"),
        ("version = 1\nother = 2", "an unknown part 'other'"),
        ("version = 1\nskill = 2", "'skill' is not a list"),
        ("version = 1\n[[skill]]\nname = 'x'", "a skill has no path or no name"),
        ("version = 1\n[[skill]]\nname = 1\npath = 'x'", "is not a table of strings"),
        ("version = 1\n" + "[[skill]]\nname = 'x'\npath = 'x'\n" * 2, "is in it twice"),
        ("version = 1\n<<<<<<< HEAD\n", "is not a lock file"),
    ],
)
def test_a_broken_file_says_what_is_wrong(text, reason):
    with pytest.raises(SatchelError, match=reason):
        read_lock(text.encode(), "satchel.lock")


def test_a_reviewer_sees_invisible_characters():
    entry = LockEntry(kind="skill", place="a\u202eb", name="x", values={})
    text = Lock([entry]).text
    assert "\u202e" not in text
    assert tomllib.loads(text)["skill"][0]["path"] == "a\u202eb"
