import importlib.util
import inspect
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Optional, Unpack

import pytest
import typing_extensions

from satchel.errors import DefinitionError
from satchel.tools.signatures import (
    REQUIRED,
    Parameter,
    is_context,
    name_and_docstring,
    resolve_annotation,
    return_annotation,
    signature_of,
    where,
)
from satchel.tools.tool_context import ToolContext

Ctx = ToolContext


class Special(ToolContext): ...


class NotToolContext: ...


def forecast(city: str, /, days: int = 3, *args: int, unit: str, **kwargs: int):
    """Weather."""


class Search:
    """Search things."""

    def __call__(self, query: str): ...

    def method(self, query: str):
        """Ask."""

    def loose(self, query: str, **others: int): ...


def test_parameters_come_in_order_without_the_variadic_ones():
    assert signature_of(forecast).parameters == (
        Parameter(
            name="city", annotation=str, default=REQUIRED, positional_only=True, positional=True
        ),
        Parameter(name="days", annotation=int, default=3, positional_only=False, positional=True),
        Parameter(name="unit", annotation=str, default=REQUIRED, positional_only=False),
    )


def test_self_is_no_parameter_of_a_bound_method_or_of_a_callable_object():
    expected = (
        Parameter(
            name="query", annotation=str, default=REQUIRED, positional_only=False, positional=True
        ),
    )
    assert signature_of(Search().method).parameters == expected
    assert signature_of(Search()).parameters == expected


def test_what_a_partial_holds_by_name_is_bound_and_by_place_is_gone():
    signature = signature_of(partial(partial(forecast, "Oslo"), unit="C"))
    assert [item.name for item in signature.parameters] == ["days", "unit"]
    assert signature.bound == {"unit"}


def test_a_name_that_only_the_variadic_parameter_of_a_partial_takes_is_bound_too():
    assert signature_of(partial(forecast, extra=1)).bound == {"extra"}


def test_what_has_a_value_by_its_place_is_taken():
    assert signature_of(Search().method).taken == {"self"}
    assert signature_of(Search()).taken == {"self"}
    assert signature_of(partial(Search().method, 1)).taken == {"self", "query"}
    assert signature_of(partial(forecast, "Oslo", 3)).taken == {"days"}
    assert signature_of(forecast).taken == frozenset()


def test_of_a_callable_that_is_not_written_in_python_nothing_is_taken():
    class Most:
        __signature__ = inspect.signature(forecast)
        __call__ = max

    assert signature_of(Most()).taken == frozenset()


def test_the_names_that_nothing_else_may_have_are_all_that_have_a_value_or_will():
    created = partial(Search().loose, extra=1)
    assert signature_of(created).names == {"self", "query", "extra"}


def test_values_are_placed_by_position_only_where_they_must():
    def pick(a=1, b=2, /, c=3): ...

    assert signature_of(pick).has_positional_only
    assert signature_of(pick).split_arguments({"b": 5, "c": 6}) == ([1, 5], {"c": 6})


def test_without_positional_only_parameters_all_values_go_by_name():
    signature = signature_of(Search().loose)
    assert not signature.has_positional_only
    assert signature.split_arguments({"query": "q", "more": 1}) == ([], {"query": "q", "more": 1})


def test_variadic_values_are_spread_behind_the_parameters_before_them():
    signature = signature_of(forecast)
    spread = (signature.var_positional, signature.var_keyword)
    values = {"city": "Oslo", "unit": "C", "args": [1, 2], "kwargs": {"x": 1}}
    assert signature.split_arguments(values, spread) == (["Oslo", 3, 1, 2], {"unit": "C", "x": 1})
    assert signature.split_arguments({"city": "Oslo", "unit": "C"}, spread) == (
        ["Oslo"],
        {"unit": "C"},
    )


def test_values_that_are_not_spread_go_by_name_whatever_they_are_called():
    values = {"city": "Oslo", "unit": "C", "args": 1, "kwargs": 2}
    assert signature_of(forecast).split_arguments(values) == (
        ["Oslo"],
        {"unit": "C", "args": 1, "kwargs": 2},
    )


