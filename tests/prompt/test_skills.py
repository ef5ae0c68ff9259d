import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.errors import DefinitionError
from satchel.prompt import SkillLine, SkillPrompt, render_skills
from satchel.prompt.skills import DEFAULT_INSTRUCTION
from satchel.text import has_hidden, one_line

PDF = SkillLine("pdf", "Reads PDFs.", "/skills/pdf")
BARE = SkillPrompt(instruction="")

LINES = st.lists(st.builds(SkillLine, st.text(), st.text(), st.text()), min_size=1, max_size=5)
# What can stand in an XML document without being escaped, so that names are found again.
PLAIN = st.lists(
    st.builds(SkillLine, st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.text(), st.just("/s")),
    min_size=1,
    max_size=20,
    unique_by=lambda line: line.name,
)


def skills_in(prompt):
    return [
        {child.tag: child.text or "" for child in skill}
        for skill in ET.fromstring(prompt[prompt.index("<available_skills>") :])
    ]


# ---- the page -----------------------------------------------------------------------------


def test_without_skills_there_is_nothing_to_say():
    assert render_skills([], SkillPrompt()) == ""


def test_the_default_block_is_that_of_the_format():
    assert render_skills([PDF], SkillPrompt()) == (
        f"{DEFAULT_INSTRUCTION}\n\n"
        "<available_skills>\n"
        "  <skill>\n"
        "    <name>pdf</name>\n"
        "    <description>Reads PDFs.</description>\n"
        "    <location>/skills/pdf/SKILL.md</location>\n"
        "  </skill>\n"
        "</available_skills>"
    )


def test_instruction_and_frame_can_be_left_out():
    bare = SkillPrompt(instruction="", opening="", closing="", template="- {name}: {description}")
    assert render_skills([PDF, PDF], bare) == "- pdf: Reads PDFs.\n- pdf: Reads PDFs."


def test_skills_stay_in_the_order_in_which_they_come():
    lines = [SkillLine(name, "", "") for name in "cab"]
    assert [skill["name"] for skill in skills_in(render_skills(lines, BARE))] == list("cab")


def test_a_description_is_shown_up_to_its_length_and_then_cut():
    long = SkillLine("a", "x" * 2_000, "/a")
    (skill,) = skills_in(render_skills([long], BARE))
    assert skill["description"] == "x" * 1_023 + "…"


def test_a_length_of_nothing_shows_no_description():
    (skill,) = skills_in(render_skills([PDF], SkillPrompt(instruction="", description_length=0)))
    assert skill["description"] == ""


@given(LINES)
@example([SkillLine("</name>", "]]><skill>&amp;", '"\u202e\x1b[2J')])
@example([SkillLine("a", "x" * 1_023 + "&<>", "/")])
def test_no_field_leaves_its_element(lines):
    found = skills_in(render_skills(lines, BARE))
    assert [set(skill) for skill in found] == [{"name", "description", "location"}] * len(lines)
    for skill, line in zip(found, lines, strict=True):
        assert skill["name"] == one_line(line.name)
        assert one_line(skill["location"]) == one_line(line.dir + "/SKILL.md")


def test_blanks_in_a_path_are_kept_because_it_must_still_open():
    (skill,) = skills_in(render_skills([SkillLine("a", "b", "/two  blanks")], BARE))
    assert skill["location"] == "/two  blanks/SKILL.md"


@given(LINES, st.integers(0, 600) | st.none())
def test_nothing_invisible_gets_into_the_prompt(lines, budget):
    assert not has_hidden(render_skills(lines, SkillPrompt(budget=budget)))


@given(LINES, st.integers(0, 600))
def test_a_cut_never_leaves_half_of_what_was_escaped(lines, budget):
    prompt = render_skills(lines, SkillPrompt(instruction="", budget=budget))
    assert re.sub("&(amp|lt|gt|quot);", "", prompt).count("&") == 0
    skills_in(prompt)


# ---- the budget ---------------------------------------------------------------------------


def test_without_a_budget_everything_is_said():
    lines = [SkillLine(f"s{at}", "x" * 1_000, "/s") for at in range(500)]
    assert len(skills_in(render_skills(lines, BARE))) == 500


