import asyncio
from functools import partial, wraps

import pytest

from satchel.errors import DefinitionError
from satchel.tools import tool
from satchel.tools.tool_decorator import options_of


def test_the_decorator_returns_the_same_function():
    def add(a: int, b: int) -> int:
        return a + b

    assert tool(add) is add
    assert tool()(add) is add
    assert tool(name="plus")(add) is add
    assert add(1, 2) == 3


def test_a_coroutine_function_stays_one():
    @tool
    async def add(a: int, b: int) -> int:
        return a + b

    assert asyncio.run(add(1, 2)) == 3


def test_the_options_are_remembered():
    @tool(name="plus", description="Adds.", group="maths", timeout=2)
    def add(): ...

    assert options_of(add) == {
        "name": "plus",
        "description": "Adds.",
        "group": "maths",
        "timeout": 2,
    }


def test_a_bare_decorator_leaves_every_choice_to_the_function():
    @tool
    def add(): ...

    assert options_of(add) == {}


def test_an_unmarked_thing_has_no_options():
    assert options_of(len) is None
    assert options_of(3) is None


def test_a_wrapper_carries_the_mark_of_what_it_wraps():
    @tool(name="plus")
    def add(): ...

    @wraps(add)
    def retrying(): ...

    assert options_of(retrying) is options_of(add)


def test_marking_a_wrapper_again_leaves_the_wrapped_function_alone():
    @tool(name="plus")
    def add(): ...

    @tool(name="slow_plus")
    @wraps(add)
    def slowly(): ...

    assert options_of(slowly) == {"name": "slow_plus"}
    assert options_of(add) == {"name": "plus"}


def test_a_partial_carries_the_mark_of_its_function():
    @tool(name="plus")
    def add(a): ...

    assert options_of(partial(add, a=1)) == {"name": "plus"}


def test_static_and_class_methods_are_marked_where_the_class_finds_the_mark():
    class Maths:
        @tool(name="plus")
        @staticmethod
        def add(): ...

        @tool(name="minus")
        @classmethod
        def subtract(cls): ...

    assert options_of(Maths.add) == {"name": "plus"}
    assert options_of(Maths.subtract) == {"name": "minus"}


class Proxy:
    def __getattr__(self, name):
        raise RuntimeError("outside of a request")


class Agreeable:
    def __getattr__(self, name):
        return "yes"


@pytest.mark.parametrize("value", [Proxy, Agreeable])
def test_a_thing_with_odd_attributes_is_no_tool(value):
    assert options_of(value()) is None


@pytest.mark.parametrize("value", [int, "forecast", len, [].append])
def test_what_cannot_be_marked_is_refused(value):
    with pytest.raises(DefinitionError):
        tool(value)


def test_a_bad_name_is_no_error_yet_so_that_the_module_can_be_imported():
    @tool(name="no good")
    def add(): ...

    assert options_of(add) == {"name": "no good"}


def test_every_option_is_remembered():
    hints = {"readOnlyHint": True}

    @tool(
        name="plus",
        description="Adds.",
        state=["key"],
        idempotent=True,
        remember="session",
        blocking=False,
        group="maths",
        timeout=2,
        annotations=hints,
        background=True,
    )
    def add(key): ...

    assert options_of(add) == {
        "name": "plus",
        "description": "Adds.",
        "state": ("key",),
        "idempotent": True,
        "remember": "session",
        "blocking": False,
        "group": "maths",
        "timeout": 2,
        "annotations": hints,
        "background": True,
    }


def test_an_unknown_option_is_refused_like_an_unknown_keyword():
    with pytest.raises(TypeError, match="unknown options of a tool: nmae"):
        tool(nmae="plus")


def test_a_single_state_name_may_be_given_as_text():
    @tool(state="key")
    def add(key): ...

    assert options_of(add)["state"] == ("key",)


def test_a_state_name_that_is_no_parameter_is_refused_with_the_likely_one():
    def add(api_key, base): ...

    with pytest.raises(DefinitionError, match=r"state names 'apikey'.*\(did you mean api_key\?\)"):
        tool(state=["apikey"])(add)
    with pytest.raises(DefinitionError, match=r"'zzz'.*\(it has api_key, base\)"):
        tool(state=["base", "zzz"])(add)


def test_a_function_without_parameters_has_no_state():
    def add(): ...

    with pytest.raises(DefinitionError, match=r"\(it has none\)"):
        tool(state=["key"])(add)


def test_a_state_name_may_go_into_the_further_arguments():
    @tool(state=["key"])
    def add(**others): ...

    assert options_of(add)["state"] == ("key",)


def test_the_state_of_static_and_class_methods_is_that_of_the_function():
    class Maths:
        @tool(state=["key"])
        @staticmethod
        def add(key): ...

        @tool(state=["key"])
        @classmethod
        def subtract(cls, key): ...

    assert options_of(Maths.add)["state"] == options_of(Maths().subtract)["state"] == ("key",)


class Callable:
    def __call__(self): ...


def test_a_callable_object_is_marked_itself():
    one, other = Callable(), Callable()
    assert tool(name="plus")(one) is one
    assert options_of(one) == {"name": "plus"}
    assert options_of(other) is None
