import asyncio
import json
import threading
from contextvars import ContextVar
from copy import deepcopy
from datetime import date
from functools import partial, wraps

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, create_model

from satchel.errors import DefinitionError, ToolError
from satchel.tools import (
    DIALECTS,
    ArgumentError,
    FunctionTool,
    MissingStateError,
    Tool,
    ToolCall,
    ToolContext,
    as_tool,
    set_extended_model,
    tool,
    tools_in,
)
from satchel.tools.runner import resolved

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


def call(function_tool, **arguments):
    return asyncio.run(function_tool.execute(**arguments))


def test_name_description_and_parameters_come_from_the_function():
    function_tool = FunctionTool(forecast)
    assert function_tool.name == "forecast"
    assert function_tool.description == "Weather for the next days."
    assert function_tool.parameters["properties"]["city"] == {
        "type": "string",
        "description": "City name.",
    }
    assert (function_tool.group, function_tool.timeout) == (None, None)


def test_what_the_decorator_got_wins_over_the_function():
    @tool(name="weather", description="Rain?", group="maps", timeout=2)
    def fn(): ...

    function_tool = FunctionTool(fn)
    assert (
        function_tool.name,
        function_tool.description,
        function_tool.group,
        function_tool.timeout,
    ) == (
        "weather",
        "Rain?",
        "maps",
        2,
    )


def test_what_is_given_at_registration_wins_over_the_decorator():
    @tool(name="weather", description="Rain?", group="maps", timeout=2)
    def fn(): ...

    function_tool = FunctionTool(fn, name="sky", description="", group="air", timeout=1)
    assert (
        function_tool.name,
        function_tool.description,
        function_tool.group,
        function_tool.timeout,
    ) == ("sky", "Sky.", "air", 1)


def test_a_tool_may_name_several_groups():
    @tool(group=["maps", "geo"])
    def fn(): ...

    assert FunctionTool(fn).group == ["maps", "geo"]
    assert FunctionTool(fn, group=("air",)).group == ("air",)


def test_a_tool_without_a_description_is_described_by_its_name():
    def get_user_name(): ...

    assert FunctionTool(get_user_name).description == "Get user name."
    assert FunctionTool(get_user_name, description="\u200b").description == "Get user name."


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
    with pytest.raises(DefinitionError, match="string"):
        FunctionTool(forecast, name=3)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_that_cannot_be_kept_is_refused(timeout):
    with pytest.raises(DefinitionError, match="timeout"):
        FunctionTool(forecast, timeout=timeout)


@pytest.mark.parametrize("value", [int, Search, "forecast"])
def test_a_tool_is_made_of_functions_only(value):
    with pytest.raises(DefinitionError, match="a tool needs a function"):
        FunctionTool(value)


def test_arguments_are_coerced_and_defaults_filled_in():
    assert call(FunctionTool(forecast), city="Oslo", days="5") == ("Oslo", 5, "none")


def test_a_preset_is_filled_in_and_unseen():
    function_tool = FunctionTool(forecast, presets={"key": "k"})
    assert [*function_tool.parameters["properties"]] == ["city", "days"]
    assert call(function_tool, city="Oslo") == ("Oslo", 3, "k")


def test_a_model_that_sends_a_preset_is_refused():
    function_tool = FunctionTool(forecast, presets={"key": "k"})
    for value in ["mine", None]:
        with pytest.raises(ArgumentError, match="key: is set by the host; leave it out"):
            call(function_tool, city="Oslo", key=value)


def test_a_preset_is_handed_over_as_it_is_whatever_its_annotation():
    lock = threading.Lock()

    def fn(lock: "Nowhere"): ...  # noqa: F821 - the point of it

    def same(held: int):
        return held

    assert call(FunctionTool(same, presets={"held": lock})) is lock
    assert FunctionTool(fn, presets={"lock": lock}).parameters["properties"] == {}


def test_a_preset_that_names_no_parameter_is_refused_with_the_likely_one():
    with pytest.raises(DefinitionError, match=r"presets name 'kee'.*\(did you mean key\?\)"):
        FunctionTool(forecast, presets={"kee": 1})
    with pytest.raises(DefinitionError, match=r"presets name 'zzz'.*\(it has city, days, key\)"):
        FunctionTool(forecast, presets={"zzz": 1})


