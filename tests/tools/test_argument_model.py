import datetime as dt
import importlib.util
import json
import math
import subprocess
import sys
import threading
import typing
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar, Union
from uuid import UUID

import pydantic
import pytest
import typing_extensions
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field

from satchel.errors import DefinitionError
from satchel.tools import ArgumentError, ArgumentFault
from satchel.tools.argument_model import ArgumentModel
from satchel.tools.signatures import signature_of


def arguments_of(fn, texts=None):
    return ArgumentModel(fn, signature_of(fn).parameters, texts or {})


def schema_of(fn, texts=None):
    return arguments_of(fn, texts).schema


def taking(annotation, *default):
    """Make a function with one parameter `x`."""
    if default:

        def fn(x=default[0]): ...
    else:

        def fn(x): ...

    fn.__annotations__ = {"x": annotation}
    return fn


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Only(Enum):
    ONE = 1


class Stop(BaseModel):
    """A place on the way."""

    title: str
    km: float = 0


class Titled(BaseModel):
    model_config = ConfigDict(title="A titled thing")

    x: int = Field(title="The letter")


class Node(BaseModel):
    kids: list["Node"] = []


@dataclass
class Trip:
    stop: Stop
    days: int = 1


class Options(typing_extensions.TypedDict, total=False):
    title: int


class Pair(NamedTuple):
    a: int
    title: str = "q"


T = TypeVar("T")


class Box(BaseModel, Generic[T]):
    item: T


STOP = {
    "description": "A place on the way.",
    "type": "object",
    "properties": {"title": {"type": "string"}, "km": {"type": "number", "default": 0}},
    "required": ["title"],
}
NODE = {
    "type": "object",
    "properties": {
        "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "default": []},
    },
}
TRIP = {
    "type": "object",
    "properties": {"stop": {"$ref": "#/$defs/Stop"}, "days": {"type": "integer", "default": 1}},
    "required": ["stop"],
    "additionalProperties": False,
}
OPTIONS = {
    "type": "object",
    "properties": {"title": {"type": "integer"}},
    "additionalProperties": False,
}
PAIR = {
    "type": "array",
    "prefixItems": [{"type": "integer"}, {"type": "string", "default": "q"}],
    "minItems": 1,
    "maxItems": 2,
}
TITLED = {
    "title": "A titled thing",
    "type": "object",
    "properties": {"x": {"type": "integer", "title": "The letter"}},
    "required": ["x"],
}
BOX = {"type": "object", "properties": {"item": {"type": "integer"}}, "required": ["item"]}
STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


@pytest.mark.parametrize(
    ("annotation", "expected", "defs"),
    [
        (str, STRING, {}),
        (int, INTEGER, {}),
        (float, {"type": "number"}, {}),
        (bool, {"type": "boolean"}, {}),
        (None, NULL, {}),
        (Any, {}, {}),
        (bytes, {"type": "string", "format": "binary"}, {}),
        (list, {"type": "array", "items": {}}, {}),
        (list[str], {"type": "array", "items": STRING}, {}),
        (set[int], {"type": "array", "items": INTEGER, "uniqueItems": True}, {}),
        (tuple[int, ...], {"type": "array", "items": INTEGER}, {}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2},
            {},
        ),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}, {}),
        (int | None, {"anyOf": [INTEGER, NULL]}, {}),
        (Optional[int], {"anyOf": [INTEGER, NULL]}, {}),  # noqa: UP045 - both spellings
        (Union[int, str], {"anyOf": [INTEGER, STRING]}, {}),  # noqa: UP007 - both spellings
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, {}),
        (Literal["a"], {"type": "string", "const": "a"}, {}),
        (
            Colour,
            {"$ref": "#/$defs/Colour"},
            {"Colour": {"type": "string", "enum": ["red", "blue"]}},
        ),
        (Only, {"$ref": "#/$defs/Only"}, {"Only": {"type": "integer", "enum": [1]}}),
        (Stop, {"$ref": "#/$defs/Stop"}, {"Stop": STOP}),
        (
            dict[str, Stop | None],
            {
                "type": "object",
                "additionalProperties": {"anyOf": [{"$ref": "#/$defs/Stop"}, NULL]},
            },
            {"Stop": STOP},
        ),
        (Titled, {"$ref": "#/$defs/Titled"}, {"Titled": TITLED}),
        (Node, {"$ref": "#/$defs/Node"}, {"Node": NODE}),
        (Trip, {"$ref": "#/$defs/Trip"}, {"Stop": STOP, "Trip": TRIP}),
        (Options, {"$ref": "#/$defs/Options"}, {"Options": OPTIONS}),
        (Pair, {"$ref": "#/$defs/Pair"}, {"Pair": PAIR}),
        (Box[int], {"$ref": "#/$defs/Box_int_"}, {"Box_int_": BOX}),
        ("Stop", {"$ref": "#/$defs/Stop"}, {"Stop": STOP}),
        (
            list["Stop"],
            {"type": "array", "items": {"$ref": "#/$defs/Stop"}},
            {"Stop": STOP},
        ),
        (
            Annotated[int, Field(ge=1, lt=9, description="How many.")],
            {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "description": "How many."},
            {},
        ),
        (Annotated[int, Field(title="Mine")], {"type": "integer", "title": "Mine"}, {}),
        (Annotated[int, Field(alias="y")], INTEGER, {}),
        (Annotated[int, "for people"], INTEGER, {}),
        (Annotated[int, Field(validation_alias=AliasChoices("y", "z"))], INTEGER, {}),
        (dt.datetime, {"type": "string", "format": "date-time"}, {}),
        (Path, {"type": "string", "format": "path"}, {}),
        (UUID, {"type": "string", "format": "uuid"}, {}),
    ],
    ids=str,
)
def test_a_type_gives_its_schema(annotation, expected, defs):
    schema = schema_of(taking(annotation))
    assert schema["properties"] == {"x": expected}
    assert schema["required"] == ["x"]
    assert schema.get("$defs", {}) == defs
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert "title" not in schema


