from functools import partial, wraps

import pytest

from satchel.errors import DefinitionError
from satchel.tools.signature import REQUIRED, Parameter, name_and_docstring, signature_of, where


def forecast(city: str, /, days: int = 3, *args: int, unit: str, **kwargs: int):
    """Weather."""


class Search:
    """Search things."""

    def __call__(self, query: str): ...

    def method(self, query: str):
        """Ask."""


def test_parameters_come_in_order_without_the_variadic_ones():
    assert signature_of(forecast).parameters == (
        Parameter("city", str, REQUIRED, positional_only=True),
        Parameter("days", int, 3, positional_only=False),
        Parameter("unit", str, REQUIRED, positional_only=False),
    )


def test_self_is_no_parameter_of_a_bound_method_or_of_a_callable_object():
    expected = (Parameter("query", str, REQUIRED, positional_only=False),)
    assert signature_of(Search().method).parameters == expected
    assert signature_of(Search()).parameters == expected


def test_what_a_partial_holds_by_name_is_bound_and_by_place_is_gone():
    signature = signature_of(partial(partial(forecast, "Oslo"), unit="C"))
    assert [item.name for item in signature.parameters] == ["days", "unit"]
    assert signature.bound == {"unit"}


def test_a_name_that_only_the_variadic_parameter_of_a_partial_takes_is_not_bound():
    assert signature_of(partial(forecast, extra=1)).bound == frozenset()


def test_values_are_placed_by_position_only_where_they_must():
    def pick(a=1, b=2, /, c=3): ...

    assert signature_of(pick).place({"b": 5, "c": 6}) == ([1, 5], {"c": 6})


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (forecast, ("forecast", "Weather.")),
        (partial(partial(forecast, 1), 2), ("forecast", "Weather.")),
        (Search().method, ("method", "Ask.")),
        (Search(), ("Search", "Search things.")),
    ],
)
def test_name_and_docstring_are_those_of_what_the_author_wrote(fn, expected):
    assert name_and_docstring(fn) == expected


def test_a_callable_is_named_by_its_place_in_the_code():
    assert where(partial(forecast, 1)) == f"{__name__}.forecast"
    assert where(Search()) == f"{__name__}.Search.__call__"


def test_a_callable_without_a_readable_signature_is_refused():
    def circle(): ...

    circle.__wrapped__ = circle
    with pytest.raises(DefinitionError, match="circle: its parameters cannot be read"):
        signature_of(circle)


def test_a_wrapper_has_the_parameters_of_what_it_wraps():
    @wraps(forecast)
    def wrapper(*args, **kwargs): ...

    assert signature_of(wrapper) == signature_of(forecast)
