import pytest

from satchel.formats import imported_beside


@pytest.mark.parametrize(
    ("source", "package", "found"),
    [
        ("from .rules import A, B as C", "", [("A", "rules", "A"), ("C", "rules", "B")]),
        ("from . import rules", "", [("rules", "", "rules")]),
        ("from .rules import *", "a.b", [("*", "a.b.rules", "*")]),
        ("from ..c.rules import A", "a.b", [("A", "a.c.rules", "A")]),
        ("from .. import A", "a", [("A", "", "A")]),
        ("if x:\n    from .rules import A", "", [("A", "rules", "A")]),
        ("from .. import A", "", []),
        ("from rules import A\nimport rules", "", []),
        ("def f():\n    from .rules import A", "", []),
        ("does not compile", "", []),
    ],
)
def test_what_a_module_imports_from_beside_it_is_known_by_its_module(source, package, found):
    assert list(imported_beside(source.encode(), package)) == found
