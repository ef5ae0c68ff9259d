from satchel.diagnostics import Diagnostic, Severity, Where
from satchel.formats.read_result import DiagnosticCollector, quoted


def test_problems_come_in_the_order_of_the_file_and_those_without_a_line_first():
    collector = DiagnosticCollector("SKILL.md")
    collector.add("skill-name-shape", "late", line=9)
    collector.add("skill-body-empty", "nowhere")
    collector.add("skill-field-type", "early", "Mend it.", line=2, column=4)
    assert [item.message for item in collector.diagnostics] == ["nowhere", "early", "late"]
    assert collector.diagnostics[1] == Diagnostic(
        severity=Severity.WARNING,
        code="skill-field-type",
        where=Where("SKILL.md", 2, 4),
        message="early",
        fix="Mend it.",
    )
    assert len(collector) == 3


def test_only_an_error_is_fatal():
    collector = DiagnosticCollector("SKILL.md")
    collector.add("skill-body-empty", "a warning")
    assert not collector.fatal
    collector.add("yaml-invalid", "an error")
    assert collector.fatal


def test_what_another_step_found_can_be_taken_over():
    first, second = DiagnosticCollector("a"), DiagnosticCollector("b")
    first.add("yaml-invalid", "broken")
    second.extend(first.diagnostics)
    assert second.diagnostics == first.diagnostics


def test_text_from_outside_is_shown_short_on_one_line_without_hidden_characters():
    assert quoted("a\nb\x1b[2J\u202e") == "'a b[2J'"
    assert len(quoted("x" * 500)) == 62
