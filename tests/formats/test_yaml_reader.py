import base64
import json
import time
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from satchel.formats.yaml_reader import read_yaml
from satchel.settings import Limits

YAMLISH = st.text(st.sampled_from("ab:-?[]{},&*!|>'\"%@`#~<\\ \t\n\x85\u2028\ud800\x00é"))


def read(text, limits=Limits(), first_line=1):  # noqa: B008  frozen
    return read_yaml(text, "f.yaml", limits, first_line)


def places(reading):
    return [(item.code, item.where.line) for item in reading.diagnostics]


def test_scalars_stay_text_and_only_a_plain_empty_value_is_none():
    text = (
        "int: 3000\nno: no\ndate: 2001-99-99\nnan: .nan\nv: =\nempty:\ntilde: ~\nq: ''\nn: 'null'\n"
    )
    assert read(text).value.values == {
        "int": "3000",
        "no": "no",
        "date": "2001-99-99",
        "nan": ".nan",
        "v": "=",
        "empty": None,
        "tilde": None,
        "q": "",
        "n": "null",
    }


def test_every_key_and_item_has_its_line_in_the_file():
    text = "a: x\nb:\n  c:\n    - d\n    - {e: f}\n"
    assert read(text, first_line=2).value.lines == {
        ("a",): 2,
        ("b",): 3,
        ("b", "c"): 4,
        ("b", "c", "0"): 5,
        ("b", "c", "1"): 6,
        ("b", "c", "1", "e"): 6,
    }


def test_quoted_merge_signs_and_yaml_directives_are_harmless():
    assert read("%YAML 1.2\n---\n'<<': a\n...\n").value.values == {"<<": "a"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x b\n", [("yaml-unsafe", 1)]),
        ("a: b\nc: *x\n", [("yaml-unsafe", 2)]),
        ("*x : b\n", [("yaml-unsafe", 1)]),
        ("a: !!python/name:os.system x\n", [("yaml-unsafe", 1)]),
        ("a: ! x\n", [("yaml-unsafe", 1)]),
        ("<<: {a: b}\n", [("yaml-unsafe", 1)]),
        ("a: b\n---\nc: d\n", [("yaml-unsafe", 2)]),
        ("? [a]\n: b\n", [("yaml-unsafe", 1)]),
        ("? {a: b}\n: b\n", [("yaml-unsafe", 1)]),
        ("%TAG ! tag:evil,\n---\na: b\n", [("yaml-unsafe", 1)]),
        ("a: b\nc: d\na: e\n", [("yaml-duplicate-key", 3)]),
        ("a: {b: c, b: d}\n", [("yaml-duplicate-key", 1)]),
        ("- a\n", [("yaml-not-a-mapping", 1)]),
        ("a\n", [("yaml-not-a-mapping", 1)]),
        ("", [("yaml-not-a-mapping", 1)]),
        ("# only a comment\n", [("yaml-not-a-mapping", 1)]),
        ("a: b: c\n", [("yaml-invalid", 1)]),
        ("a:\n\tb: c\n", [("yaml-invalid", 2)]),
        ("a: b\nc: @d\n", [("yaml-invalid", 2)]),
        ("a: [b\n", [("yaml-invalid", 2)]),
        ("a: b\nc: \x07\n", [("yaml-invalid", 2)]),
        ("a: \ud800\n", [("yaml-invalid", 1)]),
        ('a: "\\0"\n', [("yaml-invalid", 1)]),
        ('a: "\\ud800"\n', [("yaml-invalid", 1)]),
        ('a: "\\UFFFFFFFF"\n', [("yaml-invalid", 1)]),
    ],
)
def test_traps_are_refused_with_their_line_by_either_parser(text, expected, monkeypatch):
    with_libyaml = read(text)
    monkeypatch.delattr(yaml, "CSafeLoader")
    without = read(text)
    assert with_libyaml.value is without.value is None
    assert [code for code, _ in places(with_libyaml)] == [code for code, _ in places(without)]
    assert places(with_libyaml) == expected
    assert all(item.fix for item in with_libyaml.diagnostics)


def test_several_refusals_are_reported_at_once():
    reading = read("a: &x b\nc: !t d\n'<<': e\nc: f\n")
    assert places(reading) == [("yaml-unsafe", 1), ("yaml-unsafe", 2), ("yaml-duplicate-key", 4)]


