"""Examples are checked as far as the source tells, and never more."""

import pytest

from satchel.diagnostics import Severity, strictly
from satchel.formats.declared_tools import declared_tools


def found(options, signature="city: str, days: int = 1", code=""):
    source = f"from satchel import tool\n{code}\n@tool({options})\ndef forecast({signature}): ...\n"
    reading = declared_tools(source.encode(), "tools.py")
    assert [item.name for item in reading.value] == ["forecast"]
    return reading.diagnostics


@pytest.mark.parametrize(
    "options",
    [
        "examples=[{'city': 'Oslo'}, {'city': 'Rome', 'days': 2}]",
        "examples=({},)",
        "examples=None",
        "examples=EXAMPLES",
        "examples=[{'town': name} for name in TOWNS]",
        "examples=[dict(town=1)]",
        "state=5, examples=[{'city': 'Oslo'}]",
        "state=[[1]], examples=[{'city': 'Oslo'}]",
        "state=NAMES, examples=[{'city': 'Oslo'}]",
    ],
)
def test_good_ones_and_those_that_are_computed_pass(options):
    assert found(options) == ()


def test_a_name_that_is_no_parameter_is_reported_with_the_near_one():
    (problem,) = found("examples=[{'cty': 'Oslo'}]")
    assert problem.message == (
        "tool 'forecast': an example names 'cty', which is not a parameter; did you mean city?"
    )
    assert problem.where.line == 4
    assert problem.severity is Severity.INFO
    assert [item.severity for item in strictly([problem])] == [Severity.ERROR]


@pytest.mark.parametrize("state", ["['days']", "'days'", "('days',)"])
def test_a_name_that_configuration_fills_in_is_reported(state):
    (problem,) = found(f"state={state}, examples=[{{'city': 'Oslo', 'days': 1}}]")
    assert "which configuration fills in" in problem.message


@pytest.mark.parametrize("value", ["'city'", "{'city': 1}", "['Oslo']", "5"])
def test_what_is_no_list_of_mappings_is_reported(value):
    (problem,) = found(f"examples={value}")
    assert problem.code == "tool-example-unfit"


def test_one_fault_is_reported_once():
    assert len(found("examples=[{'town': 1}, {'town': 2}]")) == 1


def test_a_function_that_takes_anything_is_not_judged():
    assert found("examples=[{'town': 1}]", "**rest") == ()
    assert found("examples=[{'town': 1}]\n)\n@other(", code="from elsewhere import other") == ()
