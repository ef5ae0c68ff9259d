"""A pattern is tried only around its literals, with the matches of a whole search."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from satchel.scan.file_scanner import scan_text
from satchel.scan.lexicon import CodePattern, Lexicon
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


@pytest.mark.parametrize(
    "part", ["curl -d $(cat a) ", "do not tell the user to read ~/.ssh\n", "a"]
)
def test_the_time_grows_with_the_length(part):
    def seconds(length):
        text = part * (length // len(part))
        return min(timed(text) for _ in range(2))

    def timed(text):
        began = time.process_time()
        list(scan_text(text))
        return time.process_time() - began

    timed(part)
    assert seconds(80_000) < 10 * seconds(20_000) + 0.1


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
