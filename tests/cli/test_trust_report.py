"""What is shown of a project: all of it, and nothing that hides."""

from hypothesis import given
from hypothesis import strategies as st

from satchel.cli.trust_report import code_lines, diff_lines, shown_text
from satchel.text import has_hidden, spell_hidden
from satchel.trust.code_units import CodeUnit
from satchel.trust.runnable_files import CodeFile

TEXTS = st.text(alphabet=st.characters() | st.sampled_from("\x1b\u200b\u202e\n\r\t\\"))


@given(TEXTS)
def test_a_text_is_one_line_without_anything_hidden(text):
    shown = shown_text(text)
    assert not has_hidden(shown)
    assert len(shown.splitlines()) <= 1


@given(TEXTS, TEXTS)
def test_texts_that_differ_are_shown_differently(one, other):
    assert (shown_text(one) == shown_text(other)) == (one == other)


@given(TEXTS)
def test_a_line_hides_nothing(text):
    assert not has_hidden(spell_hidden(text))


def unit(**files):
    return {"a": CodeUnit("a", {name: CodeFile(text, text) for name, text in files.items()})}


def test_a_line_end_in_a_name_forges_no_line():
    name = {"b\n=== a: safe.sh": "x"}
    assert code_lines(unit(**name)) == ["=== a: b\\n=== a: safe.sh", "  x"]
    assert not any("\n" in line for line in diff_lines(unit(), unit(**name), "/nowhere"))


def test_a_change_is_shown_line_by_line():
    lines = diff_lines(unit(x="one\ntwo", y="same"), unit(x="one\n\u200btwo", y="same"), "/nowhere")
    assert lines[:2] == ["--- a: x", "+++ a: x"]
    assert lines[-2:] == ["-two", "+\\u200btwo"]
    assert not any("same" in line for line in lines)


def test_what_is_new_and_what_is_gone_is_shown_whole():
    lines = diff_lines(unit(x="old"), unit(y="new"), "/nowhere")
    assert lines == [
        *("--- a: x", "+++ /dev/null", "@@ -1 +0,0 @@", "-old"),
        *("--- /dev/null", "+++ a: y", "@@ -0,0 +1 @@", "+new"),
    ]


def test_a_change_without_text_is_named():
    before = {"a": CodeUnit("a", {"x": CodeFile("1")})}
    after = {"a": CodeUnit("a", {"x": CodeFile("2")})}
    assert diff_lines(before, after, "/nowhere")[-1:] == [
        "(not shown: empty, no text, or larger than 1 MiB; digest 1 -> 2)",
    ]
    assert diff_lines(before, before, "/nowhere") == []


def test_a_file_that_became_no_text_is_not_shown_as_removed_alone():
    after = {"a": CodeUnit("a", {"x": CodeFile("2")})}
    assert (
        diff_lines(unit(x="old"), after, "/nowhere")[-1]
        == "(not shown: empty, no text, or larger than 1 MiB; digest 2)"
    )


def test_a_line_end_that_only_some_programs_take_for_one_is_shown():
    lines = diff_lines(unit(x="# a\n"), unit(x="# a\rrun\n"), "/nowhere")
    assert lines[-1] == "+# a\\rrun"
    assert code_lines(unit(x="# a\rrun\n"))[-1] == "  # a\\rrun"


def test_all_code_is_shown_with_what_hides_in_it():
    units = unit(x="one\n\u200btwo", y="")
    assert code_lines(units) == [
        *("=== a: x", "  one", "  \\u200btwo"),
        "=== a: y",
        "  (not shown: empty, no text, or larger than 1 MiB; digest )",
    ]


def test_that_an_env_file_is_not_shown_and_may_run_is_said():
    before, after = ({"a": CodeUnit("a", {"build.env": CodeFile(it)})} for it in "12")
    for lines in (code_lines(before), diff_lines(before, after, "/nowhere")):
        assert "read it yourself, a command may run it" in lines[-1]
