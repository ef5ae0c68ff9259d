import pytest

from satchel.formats.yaml_repair import read_repairing


def read(text, limits):
    return read_repairing(text, "SKILL.md", limits, {"metadata", "allowed-tools"}, 2)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("description: Use when: asked", "Use when: asked"),
        ("description: It's for C#: all of it", "It's for C#: all of it"),
        ("argument-hint: [file] [options]", "[file] [options]"),
        ("description: @claude does it", "@claude does it"),
        ("description: `git add` helper", "`git add` helper"),
        ("description: **Bold** claims", "**Bold** claims"),
        ("description: 100%: done", "100%: done"),
        ("description: 'It's great'", "It's great"),
        ('description: "Say "hi" to all"', 'Say "hi" to all'),
        ('description: "pdf" tools: all', '"pdf" tools: all'),
        ('description: "Use when asked', "Use when asked"),
        ("description: 'Use when: asked", "Use when: asked"),
        ("description: > Use when: asked", "> Use when: asked"),
        ("allowed-tools: Bash(a: b)x: y", "Bash(a: b)x: y"),
    ],
)
def test_a_value_that_wants_quotes_is_read_as_if_it_had_them(line, value, limits, codes):
    reading = read(f"name: pdf\n{line}\nlicense: MIT\n", limits)
    key = line.partition(":")[0]
    assert reading.value.values == {"name": "pdf", key: value, "license": "MIT"}
    assert codes(reading) == ["yaml-repaired"]
    assert reading.diagnostics[0].where.line == 3
    assert f"{key}: '" in reading.diagnostics[0].fix


def test_indented_lines_below_are_folded_in_and_later_lines_keep_their_numbers(limits):
    reading = read("description: Use when: a\n  and b: c\n\nlicense: MIT\nodd: x\n", limits)
    assert reading.value.values["description"] == "Use when: a and b: c"
    assert reading.value.lines[("license",)] == 5
    assert reading.value.lines[("odd",)] == 6


@pytest.mark.parametrize(("above", "field"), [("name", "description"), ("description", "name")])
def test_an_indented_field_is_moved_to_the_margin_and_nothing_else_is_said(above, field, limits):
    reading = read(f"{above}: foo\n  {field}: bar\n", limits)
    assert reading.value.values == {above: "foo", field: "bar"}
    (item,) = reading.diagnostics
    assert (item.code, item.where.line) == ("yaml-repaired", 3)
    assert item.message == f"'{field}' is indented, so it would belong to '{above}' above"
    assert item.fix == f"Remove the spaces before '{field}:'."


def test_a_text_that_only_looks_like_a_field_stays_in_its_field(limits):
    reading = read("name: a\ndescription: Fill the form\n  name: yours\n", limits)
    assert reading.value.values == {"name": "a", "description": "Fill the form name: yours"}


def test_every_repair_is_reported_on_its_own_line(limits):
    reading = read("name: a: b\n# note\ndescription: c: d\n", limits)
    assert [item.where.line for item in reading.diagnostics] == [2, 4]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("name: pdf\ndescription:\n\t- a\n", 4),  # a tab, not a value
        ("name: pdf\n  oops: x: y\nlicense\n", 3),
        ('description: "\\ud800 boom"\n', 2),  # its author meant the escape
        ("metadata: {a: b\nname: pdf\n", 3),  # text would hide the mistake
        ("allowed-tools: [Read, Bash(git:*)\nname: pdf\n", 3),
        ("description: |\n  a\n b: c: d\n", 4),
        ("description: a\x07b: c\n", 2),
    ],
)
def test_what_quotes_cannot_fix_is_reported_as_it_was_found(text, line, limits, codes):
    reading = read(text, limits)
    assert reading.value is None
    assert codes(reading) == ["yaml-invalid"]
    assert reading.diagnostics[0].where.line == line


def test_what_is_refused_for_safety_is_not_repaired(limits, codes):
    assert codes(read("description: *all\n", limits)) == ["yaml-unsafe"]
    assert codes(read("a: b: c\nd: &e f\n", limits)) == ["yaml-invalid"]


def test_a_repaired_file_that_breaks_another_rule_reports_the_first_error(limits, codes):
    assert codes(read("name: a: b\nname: c\n", limits)) == ["yaml-invalid"]


def test_a_text_of_very_many_lines_is_not_searched(limits, codes):
    assert codes(read("name: a: b\n" + "\n" * 3_000, limits)) == ["yaml-invalid"]