def test_changing_the_presets_later_changes_nothing():
    presets = {"key": "k"}
    function_tool = FunctionTool(forecast, presets=presets)
    presets["key"] = "other"
    assert call(function_tool, city="Oslo") == ("Oslo", 3, "k")


def test_what_a_partial_binds_is_a_preset():
    function_tool = FunctionTool(partial(forecast, key="k"))
    assert function_tool.name == "forecast"
    assert [*function_tool.parameters["properties"]] == ["city", "days"]
    assert call(function_tool, city="Oslo") == ("Oslo", 3, "k")
    with pytest.raises(ArgumentError):
        call(function_tool, city="Oslo", key="mine")


def test_positional_only_parameters_can_be_called_by_name():
    def fn(a: int, b: int = 2, /, c: int = 3, *rest, **others):
        return a, b, c, rest, others

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


def a_call(function_tool, arguments, context=None):
    return ToolCall(
        name="probe",
        arguments=function_tool.check(arguments),
        tool=function_tool,
        context=context or ToolContext(),
    )


def stream(function_tool, **arguments):
    async def main():
        outcome = await resolved(function_tool.runner.run(a_call(function_tool, arguments)))
        return [chunk async for chunk in outcome]

    return asyncio.run(main())


async def counts(n: int):
    for at in range(n):
        yield at


def counts_blocking(n: int):
    yield from range(n)


async def gives_counts(n: int):
    return counts_blocking(n)


def gives_async_counts(n: int):
    return counts(n)


@pytest.mark.parametrize("fn", [counts, counts_blocking, gives_counts, gives_async_counts])
def test_what_yields_streams_and_executing_it_gives_all_chunks(fn):
    function_tool = FunctionTool(fn)
    assert stream(function_tool, n="3") == [0, 1, 2]
    assert call(function_tool, n=3) == [0, 1, 2]


def test_a_plain_function_may_return_a_coroutine():
    async def later(n: int):
        return n + 1

    def now(n: int):
        return later(n)

    assert call(FunctionTool(now), n=1) == 2


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


def test_the_options_of_the_decorator_reach_the_tool():
    @tool(idempotent=True, background=True, annotations={"readOnlyHint": True}, state=["key"])
    def fn(key): ...

    function_tool = FunctionTool(fn)
    assert (function_tool.idempotent, function_tool.background) == (True, True)
    assert function_tool.annotations == {"readOnlyHint": True}
    assert [field.name for field in function_tool.state] == ["key"]
    other = FunctionTool(fn, idempotent=False, background=False, annotations={}, state=[])
    assert (other.idempotent, other.background, other.annotations) == (False, False, {})
    assert (other.state, other.hidden) == ((), frozenset())


def test_annotations_are_a_mapping_and_changing_them_later_changes_nothing():
    hints = {"readOnlyHint": True}
    function_tool = FunctionTool(forecast, annotations=hints)
    hints["readOnlyHint"] = False
    assert function_tool.annotations == {"readOnlyHint": True}
    with pytest.raises(DefinitionError, match="annotations must be a mapping"):
        FunctionTool(forecast, annotations=["readOnlyHint"])


def test_the_long_part_of_the_description_is_optional():
    def fn():
        """Weather.

        Only land.
        """

    assert FunctionTool(fn).description == "Weather.\n\nOnly land."
    assert FunctionTool(fn, include_long_description=False).description == "Weather."
    whole = FunctionTool(fn, description="A.\n\nB.", include_long_description=False)
    assert whole.description == "A.\n\nB."


def test_what_is_returned_is_described_if_it_is_an_object():
    def fn() -> dict[str, int]: ...

    assert FunctionTool(fn).output == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }
    assert FunctionTool(forecast).output is None


def test_a_decorated_function_is_still_called_as_it_was():
    @tool(state=["key"])
    def fn(city, key="k"):
        return city, key

    FunctionTool(fn).with_state({"key": "other"})
    assert fn("Oslo") == ("Oslo", "k")


def test_a_postprocessor_is_kept_for_the_runtime():
    assert FunctionTool(forecast, postprocess=print).postprocess is print
    assert FunctionTool(forecast).postprocess is None


