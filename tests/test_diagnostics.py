import json
import re

import pytest

from satchel.diagnostics import (
    RULES,
    Diagnostic,
    Severity,
    Where,
    has_error,
    make_diagnostic,
    strictly,
)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (Where("a/SKILL.md"), "a/SKILL.md"),
        (Where("a/SKILL.md", 3), "a/SKILL.md:3"),
        (Where("a/SKILL.md", 3, 7), "a/SKILL.md:3:7"),
    ],
)
def test_a_location_is_written_as_editors_open_it(where, text):
    assert str(where) == text


def test_a_diagnostic_has_place_message_and_fix():
    diagnostic = make_diagnostic("skill-name-shape", Where("SKILL.md", 2), "odd name", "Rename it.")
    assert str(diagnostic) == "SKILL.md:2: warning[skill-name-shape]: odd name -> Rename it."
    assert str(make_diagnostic("skill-name-shape", Where("x"), "odd")).endswith(": odd")


def test_a_diagnostic_has_a_flat_json_shape():
    diagnostic = make_diagnostic("yaml-invalid", Where("SKILL.md", 2, 5), "broken", "Mend it.")
    assert json.loads(json.dumps(diagnostic.as_dict())) == {
        "severity": "error",
        "code": "yaml-invalid",
        "path": "SKILL.md",
        "line": 2,
        "column": 5,
        "message": "broken",
        "fix": "Mend it.",
    }


def test_a_code_decides_the_severity():
    severities = {code: make_diagnostic(code, Where("x"), "m").severity for code in RULES}
    assert severities == {code: rule.loading for code, rule in RULES.items()}


def test_a_code_is_lowercase_and_its_meaning_is_a_sentence():
    assert [code for code in RULES if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)] == []
    assert [code for code, rule in RULES.items() if not rule.meaning.endswith(".")] == []


def test_strict_severities_are_not_lower_than_those_of_loading():
    order = [Severity.INFO, Severity.WARNING, Severity.ERROR]
    milder = [
        code for code, rule in RULES.items() if order.index(rule.strict) < order.index(rule.loading)
    ]
    assert milder == []


def test_strictness_changes_the_severity_and_nothing_else():
    lenient = make_diagnostic("skill-name-shape", Where("x", 1), "m", "f")
    assert strictly([lenient]) == (
        Diagnostic(
            severity=Severity.ERROR,
            code="skill-name-shape",
            where=Where("x", 1),
            message="m",
            fix="f",
        ),
    )


def test_only_an_error_severity_is_an_error():
    warning = make_diagnostic("skill-name-shape", Where("x"), "m")
    assert not has_error([])
    assert not has_error([warning])
    assert has_error([warning, make_diagnostic("yaml-invalid", Where("x"), "m")])


def test_an_unknown_code_cannot_be_reported():
    with pytest.raises(KeyError):
        make_diagnostic("no-such-code", Where("x"), "m")
