import unicodedata
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import text as text_module
from satchel.text import has_hidden, one_line, shorten, visible, xml, xml_text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain\n\ttext",
        "Größe, 技能 ✓",
        "\U0001f600",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family, joined
        "\u2764\ufe0f",  # a red heart, in the style of an emoji
        "\u2764\ufe0f\u200d\U0001f525",  # a heart on fire
        "\U0001f469\U0001f3fd\u200d\U0001f680",  # an astronaut with a skin tone
    ],
)
def test_visible_characters_are_kept(text):
    assert visible(text) == text
    assert not has_hidden(text)


@pytest.mark.parametrize(
    "hidden",
    [
        "\x00",
        "\x07",
        "\x1b",
        "\r",
        "\x7f",
        "\x85",
        "\xad",
        "\u034f",
        "\u115f",
        "\u180e",
        "\u200b",
        "\u200c",
        "\u200d",
        "\u200e",
        "\u2028",
        "\u202e",
        "\u2060",
        "\u2066",
        "\u2800",
        "\u3164",
        "\ud800",
        "\ufe00",
        "\ufeff",
        "\uffa0",
        "\U000e0041",
        "\U000e0100",
    ],
)
def test_invisible_characters_are_removed(hidden):
    assert visible(f"a{hidden}b") == "ab"
    assert has_hidden(f"a{hidden}b")


@pytest.mark.parametrize("text", ["\ufe0fa", "\u2764\ufe0f\ufe0f"])
def test_an_emoji_style_counts_once_and_behind_something(text):
    assert has_hidden(text)


@pytest.mark.parametrize(
    "text", ["\u200d", "\U0001f600\u200d", "\u200d\U0001f600", "a\u200d\U0001f600"]
)
def test_a_joiner_stays_only_between_two_pictographs(text):
    assert "\u200d" not in visible(text)


@given(st.text())
def test_visible_text_stays_visible(text):
    kept = visible(text)
    assert all(unicodedata.category(letter) not in {"Cs", "Zl", "Zp"} for letter in kept)
    assert not set(kept) & set(map(chr, [*range(9), *range(11, 32), *range(127, 160)]))


def test_one_line_folds_white_space_of_every_kind():
    assert one_line(" a\n\n b\t\u00a0c\r\nd ") == "a b c d"


@given(st.text())
def test_one_line_is_one_line_and_folding_twice_changes_nothing(text):
    assert len(one_line(text).splitlines()) <= 1
    assert one_line(one_line(text)) == one_line(text)


@given(st.text())
def test_no_field_can_close_its_own_tag(text):
    for document in (f"<a>{xml(text)}</a>", f'<a b="{xml(text)}"/>'):
        element = ET.fromstring(document)
        assert len(element) == 0
    assert "<" not in xml(text)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(-1, ""), (0, ""), (1, "…"), (3, "ab…"), (4, "ab…"), (5, "ab cd"), (9, "ab cd")],
)
def test_shortened_text_fits_and_says_that_it_was_cut(limit, expected):
    assert shorten("ab cd", limit) == expected


@given(st.text(), st.integers(0, 50))
def test_shortened_text_never_exceeds_its_limit(text, limit):
    assert len(shorten(text, limit)) <= limit


def test_the_quick_check_finds_every_hidden_character():
    for number in range(0x110000):
        letter = chr(number)
        if text_module._is_hidden(letter, 0):
            assert text_module._SUSPICIOUS.search(letter), hex(number)


def test_a_text_in_an_element_keeps_its_lines():
    assert xml_text('a <b>\n\t& "c"\u200b\n') == "a &lt;b&gt;\n\t&amp; &quot;c&quot;\n"


# XML has no word for two of the letters that are none.
_LETTERS = st.characters(exclude_characters="\ufffe\uffff") | st.sampled_from("<>&\"'\n\t\u200b")


@given(st.text(_LETTERS))
def test_an_element_contains_the_text_without_invisible_characters(text):
    element = ET.fromstring(f"<e>{xml_text(text)}</e>")
    assert (element.text or "") == visible(text)
    assert len(element) == 0
