import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import weakref
from collections.abc import Hashable
from functools import cached_property
from typing import Any, Generic, TypeVar

import pytest

from satchel.lazy_dataclass import dataclass, fast_constructor

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Animal:
    """Something that lives."""

    name: str
    legs: int = 4
    tags: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False, repr=False)
    rank: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bird(Animal):
    legs: int = 2
    song: str

    @property
    def title(self) -> str:
        return f"{self.name} sings {self.song}"


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0
    size: float = dataclasses.field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", (self.x**2 + self.y**2) ** 0.5)

    @cached_property
    def doubled(self) -> int:
        return self.x * 2


@dataclass(slots=True)
class Counter(Generic[T]):
    value: T
    seen: list[T] = dataclasses.field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Handle:
    number: int


def test_records_compare_hash_and_print_like_standard_ones():
    wren = Bird(name="wren", song="trill", tags={"small": 1}, rank=1)
    same = Bird(name="wren", song="trill", tags={"small": 1}, rank=2)
    assert wren == same
    assert hash(wren) == hash(same)
    assert wren != Bird(name="wren", song="trill")
    assert Animal(name="wren", legs=2) != wren
    assert repr(wren) == "Bird(name='wren', legs=2, rank=1, song='trill')"
    assert repr(Point(3, 4)) == "Point(x=3, y=4, size=5.0)"
    assert (wren.title, Point(3).doubled, Bird.__doc__) == ("wren sings trill", 6, None)


def test_a_default_factory_makes_a_value_for_each_instance():
    one, two = Counter(1), Counter(1)
    one.seen.append(1)
    assert (one.seen, two.seen, one == two) == ([1], [], False)
    one.value = 5
    assert one.value == 5
    assert not isinstance(one, Hashable)


def test_frozen_records_refuse_changes():
    for value in (Animal(name="cat"), Point(1)):
        for name in (*value.__dataclass_fields__, "other"):
            with pytest.raises(dataclasses.FrozenInstanceError, match=f"assign to field '{name}'"):
                setattr(value, name, 1)
            with pytest.raises(dataclasses.FrozenInstanceError, match=f"delete field '{name}'"):
                delattr(value, name)


def test_an_ordinary_subclass_of_a_frozen_record_may_have_other_attributes():
    class Place(Point):
        pass

    place = Place(1)
    place.note = "here"
    del place.note
    with pytest.raises(dataclasses.FrozenInstanceError):
        place.x = 2


def test_the_functions_for_data_classes_accept_the_records():
    cat = Animal(name="cat", tags={"a": [1]})
    assert dataclasses.is_dataclass(Animal)
    assert [item.name for item in dataclasses.fields(Bird)] == [
        *("name", "legs", "tags", "rank", "song")
    ]
    assert dataclasses.replace(cat, legs=3) == Animal(name="cat", legs=3, tags={"a": [1]})
    assert dataclasses.asdict(cat) == {"name": "cat", "legs": 4, "tags": {"a": [1]}, "rank": 0}
    assert Point.__match_args__ == ("x", "y")
    assert Animal.__match_args__ == ()


@pytest.mark.parametrize("value", [Animal(name="cat", rank=3), Point(3, 4), Counter("a", ["b"])])
def test_records_are_copied_and_pickled(value):
    copies = (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value)))
    assert [dataclasses.astuple(item) for item in copies] == [dataclasses.astuple(value)] * 3


def test_slots_leave_no_room_for_other_attributes():
    assert not hasattr(Animal(name="cat"), "__dict__")
    assert Bird.__slots__ == ("song",)
    handle = Handle(1)
    assert weakref.ref(handle)() is handle
    assert handle != Handle(1)


def test_a_standard_data_class_may_derive_from_a_record():
    @dataclasses.dataclass(frozen=True)
    class Place(Point):
        note: str = ""

    assert Place(1, 2, "here").note == "here"


def test_the_constructor_has_a_signature_and_names_itself_in_errors():
    expected = "(*, name: str, legs: int = 4, tags: dict[str, typing.Any] = <factory>"
    assert str(inspect.signature(Animal)).startswith(expected)
    with pytest.raises(TypeError, match=r"Animal\.__init__\(\) missing 1 required"):
        Animal()
    with pytest.raises(TypeError, match="unexpected keyword argument 'wings'"):
        Animal(name="cat", wings=2)


def test_what_a_class_defines_itself_is_kept():
    @dataclass(frozen=True, slots=True)
    class Word:  # noqa: PLW1641 - the decorator adds __hash__
        text: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Word) and self.text.lower() == other.text.lower()

        def __repr__(self) -> str:
            return "a word"

    assert Word("A") == Word("a")
    assert repr(Word("A")) == "a word"
    assert hash(Word("A")) == hash(Word("A"))


def test_defining_a_record_compiles_nothing():
    code = (
        "import sys, dataclasses\n"
        "from satchel.lazy_dataclass import dataclass\n"
        "compiled = []\n"
        "sys.addaudithook(lambda event, args: event == 'compile' and compiled.append(event))\n"
        "class Wing:\n    span: int\n    tip: str = ''\n"
        "Wing = dataclass(frozen=True, slots=True)(Wing)\n"
        # From Python 3.13 on, `dataclasses` compiles an empty text.
        "defined = len(compiled)\n"
        "assert defined <= (sys.version_info >= (3, 13))\n"
        "Wing(1)\n"
        "assert len(compiled) == defined + 1\n"
        "Wing(2)\n"
        "assert len(compiled) == defined + 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Place(Point):
    """An ordinary subclass; here, so that it can be pickled."""


def test_an_ordinary_subclass_keeps_its_attributes_when_it_is_pickled():
    place = Place(1)
    place.note = "here"
    copied = pickle.loads(pickle.dumps(place))
    assert (copied, copied.note) == (place, "here")


@pytest.mark.skipif(not hasattr(copy, "replace"), reason="new in Python 3.13")
def test_copy_replace_accepts_the_records():
    assert copy.replace(Animal(name="cat"), legs=3) == Animal(name="cat", legs=3)


def test_a_fast_constructor_makes_equal_records():
    options = {"name": "robin", "song": "tic", "rank": 3}
    bird, usual = fast_constructor(Bird)(**options), Bird(**options)
    assert type(bird) is Bird
    assert (bird, bird.tags, bird.rank, bird.title) == (usual, {}, 3, usual.title)
    assert bird.tags is not fast_constructor(Bird)(**options).tags
    with pytest.raises(dataclasses.FrozenInstanceError):
        bird.legs = 3
    with pytest.raises(TypeError):
        fast_constructor(Bird)(name="robin")
