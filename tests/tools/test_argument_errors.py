from satchel.errors import SatchelError
from satchel.tools import ArgumentError, ArgumentFault


def test_a_fault_is_reported_with_the_place_of_the_argument():
    assert str(ArgumentFault("stops[0].city", "is required")) == "stops[0].city: is required"


def test_a_fault_of_the_arguments_as_a_whole_has_no_place():
    assert str(ArgumentFault("", "they are not valid JSON")) == "they are not valid JSON"


def test_the_error_carries_every_fault_and_the_name_of_the_tool():
    faults = [ArgumentFault("a", "is required"), ArgumentFault("b", "is required")]
    error = ArgumentError("forecast", iter(faults))
    assert isinstance(error, SatchelError)
    assert (error.tool, error.faults) == ("forecast", tuple(faults))
    assert str(error) == "forecast: a: is required; b: is required"
