from hypothesis import given
from hypothesis import strategies as st

from satchel.prompt.group_notes import render_notes, render_sections
from satchel.text import has_hidden


def test_each_group_has_its_notes_under_its_own_heading():
    assert render_notes([("maps", "Geocode first.\n"), ("web", "Be brief.")]) == (
        "## About Tool Group 'maps'\n\nGeocode first.\n\n## About Tool Group 'web'\n\nBe brief."
    )


def test_a_group_without_notes_is_not_mentioned():
    assert render_notes([("maps", " \n"), ("web", "\u200b"), ("basic", "")]) == ""
    assert render_notes([]) == ""


def test_sections_are_paragraphs_and_empty_ones_are_left_out():
    assert render_sections(["One.\n", "", " \u200b", "Two."]) == "One.\n\nTwo."


def test_notes_keep_their_own_lines_and_indents():
    assert render_notes([("maps", "- one\n\n    code\n")]).endswith("\n\n- one\n\n    code")


def test_a_name_cannot_begin_a_line_of_its_own():
    assert render_notes([("a\n# b", "text")]).splitlines()[0] == "## About Tool Group 'a # b'"


@given(st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_nothing_invisible_gets_into_the_notes(groups):
    assert not has_hidden(render_notes(groups))