def test_a_parameter_annotated_with_the_context_gets_it_and_no_schema_shows_it():
    def fn(city: str, ctx: ToolContext, context: int = 1, cls: int = 2):
        return city, ctx, context, cls

    created, context = FunctionTool(fn), ToolContext(call_id="7")
    assert created.wants_context
    assert created.hidden == {"ctx"}
    assert asyncio.run(created.runner.run(a_call(created, {"city": "Oslo"}, context))) == (
        "Oslo",
        context,
        1,
        2,
    )
    assert call(created, city="Oslo")[1] == ToolContext(tool="fn")
    with pytest.raises(ArgumentError, match="ctx: is set by the host"):
        call(created, city="Oslo", ctx={"call_id": "mine"})
    assert not FunctionTool(forecast).wants_context


def test_state_is_bound_on_copies_that_do_not_collide():
    def fn(city: str, key: str, level: int = 3):
        return city, key, level

    function_tool = FunctionTool(fn, state=["key", "level"])
    one, other = (
        function_tool.with_state({"key": "a", "level": "5"}),
        function_tool.with_state({"key": "b"}),
    )
    assert call(one, city="Oslo") == ("Oslo", "a", 5)
    assert call(other, city="Oslo") == ("Oslo", "b", 3)
    assert [field.name for field in function_tool.missing] == ["key"]
    assert (one.missing, other.missing) == ((), ())
    assert [field.name for field in one.state] == []
    assert [field.name for field in other.state] == ["level"]
    assert one.injected == {"key": "a", "level": 5}
    with pytest.raises(MissingStateError, match="SATCHEL_KEY"):
        function_tool.with_state({}, "SATCHEL_KEY")


def test_a_tool_without_state_is_its_own_copy():
    function_tool = FunctionTool(forecast)
    assert function_tool.with_state({"key": "k"}) is function_tool


def test_a_preset_for_a_state_field_wins_over_the_configuration():
    function_tool = FunctionTool(forecast, state=["key"], presets={"key": "preset"})
    assert function_tool.missing == ()
    assert call(function_tool.with_state({"key": "config"}), city="Oslo") == ("Oslo", 3, "preset")


def test_a_bound_value_of_a_partial_is_neither_missing_nor_replaced():
    function_tool = FunctionTool(partial(forecast, key="k"), state=["key"])
    assert (function_tool.missing, function_tool.state) == ((), ())
    assert call(function_tool.with_state({"key": "config"}), city="Oslo") == ("Oslo", 3, "k")


@pytest.mark.parametrize(
    "default", [Field("k"), Field(default_factory=lambda: "k")], ids=["plain", "factory"]
)
def test_the_default_of_a_state_field_may_be_given_by_pydantic(default):
    def fn(city: str, key: str = default):
        return city, key

    function_tool = FunctionTool(fn, state=["key"])
    assert function_tool.missing == ()
    assert call(function_tool, city="Oslo") == ("Oslo", "k")
    assert call(function_tool.with_state({}), city="Oslo") == ("Oslo", "k")
    assert call(function_tool.with_state({"key": "v"}), city="Oslo") == ("Oslo", "v")


def test_a_tool_without_its_state_raises_and_never_gets_a_stand_in():
    def fn(key: str, city: str, /):
        raise AssertionError

    with pytest.raises(TypeError, match="positional"):
        call(FunctionTool(fn, state=["key"]), city="Oslo")


def test_values_may_be_injected_for_parameters_that_were_open_until_then():
    function_tool = FunctionTool(forecast)
    fixed = function_tool.with_injected({"days": 7})
    assert [*fixed.parameters["properties"]] == ["city", "key"]
    assert call(fixed, city="Oslo") == ("Oslo", 7, "none")
    with pytest.raises(ArgumentError, match="days: is set by the host"):
        call(fixed, city="Oslo", days=1)
    assert "days" in function_tool.parameters["properties"]


def spread(city: str, /, days: int = 3, *args: int, key: str = "none", **kwargs):
    return city, days, args, key, kwargs


class Loose:
    def further(self, **kwargs):
        return kwargs


def test_variadic_parameters_are_left_out_unless_they_are_asked_for():
    assert [*FunctionTool(spread).parameters["properties"]] == ["city", "days", "key"]
    with pytest.raises(ArgumentError, match="args: there is no such argument"):
        call(FunctionTool(spread), city="Oslo", args=[1])


