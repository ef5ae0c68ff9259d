"""A pattern is searched where its literals stand, with the matches of a whole search."""

import json
import re
import time
from pathlib import Path

import pytest

from satchel.scan.code_pattern import CodePatterns
from satchel.scan.file_scanner import scan_text
from satchel.scan.scan_rules import _bounded, _data

FLAGS = re.IGNORECASE | re.MULTILINE
PATTERNS = [
    r"\benv|export\s",
    r"\w{0,200}b(?:16|64)decode\(",
    r"(?:curl|wget|get)[^\n]{0,60}169\.254",
    r"^\s*(?:ba|z)?sh\b",
    r"(?:\\x[67][0-9a-f]){2,4}",
    r"aa",
    r"(?<!x)kill(?=\s-9)",
    r"[13][a-z]{3}",
    r"",
]
TEXTS = [
    "env ENV export EXPORT\nenvy",
    "x.b64decode(b16decode(y)) base64.B64DECODE(",
    "CURL http://169.254.169.254 get 1\nget 169.254",
    "bash\n  zsh -c\nshell sh",
    r"\x61\x62\x63\x64\x65 \X61",
    "aaaaa aAa",
    "\u212aILL -9, xkill -9, \u0130\u0130 kill -9, \u017f",
    "1abc3def 2abc",
    "",
]


def spans(pattern, text):
    return sorted(match.span() for _, match in CodePatterns({"it": [pattern]}).matches(text))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_matches_are_those_of_a_whole_search(pattern):
    for text in (*TEXTS, "\n".join(TEXTS), "".join(TEXTS)):
        assert spans(pattern, text) == [it.span() for it in re.finditer(pattern, text, FLAGS)]


@pytest.fixture(scope="module")
def rules():
    return {kind: [*map(_bounded, patterns)] for kind, patterns in _data()["code"].items()}


def whole_search(rules, text):
    return sorted(
        (kind, match.span())
        for kind, patterns in rules.items()
        for pattern in patterns
        for match in re.finditer(pattern, text, FLAGS)
    )


def test_the_rules_find_the_same(rules):
    lures = json.loads((Path(__file__).parent / "lures.json").read_text())
    text = "\n".join(lures.values())
    found = sorted((kind, match.span()) for kind, match in CodePatterns(rules).matches(text))
    assert len(found) > 100
    assert found == whole_search(rules, text)


def test_a_long_file_is_scanned_in_a_fraction_of_a_whole_search(rules):
    line = '<xsd:attribute name="val{}" type="s:ST_OnOff" use="optional" default="on"/>\n'
    text = "".join(map(line.format, range(2000)))
    list(scan_text(text))  # compiles the patterns
    began = time.process_time()
    whole_search(rules, text)
    between = time.process_time()
    list(scan_text(text))
    assert time.process_time() - between < (between - began) / 3
