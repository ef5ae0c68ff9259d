"""Functions with every kind of annotation; the table of `test_sixty_signatures.py` lists them."""

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from ipaddress import IPv4Address
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NotRequired,
    Optional,
    TypeVar,
    Union,
)
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, HttpUrl
from typing_extensions import TypedDict

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Unit(StrEnum):
    KM = "km"
    MILE = "mile"


class Place(TypedDict):
    city: str
    zip: NotRequired[str]


class Options(TypedDict, total=False):
    deep: bool
    description: str


class Pair(NamedTuple):
    a: int
    b: str = "q"


@dataclass
class Stop:
    """A place on the way."""

    name: str
    days: int = 1
    tags: list[str] = field(default_factory=list)


class Address(BaseModel):
    """Where somebody lives."""

    street: str = Field(description="Street and number.")
    town: str


class Person(BaseModel):
    name: str
    home: Address
    work: Address | None = None


class Node(BaseModel):
    value: int
    children: list["Node"] = []


class Chain(BaseModel):
    next: Optional["Chain"] = Field(None, description="The next link.")


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    x: int


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    x: int


class Empty(BaseModel):
    pass


class Box(BaseModel, Generic[T]):
    item: T


def plain_string(x: str): ...
def plain_integer(x: int): ...
def plain_number(x: float): ...
def plain_boolean(x: bool): ...
def plain_none(x: None): ...
def plain_bytes(x: bytes): ...
def no_parameters(): ...
def no_annotation(x, y=1): ...
def any_value(x: Any): ...
def literal_strings(x: Literal["a", "b"]): ...
def literal_one(x: Literal["only"]): ...
def literal_integers(x: Literal[1, 2]): ...
def literal_mixed(x: Literal["a", 1, None]): ...  # noqa: PYI061 - what people write
def literal_true(x: Literal[True]): ...
def enum_plain(x: Colour): ...
def enum_integer(x: Level = Level.LOW): ...
def enum_string(x: Unit = Unit.KM): ...
def enum_optional(x: Colour | None = None): ...
def union_new(x: int | str): ...
def union_old(x: Union[int, str, None]): ...  # noqa: UP007
def optional_old(x: Optional[int]): ...  # noqa: UP045
def optional_default(x: int | None = None): ...
def list_bare(x: list): ...
def list_of_strings(x: list[str]): ...
def list_optional(x: list[int] | None = None): ...
def dict_bare(x: dict): ...
def dict_of_integers(x: dict[str, int]): ...
def tuple_fixed(x: tuple[int, str]): ...
def tuple_open(x: tuple[int, ...]): ...
def tuple_empty_default(x: tuple[str, ...] = ()): ...
def set_of_strings(x: set[str]): ...
def frozenset_default(x: frozenset[int] = frozenset({1})): ...
def nested_lists(x: list[list[int]]): ...
def nested_dicts(x: dict[str, list[Stop]]): ...
def typed_dict(x: Place): ...
def typed_dict_partial(x: Options): ...
def named_tuple(x: Pair): ...
def a_dataclass(x: Stop): ...
def model_nested(x: Person): ...
def model_recursive(x: Node): ...
def model_chain(x: Chain): ...
def model_described(x: Annotated[Address, Field(description="The new home.")]): ...
def model_recursive_described(x: Annotated[Node, Field(description="The tree.")]): ...
def model_default(x: Address = Address(street="S 1", town="Oslo")): ...  # noqa: B008
def model_closed(x: Closed): ...
def model_open(x: Open): ...
def model_empty(x: Empty): ...
def model_generic(x: Box[int]): ...
def models_in_list(x: list[Address]): ...
def union_of_models(x: Cat | Dog): ...
def discriminated(x: Annotated[Cat | Dog, Field(discriminator="kind")]): ...
def discriminated_list(x: list[Annotated[Cat | Dog, Field(discriminator="kind")]] = []): ...  # noqa: B006
def bounds_integer(x: Annotated[int, Field(gt=0, lt=10, description="How many.")]): ...
def bounds_number(x: Annotated[float, Field(gt=0, le=1, multiple_of=0.25)]): ...
def bounds_string(x: Annotated[str, Field(min_length=2, max_length=3, pattern="^[a-z]+$")]): ...
def bounds_list(x: Annotated[list[int], Field(min_length=1, max_length=3)]): ...
def titled(x: Annotated[int, Field(title="The number", examples=[1])]): ...
def time_datetime(x: dt.datetime): ...
def time_date(x: dt.date): ...
def time_of_day(x: dt.time): ...
def time_delta(x: dt.timedelta): ...
def path(x: Path): ...
def uuid(x: UUID): ...
def decimal(x: Decimal): ...
def url(x: HttpUrl): ...
def ip_address(x: IPv4Address): ...
def keyword_only(a: int, *, x: str = "q"): ...
def positional_only(x: int, /, y: int = 2): ...
def postponed(x: "list[Stop]", later: "Later | None" = None): ...
def odd_names(schema: int, model_config: str, _x: bool, copy: float = 1.5, json: str = ""): ...


def named_description(description: str, title: str, properties: Options): ...


def google(x: int, y: str = "b"):
    """Do it the Google way.

    Args:
        x: How many.
        y: Which one.
    """


def numpy(x: int, y: str = "b"):
    """Do it the NumPy way.

    Parameters
    ----------
    x : int
        How many.
    y : str
        Which one.
    """


def sphinx(x: int, y: str = "b"):
    """Do it the Sphinx way.

    :param x: How many.
    :param y: Which one.
    """


class Later(BaseModel):
    when: dt.date


class Shop:
    def method(self, context: str, cls: int = 1): ...
