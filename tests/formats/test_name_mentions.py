from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.formats import mentions_in


def reached(source, name):
    """The names that a name leads to."""
    names = mentions_in(dedent(source).encode()).names
    found, waiting = set(), [name]
    while waiting:
        if (it := waiting.pop()) not in found:
            found.add(it)
            waiting += names.get(it, ())
    return {it for it in found if it.isidentifier()} - {name}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("A = B", {"B"}),
        ("A, C = B, D", {"B", "C", "D"}),
        ("A = B\nB = C", {"B", "C"}),
        ("B = A", set()),
        ("A: B = C", {"B", "C"}),
        ("A += B", {"B"}),
        ("A.append(B)", {"B"}),
        ("A['b'] = B", {"B"}),
        ("def A():\n    return B", {"B"}),
        ("class A:\n    one = B", {"B", "one"}),
        ("if C:\n    A = B", {"B"}),
        ("try:\n    A = B\nfinally:\n    pass", {"B"}),
        ("for A in B: ...", {"B"}),
        ("A = [it for it in B]", {"B", "it"}),
        ("def f(:", set()),
    ],
)
def test_a_name_leads_to_what_it_may_be_made_of(source, names):
    assert reached(source, "A") == names


@pytest.mark.parametrize(
    ("line", "own", "from_"),
    [
        ("from .rules import A", "A", ("rules", "A")),
        ("from ..far.rules import A as B", "B", ("rules", "A")),
        ("from . import rules", "rules", ("", "rules")),
        ("from .rules import *", "*", ("rules", "*")),
        ("import far.rules", "far", ("", "rules")),
        ("import far.rules as r", "r", ("", "rules")),
        ("def f():\n    from .rules import A", "A", ("rules", "A")),
    ],
)
def test_an_import_is_told_by_the_last_part_of_its_module(line, own, from_):
    assert mentions_in(line.encode()).imports == {own: {from_}}


def test_a_statement_of_very_many_names_is_read_soon():
    many = ", ".join(f"a{at}" for at in range(20_000))
    names = mentions_in(f"f({many})".encode()).names
    assert sum(map(len, names.values())) < 50_000


@given(st.binary() | st.text().map(str.encode))
def test_no_source_makes_it_raise(source):
    mentions_in(source)
