import pytest

from satchel.formats import may_hold


@pytest.mark.parametrize(
    "source",
    [
        "C = 1",
        "C: int = 1",
        "A = C = 1",
        "A, (C, *B) = x",
        "if x:\n    C = 1",
        "for C in x: ...",
        "with x as C: ...",
        "(C := 1)",
        "C += 1",
        "def C(): ...",
        "class C: ...",
        "import C",
        "import C.b",
        "import a as C",
        "from a import C",
        "from a import b as C",
        "from a import *",
        "try:\n    from a import C\nexcept E:\n    pass",
        "does not compile",
    ],
)
def test_a_module_may_hold_what_it_binds(source):
    assert may_hold(source.encode(), "C")


@pytest.mark.parametrize(
    "source",
    [
        "",
        "D = C",
        "C.x = 1",
        "C[0] = 1",
        "def f():\n    C = 1",
        "import a.C",
        "import C as b",
    ],
)
def test_a_module_does_not_hold_what_it_only_mentions(source):
    assert not may_hold(source.encode(), "C")
