"""A packed text takes little memory and is read as it was written."""

import sys
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.formats.packed_text import PackedText, pack


@dataclass(frozen=True, kw_only=True)
class Record:
    name: str
    text: PackedText = PackedText()  # noqa: RUF009 - it keeps nothing itself


ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(text=ANY_TEXT)
def test_a_text_is_the_same_before_and_after_packing(text):
    record = Record(name="a", text=text)
    assert record.text == text
    assert pack(record, "text")
    assert record.text == text
    assert record == Record(name="a", text=text)


def test_a_text_is_packed_once():
    record = Record(name="a", text="Do it.")
    assert pack(record, "text")
    assert not pack(record, "text")


def test_a_long_text_gets_smaller():
    record = Record(name="a", text="Do this, then that. " * 1_000)
    before = sys.getsizeof(vars(record)["text"])
    pack(record, "text")
    assert sys.getsizeof(vars(record)["text"].data) < before / 10


def test_a_packed_record_is_copied_and_shown_like_any_other():
    record = Record(name="a", text="Do it.")
    pack(record, "text")
    assert replace(record, name="b") == Record(name="b", text="Do it.")
    assert replace(record, text="New.").text == "New."
    assert repr(record) == repr(Record(name="a", text="Do it."))


def test_the_text_must_be_given():
    with pytest.raises(TypeError, match="text"):
        Record(name="a")


def test_two_records_keep_two_texts():
    one, two = Record(name="a", text="One."), Record(name="a", text="Two.")
    assert (one.text, two.text) == ("One.", "Two.")