def test_variadic_parameters_are_called_behind_the_ones_before_them():
    function_tool = FunctionTool(spread, include_var_positional=True, include_var_keyword=True)
    assert [*function_tool.parameters["properties"]] == ["city", "days", "key", "args", "kwargs"]
    assert call(function_tool, city="Oslo") == ("Oslo", 3, (), "none", {})
    assert call(function_tool, city="Oslo", args=["1", 2], kwargs={"x": 1}) == (
        ("Oslo", 3, (1, 2), "none", {"x": 1})
    )
    assert call(function_tool, city="Oslo", days=5, args=[], key="k") == ("Oslo", 5, (), "k", {})


def test_each_kind_of_variadic_parameter_can_be_asked_for_alone():
    positional = FunctionTool(spread, include_var_positional=True)
    assert [*positional.parameters["properties"]][-1] == "args"
    assert call(positional, city="Oslo", args=[1])[2] == (1,)
    keyword = FunctionTool(Loose().further, include_var_keyword=True)
    assert call(keyword, kwargs={"x": 1}) == {"x": 1}
    assert call(FunctionTool(forecast, include_var_keyword=True), city="Oslo")[0] == "Oslo"


def bound_by_state():
    return FunctionTool(spread, state=["key"], include_var_keyword=True)


@pytest.mark.parametrize(
    ("function_tool", "name"),
    [
        (FunctionTool(spread, presets={"key": "host"}, include_var_keyword=True), "key"),
        (FunctionTool(spread, presets={"loose": "host"}, include_var_keyword=True), "loose"),
        (FunctionTool(partial(spread, key="host"), include_var_keyword=True), "key"),
        (FunctionTool(partial(spread, loose="host"), include_var_keyword=True), "loose"),
        (bound_by_state(), "key"),
        (bound_by_state().with_state({"key": "host"}), "key"),
        (FunctionTool(spread, include_var_keyword=True).with_injected({"key": "host"}), "key"),
    ],
)
def test_no_further_argument_reaches_what_the_host_sets(function_tool, name):
    with pytest.raises(ArgumentError, match=f"kwargs.{name}: is set by the host; leave it out"):
        call(function_tool, city="Oslo", kwargs={name: "mine"})
    with pytest.raises(ArgumentError, match=f"{name}: is set by the host; leave it out"):
        call(function_tool, city="Oslo", **{name: "mine"})


def test_no_further_argument_reaches_the_context():
    def fn(ctx: ToolContext, **kwargs):
        return ctx, kwargs

    with pytest.raises(ArgumentError, match=r"kwargs\.ctx: is set by the host"):
        call(FunctionTool(fn, include_var_keyword=True), kwargs={"ctx": {"call_id": "mine"}})


@pytest.mark.parametrize(
    ("fn", "name"),
    [
        (spread, "city"),
        (spread, "days"),
        (partial(spread, "Oslo", 3), "days"),
        (Loose().further, "self"),
    ],
)
def test_a_further_argument_that_collides_with_a_parameter_is_an_argument_error(fn, name):
    function_tool = FunctionTool(fn, include_var_keyword=True)
    city = {"city": "Oslo"} if "city" in function_tool.parameters["properties"] else {}
    with pytest.raises(ArgumentError, match=f"kwargs.{name}: is a separate argument"):
        call(function_tool, **city, kwargs={name: 1})


def test_a_preset_that_is_named_like_a_variadic_parameter_hides_it():
    function_tool = FunctionTool(Loose().further, presets={"kwargs": 1}, include_var_keyword=True)
    assert function_tool.parameters["properties"] == {}
    assert call(function_tool) == {"kwargs": 1}


WRITTEN = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 9},
        "days": {"type": "integer"},
        "key": {"type": "string"},
    },
    "required": ["city", "key"],
}


def test_written_parameters_take_the_place_of_the_ones_that_are_made():
    function_tool = FunctionTool(forecast, parameters=WRITTEN)
    assert function_tool.parameters == WRITTEN
    assert call(function_tool, city="Oslo", key="k") == ("Oslo", 3, "k")
    assert call(function_tool, city="Oslo", key="k", days=None) == ("Oslo", 3, "k")
    with pytest.raises(ArgumentError, match="city"):
        call(function_tool, city="Longyearbyen", key="k")
    function_tool.validate()


