import asyncio

import pytest

from satchel.errors import DefinitionError, NotFoundError
from satchel.tools import ArgumentError, Tool, ToolCall, ToolContext
from satchel.tools.runner import LOOP, THREAD


class Search(Tool):
    name = "search"
    description = "Find things."

    def __init__(self):
        self.parameters = {"type": "object", "properties": {"query": {"type": "string"}}}

    async def execute(self, /, **arguments):
        return arguments


class Forecast(Tool):
    name = "forecast"

    async def execute(self, city: str, days: int = 3, *, context: ToolContext | None = None):
        """Weather.

        Args:
            city: City name.
        """
        return city, days, context


class Written(Tool):
    name = "written"
    parameters = {  # noqa: RUF012 - as people write it
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    }

    async def execute(self, context: ToolContext, city, days=3):
        return city, days, context


CONTEXT = ToolContext(tool="forecast")


def call(tool, arguments):
    return asyncio.run(
        tool.runner.run(
            ToolCall(
                name=tool.name,
                arguments=tool.check(arguments),
                id="",
                tool=tool,
                groups=(),
                context=CONTEXT,
            )
        )
    )


def test_a_tool_describes_itself_in_the_common_function_shape():
    assert Search().to_schema() == {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Find things.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        },
    }


def test_a_tool_describes_itself_in_the_words_of_a_provider():
    search = Search()
    search.idempotent = True
    search.annotations = {"readOnlyHint": True}
    search.output = {"type": "object"}
    assert search.to_schema("mcp") == {
        "name": "search",
        "description": "Find things.",
        "inputSchema": search.parameters,
        "outputSchema": {"type": "object"},
        "annotations": {"idempotentHint": True, "readOnlyHint": True},
    }


def test_an_author_may_deny_what_would_be_said_of_an_idempotent_tool():
    search = Search()
    search.idempotent = True
    search.annotations = {"idempotentHint": False}
    assert search.to_schema("mcp")["annotations"] == {"idempotentHint": False}


def test_a_dialect_that_there_is_not_is_refused():
    with pytest.raises(NotFoundError, match="openai"):
        Search().to_schema("opnai")


def test_changing_a_schema_that_was_handed_out_does_not_change_the_tool():
    search = Search()
    search.to_schema()["function"]["parameters"]["properties"].clear()
    assert search.parameters["properties"] == {"query": {"type": "string"}}


def test_a_tool_promises_nothing_unless_it_says_so():
    search = Search()
    assert (search.group, search.timeout, search.annotations, search.output) == (None,) * 4
    assert (search.idempotent, search.background, search.postprocess) == (False, False, None)


def test_a_tool_is_shown_by_its_kind_and_name():
    assert repr(Search()) == "<Search search>"


def test_a_tool_without_a_name_can_still_be_shown():
    class Nameless(Tool):
        async def execute(self, /, **arguments): ...

    assert repr(Nameless()) == "<Nameless ?>"


def test_a_tool_must_say_what_it_does():
    class Idle(Tool):
        name = "idle"

    with pytest.raises(TypeError, match="abstract"):
        Idle()


def test_the_parameters_are_made_of_execute_if_none_were_written():
    assert Forecast().parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "City name."},
            "days": {"type": "integer", "default": 3},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_arguments_are_coerced_to_the_types_of_execute():
    assert call(Forecast(), {"city": "Oslo", "days": "5"}) == ("Oslo", 5, CONTEXT)


def test_a_tool_that_was_called_before_it_was_described_is_the_same():
    forecast = Forecast()
    assert call(forecast, {"city": "Oslo"}) == ("Oslo", 3, CONTEXT)
    assert forecast.parameters["required"] == ["city"]
    described = Forecast()
    assert described.parameters == forecast.parameters
    assert call(described, {"city": "Oslo"}) == ("Oslo", 3, CONTEXT)


@pytest.mark.parametrize("tool", [Forecast(), Written()], ids=repr)
def test_a_model_that_sends_the_context_is_refused(tool):
    with pytest.raises(ArgumentError, match="context: is set by the host; leave it out"):
        tool.check({"city": "Oslo", "context": {"call_id": "mine"}})


def test_positional_only_parameters_of_execute_can_be_called_by_name():
    class Add(Tool):
        name = "add"

        async def execute(self, a: int, b: int = 2, /):
            return a + b

    assert call(Add(), {"a": "40"}) == 42


def test_written_parameters_judge_the_arguments():
    assert call(Written(), {"city": "Oslo"}) == ("Oslo", 3, CONTEXT)
    with pytest.raises(ArgumentError, match="city: is required"):
        call(Written(), {"days": 3})


def test_a_null_for_a_written_parameter_that_does_not_take_it_means_left_out():
    assert call(Written(), {"city": "Oslo", "days": None}) == ("Oslo", 3, CONTEXT)
    with pytest.raises(ArgumentError, match="city"):
        call(Written(), {"city": None})


def test_checked_arguments_are_a_copy():
    sent = {"query": "q"}
    checked = Search().check(sent)
    assert checked == sent
    assert checked is not sent


def test_a_name_that_a_method_has_by_its_place_cannot_be_sent():
    class Loose(Search):
        async def execute(self, **arguments):
            return arguments

    with pytest.raises(ArgumentError, match="self: is set by the host"):
        Loose().check({"self": 1})
    assert call(Search(), {"self": 1}) == {"self": 1}


@pytest.mark.parametrize("make", [Forecast, Written, Search])
def test_parameters_that_judge_are_valid(make):
    make().validate()


def test_parameters_that_cannot_judge_are_refused():
    search = Search()
    search.parameters = {"type": "nothing"}
    with pytest.raises(
        DefinitionError, match="tool search: its parameters are not a usable JSON Schema"
    ):
        search.validate()


def test_parameters_may_be_a_property():
    class Computed(Search):
        def __init__(self): ...

        @property
        def parameters(self):
            return {"type": "object", "properties": {}, "additionalProperties": False}

    computed = Computed()
    computed.validate()
    with pytest.raises(ArgumentError, match="no such argument"):
        computed.check({"x": 1})


@pytest.mark.parametrize(("make", "expected"), [(Forecast, True), (Written, True), (Search, False)])
def test_a_tool_says_whether_it_wants_the_context(make, expected):
    assert make().wants_context is expected


def test_execute_may_be_of_any_kind():
    class Blocking(Search):
        def execute(self, /, **arguments):
            return arguments

    class Streaming(Search):
        async def execute(self, /, **arguments):
            yield arguments

    async def chunks():
        tool = Streaming()
        stream = await tool.runner.run(
            ToolCall(
                name="search",
                arguments={"query": "q"},
                id="",
                tool=tool,
                groups=(),
                context=CONTEXT,
            )
        )
        return [chunk async for chunk in stream]

    assert Search().runner is Streaming().runner is LOOP
    assert Blocking().runner is THREAD
    assert call(Blocking(), {"query": "q"}) == {"query": "q"}
    assert asyncio.run(chunks()) == [{"query": "q"}]
