import asyncio
import threading
from contextvars import ContextVar
from functools import partial, wraps

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.errors import DefinitionError, ToolError
from satchel.tools import ArgumentError, FunctionTool, Tool, as_tool, tool, tools_in

WHO = ContextVar("WHO", default="nobody")


def forecast(city: str, days: int = 3, *, key: str = "none"):
    """Weather for the next days.

    Args:
        city: City name.
    """
    return (city, days, key)


class Search(Tool):
    name = "search"
    description = "Find things."
    parameters = {"type": "object", "properties": {}}  # noqa: RUF012 - as people write it

    async def execute(self, /, **arguments):
        return arguments


def call(made, **arguments):
    return asyncio.run(made.execute(**arguments))


def test_name_description_and_parameters_come_from_the_function():
    made = FunctionTool(forecast)
    assert made.name == "forecast"
    assert made.description == "Weather for the next days."
    assert made.parameters["properties"]["city"] == {
        "type": "string",
        "description": "City name.",
    }
    assert (made.group, made.timeout) == (None, None)


def test_what_the_decorator_was_told_wins_over_the_function():
    @tool(name="weather", description="Rain?", group="maps", timeout=2)
    def fn(): ...

    made = FunctionTool(fn)
    assert (made.name, made.description, made.group, made.timeout) == (
        "weather",
        "Rain?",
        "maps",
        2,
    )


def test_what_is_given_at_registration_wins_over_the_decorator():
    @tool(name="weather", description="Rain?", group="maps", timeout=2)
    def fn(): ...

    made = FunctionTool(fn, name="sky", description="", group="air", timeout=1)
    assert (made.name, made.description, made.group, made.timeout) == ("sky", "", "air", 1)


def test_invisible_characters_are_removed_from_a_description():
    assert FunctionTool(forecast, description="a\u200bb").description == "ab"


@pytest.mark.parametrize("name", ["no good", "", "1st", "a" * 65])
def test_a_name_that_providers_reject_is_refused(name):
    with pytest.raises(DefinitionError, match="letter"):
        FunctionTool(forecast, name=name)


def test_a_function_without_a_usable_name_needs_one():
    with pytest.raises(DefinitionError, match="name="):
        FunctionTool(lambda: None)
    assert FunctionTool(lambda: None, name="nothing").name == "nothing"


def test_a_name_must_be_text():
    with pytest.raises(DefinitionError, match="text"):
        FunctionTool(forecast, name=3)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_that_cannot_be_kept_is_refused(timeout):
    with pytest.raises(DefinitionError, match="timeout"):
        FunctionTool(forecast, timeout=timeout)


@pytest.mark.parametrize("thing", [int, Search, "forecast"])
def test_a_tool_is_made_of_functions_only(thing):
    with pytest.raises(DefinitionError, match="made of a function"):
        FunctionTool(thing)


def test_arguments_are_coerced_and_defaults_filled_in():
    assert call(FunctionTool(forecast), city="Oslo", days="5") == ("Oslo", 5, "none")


def test_a_preset_is_filled_in_and_unseen():
    made = FunctionTool(forecast, presets={"key": "k"})
    assert [*made.parameters["properties"]] == ["city", "days"]
    assert call(made, city="Oslo") == ("Oslo", 3, "k")


def test_a_model_that_sends_a_preset_is_refused():
    made = FunctionTool(forecast, presets={"key": "k"})
    with pytest.raises(ArgumentError, match="key: there is no such argument"):
        call(made, city="Oslo", key="mine")


def test_a_preset_is_handed_over_as_it_is_whatever_its_annotation():
    lock = threading.Lock()

    def fn(lock: "Nowhere"): ...  # noqa: F821 - the point of it

    def same(held: int):
        return held

    assert call(FunctionTool(same, presets={"held": lock})) is lock
    assert FunctionTool(fn, presets={"lock": lock}).parameters["properties"] == {}


def test_a_preset_that_names_no_parameter_is_refused_with_the_likely_one():
    with pytest.raises(DefinitionError, match=r"'kee' to preset \(did you mean key\?\)"):
        FunctionTool(forecast, presets={"kee": 1})
    with pytest.raises(DefinitionError, match=r"'zzz' to preset$"):
        FunctionTool(forecast, presets={"zzz": 1})


