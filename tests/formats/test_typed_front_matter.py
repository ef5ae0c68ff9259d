"""The frontmatter as a client's YAML parser reads it."""

import pytest

from satchel.formats.typed_front_matter import typed_front_matter
from satchel.settings import Limits


def read(text):
    return typed_front_matter(f"---\n{text}\n---\nBody\n".encode(), Limits())


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("+3", 3),
        ("0x1F", 31),
        ("0o17", 15),
        ("007", 7),
        ("1.50", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("yes", "yes"),
        ("2024-01-01", "2024-01-01"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("1e999", "1e999"),
        ("'3'", "3"),
        ('"true"', "true"),
        ("some words", "some words"),
        ("[1, a, '2']", [1, "a", "2"]),
        ("{a: 1, b: {c: no}}", {"a": 1, "b": {"c": "no"}}),
        (">\n  folded\n  text", "folded text\n"),
    ],
)
def test_values_have_the_types_of_yaml_1_2(written, value):
    result = read(f"key: {written}")
    assert result == {"key": value}
    assert type(result["key"]) is type(value)


@pytest.mark.parametrize("text", ["a: &x 1\nb: *x", "a: !!int 3", "a: 1\na: 2", "a: [", "- 1"])
def test_what_loaders_disagree_about_is_not_read(text):
    assert read(text) is None


def test_a_file_without_frontmatter_has_none():
    assert typed_front_matter(b"Just text\n", Limits()) is None


def test_thousands_of_digits_stay_text():
    assert read("key: " + "9" * 5_000) == {"key": "9" * 5_000}
