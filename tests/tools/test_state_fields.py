import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from satchel.errors import DefinitionError
from satchel.tools import MissingStateError
from satchel.tools.signatures import signature_of
from satchel.tools.state_fields import bind_values, state_fields


def fields_of(fn, names=("key",)):
    return state_fields(fn, signature_of(fn), names)


def bound(fn, values, names=("key",)):
    return bind_values(fn, fields_of(fn, names), values, "")


def taking(annotation, *default):
    """Make a function with one parameter `key`."""
    if default:

        def fn(key=default[0]): ...
    else:

        def fn(key): ...

    fn.__annotations__ = {"key": annotation}
    return fn


def forecast(city: str, key: str, days: int = 3, **others): ...


def test_state_fields_are_parameters_in_the_order_they_were_named_each_once():
    fields = fields_of(forecast, ["days", "key", "days"])
    assert [(field.name, field.required) for field in fields] == [("days", False), ("key", True)]


def test_what_a_partial_holds_is_no_field_any_more():
    assert fields_of(partial(forecast, key="k")) == ()


def test_a_field_may_go_into_the_further_arguments_and_takes_anything():
    (field,) = fields_of(forecast, ["loose"])
    assert field.required
    assert bound(forecast, {"loose": {1}}, ["loose"]) == {"loose": {1}}


@pytest.mark.parametrize(
    ("fn", "required"),
    [
        (taking(str), True),
        (taking(str, "k"), False),
        (taking(str, None), False),
        (taking(str, Field()), True),
        (taking(str, Field(description="A key.")), True),
        (taking(str, Field("k")), False),
        (taking(str, Field(default_factory=str)), False),
        (taking(Annotated[str, Field(default="k")]), False),
        (taking(Annotated[str, Field(description="A key.")]), True),
        (taking(Annotated[str, Field(default="k")], Field(description="A key.")), False),
        (taking("Nowhere"), True),
        (taking("Nowhere", Field("k")), False),
    ],
)
def test_a_field_is_required_unless_something_gives_its_default(fn, required):
    (field,) = fields_of(fn)
    assert field.required is required


@pytest.mark.parametrize(
    "fn",
    [
        taking(str, Field("k")),
        taking(Annotated[str, Field(default="k")]),
        taking(str, Field(default_factory=lambda: "k")),
    ],
)
def test_a_default_that_only_pydantic_knows_is_made_by_it(fn):
    (field,) = fields_of(fn)
    assert field.made_default() == "k"


def test_a_default_that_can_be_changed_is_made_again():
    (field,) = fields_of(taking(list, Field(default_factory=list)))
    assert field.made_default() is not field.made_default()


def test_a_field_without_value_and_default_is_missing_and_says_how_to_set_it():
    with pytest.raises(
        MissingStateError, match=r"forecast: .*'key' has no value.*presets"
    ) as caught:
        bound(forecast, {})
    assert caught.value.field == "key"
    with pytest.raises(MissingStateError, match=r"\(set FORECAST_KEY\)"):
        bind_values(forecast, fields_of(forecast), {}, "set FORECAST_KEY")


def test_a_field_with_a_default_is_left_to_it():
    assert bound(forecast, {"unknown": 1}, ["days"]) == {}


class Account(BaseModel):
    user: str
    tries: int = 1


@dataclass
class Pair:
    one: int


class Client:
    pass


CLIENT = Client()


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (int, "5", 5),
        (bool, "yes", True),
        (Path, "a/b", Path("a/b")),
        (list[int], ["1", 2], [1, 2]),
        (Account, {"user": "u", "tries": "2"}, Account(user="u", tries=2)),
        (Account, Account(user="u"), Account(user="u")),
        (Pair, {"one": "1"}, Pair(1)),
        (Any, "5", "5"),
        ("Nowhere", "5", "5"),
        ("int", "5", 5),
        (Callable[[], int], len, len),
    ],
    ids=str,
)
def test_a_value_becomes_what_the_annotation_says(annotation, value, expected):
    assert bound(taking(annotation), {"key": value}) == {"key": expected}


def test_a_value_without_annotation_stays_what_it_is():
    def fn(key): ...

    assert bound(fn, {"key": "5"}) == {"key": "5"}


def test_a_value_of_a_type_that_pydantic_does_not_know_must_be_one():
    assert isinstance(bound(taking(Client), {"key": CLIENT})["key"], Client)
    with pytest.raises(DefinitionError, match="should be an instance of Client"):
        bound(taking(Client), {"key": "secret"})


@dataclass
class Holder:
    client: Client


def test_a_type_that_pydantic_cannot_judge_is_not_judged():
    (value,) = bound(taking(Holder), {"key": Holder(CLIENT)}).values()
    assert isinstance(value, Holder)


def test_a_value_is_copied_so_that_no_one_shares_it():
    numbers = [1]
    (value,) = bound(taking(list), {"key": numbers}).values()
    numbers.append(2)
    assert value == [1]


def test_a_value_that_cannot_be_copied_is_refused_and_the_class_form_is_named():
    with pytest.raises(DefinitionError, match=r"'key', a lock, cannot be copied \(.*class of Tool"):
        bound(taking(Any), {"key": threading.Lock()})


def refuse(value):
    raise ValueError(f"{value} is wrong")


def fail(value):
    raise LookupError(value)


class A(BaseModel):
    kind: Literal["a"]


class B(BaseModel):
    kind: Literal["b"]


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (int, "secret", "should be a valid integer, unable to parse string as an integer"),
        (Literal["a"], "secret", "should be 'a'"),
        (Annotated[str, AfterValidator(refuse)], "secret", "is invalid"),
        (Annotated[str, AfterValidator(fail)], "secret", "its validator raised LookupError"),
        (Annotated[A | B, Field(discriminator="kind")], {"kind": "secret"}, "is invalid"),
        (Account, {"user": 1, "tries": "secret"}, "should be a valid string"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_never_quoted(annotation, value, message):
    with pytest.raises(DefinitionError, match="state field 'key'") as caught:
        bound(taking(annotation), {"key": value})
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
