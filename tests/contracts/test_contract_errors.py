from satchel.contracts.contract_errors import ContractError
from satchel.errors import ToolError


def test_it_names_the_tool_and_the_key_in_its_text_and_beside():
    problem = ContractError("search", "limit", "the configured value of 'limit' is invalid")
    assert isinstance(problem, ToolError)
    assert (problem.tool, problem.key) == ("search", "limit")
    assert str(problem) == problem.message == "search: the configured value of 'limit' is invalid"
