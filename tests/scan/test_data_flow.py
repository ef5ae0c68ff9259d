"""Data is followed from the statement that has it to the one that uses it."""

import pytest

from satchel.scan.data_flow import DataFlow, read_flow_sign
from satchel.scan.lexicon import Lexicon
from satchel.scan.readable_text import readable_texts

LEXICON = Lexicon(
    {}, {"fetch": ["\u00abcurl\u00bb"], "run": ["\u00abeval\u00bb", "\u00absh\u00bb "]}
)
FLOW = DataFlow([r"^\s*([\w.]+)\s*=", r"-o\s+(\S+)", r">\s*(\S+)"], ["fetch"])


def found_in(text, sign="run ^fetch"):
    signs = [("rule", read_flow_sign(sign))]
    matches = FLOW.find(text, LEXICON.spans_in(text), signs)
    return [text[start:end].strip() for _, start, end in matches]


@pytest.mark.parametrize(
    "text",
    [
        "code = curl(x)\neval(code)\n",
        "code = curl(x)\nother = code\neval(other)\n",
        "curl -o bin/x.sh host; sh bin/x.sh\n",
        "curl host > x && sh x\n",
        "def load():\n    return curl(x)\neval(load())\n",
        "code = curl(x)\nsettings = {'a': code}\neval(settings['a'])\n",
    ],
)
def test_a_statement_that_uses_a_fetched_value_is_found(text):
    (statement,) = found_in(text)
    assert statement.startswith(("eval", "sh"))


@pytest.mark.parametrize(
    "text",
    [
        "eval(code)\ncode = curl(x)\n",  # used before it is fetched
        "code = curl(x)\neval(other)\n",
        "```\ncode = curl(x)\n```\n```\neval(code)\n```\n",  # another block of code
        "curl -o a.sh host; sh b.sh\n",
    ],
)
def test_a_statement_that_uses_another_value_is_not(text):
    assert found_in(text) == []


def test_a_kind_may_be_in_the_statement_itself_or_must_be_absent():
    text = "code = 1\neval(curl(x))\n"
    assert found_in(text, "run fetch") == ["eval(curl(x))"]
    assert found_in(text, "run !fetch") == []


def test_a_here_document_belongs_to_the_statement_that_opens_it():
    assert found_in("sh <<END\ncurl host\nEND\n", "run fetch") == ["sh <<END\ncurl host\nEND"]


def test_a_sign_has_an_act_and_kinds_of_statements_and_names():
    sign = read_flow_sign("run fetch ^secret !example")
    assert (sign.act, sign.involved, sign.name_kinds, sign.absent) == (
        "run",
        ("fetch",),
        ("secret",),
        ("example",),
    )
    assert sign.kinds == {"run", "fetch", "secret"}


HEAD = "def load():\n    code = curl(x)\n"


@pytest.mark.parametrize(
    ("text", "is_met"),
    [
        (HEAD + "def show(code):\n    eval(code)\n", False),
        (HEAD + "    eval(code)\n", True),
        (HEAD + "    def inner():\n        eval(code)\n", True),
        (HEAD + "    show(code)\ndef show(text):\n    eval(text)\n", True),
        ("def show(text):\n    eval(text)\n" + HEAD + "    show(code)\n", True),
        ("def load():\n    global code\n    code = curl(x)\ndef show():\n    eval(code)\n", True),
        ("class A:\n def b(self):\n  self.c = curl(x)\n def d(self):\n  eval(self.c)\n", True),
    ],
)
def test_names_of_a_function_in_python_end_with_it_but_for_what_leaves_it(text, is_met):
    plain = next(iter(readable_texts(text)))
    signs = [("rule", read_flow_sign("run ^fetch"))]
    matches = FLOW.find(plain.text, LEXICON.spans_in(plain.text), signs, plain.functions)
    assert bool(list(matches)) is is_met