def test_the_annotations_still_coerce_what_written_parameters_let_through():
    def fn(when: date):
        return when

    function_tool = FunctionTool(fn, parameters={"properties": {"when": {"type": "string"}}})
    assert call(function_tool, when="2024-01-02") == date(2024, 1, 2)
    with pytest.raises(ArgumentError, match="when"):
        call(function_tool, when="tomorrow")


def test_written_parameters_are_never_changed_and_changing_them_changes_nothing():
    parameters = deepcopy(WRITTEN)
    function_tool = FunctionTool(forecast, parameters=parameters, presets={"key": "k"})
    assert parameters == WRITTEN
    parameters["properties"]["city"]["type"] = "integer"
    function_tool.parameters["properties"]["city"]["type"] = "integer"
    assert call(function_tool, city="Oslo") == ("Oslo", 3, "k")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_schema_shows_what_the_host_sets(dialect):
    def fn(city: str, secret_a: str, secret_b: str, secret_c: ToolContext, secret_d="d"): ...

    schema = {"properties": {name: {} for name in fn.__annotations__}, "required": ["secret_a"]}
    for parameters in [None, schema]:
        function_tool = FunctionTool(
            partial(fn, secret_d="d"),
            presets={"secret_a": "a"},
            state=["secret_b"],
            parameters=parameters,
        )
        assert "secret" not in json.dumps(function_tool.to_schema(dialect))
        assert "city" in json.dumps(function_tool.to_schema(dialect))


def test_what_is_injected_later_leaves_the_written_parameters_too():
    created = FunctionTool(forecast, parameters=WRITTEN).with_injected({"key": "k"})
    assert created.parameters["required"] == ["city"]
    assert call(created, city="Oslo") == ("Oslo", 3, "k")
    with pytest.raises(ArgumentError, match="key: is set by the host"):
        call(created, city="Oslo", key="mine")


def test_what_written_parameters_name_beyond_the_signature_is_for_the_further_ones():
    def fn(days: int = 3, *, key: str = "none", **kwargs):
        return days, key, kwargs

    function_tool = FunctionTool(fn, parameters=WRITTEN, presets={"key": "k"})
    assert call(function_tool, city="Oslo", days=4) == (4, "k", {"city": "Oslo"})
    with pytest.raises(ArgumentError, match="key: is set by the host"):
        call(function_tool, city="Oslo", key="mine")
    further = FunctionTool(Loose().further, parameters={"properties": {"x": {}, "self": {}}})
    assert call(further, x=1) == {"x": 1}
    assert [*further.parameters["properties"]] == ["x"]
    with pytest.raises(ArgumentError, match="self: is set by the host"):
        asyncio.run(further.runner.run(a_call(further, {"self": 1})))


def test_written_parameters_that_cannot_judge_are_refused():
    with pytest.raises(
        DefinitionError, match=r"forecast: its parameters are not a usable JSON Schema"
    ):
        FunctionTool(forecast, parameters={"type": "nothing"})


class More(BaseModel):
    unit: str = Field("C", alias="scale")
    level: int


def test_a_tool_with_further_arguments_takes_the_fields_of_a_model():
    function_tool = set_extended_model(FunctionTool(spread), More)
    assert [*function_tool.parameters["properties"]] == ["city", "days", "key", "scale", "level"]
    assert call(function_tool, city="Oslo", level="2", scale="F")[-1] == {"unit": "F", "level": 2}
    with pytest.raises(ArgumentError, match="level: is required"):
        call(function_tool, city="Oslo")


def test_the_fields_of_a_model_are_taken_away_again():
    plain = FunctionTool(spread)
    again = set_extended_model(set_extended_model(plain, More), None)
    assert again.parameters == plain.parameters
    assert set_extended_model(FunctionTool(forecast), None).parameters["required"] == ["city"]
    written = FunctionTool(forecast, parameters=WRITTEN)
    assert set_extended_model(written, None).parameters == WRITTEN


