from pathlib import Path

import pytest

import satchel
from satchel.errors import (
    ConflictError,
    ContractError,
    DefinitionError,
    NotFoundError,
    SatchelError,
    ToolError,
    install_hint,
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
def test_an_error_has_place_message_and_fix(where, fix, text):
    error = SatchelError("broken", where=where, fix=fix)
    assert str(error) == text
    assert (error.message, error.where, error.fix) == ("broken", where, fix)


@pytest.mark.parametrize("kind", [ConflictError, DefinitionError, ToolError])
def test_every_error_can_be_handled_as_one_kind(kind):
    with pytest.raises(SatchelError, match="broken"):
        raise kind("broken")


def test_a_missing_name_comes_with_similar_names():
    error = NotFoundError("tool", "forcast", ["forecast", "broadcast"])
    assert (error.kind, error.name, error.near) == ("tool", "forcast", ("forecast", "broadcast"))
    assert str(error) == ("there is no tool named 'forcast' (did you mean forecast, broadcast?)")


def test_without_similar_names_there_is_no_hint():
    assert str(NotFoundError("skill", "x")) == "there is no skill named 'x'"


def test_the_command_that_installs_an_extra_is_written_once():
    assert install_hint("mcp") == "pip install '.[mcp]' in a clone of Satchel"
    folder = Path(satchel.__file__).parent
    start = "\"pip install '.["
    written = [path.name for path in folder.rglob("*.py") if start in path.read_text()]
    assert written == ["errors.py"]


def test_an_error_of_a_contract_names_the_tool_and_the_key_in_its_text_and_beside():
    problem = ContractError("search", "limit", "the configured value of 'limit' is invalid")
    assert isinstance(problem, ToolError)
    assert (problem.tool, problem.key) == ("search", "limit")
    assert str(problem) == problem.message == "search: the configured value of 'limit' is invalid"
