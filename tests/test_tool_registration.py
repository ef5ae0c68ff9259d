"""What becomes of a tool that the host registers: names and options, without a satchel."""

import asyncio

import pytest

from satchel import ConflictError, DefinitionError, Satchel, Tool
from satchel.tool_registration import host_contribution, make_tool, registered, with_unique_name
from satchel.tools import FunctionTool


def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}"


class Greeter(Tool):
    name = "greet"
    description = "Greet somebody."

    async def execute(self, name: str) -> str:
        return f"Hello {name}"


def own(*names: str):
    return [host_contribution(FunctionTool(greet, name=name), None, "1") for name in names]


def test_a_function_becomes_a_tool_with_the_options():
    function_tool = make_tool(greet, name="hail", description="Hail.", background=True, timeout=3)
    assert (
        function_tool.name,
        function_tool.description,
        function_tool.background,
        function_tool.timeout,
    ) == (
        "hail",
        "Hail.",
        True,
        3,
    )


def test_an_object_stays_the_object_and_takes_no_options():
    greeter = Greeter()
    assert make_tool(greeter, name=None, presets=None) is greeter
    with pytest.raises(DefinitionError, match="set name, background in its class"):
        make_tool(greeter, name="hail", background=True)


@pytest.mark.parametrize("junk", [5, None, "greet", Greeter, object()])
def test_what_is_no_tool_is_refused(junk):
    with pytest.raises(DefinitionError):
        make_tool(junk)


def test_a_name_of_the_hosts_own_is_a_conflict_and_a_plugins_is_not():
    function_tool = make_tool(greet)
    assert with_unique_name(function_tool, own(), ["greet"], "raise") is function_tool
    with pytest.raises(ConflictError, match="on_conflict="):
        with_unique_name(function_tool, own("greet"), [], "raise")


@pytest.mark.parametrize("choice", ["override", "skip"])
def test_to_override_and_to_skip_keep_the_name(choice):
    function_tool = make_tool(greet)
    assert with_unique_name(function_tool, own("greet"), ["greet"], choice) is function_tool


@pytest.mark.parametrize(
    ("mine", "served", "name"),
    [
        ([], [], "greet"),
        (["greet"], [], "greet_2"),
        ([], ["greet"], "greet_2"),
        (["greet", "greet_2"], ["greet_3"], "greet_4"),
        (["greet", "greet_3"], [], "greet_2"),
    ],
)
def test_to_rename_takes_the_first_free_number(mine, served, name):
    function_tool = make_tool(greet)
    assert with_unique_name(function_tool, own(*mine), served, "rename").name == name
    assert function_tool.name == "greet"


def test_a_long_name_stays_one_that_providers_take():
    function_tool = make_tool(greet, name="g" * 64)
    renamed = with_unique_name(function_tool, own("g" * 64), [], "rename")
    assert renamed.name == "g" * 62 + "_2"


def test_an_object_is_renamed_on_a_copy_that_shares_what_it_holds():
    greeter = Greeter()
    greeter.connection = connection = object()
    renamed = with_unique_name(greeter, own("greet"), [], "rename")
    assert (renamed.name, greeter.name) == ("greet_2", "greet")
    assert renamed.connection is connection


def test_a_class_that_computes_its_name_cannot_be_renamed_and_says_so():
    class Computed(Greeter):
        @property
        def name(self):
            return "greet"

    with pytest.raises(DefinitionError, match="cannot be renamed"):
        with_unique_name(Computed(), own("greet"), [], "rename")


def test_another_word_for_a_conflict_is_refused():
    with pytest.raises(DefinitionError, match="raise, override, skip or rename"):
        with_unique_name(make_tool(greet), own(), [], "replace")


def test_a_registered_tool_is_found_by_its_name():
    (supply,) = own("greet")
    assert registered([supply], "greet") is supply.tool
    assert registered([supply], "hail") is None


class Described:
    """What a client of an MCP server returns for a tool."""

    name, description = "look_up", "Look up a word."

    def __init__(self, json_schema):
        self.json_schema = json_schema

    async def __call__(self, **arguments):
        return f"found {arguments['word']}"


WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


@pytest.mark.parametrize(
    "schema",
    [WORD, {"type": "function", "function": {"name": "look_up", "parameters": WORD}}],
    ids=["plain", "enveloped"],
)
def test_an_object_that_describes_itself_is_registered_as_it_says(schema):
    app = Satchel()
    app.register_tool(Described(schema))
    session = app.session()
    [created] = [item.tool for item in app.catalog.tools.values() if item.name == "look_up"]
    assert created.description == "Look up a word."
    assert created.parameters["properties"] == WORD["properties"]
    assert asyncio.run(session.call("look_up", {"word": "tea"})).text == "found tea"
    assert asyncio.run(session.call("look_up", {})).error_code == "invalid_arguments"