def test_state_that_is_bound_later_leaves_the_added_fields_alone():
    function_tool = set_extended_model(FunctionTool(spread, state=["key"]), More)
    for bound in [
        function_tool.with_state({"key": "k"}),
        function_tool.with_injected({"days": 7, "key": "k"}),
    ]:
        assert "level" in bound.parameters["properties"]
        assert call(bound, city="Oslo", level=2)[3:] == ("k", {"unit": "C", "level": 2})


def test_an_added_field_may_be_named_like_a_variadic_parameter_that_is_not_shown():
    model = create_model("Made", args=(list[int], ...), kwargs=(dict[str, int], ...))
    function_tool = set_extended_model(FunctionTool(spread), model)
    sent = {"args": [1], "kwargs": {"key": 1}}
    assert call(function_tool, city="Oslo", **sent) == ("Oslo", 3, (), "none", sent)
    shown = FunctionTool(spread, include_var_keyword=True)
    with pytest.raises(DefinitionError, match="both have kwargs"):
        set_extended_model(shown, model)


def takes_level(level, **others): ...


def takes_unit(unit, **others): ...


def takes_scale(scale, **others): ...


@pytest.mark.parametrize(
    "function_tool",
    [
        FunctionTool(spread, presets={"level": 1}),
        FunctionTool(spread, state=["level"]),
        FunctionTool(spread).with_injected({"level": 1}),
        FunctionTool(partial(spread, level=1)),
        FunctionTool(partial(spread, unit=1)),
        FunctionTool(takes_level),
        FunctionTool(partial(takes_level, 1)),
        FunctionTool(takes_unit),
        FunctionTool(takes_scale),
    ],
)
def test_an_added_field_must_not_have_the_name_of_anything_else(function_tool):
    with pytest.raises(DefinitionError, match=r"both have (level|unit|scale) \(rename"):
        set_extended_model(function_tool, More)


def test_a_value_that_is_injected_for_an_added_field_is_refused_as_well():
    with pytest.raises(DefinitionError, match="both have level"):
        set_extended_model(FunctionTool(spread), More).with_injected({"level": 1})


def test_a_tool_that_takes_no_further_arguments_cannot_be_extended():
    with pytest.raises(DefinitionError, match=r"takes no further arguments \(add \*\*kwargs"):
        set_extended_model(FunctionTool(forecast), More)
    with pytest.raises(DefinitionError, match="'search' is not a FunctionTool"):
        set_extended_model(Search(), More)
    with pytest.raises(DefinitionError, match="has its own schema"):
        set_extended_model(FunctionTool(spread, parameters=WRITTEN), More)


@pytest.mark.parametrize("model", [{"level": 1}, More(level=1), dict, RootModel[int]])
def test_a_tool_is_extended_by_models_with_fields_only(model):
    with pytest.raises(DefinitionError, match="a pydantic model with fields"):
        set_extended_model(FunctionTool(spread), model)


def test_a_registered_tool_must_be_able_to_judge_its_arguments():
    class Broken(Search):
        parameters = {"type": "nothing"}  # noqa: RUF012 - as people write it

    with pytest.raises(DefinitionError, match="not a usable JSON Schema"):
        as_tool(Broken())


NAMES = st.sampled_from(["key", "loose", "ctx", "self", "city", "days", "kwargs", "args", "x"])


class Held:
    def fn(self, city: str, ctx: ToolContext, days: int = 1, *args, key="none", **kwargs):
        assert type(self) is Held
        assert (city, days, args) is not None
        return ctx, key, kwargs.get("loose")


HELD = FunctionTool(
    partial(Held().fn, loose="host"),
    presets={"key": "host"},
    include_var_positional=True,
    include_var_keyword=True,
)


@given(
    st.dictionaries(NAMES, st.just("mine") | st.dictionaries(NAMES, st.just("mine"))),
)
def test_a_model_never_sets_what_the_host_sets(arguments):
    try:
        outcome = call(HELD, **{"city": "Oslo", **arguments})
    except ArgumentError:
        return
    assert outcome == (ToolContext(tool="fn"), "host", "host")


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


@given(st.dictionaries(st.sampled_from("abcd") | st.text(), JSON))
def test_any_json_arguments_are_either_called_with_or_refused(arguments):
    try:
        a, *_ = call(TYPED, **arguments)
    except ArgumentError:
        return
    assert isinstance(a, int)


