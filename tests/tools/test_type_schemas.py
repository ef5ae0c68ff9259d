import importlib.util
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Optional

import pytest
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, computed_field, create_model

from satchel.errors import DefinitionError
from satchel.tools import Text, ToolChunk, ToolResult, pydantic_to_json_schema
from satchel.tools.type_schemas import output_schema, schema_of


class Colour(Enum):
    RED = "red"


class Stop(BaseModel):
    title: str
    colour: Colour = Colour.RED
    then: Optional["Stop"] = None


class Titled(BaseModel):
    model_config = ConfigDict(title="Mine")

    x: Annotated[int, Field(title="The letter")]


@dataclass
class Trip:
    days: int


class Options(typing_extensions.TypedDict):
    days: int


class Area(BaseModel):
    side: int

    @computed_field
    def square(self) -> int:
        return self.side**2


DAYS = {
    "type": "object",
    "properties": {"days": {"type": "integer"}},
    "required": ["days"],
}


def test_a_model_is_described_without_the_titles_that_pydantic_makes_up():
    assert schema_of(TypeAdapter(create_model("Made", title=(str, ...)))) == {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
    }
    assert pydantic_to_json_schema(Stop)["$defs"] == {
        "Colour": {"type": "string", "enum": ["red"]},
        "Stop": {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "colour": {"$ref": "#/$defs/Colour", "default": "red"},
                "then": {"anyOf": [{"$ref": "#/$defs/Stop"}, {"type": "null"}], "default": None},
            },
            "required": ["title"],
        },
    }


def test_a_title_that_an_author_wrote_stays():
    assert pydantic_to_json_schema(Titled) == {
        "title": "Mine",
        "type": "object",
        "properties": {"x": {"title": "The letter", "type": "integer"}},
        "required": ["x"],
    }


@pytest.mark.parametrize("kind", [Trip, Options])
def test_other_types_with_fields_are_described_too(kind):
    assert pydantic_to_json_schema(kind) == DAYS


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (int, {"type": "integer"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Annotated[int, Field(ge=1)], {"type": "integer", "minimum": 1}),
    ],
    ids=str,
)
def test_any_type_has_a_schema(kind, expected):
    assert pydantic_to_json_schema(kind) == expected


@pytest.mark.parametrize(
    ("kind", "name"), [(type(threading.Lock()), "lock"), (list[Callable[[], int]], "list")]
)
def test_a_type_that_no_schema_describes_is_refused_by_its_name(kind, name):
    with pytest.raises(DefinitionError, match=f"{name}.*no JSON Schema describes this type"):
        pydantic_to_json_schema(kind)


def test_a_default_that_json_cannot_carry_is_left_out_silently():
    created = create_model("Made", x=(Any, threading.Lock()))
    assert schema_of(TypeAdapter(created))["properties"] == {"x": {}}


def returning(annotation):
    def fn(): ...

    fn.__annotations__["return"] = annotation
    return fn


@pytest.mark.parametrize("kind", [Trip, Options, "Trip"])
def test_what_a_function_returns_is_described_if_it_is_an_object(kind):
    assert output_schema(returning(kind)) == DAYS


def test_what_is_returned_is_described_as_it_is_written():
    assert [*output_schema(returning(Area))["properties"]] == ["side", "square"]


def test_a_returned_model_that_contains_itself_is_described():
    schema = output_schema(returning(Stop))
    assert schema["$ref"] == "#/$defs/Stop"


def test_returned_mappings_are_objects():
    assert output_schema(returning(dict[str, int])) == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }


@pytest.mark.parametrize(
    "kind",
    [
        None, type(None), Any, object, int, str, list[Trip], Trip | None, Iterator[int],
        AsyncIterator[int], Text, ToolResult, ToolChunk, "Nowhere", Callable[[], int],
        type(threading.Lock()), 3,
        Annotated[dict[str, int], Field(json_schema_extra={"x-n": float("nan")})],
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_object_or_cannot_be_described_is_left_out(kind):
    assert output_schema(returning(kind)) is None


def test_a_function_that_says_nothing_has_no_schema_of_what_it_returns():
    assert output_schema(lambda: None) is None
    assert output_schema(len) is None


def test_a_return_type_that_exists_only_for_type_checkers_is_left_out():
    path = Path(__file__).with_name("postponed.py")
    spec = importlib.util.spec_from_file_location("postponed_for_output", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert output_schema(module.returns_missing) is None
