"""The fast reader of simple YAML reads what the YAML parser reads, or leaves it alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.formats import yaml_reader
from satchel.formats.front_matter import split_front_matter
from satchel.formats.simple_yaml import read_simple_yaml
from satchel.settings import Limits

LIMITS = Limits()


def simple(text):
    return read_simple_yaml(text, 1, LIMITS.yaml_nodes)


def parsed(text):
    """Read a text by the YAML parser alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_reader, "read_simple_yaml", lambda *_: None)
        return yaml_reader.read_yaml(text, "SKILL.md", LIMITS)


def reads_the_same(text):
    reading = simple(text)
    if reading is None or yaml_reader.UNPRINTABLE.search(text):
        return
    expected = parsed(text)
    assert expected.value is not None, expected.diagnostics
    assert (expected.value.values, expected.value.lines) == reading
    assert expected.diagnostics == ()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("name: pdf\ndescription: Reads a file.", {"name": "pdf", "description": "Reads a file."}),
        ('a: "in: quotes # here"\n', {"a": "in: quotes # here"}),
        ("a: 'in \"quotes\"'  ", {"a": 'in "quotes"'}),
        ("# a comment\n\na: 1\n   \nb:\n", {"a": "1", "b": None}),
        ("a: null\nb: ~", {"a": None, "b": None}),
        ("a: Null", {"a": None}),
        ("a: naïve ✓", {"a": "naïve ✓"}),
        ("a: x:y [z] {w}, n#1", {"a": "x:y [z] {w}, n#1"}),
        ("a: 'it''s'", {"a": "it's"}),
        ("a:\n  b: c\n  d: 'e'\nf: g\n", {"a": {"b": "c", "d": "e"}, "f": "g"}),
        ("a:\n\n  # x\n  b:\n  c: ~\n", {"a": {"b": None, "c": None}}),
        ('a:\n- b\n- "c"\nd: e', {"a": ["b", "c"], "d": "e"}),
        ("a:\n  - b\n  -  c\n", {"a": ["b", "c"]}),
        ("a: >\n  b\n  c\n\n  d\n\ne: f", {"a": "b c\nd\n", "e": "f"}),
        ("a: >-\n  b\n  # c\n", {"a": "b # c"}),
        ("a: |\n  b\n   c\n", {"a": "b\n c\n"}),
        ("a: |-\n b: c\n\n\n", {"a": "b: c"}),
        ("a: [b, 'c, d' , \"e\",null ]  \nf: g", {"a": ["b", "c, d", "e", None], "f": "g"}),
        (
            "a:\n  b:\n    c: d\n\n  e:\n  - f\ng:\n",
            {"a": {"b": {"c": "d"}, "e": ["f"]}, "g": None},
        ),
        ("a:\n-  b: c\n # x\n   d:\n   - e\n- f", {"a": [{"b": "c", "d": ["e"]}, "f"]}),
    ],
)
def test_simple_entries_are_read(text, values):
    reading = simple(text)
    assert reading[0] == values
    reads_the_same(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment",
        "a: 1\na: 2",
        "a: b: c",
        "a: b:",
        "a: b # c",
        "a: b [c] #d",
        "a: [b",
        "a: []",
        "a: [b] c",
        "a: [b, [c]]",
        "a: [b: c]",
        "a: [b c, d #e]",
        "a: [b,]",
        "a: |\n  b",
        "a: >\n  b",
        "a: >\n  b\n   c\n",
        "a: >\n b\n  \n",
        "a: >\n\n  b\n",
        "a: >+\n  b\n",
        "a: |2\n  b\n",
        "a: |\nb: c",
        "a:\n  b:\n    c:\n      d:\n        e:\n          f: g",
        "a:\n  b: |\n    c\n",
        "a:\n  b: c\n   d: e",
        "a:\n  b: c\n d: e",
        "a:\n  b: c\n  b: d",
        "a:\n- b\n  c",
        "a:\n- b: c\n  b: d",
        "a:\n- b: c\n   d: e",
        "a:\n- - b",
        "a:\n- b: >\n    c\n",
        "a:\n- b\nc\n",
        "a:\n  - b\n- c",
        "a:\n  b: c\n- d",
        "a:\n-\n",
        "- a",
        "a: b\n- c",
        "a: b\n  c",
        'a: "b\\n"',
        "a: 'it's'",
        'a: "b" c',
        "a:\tb",
        "a: b\r\nc: d",
        "a: b\x85c: d",
        "a: b\u2028c: d",
        "\ufeffa: b",
        "a:b",
        "a : b",
        "---\na: b",
        "<<: b",
        "? a",
        "a: &b c",
        "a: !b c",
        "a: *b",
        "%YAML 1.1",
        "a: -b",
    ],
)
def test_everything_else_is_left_to_the_parser(text):
    assert simple(text) is None