def test_over_the_budget_the_long_descriptions_pay_first():
    lines = [SkillLine("short", "Reads PDFs.", "/s"), SkillLine("long", "y" * 500, "/s")]
    whole = len(render_skills(lines, BARE))
    short, long = skills_in(render_skills(lines, SkillPrompt(instruction="", budget=whole - 400)))
    assert short["description"] == "Reads PDFs."
    assert long["description"] == "y" * 99 + "…"


def test_then_descriptions_go_and_every_name_stays():
    lines = [SkillLine(f"s{at}", "y" * 500, "/s") for at in range(3)]
    named = len(render_skills([SkillLine(line.name, "", line.dir) for line in lines], BARE))
    found = skills_in(render_skills(lines, SkillPrompt(instruction="", budget=named)))
    assert [(skill["name"], skill["description"]) for skill in found] == [
        ("s0", ""),
        ("s1", ""),
        ("s2", ""),
    ]


def test_then_skills_are_left_out_and_counted():
    lines = [SkillLine(f"s{at}", "", "/s") for at in range(9)]
    prompt = render_skills(lines, SkillPrompt(instruction="", budget=400))
    count = len(skills_in(prompt))
    assert 0 < count < 9
    assert f"<!-- {9 - count} more skills are not listed here; ask the user" in prompt


def test_one_skill_that_is_left_out_is_counted_in_proper_words():
    prompt = render_skills([PDF], SkillPrompt(instruction="", budget=0))
    assert "<!-- 1 more skill is not listed here" in prompt


def test_a_budget_can_be_measured_in_tokens():
    words = SkillPrompt(instruction="", budget=7, measure=lambda text: len(text.split()))
    (skill,) = skills_in(render_skills([SkillLine("a", "one two three four", "/a")], words))
    assert skill["description"] == "one…"


@given(PLAIN, st.integers(0, 2_000))
def test_a_prompt_keeps_its_budget_and_never_drops_a_skill_silently(lines, budget):
    style = SkillPrompt(instruction="", budget=budget)
    prompt = render_skills(lines, style)
    found = [skill["name"] for skill in skills_in(prompt)]
    assert found == [line.name for line in lines][: len(found)]
    left_out = re.search(r"<!-- (\d+) more skill", prompt)
    assert len(found) + (int(left_out[1]) if left_out else 0) == len(lines)
    # Only where not even the line that says so fits is the budget passed.
    assert len(prompt) <= budget or not found


@given(PLAIN, st.integers(0, 2_000), st.integers(0, 300))
def test_a_larger_budget_never_says_less(lines, budget, more):
    small = render_skills(lines, SkillPrompt(instruction="", budget=budget))
    large = render_skills(lines, SkillPrompt(instruction="", budget=budget + more))
    assert len(skills_in(large)) >= len(skills_in(small))


@given(PLAIN, st.integers(0, 2_000))
def test_a_prompt_within_its_budget_is_not_cut(lines, spare):
    whole = render_skills(lines, BARE)
    style = SkillPrompt(instruction="", budget=len(whole) + spare)
    assert render_skills(lines, style) == whole


# ---- templates ----------------------------------------------------------------------------


def test_a_template_may_use_the_three_fields_and_braces():
    style = SkillPrompt(instruction="", template="{{{name}}} {description} {dir}")
    assert "{pdf} Reads PDFs. /skills/pdf" in render_skills([PDF], style)


@pytest.mark.parametrize(
    "template",
    [
        "{}",
        "{0}",
        "{path}",
        "{name.__class__}",
        "{name[0]}",
        "{name!r}",
        "{name:>10}",
        "{name:{dir}}",
        "{ name}",
        "{name",
        "name}",
        "{name!}",
        "{",
    ],
)
def test_a_template_with_any_other_field_is_refused_when_it_is_made(template):
    with pytest.raises(DefinitionError, match="the skill template"):
        SkillPrompt(template=template)


@given(st.text(alphabet="{}name!:.[]0 dir", max_size=12))
def test_a_template_that_is_accepted_can_be_filled_in(template):
    try:
        style = SkillPrompt(template=template)
    except DefinitionError:
        return
    assert render_skills([PDF], style).startswith(DEFAULT_INSTRUCTION)


@given(st.text(alphabet="{}name", max_size=8), st.text())
def test_what_is_filled_in_is_never_read_as_a_template(name, description):
    (skill,) = skills_in(render_skills([SkillLine(name, description, "{dir}")], BARE))
    assert (skill["name"], skill["location"]) == (name, "{dir}/SKILL.md")
