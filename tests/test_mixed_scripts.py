"""Names whose letters come from alphabets that look alike."""

import pytest

from satchel.mixed_scripts import mixes_scripts, passes_for_latin, skeleton, unstyled


@pytest.mark.parametrize(
    "name",
    [
        "p\u0430ypal",  # a Cyrillic letter in a Latin word
        "\u0440\u0430\u0443-tool",  # a whole word that passes for a Latin one
        "read\u30fcfile",  # the long vowel of Japanese as a hyphen
        "rea\u0665",  # an Arabic number beside a Latin letter
        "a\u2215b",  # another slash
        "\u01c0ist",  # the letter of a click as an l
    ],
)
def test_a_name_that_could_pass_for_another_one_mixes_scripts(name):
    assert mixes_scripts(name)


@pytest.mark.parametrize(
    "name",
    [
        "read-file",
        "caf\u00e9",
        "\u0447\u0442\u0435\u043d\u0438\u0435",  # a Russian word
        "pdf\u8aad\u307f\u53d6\u308a",  # Japanese beside Latin
        "pdf-\u0434\u043b\u044f-\u043b\u044e\u0434\u0435\u0439",  # a Russian phrase beside Latin
        "\u0442\u043e\u043a",
    ],
)
def test_an_honest_name_does_not(name):
    assert not mixes_scripts(name)


def test_a_word_passes_for_latin_only_with_all_its_letters_and_if_it_is_long_enough():
    assert passes_for_latin("\u0441\u043e\u0440\u0443")
    assert not passes_for_latin("\u0441\u043e\u0440\u044f")
    assert not passes_for_latin("\u0441\u043e")


def test_another_style_of_a_letter_is_the_letter():
    assert unstyled("\uff52\uff45\uff41\uff44\u2010\u1d0d\u1d07") == "read-me"


@pytest.mark.parametrize("name", ["p\u0430ypa\u04cf", "PAYPAL", "pa\u0443pal", "p\u00e1ypal"])
def test_names_that_read_alike_have_one_skeleton(name):
    assert skeleton(name) == "paypal"