def test_what_stands_in_the_further_values_never_replaces_a_value():
    signature = signature_of(forecast)
    values = {"city": "Oslo", "unit": "C", "kwargs": {"unit": "F"}}
    assert signature.split_arguments(values, [signature.var_keyword]) == (["Oslo"], {"unit": "C"})


def test_a_missing_value_is_left_to_python_to_complain_of():
    def pick(a, b, /): ...

    assert signature_of(pick).split_arguments({"b": 5}) == ([], {"b": 5})


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
    def circle(): ...  # inspect follows it for ever

    circle.__wrapped__ = circle
    with pytest.raises(DefinitionError, match="circle: its parameters cannot be read"):
        signature_of(circle)


def test_a_wrapper_has_the_parameters_of_what_it_wraps():
    @wraps(forecast)
    def wrapper(*args, **kwargs): ...

    assert signature_of(wrapper) == signature_of(forecast)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (ToolContext, True),
        (ToolContext | None, True),
        (Optional[ToolContext], True),  # noqa: UP045 - both spellings
        (Annotated[ToolContext, "of the call"], True),
        (Annotated[ToolContext | None, "of the call"], True),
        ("ToolContext", True),
        ("Ctx | None", True),
        (Optional["ToolContext"], True),
        (Annotated["ToolContext", 1], True),
        (Special, True),
        (Parameter, False),
        (list[ToolContext], False),
        (Any, False),
        (REQUIRED, True),
        ("NotToolContext", False),
        ("not an annotation", False),
    ],
    ids=str,
)
def test_a_parameter_is_the_context_if_it_is_annotated_so(annotation, expected):
    parameter = Parameter(
        name="context", annotation=annotation, default=REQUIRED, positional_only=False
    )
    assert is_context(forecast, parameter) is expected


def test_the_context_may_be_imported_for_type_checkers_only():
    path = Path(__file__).with_name("postponed.py")
    spec = importlib.util.spec_from_file_location("postponed_for_context", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fn = module.takes_context
    assert all(is_context(fn, item) for item in signature_of(fn).parameters)
    fn = module.takes_client
    assert not any(is_context(fn, item) for item in signature_of(fn).parameters)


def returning(annotation):
    def fn(): ...

    if annotation is not REQUIRED:
        fn.__annotations__["return"] = annotation
    return fn


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [(REQUIRED, REQUIRED), (int, int), ("int", int), (None, type(None)), (list["int"], list[int])],
    ids=str,
)
def test_the_returned_type_is_resolved(annotation, expected):
    assert return_annotation(returning(annotation)) == expected


def test_a_callable_without_annotations_returns_nothing_in_particular():
    assert return_annotation(len) is REQUIRED


class Options(typing_extensions.TypedDict, total=False):
    days: int


def test_the_type_of_a_variadic_parameter_is_that_of_all_its_values():
    def fn(*args: int, **kwargs: str): ...

    def unpacking(**kwargs: Unpack[Options]): ...

    signature = signature_of(fn)
    assert resolve_annotation(fn, signature.var_positional) == list[int]
    assert resolve_annotation(fn, signature.var_keyword) == dict[str, str]
    assert resolve_annotation(unpacking, signature_of(unpacking).var_keyword) is Options


def test_a_name_that_exists_only_for_type_checkers_cannot_be_resolved():
    parameter = Parameter(name="x", annotation="Nowhere", default=REQUIRED, positional_only=False)
    with pytest.raises(NameError, match="Nowhere"):
        resolve_annotation(forecast, parameter)


def test_a_parameter_is_required_unless_it_has_a_default_and_none_is_one():
    def fn(a, b=None, *, c, d=0): ...

    required = {item.name: item.is_required for item in signature_of(fn).parameters}
    assert required == {"a": True, "b": False, "c": True, "d": False}


def test_without_an_annotation_the_name_makes_a_parameter_the_context():
    def fn(ctx, place, *context): ...

    assert [is_context(fn, item) for item in signature_of(fn).parameters] == [True, False]
    assert not is_context(fn, signature_of(fn).var_positional)
