"""Names and options of tools that the host registers, without a `Satchel`."""

import pytest

from satchel import ConflictError, DefinitionError, Tool
from satchel.tool_registration import make_tool, registered, settled, supply_of
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
    return [supply_of(FunctionTool(greet, name=name), None, "1") for name in names]


def test_a_function_becomes_a_tool_with_the_options():
    made = make_tool(greet, name="hail", description="Hail.", background=True, timeout=3)
    assert (made.name, made.description, made.background, made.timeout) == (
        "hail",
        "Hail.",
        True,
        3,
    )


def test_an_object_stays_the_object_and_takes_no_options():
    greeter = Greeter()
    assert make_tool(greeter, name=None, presets=None) is greeter
    with pytest.raises(DefinitionError, match="give name, background to its class"):
        make_tool(greeter, name="hail", background=True)


@pytest.mark.parametrize("junk", [5, None, "greet", Greeter, object()])
def test_a_value_that_is_not_a_tool_is_refused(junk):
    with pytest.raises(DefinitionError):
        make_tool(junk)


def test_only_names_of_the_host_are_conflicts():
    made = make_tool(greet)
    assert settled(made, own(), ["greet"], "raise") is made
    with pytest.raises(ConflictError, match="on_conflict="):
        settled(made, own("greet"), [], "raise")


@pytest.mark.parametrize("choice", ["override", "skip"])
def test_override_and_skip_keep_the_name(choice):
    made = make_tool(greet)
    assert settled(made, own("greet"), ["greet"], choice) is made


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
def test_rename_uses_the_first_free_number(mine, served, name):
    made = make_tool(greet)
    assert settled(made, own(*mine), served, "rename").name == name
    assert made.name == "greet"


def test_a_long_name_stays_one_that_providers_take():
    made = make_tool(greet, name="g" * 64)
    renamed = settled(made, own("g" * 64), [], "rename")
    assert renamed.name == "g" * 62 + "_2"


def test_a_renamed_object_is_a_copy_with_shared_resources():
    greeter = Greeter()
    greeter.connection = connection = object()
    renamed = settled(greeter, own("greet"), [], "rename")
    assert (renamed.name, greeter.name) == ("greet_2", "greet")
    assert renamed.connection is connection


def test_a_class_that_computes_its_name_cannot_be_renamed_and_says_so():
    class Computed(Greeter):
        @property
        def name(self):
            return "greet"

    with pytest.raises(DefinitionError, match="cannot be renamed"):
        settled(Computed(), own("greet"), [], "rename")


def test_an_unknown_conflict_policy_is_refused():
    with pytest.raises(DefinitionError, match="raise, override, skip or rename"):
        settled(make_tool(greet), own(), [], "replace")


def test_a_registered_tool_is_found_by_its_name():
    (supply,) = own("greet")
    assert registered([supply], "greet") is supply.tool
    assert registered([supply], "hail") is None