def test_a_function_without_parameters_takes_an_empty_object():
    assert schema_of(lambda: None) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_a_parameter_without_annotation_takes_anything():
    def fn(x, y=1): ...

    assert schema_of(fn)["properties"] == {"x": {}, "y": {"default": 1}}


@pytest.mark.parametrize(
    ("annotation", "default", "shown"),
    [
        (int, 3, 3),
        (int | None, None, None),
        (Colour, Colour.RED, "red"),
        (set[str], {"b", "a"}, ["a", "b"]),
        (Stop, Stop(title="t"), {"title": "t", "km": 0.0}),
        (Trip, Trip(Stop(title="t")), {"stop": {"title": "t", "km": 0.0}, "days": 1}),
        (Decimal, Decimal("1.50"), "1.50"),
        (Path, Path("a"), "a"),
        (Annotated[int, Field(default=4)], 7, 7),
        (int, Field(3), 3),
        (int, Field(default_factory=int), ...),
        (float, math.nan, ...),
        (Any, threading.Lock(), ...),
        (Any, {"lock": threading.Lock()}, ...),
        (str, "\ud800", ...),
        (Annotated[int, Field(default=4)], object(), ...),
    ],
)
def test_a_default_is_shown_when_json_can_carry_it(annotation, default, shown):
    schema = schema_of(taking(annotation, default))
    assert schema["properties"]["x"].get("default", ...) == shown
    assert "required" not in schema


def test_a_default_that_only_the_annotation_gives_is_filled_in():
    arguments = arguments_of(taking(Annotated[int, Field(default=4)]))
    assert arguments.schema["properties"]["x"]["default"] == 4
    assert arguments.check("t", {}) == {"x": 4}


def test_a_field_as_default_describes_and_fills_in():
    arguments = arguments_of(taking(int, Field(4, description="How many.", ge=1)))
    assert arguments.schema["properties"]["x"] == {
        "type": "integer",
        "description": "How many.",
        "minimum": 1,
        "default": 4,
    }
    assert arguments.check("t", {}) == {"x": 4}


@pytest.mark.parametrize(
    "fn",
    [
        taking(list, Field(default_factory=list)),
        taking(Annotated[list, Field(default_factory=list)]),
    ],
)
def test_a_default_that_pydantic_makes_is_filled_in_again_each_time(fn):
    arguments = arguments_of(fn)
    assert "required" not in arguments.schema
    assert arguments.check("t", {}) == {"x": []}
    assert arguments.check("t", {})["x"] is not arguments.check("t", {})["x"]


def test_a_default_of_the_function_is_left_to_the_function():
    assert arguments_of(taking(list, [])).check("t", {}) == {}


def test_the_words_of_the_docstring_describe_what_the_annotation_does_not():
    def fn(a: int, b: Annotated[int, Field(description="Mine.")], c: Stop): ...

    properties = schema_of(fn, {"a": "One.", "b": "Two.", "c": "Three.", "d": "?"})["properties"]
    assert [about["description"] for about in properties.values()] == ["One.", "Mine.", "Three."]


