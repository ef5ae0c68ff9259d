"""Examples of a tool: what a model would send, kept for whoever tries the tool."""

import math
from collections.abc import Mapping

import pytest

from satchel import DefinitionError, FunctionTool, Satchel, Tool, tool
from satchel.tools import as_tool


def forecast(city: str, days: int = 1) -> str:
    """Forecast."""
    return city


class Search(Tool):
    name = "search"

    async def execute(self, query: str) -> str:
        return query


def test_a_tool_has_none_unless_it_is_given_some():
    assert FunctionTool(forecast).examples == ()
    assert Search().examples == ()


def test_they_are_those_of_the_decorator_or_of_who_makes_the_tool():
    marked = tool(examples=[{"city": "Oslo"}])(forecast)
    assert FunctionTool(marked).examples == ({"city": "Oslo"},)
    assert FunctionTool(marked, examples=[]).examples == ()
    assert Satchel().register_tool(marked, examples=[{"city": "Rome"}]).examples == (
        {"city": "Rome"},
    )


def test_no_model_sees_them():
    marked = FunctionTool(forecast, examples=[{"city": "Oslo"}])
    for dialect in ("openai", "anthropic", "mcp", "gemini", "openai-strict"):
        assert marked.to_schema(dialect) == FunctionTool(forecast).to_schema(dialect)


def test_they_are_a_frozen_copy():
    places = ["Oslo"]
    (example,) = FunctionTool(forecast, examples=[{"city": {"names": places}}]).examples
    places.append("Rome")
    assert example["city"]["names"] == ("Oslo",)
    with pytest.raises(TypeError):
        example["city"] = "Rome"
    assert isinstance(example["city"], Mapping)


def test_examples_of_another_tool_can_be_given_again():
    first = FunctionTool(forecast, examples=[{"city": {"a": [1]}}])
    assert FunctionTool(forecast, examples=first.examples).examples == first.examples


@pytest.mark.parametrize(
    "value",
    ["city", {"city": "Oslo"}, ["Oslo"], 5, [{"city": object()}], [{"city": math.nan}]],
)
def test_what_no_model_could_send_costs_the_tool(value):
    marked = tool(examples=value)(lambda city: city)  # not judged by the decorator
    with pytest.raises(DefinitionError, match="examples"):
        FunctionTool(marked, name="forecast")

    class Odd(Search):
        examples = value

    with pytest.raises(DefinitionError, match="examples"):
        as_tool(Odd())


def test_a_class_may_have_them():
    class Better(Search):
        examples = ({"query": "tide"},)

    assert as_tool(Better()).examples == ({"query": "tide"},)
