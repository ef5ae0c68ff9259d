import pytest

from satchel.errors import (
    ConflictError,
    DefinitionError,
    NotFoundError,
    SatchelError,
    ToolError,
)


@pytest.mark.parametrize(
    ("where", "fix", "text"),
    [
        ("", "", "broken"),
        ("tools.py", "", "tools.py: broken"),
        ("", "mend it", "broken (mend it)"),
        ("tools.py", "mend it", "tools.py: broken (mend it)"),
    ],
)
def test_an_error_says_where_what_and_how_to_mend_it(where, fix, text):
    error = SatchelError("broken", where=where, fix=fix)
    assert str(error) == text
    assert (error.message, error.where, error.fix) == ("broken", where, fix)


@pytest.mark.parametrize("kind", [ConflictError, DefinitionError, ToolError])
def test_every_error_can_be_handled_as_one_kind(kind):
    with pytest.raises(SatchelError, match="broken"):
        raise kind("broken")


def test_what_is_not_found_carries_its_near_misses():
    error = NotFoundError("tool", "forcast", ["forecast", "broadcast"])
    assert (error.kind, error.name, error.near) == ("tool", "forcast", ("forecast", "broadcast"))
    assert str(error) == ("there is no tool named 'forcast' (did you mean forecast, broadcast?)")


def test_what_is_like_nothing_else_gets_no_hint():
    assert str(NotFoundError("skill", "x")) == "there is no skill named 'x'"