# ---- values that each call has of its own ------------------------------------------------------


def found(query: str, limit: int = 1, *, seen: list = ()):
    """Find things.

    Args:
        query: What.
    """
    return query, limit, seen


ANEW = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


def supplied(function_tool, *names, **values):
    return function_tool.with_call_values(
        names, lambda context: {**values, **context.state}, description="Anew.", parameters=ANEW
    )


def test_a_tool_can_be_supplied_with_values_that_each_call_has_of_its_own():
    function_tool = supplied(FunctionTool(found), "limit", "seen", limit=2)

    async def main():
        contexts = [ToolContext(state={"seen": [n]}) for n in (1, 2)]
        return [
            await function_tool.runner.run(a_call(function_tool, {"query": "a"}, context))
            for context in contexts
        ]

    assert asyncio.run(main()) == [("a", 2, [1]), ("a", 2, [2])]


def test_what_is_supplied_is_hidden_and_the_tool_is_described_again():
    tool = FunctionTool(found)
    function_tool = supplied(tool, "limit", "seen")
    assert (function_tool.description, function_tool.parameters) == ("Anew.", ANEW)
    assert function_tool.hidden == {"limit", "seen"}
    for name in ("limit", "seen"):
        with pytest.raises(ArgumentError, match="is set by the host"):
            function_tool.check({"query": "a", name: 1})
    assert (tool.description, tool.hidden) == ("Find things.", frozenset())


def test_the_new_description_holds_nothing_invisible_and_its_schema_is_a_copy():
    parameters = deepcopy(ANEW)
    created = FunctionTool(found).with_call_values(
        ["limit", "seen"], lambda context: {}, description="A\u200bnew.", parameters=parameters
    )
    parameters["properties"].clear()
    assert (created.description, created.parameters) == ("Anew.", ANEW)


def test_a_preset_wins_over_what_is_supplied():
    function_tool = supplied(FunctionTool(found, presets={"limit": 7}), "seen", seen=[], limit=2)
    assert call(function_tool, query="a") == ("a", 7, [])


def test_a_tool_that_is_supplied_wants_the_context_though_its_function_does_not_take_it():
    def reported(query: str, context: ToolContext): ...

    assert not FunctionTool(found).wants_context
    assert supplied(FunctionTool(found), "limit", "seen").wants_context
    assert not supplied(FunctionTool(found), "limit", "seen").takes_context
    assert FunctionTool(reported).takes_context
    assert FunctionTool(reported).wants_context


def test_what_is_supplied_may_change_so_no_answer_comes_from_memory():
    function_tool = supplied(FunctionTool(found, idempotent=True), "limit", "seen")
    assert not function_tool.idempotent
    assert function_tool.to_schema("mcp")["annotations"]["idempotentHint"] is True
    assert supplied(FunctionTool(found, idempotent=True)).idempotent


def test_open_parameters_are_those_without_a_value_that_holds_for_every_call():
    def many(a, b, c, d, context: ToolContext, *places, **further): ...

    tool = FunctionTool(partial(many, b=1), name="many", presets={"c": 1}, state=["d"])
    assert [item.name for item in tool.open_parameters] == ["a"]
    function_tool = supplied(FunctionTool(found), "limit", "seen")
    assert [item.name for item in function_tool.open_parameters] == ["query", "limit", "seen"]


def test_only_a_function_with_keywords_takes_further_arguments():
    assert FunctionTool(lambda **others: others, name="further").takes_kwargs
    assert not FunctionTool(lambda *places: places, name="places").takes_kwargs
    assert not FunctionTool(found).takes_kwargs


def test_a_tool_knows_what_its_function_takes_by_itself():
    def plain(text: str) -> str:
        return text

    def reported(context: ToolContext, **further: str) -> str:
        return ""

    class More(BaseModel):
        extra: str = ""

    assert [FunctionTool(it).takes_context for it in (plain, reported)] == [False, True]
    handed = FunctionTool(plain).with_call_values(
        (), lambda context: {}, description="D.", parameters={}
    )
    assert (handed.wants_context, handed.takes_context) == (True, False)
    assert [
        it.is_extended for it in (FunctionTool(reported), FunctionTool(reported).extended(More))
    ] == [
        False,
        True,
    ]