def test_changing_the_presets_later_changes_nothing():
    presets = {"key": "k"}
    made = FunctionTool(forecast, presets=presets)
    presets["key"] = "other"
    assert call(made, city="Oslo") == ("Oslo", 3, "k")


def test_what_a_partial_binds_is_a_preset():
    made = FunctionTool(partial(forecast, key="k"))
    assert made.name == "forecast"
    assert [*made.parameters["properties"]] == ["city", "days"]
    assert call(made, city="Oslo") == ("Oslo", 3, "k")
    with pytest.raises(ArgumentError):
        call(made, city="Oslo", key="mine")


def test_positional_only_parameters_can_be_called_by_name():
    def fn(a: int, b: int = 2, /, c: int = 3, *rest, **more):
        return a, b, c, rest, more

    assert call(FunctionTool(fn), a=1, c=5) == (1, 2, 5, (), {})


class Maths:
    def __init__(self, base):
        self.base = base

    def add(self, n: int):
        return self.base + n

    async def __call__(self, n: int):
        return self.base + n

    @classmethod
    def kind(cls):
        return cls.__name__

    @staticmethod
    def twice(n: int):
        return n * 2


def test_methods_and_callable_objects_are_tools_too():
    maths = Maths(40)
    assert call(FunctionTool(maths.add), n=2) == 42
    assert call(FunctionTool(maths), n=2) == 42
    assert call(FunctionTool(Maths.kind)) == "Maths"
    assert call(FunctionTool(Maths.twice), n=2) == 4


def test_a_parameter_may_be_called_self():
    def fn(self: int, name: str):
        return self, name

    assert call(FunctionTool(fn), self=1, name="n") == (1, "n")


def test_a_plain_function_runs_off_the_loop_with_the_callers_context():
    def fn():
        return WHO.get(), threading.current_thread() is threading.main_thread()

    async def main():
        WHO.set("me")
        return await FunctionTool(fn).execute()

    assert asyncio.run(main()) == ("me", False)


def test_of_a_generator_the_last_item_is_the_result():
    async def fn(n: int):
        for at in range(n):
            yield at

    assert call(FunctionTool(fn), n=3) == 2


def test_what_the_function_raises_passes_through():
    def fn():
        raise ToolError("no such city")

    with pytest.raises(ToolError, match="no such city"):
        call(FunctionTool(fn))


def test_a_tool_is_its_own_tool():
    search = Search()
    assert as_tool(search) is search


def test_anything_else_that_can_be_called_becomes_a_function_tool():
    assert as_tool(tool(name="weather")(partial(forecast))).name == "weather"
    assert as_tool(forecast).name == "forecast"


def test_a_tool_of_a_class_needs_a_good_name_too():
    class Nameless(Search):
        name = "no good"

    with pytest.raises(DefinitionError, match="Nameless"):
        as_tool(Nameless())


class Proxy:
    @property
    def __class__(self):
        raise RuntimeError("outside of a request")


def test_the_tools_of_a_module_are_found_in_their_order():
    search = Search()

    @tool
    def second(): ...

    @tool
    def hidden(): ...

    def unmarked(): ...

    namespace = {
        "first": search,
        "second": second,
        "again": second,
        "_hidden": hidden,
        "unmarked": unmarked,
        "Search": Search,
        "number": 3,
        "proxy": Proxy(),
    }
    assert tools_in(namespace) == (search, second)


def test_a_wrapper_stands_for_its_function_only_where_that_is_absent():
    @tool
    def plain(): ...

    @wraps(plain)
    def wrapper(): ...

    assert tools_in({"plain": plain, "wrapper": wrapper}) == (plain,)
    assert tools_in({"plain": wrapper}) == (wrapper,)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


async def typed(
    a: int, b: list[str] | None = None, c: dict[str, float] | None = None, *, d: bool = True
):
    return a, b, c, d


TYPED = FunctionTool(typed)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("abcd") | st.text(), JSON))
def test_any_json_arguments_are_either_called_with_or_refused(arguments):
    try:
        a, *_ = call(TYPED, **arguments)
    except ArgumentError:
        return
    assert isinstance(a, int)