def clashing(  # noqa: PLR0917 - each name is a case
    model_config: int, schema: int, json: int, copy: int, _x: int, model_x: int, self: int,
    cls: int, context: int, p0: int, title: int, __y: int = 0,
): ...  # fmt: skip


def test_parameters_may_have_names_that_pydantic_keeps_for_itself():
    arguments = arguments_of(clashing)
    names = [*clashing.__annotations__]
    assert [*arguments.schema["properties"]] == names
    sent = {name: at for at, name in enumerate(names)}
    assert arguments.check("t", sent) == sent


def load_postponed():
    path = Path(__file__).with_name("postponed.py")
    spec = importlib.util.spec_from_file_location("postponed", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["postponed"] = module  # pydantic looks up the module of a model
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def postponed(monkeypatch):
    monkeypatch.delitem(sys.modules, "postponed", raising=False)
    yield load_postponed()
    del sys.modules["postponed"]


def test_postponed_and_forward_annotations_are_resolved_where_they_were_written(postponed):
    schema = schema_of(postponed.early)
    assert schema["properties"] == {
        "stops": {"type": "array", "items": {"$ref": "#/$defs/Stop"}},
        "near": {
            "anyOf": [{"$ref": "#/$defs/Stop"}, NULL],
            "description": "Begin.",
            "default": None,
        },
    }
    assert schema_of(postponed.wrapped(postponed.early)) == schema


def test_a_return_type_that_does_not_exist_is_nobodys_concern(postponed):
    assert schema_of(postponed.returns_missing)["required"] == ["city"]


def test_a_hidden_parameter_may_have_a_type_that_exists_only_for_type_checkers(postponed):
    city, _client = signature_of(postponed.takes_client).parameters
    assert [*ArgumentModel(postponed.takes_client, [city], {}).schema["properties"]] == ["city"]


def test_an_annotation_that_names_nothing_is_refused(postponed):
    with pytest.raises(DefinitionError, match="parameter 'client' cannot be resolved"):
        schema_of(postponed.takes_client)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are new in Python 3.12")
def test_type_parameters_are_resolved():
    scope = {}
    exec("from __future__ import annotations\ndef fn[T: int](x: T): ...", scope)
    assert schema_of(scope["fn"])["properties"] == {"x": INTEGER}


def test_a_bound_of_a_type_parameter_counts():
    fn = taking("M")
    fn.__type_params__ = (TypeVar("M", bound=int),)
    assert schema_of(fn)["properties"] == {"x": INTEGER}


def test_a_type_that_pydantic_does_not_know_is_refused_by_the_name_of_its_parameter():
    def fn(city: str, lock: type(threading.Lock())): ...

    with pytest.raises(DefinitionError, match="'lock' has a type that a model cannot send"):
        schema_of(fn)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes it since Python 3.12")
def test_a_typed_dict_of_typing_is_refused_with_the_one_to_use():
    class Place(typing.TypedDict):
        city: str

    with pytest.raises(DefinitionError, match=r"Please use `typing_extensions\.TypedDict`"):
        schema_of(taking(list[Place]))


def test_a_type_without_json_schema_is_refused():
    with pytest.raises(DefinitionError, match="no JSON Schema describes"):
        schema_of(taking(Callable[[], int]))


def test_parameters_that_fail_only_together_are_refused_with_the_cause():
    both = Annotated[int, Field(default_factory=int)]
    with pytest.raises(DefinitionError, match="default_factory"):
        schema_of(taking(both, Field(default=1)))


@pytest.mark.parametrize("text", ["\ud800", "ok"])
def test_a_schema_that_json_cannot_carry_is_refused(text):
    extra = Annotated[int, Field(description=text, json_schema_extra={"x-n": math.nan})]
    with pytest.raises(DefinitionError, match="JSON cannot represent"):
        schema_of(taking(extra))


def test_arguments_are_coerced_to_the_types_of_the_parameters():
    def fn(days: int, stop: Stop, when: dt.date, path: Path): ...

    sent = {"days": "3", "stop": {"title": "t"}, "when": "2024-01-02", "path": "a"}
    assert arguments_of(fn).check("t", sent) == {
        "days": 3,
        "stop": Stop(title="t"),
        "when": dt.date(2024, 1, 2),
        "path": Path("a"),
    }


def test_arguments_that_do_not_fit_are_all_reported_without_their_values():
    def fn(days: int, stops: list[Stop], city: str): ...

    with pytest.raises(ArgumentError) as caught:
        arguments_of(fn).check(
            "forecast", {"days": "secret", "stops": [{"title": "t", "km": "secret"}], "p0": 1}
        )
    assert caught.value.tool == "forecast"
    assert caught.value.faults == (
        ArgumentFault("days", "should be a valid integer, unable to parse string as an integer"),
        ArgumentFault(
            "stops[0].km", "should be a valid number, unable to parse string as a number"
        ),
        ArgumentFault("city", "is required"),
        ArgumentFault("p0", "there is no such argument"),
    )
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


def test_a_tag_that_names_no_member_of_a_union_is_not_quoted():
    arguments = arguments_of(taking(Annotated[Cat | Dog, Field(discriminator="kind")]))
    with pytest.raises(ArgumentError, match=r"x: 'kind' should be one of 'cat', 'dog'$"):
        arguments.check("t", {"x": {"kind": "secret"}})


def test_a_null_for_a_parameter_that_may_be_left_out_means_left_out():
    def fn(city: str, days: int = 3, note: str | None = "n", stop: Stop | None = None): ...

    arguments = arguments_of(fn)
    sent = {"city": "Oslo", "days": None, "note": None, "stop": {"title": "t", "km": None}}
    assert arguments.check("t", sent) == {"city": "Oslo", "note": None, "stop": Stop(title="t")}
    assert sent["stop"] == {"title": "t", "km": None}


def test_a_null_for_a_parameter_that_is_required_is_reported_as_it_was_sent():
    def fn(city: str, days: int = 3): ...

    with pytest.raises(ArgumentError) as caught:
        arguments_of(fn).check("t", {"city": None, "days": None})
    assert [fault.argument for fault in caught.value.faults] == ["city", "days"]


def test_what_only_the_host_sets_is_refused_with_the_reason():
    def fn(city: str, key: str): ...

    arguments = ArgumentModel(fn, signature_of(fn).parameters[:1], {}, hidden=["key"])
    for value in ["mine", None]:
        with pytest.raises(ArgumentError, match="key: is set by the host; leave it out"):
            arguments.check("t", {"city": "Oslo", "key": value})


def variadic(city: str, *args: int, **kwargs: int): ...


def arguments_of_variadic(**options):
    signature = signature_of(variadic)
    shown = [*signature.parameters, signature.var_positional, signature.var_keyword]
    return ArgumentModel(variadic, shown, {"args": "Numbers."}, reserved=signature.names, **options)


def test_variadic_parameters_are_an_array_and_an_object_of_their_names():
    arguments = arguments_of_variadic()
    assert arguments.names == {"city", "args", "kwargs"}
    assert arguments.schema["properties"] == {
        "city": STRING,
        "args": {"type": "array", "items": INTEGER, "default": [], "description": "Numbers."},
        "kwargs": {"type": "object", "additionalProperties": INTEGER, "default": {}},
    }
    assert arguments.schema["required"] == ["city"]
    assert arguments.check("t", {"city": "Oslo", "args": ["1"], "kwargs": {"x": "2"}}) == {
        "city": "Oslo",
        "args": [1],
        "kwargs": {"x": 2},
    }
    assert arguments.check("t", {"city": "Oslo"}) == {"city": "Oslo"}


def test_further_arguments_must_not_have_the_name_of_anything_else():
    arguments = arguments_of_variadic(hidden=["key"], added_model=More)
    sent = {"city": "Oslo", "kwargs": {"key": 1, "city": 2, "days": 3, "x": 4}, "count": 1}
    with pytest.raises(ArgumentError) as caught:
        arguments.check("t", sent)
    beside = "is a separate argument; send it outside this object, or leave it out"
    assert caught.value.faults == (
        ArgumentFault("kwargs.key", "is set by the host; leave it out"),
        ArgumentFault("kwargs.city", beside),
        ArgumentFault("kwargs.days", beside),
    )


class More(BaseModel):
    days: int = Field(alias="count", ge=1, description="How many.")
    tags: list[str] = Field(default_factory=list)
    unit: str = "C"

    @pydantic.model_validator(mode="after")
    def agrees(self):
        if self.unit == "F" and self.days > 1:
            raise ValueError("one day only")
        return self


TAKING_TEXT = taking(str)


def extended(added, fn=TAKING_TEXT, **options):
    return ArgumentModel(fn, signature_of(fn).parameters, {}, added_model=added, **options)


def test_an_added_model_adds_its_fields_under_the_names_they_are_sent_by():
    arguments = extended(More)
    assert arguments.schema["properties"] == {
        "x": STRING,
        "count": {"type": "integer", "minimum": 1, "description": "How many."},
        "tags": {"type": "array", "items": STRING},
        "unit": {"type": "string", "default": "C"},
    }
    assert arguments.schema["required"] == ["x", "count"]
    assert arguments.names == {"x"}


def test_the_fields_of_an_added_model_are_coerced_filled_in_and_handed_over_by_their_names():
    assert extended(More).check("t", {"x": "a", "count": "2", "unit": None}) == {
        "x": "a",
        "days": 2,
        "tags": [],
        "unit": "C",
    }


def test_the_faults_of_both_are_reported():
    with pytest.raises(ArgumentError) as caught:
        extended(More).check("t", {"count": 0, "days": 3})
    assert [fault.argument for fault in caught.value.faults] == ["x", "days", "count"]


def test_a_fault_of_an_added_model_as_a_whole_has_no_place():
    with pytest.raises(ArgumentError, match="t: Value error, one day only"):
        extended(More).check("t", {"x": "a", "count": 2, "unit": "F"})


class Aliased(BaseModel):
    model_config = ConfigDict(alias_generator=str.upper, validate_by_name=True)

    one: int
    two: int = Field(validation_alias="second")
    three: int = Field(validation_alias=AliasChoices(AliasPath("a", 0), "third", "drei"))


def test_every_kind_of_alias_is_the_one_name_by_which_a_field_is_sent():
    arguments = extended(Aliased)
    assert [*arguments.schema["properties"]] == ["x", "ONE", "second", "third"]
    sent = {"x": "a", "ONE": 1, "second": 2, "third": 3}
    assert arguments.check("t", sent) == {"x": "a", "one": 1, "two": 2, "three": 3}
    for name in ["one", "two", "three", "drei", "a"]:
        with pytest.raises(ArgumentError, match=f"{name}: there is no such argument"):
            arguments.check("t", {**sent, name: 1})


class Deep(BaseModel):
    one: int = Field(validation_alias=AliasPath("a", 0))


def test_a_field_that_is_a_part_of_another_value_cannot_be_added():
    with pytest.raises(DefinitionError, match="'one' of the added model is a path"):
        extended(Deep)


class Sent(BaseModel):
    y: int = Field(alias="x")


class Called(BaseModel):
    x: int = Field(alias="y")


@pytest.mark.parametrize("added", [Sent, Called])
def test_neither_the_alias_nor_the_name_of_an_added_field_may_be_a_parameters(added):
    with pytest.raises(DefinitionError, match="the function both have x"):
        extended(added)
    for names in [{"hidden": ["x"]}, {"reserved": ["x"]}]:
        with pytest.raises(DefinitionError, match="the function both have x"):
            extended(added, lambda: None, **names)


def other_stop():
    class Stop(BaseModel):
        city: str

    class Route(BaseModel):
        via: Stop

    return Route


def test_definitions_that_clash_by_name_stand_side_by_side():
    arguments = extended(other_stop(), taking(Stop))
    own, other = (
        arguments.schema["$defs"][about["$ref"].removeprefix("#/$defs/")]
        for about in arguments.schema["properties"].values()
    )
    assert (own, other["required"]) == (STOP, ["city"])
    checked = arguments.check("t", {"x": {"title": "t"}, "via": {"city": "Oslo"}})
    assert (checked["x"].title, checked["via"].city) == ("t", "Oslo")


def test_an_added_model_that_no_schema_describes_is_refused():
    model = pydantic.create_model("Made", y=(Callable[[], int], ...))
    with pytest.raises(DefinitionError, match="no JSON Schema describes"):
        extended(model)


def test_what_a_validator_raises_besides_refusing_passes_through():
    def refuse(value):
        raise LookupError

    arguments = arguments_of(taking(Annotated[int, pydantic.AfterValidator(refuse)]))
    with pytest.raises(LookupError):
        arguments.check("t", {"x": 1})


def test_the_same_function_gives_the_same_bytes_in_every_process():
    code = (
        "import json; from satchel.tools import FunctionTool\n"
        "def fn(a: set[str] = {'x', 'y', 'z'}, b: dict = {'q': {'s', 't', 'u'}}): ...\n"
        "print(json.dumps(FunctionTool(fn).to_schema()))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in "0123"
    }
    assert len(seen) == 1
    assert json.loads(seen.pop())["function"]["parameters"]["properties"]["a"]["default"] == [
        "x", "y", "z",
    ]  # fmt: skip
