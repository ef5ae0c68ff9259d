import logging

import griffe
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.tools.docstrings import read_docstring, short

GOOGLE = """Weather for the next days.

Only land.

Args:
    city: City name,
        in English.
    days (int): How many.

Returns:
    A dict.

Note:
    Call geocode first.
"""

NUMPY = """Weather for the next days.

Only land.

Parameters
----------
city : str
    City name,
    in English.
days : int, optional
    How many.

Returns
-------
dict
    A dict.
"""

SPHINX = """Weather for the next days.

Only land.

:param city: City name,
    in English.
:param int days: How many.
:returns: A dict.
"""


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX])
def test_every_common_layout_gives_the_description_and_the_parameters(docstring):
    description, parameters = read_docstring(docstring)
    assert description.startswith("Weather for the next days.\n\nOnly land.")
    assert "A dict." not in description
    assert {name: " ".join(text.split()) for name, text in parameters.items()} == {
        "city": "City name, in English.",
        "days": "How many.",
    }


def test_other_parameters_count_too():
    text = "Do it.\n\nParameters\n----------\na : int\n    One.\n\n"
    text += "Other Parameters\n----------------\nb : int\n    Two.\n"
    assert read_docstring(text) == ("Do it.", {"a": "One.", "b": "Two."})


def test_a_note_to_the_reader_stays_in_the_description():
    assert read_docstring(GOOGLE)[0].endswith("\n\nNote: Call geocode first.")


def test_without_a_docstring_there_is_nothing():
    assert read_docstring(None) == ("", {})


def test_one_line_is_the_description():
    assert read_docstring("  Weather. ") == ("Weather.", {})


def test_text_without_sections_is_kept_as_it_stands():
    assert read_docstring("Weather:\n  rain, and\n  sun") == ("Weather:\nrain, and\nsun", {})


def test_invisible_characters_are_removed():
    assert read_docstring("Wea\u200bther\ud800.") == ("Weather.", {})


def test_reading_says_nothing_in_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    read_docstring("Do it.\n\nArgs:\n    a b c\n    x (List[: broken\n\nReturns:\n    x: y")
    assert caplog.records == []


def test_a_docstring_that_breaks_the_parser_is_kept_as_it_stands(monkeypatch):
    def broken(*_args, **_kwargs):
        raise IndexError

    monkeypatch.setattr(griffe, "parse_auto", broken)
    assert read_docstring("One.\n\nArgs:\n    a: x") == ("One.\n\nArgs:\n    a: x", {})


STARS = [
    "Do it.\n\nArgs:\n    *args: One.\n    **kwargs: Two.\n",
    "Do it.\n\nParameters\n----------\n*args : int\n    One.\n**kwargs : int\n    Two.\n",
    "Do it.\n\n:param args: One.\n:param kwargs: Two.\n",
]


@pytest.mark.parametrize("docstring", STARS)
def test_variadic_parameters_are_found_without_their_stars(docstring):
    assert read_docstring(docstring)[1] == {"args": "One.", "kwargs": "Two."}


@pytest.mark.parametrize(
    ("text", "first"),
    [("", ""), ("One.", "One."), ("One,\nand more.\n\nTwo.", "One,\nand more."), ("\n\nOne.", "")],
)
def test_the_short_form_is_the_first_paragraph(text, first):
    assert short(text) == first


LINES = st.sampled_from(
    ["Args:", "Parameters", "----------", ":param x: y", "    x: y", "  :", "", ">>> x", "x : int"]
)


@given(st.lists(LINES | st.text(max_size=20)).map("\n".join))
def test_no_docstring_ever_raises(text):
    description, parameters = read_docstring(text)
    assert isinstance(description, str)
    assert isinstance(parameters, dict)