def test_a_hostile_file_fills_no_more_than_a_screen():
    reading = read("".join(f"k{number}: &a{number} v\n" for number in range(900)))
    assert len(reading.diagnostics) == 20


def test_the_limits_of_size_depth_and_nodes_are_exact_and_named():
    limits = Limits(frontmatter=20, yaml_depth=2, yaml_nodes=5)
    assert read("a: [b, c]\n", limits).value
    for text, name in [
        ("a: [[b]]\n", "yaml_depth"),
        ("a: [b, c, d]\n", "yaml_nodes"),
        ("a: bbbbbbbbbbbbbbbbbbb\n", "frontmatter"),
    ]:
        (diagnostic,) = read(text, limits).diagnostics
        assert diagnostic.code == "yaml-too-large"
        assert f"(limit {name})" in diagnostic.message


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 50_000,
        "a: " + "{" * 50_000,
        "- " * 50_000,
        "\n".join(" " * depth + "a:" for depth in range(1_000)),
    ],
    ids=["brackets", "braces", "dashes", "indentation"],
)
@pytest.mark.parametrize("loader", ["libyaml", "pure"])
def test_deep_nesting_is_refused_at_once_whatever_the_size_limit(text, loader, monkeypatch):
    if loader == "pure":
        monkeypatch.delattr(yaml, "CSafeLoader")
    began = time.process_time()
    reading = read(text, replace(Limits(), frontmatter=10_000_000))
    assert {item.code for item in reading.diagnostics} == {"yaml-too-large"}
    assert time.process_time() - began < 2


def test_too_many_brackets_name_the_limit_of_depth():
    (diagnostic,) = read("a: '" + "[" * 10_001 + "'").diagnostics
    assert diagnostic.message == "10,001 opening brackets, more than 10,000 (limit yaml_depth)"


def test_brackets_in_text_are_not_nesting():
    text = "a: |\n" + "  - [ ] {{ todo }} ((((\n" * 500 + "b: '" + "[" * 200 + "'\n"
    assert read(text).value.values["b"] == "[" * 200


def test_doubtful_line_ends_are_blanks_so_that_no_key_hides_behind_one():
    assert read("a: x\u2028b: y\n").value is None
    assert read("a: x\x85y\u2029z\nb: c\n").value.values == {"a": "x y z", "b": "c"}


def test_absurd_numbers_do_not_escape_as_errors_of_python(monkeypatch):
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert places(read(f"%YAML 1.{'9' * 5_000}\n---\na: b\n")) == [("yaml-invalid", 1)]


@given(YAMLISH | st.text())
def test_no_text_makes_the_reader_raise(text):
    reading = read(text)
    assert (reading.value is None) == bool(reading.diagnostics)


@given(
    st.dictionaries(
        st.text("abc-_ é:#", min_size=1),
        st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp", "Cn"])),
    ).filter(bool)
)
def test_quoted_text_comes_back_as_it_was(values):
    def quoted(text):
        return "'{}'".format(text.replace("'", "''"))

    text = "".join(f"{quoted(key)}: {quoted(value)}\n" for key, value in values.items())
    assert read(text, Limits(frontmatter=10**6)).value.values == values


# What libyaml takes although YAML 1.2 says no; all of it is harmless to us.
LENIENT = {"9C9N", "DK95/01", "QB6E", "S98Z", "SU5Z", "X4QW"}
# What libyaml, or the suite itself, reads otherwise than YAML 1.2.
DIFFERENT = {"652Z", "L24T/01"}


def test_the_yaml_test_suite_is_read_as_it_says_or_refused(shared):
    suite = json.loads((shared / "hostile" / "yaml-test-suite.json").read_text())
    taken, different = set(), set()
    for case in suite["cases"]:
        value = read(base64.b64decode(case["yaml"]).decode()).value
        if value and case["error"]:
            taken.add(case["id"])
        elif value and case["json"]:
            expected = json.loads(base64.b64decode(case["json"]))
            if value.values != _as_text(expected):
                different.add(case["id"])
    assert taken <= LENIENT
    assert different <= DIFFERENT


def _as_text(value):
    match value:
        case dict():
            return {key: _as_text(item) for key, item in value.items()}
        case list():
            return [_as_text(item) for item in value]
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
    return value