def test_more_nodes_than_the_limit_are_left_to_the_parser():
    assert read_simple_yaml("a: 1\nb: 2", 1, 5) is not None
    assert read_simple_yaml("a: 1\nb: 2", 1, 4) is None


def test_lines_are_counted_from_the_first_line_of_the_front_matter():
    assert read_simple_yaml("a: 1\n\n# x\nb: 2", 5, 9)[1] == {("a",): 5, ("b",): 8}


TOKENS = st.sampled_from(
    [
        *(
            "a",
            "b-c",
            "1",
            "null",
            "~",
            "Null",
            "no",
            "2024-01-01",
            "é",
            "✓",
            "<<",
            "=",
            "---",
            "...",
        ),
        *(":", ": ", " :", "#", " #", "- ", "-", "?", "? ", ",", "[", "]", "{", "}", "&", "*", "!"),
        *("|", ">", "'", '"', "''", '""', "%", "@", "`", "\\", " ", "  ", "\t", "\n", "\r", "\n  "),
        *("[a, b]", ", c", "'d'", "\n    - e: ", "\n      f: "),
        *("\n  ", "\n  - ", "\n- ", "\n  b: ", " >", " >-\n  ", " |\n  ", "\n\n", "''"),
        *("a: ", "\nb: ", "\nname: ", "\nc:", "\x85", "\u2028", "\ufeff", "\u00a0", "\u3000"),
    ]
)
TEXTS = st.lists(TOKENS, max_size=14).map("".join)
BLOCK_LINES = st.lists(
    st.sampled_from(
        [
            "",
            " ",
            "  ",
            "  a",
            "  b c ",
            "   d",
            "  # e",
            " f",
            "g: h",
            "# i",
            "  - j",
            "- k",
            "  l: m",
            "  l:",
            "  - n: o",
            "  'p'",
            "  q: >",
            "    r",
            "    s: t",
            "    - u: v",
            "      w: [x, 'y', \"z\"]",
        ]
    ),
    max_size=7,
)
NESTED = st.lists(
    st.tuples(
        st.sampled_from(["a:", "b: >", "c: >-", "d: |", "e: |-", "f: >+", "g: x", "h: >2", "i: "]),
        BLOCK_LINES,
    ).map(lambda parts: "\n".join([parts[0], *parts[1]])),
    min_size=1,
    max_size=3,
).map("\n".join)
ENTRIES = st.lists(
    st.tuples(st.sampled_from(["name", "a", "b_1", "null", "1"]), st.one_of(TEXTS, st.text())),
    min_size=1,
    max_size=4,
).map(lambda entries: "\n".join(f"{key}: {value}" for key, value in entries))


@given(st.one_of(TEXTS, ENTRIES, NESTED, NESTED.map(lambda text: text + "\n"), st.text()))
def test_what_it_reads_is_what_the_parser_reads(text):
    reads_the_same(text)


def test_real_front_matter_is_read_the_same(shared):
    paths = sorted((shared / "corpus").rglob("SKILL.md"))
    simple_ones = 0
    for path in paths:
        split = split_front_matter(path.read_bytes(), str(path), LIMITS).value
        if split is not None:
            reads_the_same(split.text)
            simple_ones += simple(split.text) is not None
    assert simple_ones > len(paths) / 3
