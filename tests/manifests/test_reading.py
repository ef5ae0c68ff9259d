from satchel.diagnostics import Diagnostic, Severity, Where
from satchel.manifests.reading import Problems, shown


def test_problems_come_in_the_order_of_the_file_and_those_without_a_line_first():
    problems = Problems("SKILL.md")
    problems.add("skill-name-shape", "late", line=9)
    problems.add("skill-body-empty", "nowhere")
    problems.add("skill-field-type", "early", "Mend it.", line=2, column=4)
    assert [item.message for item in problems.found] == ["nowhere", "early", "late"]
    assert problems.found[1] == Diagnostic(
        Severity.WARNING, "skill-field-type", Where("SKILL.md", 2, 4), "early", "Mend it."
    )
    assert len(problems) == 3


def test_only_an_error_is_fatal():
    problems = Problems("SKILL.md")
    problems.add("skill-body-empty", "a warning")
    assert not problems.fatal
    problems.add("yaml-invalid", "an error")
    assert problems.fatal


def test_what_another_step_found_can_be_taken_over():
    first, second = Problems("a"), Problems("b")
    first.add("yaml-invalid", "broken")
    second.extend(first.found)
    assert second.found == first.found


def test_text_from_outside_is_shown_short_on_one_line_without_hidden_characters():
    assert shown("a\nb\x1b[2J\u202e") == "'a b[2J'"
    assert len(shown("x" * 500)) == 62
