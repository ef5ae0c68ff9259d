"""Where words and code stand: a pattern is tried only around its literals, and misses nothing."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from satchel.scan.file_scanner import scan_text
from satchel.scan.lexicon import CodePattern, Lexicon, stripped
from satchel.scan.scan_rules import lure_finder

LURES = json.loads((Path(__file__).parent / "lures.json").read_text())


@pytest.fixture(scope="module")
def lexicon():
    return lure_finder().lexicon


def in_whole_text(patterns, text):
    """Return the matches; for those that end in space, without it."""
    return {
        text[it.start() : it.end()].strip(" \t\n;&|")
        for pattern in patterns
        for it in pattern.compiled.finditer(text)
    }


@pytest.mark.slow
def test_the_rules_find_the_same_as_in_a_whole_search(lexicon):
    for text in LURES.values():
        spans = lexicon.spans_in(text)
        for kind, patterns in lexicon.code.items():
            matches = {text[start:end].strip(" \t\n;&|") for start, end in spans[kind]}
            assert matches == in_whole_text(patterns, text), kind


@pytest.mark.slow
def test_each_match_has_a_literal(lexicon):
    """A mark in a part that may be missing would hide matches."""
    patterns = [it for of_kind in lexicon.code.values() for it in of_kind if it.literals != [""]]
    assert len(patterns) > 600
    for pattern in patterns:
        short = re.sub(r"\{(\d),200\}", r"{\1,2}", pattern.compiled.pattern)
        matching = st.from_regex(re.compile(short, re.MULTILINE))

        @settings(max_examples=1, database=None, deadline=None, suppress_health_check=HealthCheck)
        @given(text=matching, literals=st.just(pattern.literals))
        def check(text, literals):
            assert any(it in text.lower() for it in literals)

        check()


def test_a_literal_is_one_of_several_in_any_case():
    pattern = CodePattern("\\b\u00aba.b(|c+\u00bb\\s")
    assert pattern.literals == ["a.b(", "c+"]
    text = "A.B( axb( \u0130\nC+ c\n"
    lexicon = Lexicon({}, {"it": ["\\b\u00aba.b(|c+\u00bb\\s", "x"]})
    assert lexicon.spans_in(text.replace("\u0130", "i"))["it"] == [(0, 5), (6, 7), (12, 15)]


@pytest.mark.slow
def test_a_long_file_is_scanned_in_a_fraction_of_a_whole_search(lexicon):
    line = '<xsd:attribute name="val{}" type="s:ST_OnOff" use="optional" default="on"/>\n'
    text = "".join(map(line.format, range(2000)))
    list(scan_text(text))
    began = time.process_time()
    for patterns in lexicon.code.values():
        in_whole_text(patterns, text)
    between = time.process_time()
    list(scan_text(text))
    assert time.process_time() - between < (between - began) / 3


def words_of(kind, text, **words):
    return [text[start:end] for start, end in Lexicon(words, {}).spans_in(text)[kind]]


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("Send it.", ["Send"]),
        ("It is sending, and it sends.", ["sending", "sends"]),
        ("Sender of the mail", []),
        ("upload all your files", ["upload all your files"]),
        ("upload all of your files", []),
        ("upload -- and ever so far away -- files", []),
        ("upload(files), upload = {files}, [upload], files | upload, file: upload", []),
        ("UPLOAD FILES; upload files", ["UPLOAD FILES", "upload files"]),
    ],
)
def test_a_phrase_is_found_in_every_form_with_small_words_between(text, matches):
    assert words_of("out", text, out="send, upload file|document") == matches


def test_a_kind_that_a_text_lacks_has_no_spans():
    spans = Lexicon({"out": "send"}, {"run": ["\u00abeval(\u00bb"]}).spans_in("Read it.")
    assert (spans["out"], spans["run"], spans.possible) == ([], [], set())


def test_words_cost_nothing_and_patterns_without_a_literal_most():
    lexicon = Lexicon({"a": "x"}, {"b": ["\u00abeval(\u00bb"], "c": ["x+"]})
    assert sorted("cba", key=lexicon.cost) == ["a", "b", "c"]


def test_a_span_begins_behind_the_space_and_marks_before_it():
    assert stripped("a && sh", 1, 7) == (5, 7)
