"""How texts and queries are split into the terms of the index."""

import pytest

from satchel.search.search_terms import (
    MOST_TERMS,
    name_terms,
    normalize_text,
    query_terms,
    without_stop_words,
)


@pytest.mark.parametrize("name", ["read_file", "read-file", "readFile", "ReadFile", "READ FILE"])
def test_a_name_is_found_by_its_words_and_as_one_word_in_any_style(name):
    assert {"read", "file", "readfile"} <= set(name_terms(name))


def test_the_first_term_of_a_query_is_all_its_words_joined():
    assert query_terms("File system") == ("filesystem", "file", "system")
    assert query_terms("filesystem") == ("filesystem",)


def test_stop_words_count_only_if_there_are_no_others():
    assert query_terms("how do I read a file")[1:] == ("read", "file")
    assert query_terms("how do I")[1:] == ("how", "do", "i")
    assert without_stop_words("Read the file to me") == "read file"


def test_text_without_spaces_is_searched_by_pairs_of_characters():
    assert query_terms("\u5929\u6c17\u4e88") == (
        "\u5929\u6c17\u4e88",
        "\u5929 \u6c17",
        "\u6c17 \u4e88",
    )
    assert "\u5929 \u6c17" in normalize_text("\u5929\u6c17").replace("  ", " ")


def test_case_width_and_invisible_characters_do_not_matter():
    assert normalize_text("Stra\u00dfe \uff21\u200bB") == "strasse ab"


@pytest.mark.parametrize("query", ["", "   ", "?!.", "\u200b"])
def test_a_query_without_words_has_no_terms(query):
    assert query_terms(query) == ()


def test_a_long_query_is_cut():
    assert len(query_terms(" ".join(f"w{number}" for number in range(500)))) == MOST_TERMS
