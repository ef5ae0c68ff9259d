import re
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.errors import DefinitionError
from satchel.prompt import (
    DEFAULT_BUDGET,
    RenderedListing,
    SkillPrompt,
    render_skills,
    skill_listing,
)
from satchel.prompt.skill_listing import DEFAULT_INSTRUCTION, LOADER_INSTRUCTION
from satchel.text import has_hidden, one_line, xml, xml_path


class SkillLine(NamedTuple):
    name: str
    description: str
    folder: str
    scope: int = 0


PDF = SkillLine(name="pdf", description="Reads PDFs.", folder="/skills/pdf")
BARE = SkillPrompt(instruction="")
UNBOUND = SkillPrompt(instruction="", budget=None)

LINES = st.lists(
    st.builds(SkillLine, name=st.text(), description=st.text(), folder=st.text(), scope=st.just(0)),
    min_size=1,
    max_size=5,
)
# What can stand in an XML document without being escaped, so that names are found again.
PLAIN = st.lists(
    st.builds(
        SkillLine,
        name=st.from_regex(r"[a-z]{1,9}", fullmatch=True),
        description=st.text(),
        folder=st.just("/s"),
        scope=st.just(0),
    ),
    min_size=1,
    max_size=20,
    unique_by=lambda line: line.name,
)


def said(lines, style, **tools):
    return render_skills(lines, style, **tools).text


def skills_in(prompt):
    return [
        {child.tag: child.text or "" for child in skill}
        for skill in ET.fromstring(prompt[prompt.index("<available_skills>") :])
    ]


def names_in(prompt):
    return [skill["name"] for skill in skills_in(prompt)]


# ---- the page -----------------------------------------------------------------------------


def test_without_skills_there_is_nothing_to_say():
    assert render_skills([], SkillPrompt()) == RenderedListing("", 0, names_only=False)


def test_the_default_block_is_that_of_the_format():
    assert said([PDF], SkillPrompt()) == (
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
    assert said([PDF, PDF], bare) == "- pdf: Reads PDFs.\n- pdf: Reads PDFs."


def test_the_instruction_follows_from_whether_skills_can_be_loaded():
    assert said([PDF], SkillPrompt(), can_load=True).startswith(LOADER_INSTRUCTION)
    assert "load_skill" in LOADER_INSTRUCTION
    assert "load_skill" not in said([PDF], SkillPrompt())
    mine = SkillPrompt(instruction="Mine.")
    assert said([PDF], mine) == said([PDF], mine, can_load=True)
    assert said([PDF], BARE, can_load=True).startswith("<available_skills>")


def test_skills_stay_in_the_order_in_which_they_come():
    lines = [SkillLine(name=name, description="", folder="") for name in "cab"]
    assert [skill["name"] for skill in skills_in(said(lines, BARE))] == list("cab")


def test_a_description_is_shown_up_to_its_length_and_then_cut():
    long = SkillLine(name="a", description="x" * 2_000, folder="/a")
    (skill,) = skills_in(said([long], BARE))
    assert skill["description"] == "x" * 1_023 + "…"


def test_a_length_of_nothing_shows_no_description():
    (skill,) = skills_in(said([PDF], SkillPrompt(instruction="", description_length=0)))
    assert skill["description"] == ""


@given(LINES)
@example([SkillLine(name="</name>", description="]]><skill>&amp;", folder='"\u202e\x1b[2J')])
@example([SkillLine(name="a", description="x" * 1_023 + "&<>", folder="/")])
def test_no_field_leaves_its_element(lines):
    found = skills_in(said(lines, BARE))
    for skill, line in zip(found, lines, strict=True):
        place = {"location"} if xml_path(line.folder) else set()
        assert set(skill) == {"name", "description"} | place
        assert skill["name"] == one_line(line.name)
        if place:
            assert one_line(skill["location"]) == one_line(line.folder + "/SKILL.md")


def test_blanks_in_a_path_are_kept_because_it_must_still_open():
    (skill,) = skills_in(said([SkillLine(name="a", description="b", folder="/two  blanks")], BARE))
    assert skill["location"] == "/two  blanks/SKILL.md"


@given(LINES, st.integers(0, 600) | st.none())
def test_nothing_invisible_gets_into_the_prompt(lines, budget):
    assert not has_hidden(said(lines, SkillPrompt(budget=budget)))


@given(LINES, st.integers(0, 600))
def test_a_cut_never_leaves_half_of_what_was_escaped(lines, budget):
    prompt = said(lines, SkillPrompt(instruction="", budget=budget))
    assert re.sub("&(amp|lt|gt|quot);", "", prompt).count("&") == 0
    skills_in(prompt)


# ---- the budget ---------------------------------------------------------------------------


def test_without_a_budget_everything_is_said():
    lines = [SkillLine(name=f"s{at}", description="x" * 1_000, folder="/s") for at in range(500)]
    listing = render_skills(lines, UNBOUND)
    assert [skill["description"] for skill in skills_in(listing.text)] == ["x" * 1_000] * 500
    assert (listing.left_out, listing.names_only) == (0, False)


def test_there_is_a_budget_unless_it_is_switched_off():
    lines = [SkillLine(name=f"s{at}", description="x" * 1_000, folder="/s") for at in range(50)]
    assert DEFAULT_BUDGET - 100 < len(said(lines, SkillPrompt())) <= DEFAULT_BUDGET == 16_000


def test_over_the_budget_the_long_descriptions_pay_first():
    lines = [
        SkillLine(name="short", description="Reads PDFs.", folder="/s"),
        SkillLine(name="long", description="y" * 500, folder="/s"),
    ]
    whole = len(said(lines, BARE))
    short, long = skills_in(said(lines, SkillPrompt(instruction="", budget=whole - 400)))
    assert short["description"] == "Reads PDFs."
    assert long["description"] == "y" * 99 + "…"


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(0, 1_200))
def test_descriptions_are_cut_to_one_length_that_is_still_useful(lengths, budget):
    lines = [
        SkillLine(name=f"s{at}", description="y" * length, folder="/s")
        for at, length in enumerate(lengths)
    ]
    found = skills_in(said(lines, SkillPrompt(instruction="", budget=budget)))
    shown = [skill["description"] for skill in found if "description" in skill]
    if shown:
        longest = max(map(len, shown))
        assert [min(length, longest) for length in lengths] == list(map(len, shown))
        assert max(lengths) == longest or longest >= 20


def test_where_skills_are_loaded_by_name_their_locations_make_room_for_descriptions():
    lines = [
        SkillLine(name=f"skill-{at}", description=f"{at} " + "y" * 300, folder="/somewhere/deep")
        for at in range(100)
    ]
    listing = render_skills(lines, SkillPrompt(), can_load=True)
    told = [skill["description"] for skill in skills_in(listing.text)]
    assert len(told) == 100
    assert min(map(len, told)) > 60
    assert "<location>" not in listing.text
    few = render_skills(lines[:3], SkillPrompt(), can_load=True)
    assert few.text.count("<location>") == 3


def test_then_descriptions_go_and_every_name_stays():
    lines = [SkillLine(name=f"s{at}", description="y" * 500, folder="/s") for at in range(3)]
    listing = render_skills(lines, SkillPrompt(instruction="", budget=300))
    assert listing == RenderedListing(
        "<available_skills>\n"
        "  <skill><name>s0</name><location>/s/SKILL.md</location></skill>\n"
        "  <skill><name>s1</name><location>/s/SKILL.md</location></skill>\n"
        "  <skill><name>s2</name><location>/s/SKILL.md</location></skill>\n"
        "</available_skills>",
        left_out=0,
        names_only=True,
    )


def test_a_skill_that_can_be_loaded_by_name_is_listed_by_its_name_alone():
    lines = [SkillLine(name=f"s{at}", description="y" * 500, folder="/s") for at in range(3)]
    prompt = said(lines, SkillPrompt(instruction="", budget=200), can_load=True)
    assert skills_in(prompt) == [{"name": "s0"}, {"name": "s1"}, {"name": "s2"}]


def test_the_short_form_can_be_worded():
    lines = [SkillLine(name=f"s{at}", description="y" * 500, folder="/s") for at in range(2)]
    bare = {"instruction": "", "opening": "", "closing": "", "budget": 30}
    short = SkillPrompt(**bare, short_template="{name} in {dir}")
    assert said(lines, short) == "s0 in /s\ns1 in /s"
    both = SkillPrompt(**bare, template="{name}: {description}", short_template="{name}")
    assert said(lines, both) == "s0\ns1"


def test_a_template_of_ones_own_is_its_own_short_form():
    lines = [SkillLine(name=f"s{at}", description="y" * 500, folder="/s") for at in range(2)]
    style = SkillPrompt(
        instruction="", opening="", closing="", template="- {name}: {description}", budget=30
    )
    assert said(lines, style, can_load=True) == "- s0: \n- s1: "


def test_then_skills_are_left_out_and_counted():
    lines = [SkillLine(name=f"s{at}", description="", folder="/s") for at in range(9)]
    listing = render_skills(lines, SkillPrompt(instruction="", budget=400))
    count = len(skills_in(listing.text))
    assert 0 < count < 9
    assert (listing.left_out, listing.names_only) == (9 - count, True)
    assert f"<!-- {9 - count} more skills are not listed here; ask the user" in listing.text


def test_one_skill_that_is_left_out_is_counted_in_proper_words():
    none = SkillPrompt(instruction="", budget=0)
    assert "<!-- 1 more skill is not listed here; ask the user" in said([PDF], none)
    assert "1 more skill is not listed here; call search_skills to find it" in said(
        [PDF], none, can_search=True
    )


def test_where_skills_can_be_searched_the_line_says_so():
    prompt = said([PDF, PDF], SkillPrompt(budget=0), can_search=True)
    assert "  <!-- 2 more skills are not listed here; call search_skills to find them -->" in prompt


def test_the_farthest_are_left_out_first_and_the_rest_keeps_its_order():
    ranks = {"a": 4, "b": 0, "c": 2, "d": 2, "e": 0}
    lines = [
        SkillLine(name=name, description="", folder="/s", scope=rank)
        for name, rank in ranks.items()
    ]
    bare = {"instruction": "", "template": "{name}", "opening": "", "closing": ""}
    kept = {
        tuple(line for line in said(lines, style).splitlines() if len(line) == 1)
        for budget in range(100)
        if (style := SkillPrompt(**bare, budget=budget))
    }
    # Four names and the line take more room than five names.
    assert kept == {(), tuple("abcde")}
    lines = [
        SkillLine(name=f"{line.name * 50}", description="", folder="/s", scope=line.scope)
        for line in lines
    ]
    kept = {
        "".join(line[0] for line in said(lines, style).splitlines() if line[0] != " ")
        for budget in range(300)
        if (style := SkillPrompt(**bare, budget=budget))
    }
    assert kept == {"", "b", "be", "bce", "abcde"}


def test_among_equals_the_last_by_name_are_left_out_whatever_the_order():
    lines = [SkillLine(name=name * 50, description="", folder="/s") for name in "dacb"]
    style = SkillPrompt(template="{name}", instruction="", opening="", closing="", budget=190)
    assert [line[0] for line in said(lines, style).splitlines()] == ["a", "b", " "]


def test_a_budget_can_be_measured_in_tokens():
    words = SkillPrompt(instruction="", budget=10, measure=lambda text: len(text.split()))
    (skill,) = skills_in(
        said([SkillLine(name="a", description="one two three four five six", folder="/a")], words)
    )
    assert skill["description"] == "one two three four…"


def test_what_is_measured_is_the_page_that_is_returned():
    pages = []

    def measure(page):
        pages.append(page)
        return len(page)

    for count in (1, 10, 100, 1_000):
        lines = [
            SkillLine(name=f"s{at}", description="y" * 300, folder="/s") for at in range(count)
        ]
        prompt = said(lines, SkillPrompt(measure=measure))
        assert prompt in pages
        assert prompt == said(lines, SkillPrompt())


@pytest.mark.parametrize("count", [1, 100, 200, 10_000])
def test_however_many_skills_there_are_few_and_small_pages_are_measured(count):
    sizes = []

    def measure(page):
        sizes.append(len(page))
        return len(page)

    lines = [
        SkillLine(name=f"skill-{at:05}", description="y" * 1_000, folder="/s")
        for at in range(count)
    ]
    render_skills(lines, SkillPrompt(measure=measure))
    assert len(sizes) <= 25
    # But for the one that is looked at because it may well be the answer.
    assert all(size <= 3 * DEFAULT_BUDGET for size in sorted(sizes)[:-1])


def test_of_many_skills_only_as_many_are_looked_at_as_may_fit(monkeypatch):
    looked = []
    monkeypatch.setattr(
        skill_listing, "one_line", lambda text: looked.append(text) or one_line(text)
    )
    monkeypatch.setattr(skill_listing, "xml", lambda text: looked.append(text) or xml(text))
    lines = [
        SkillLine(name=f"skill-{at:05}", description="y" * 1_000, folder="/s")
        for at in range(10_000)
    ]
    assert render_skills(lines, SkillPrompt()).left_out > 9_000
    assert len(looked) < 1_000


def test_no_text_is_escaped_twice(monkeypatch):
    looked = []
    monkeypatch.setattr(skill_listing, "xml", lambda text: looked.append(text) or xml(text))
    lines = [
        SkillLine(name=f"skill-{at}", description=f"{at} does " * 30, folder=f"/{at}")
        for at in range(150)
    ]
    assert render_skills(lines, SkillPrompt()).names_only
    assert len(looked) == len(set(looked))


@given(PLAIN, st.integers(0, 2_000))
def test_a_prompt_keeps_its_budget_and_never_drops_a_skill_silently(lines, budget):
    style = SkillPrompt(instruction="", budget=budget)
    listing = render_skills(lines, style)
    prompt, found = listing.text, names_in(listing.text)
    first = set(sorted(line.name for line in lines)[: len(found)])
    assert found == [line.name for line in lines if line.name in first]
    assert len(found) + listing.left_out == len(lines)
    left_out = re.search(r"<!-- (\d+) more skill", prompt)
    assert len(found) + (int(left_out[1]) if left_out else 0) == len(lines)
    # Only where not even the line that says so fits is the budget passed.
    assert len(prompt) <= budget or not found
    assert listing.names_only == (bool(lines) and "<description>" not in prompt)


@given(PLAIN, st.integers(0, 2_000), st.integers(0, 300))
def test_a_larger_budget_never_says_less(lines, budget, more):
    small = said(lines, SkillPrompt(instruction="", budget=budget))
    large = said(lines, SkillPrompt(instruction="", budget=budget + more))
    assert len(skills_in(large)) >= len(skills_in(small))


@given(PLAIN, st.integers(0, 2_000))
def test_a_prompt_within_its_budget_is_not_cut(lines, spare):
    whole = said(lines, UNBOUND)
    style = SkillPrompt(instruction="", budget=len(whole) + spare)
    assert said(lines, style) == whole


# ---- templates ----------------------------------------------------------------------------


def test_a_template_may_use_the_three_fields_and_braces():
    style = SkillPrompt(instruction="", template="{{{name}}} {description} {dir}")
    assert "{pdf} Reads PDFs. /skills/pdf" in said([PDF], style)


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
    for field in ("template", "short_template"):
        with pytest.raises(DefinitionError, match="the skill template"):
            SkillPrompt(**{field: template})


@given(st.text(alphabet="{}name!:.[]0 dir", max_size=12))
def test_a_template_that_is_accepted_can_be_filled_in(template):
    try:
        style = SkillPrompt(template=template)
    except DefinitionError:
        return
    assert said([PDF], style).startswith(DEFAULT_INSTRUCTION)


@given(st.text(alphabet="{}name", max_size=8), st.text())
def test_what_is_filled_in_is_never_read_as_a_template(name, description):
    (skill,) = skills_in(
        said([SkillLine(name=name, description=description, folder="{dir}")], BARE)
    )
    assert (skill["name"], skill["location"]) == (name, "{dir}/SKILL.md")


@pytest.mark.parametrize("given", [{"budget": -1}, {"description_length": -1}])
def test_a_negative_bound_is_refused(given):
    with pytest.raises(DefinitionError, match="cannot be negative"):
        SkillPrompt(**given)


LONG = [
    SkillLine(name=f"s{number}", description="Does a thing. " * 20, folder="/s")
    for number in range(3)
]


def test_a_page_without_locations_may_show_whole_descriptions():
    """Where the default page is too long, the one for `load_skill` says less about each skill."""
    whole = said(LONG, UNBOUND, can_load=True)
    tight = said(LONG, SkillPrompt(instruction="", budget=len(whole) - 1), can_load=True)
    assert "<location>" not in tight
    descriptions = [skill["description"] for skill in skills_in(tight)]
    assert descriptions == [one_line(line.description) for line in LONG]


def test_a_template_of_ones_own_is_kept_where_descriptions_are_shortened():
    template = "- {name}: {description}"
    style = SkillPrompt(instruction="", opening="", closing="", template=template, budget=300)
    lines = said(LONG, style, can_load=True).splitlines()
    assert [line.split(": ")[0] for line in lines] == ["- s0", "- s1", "- s2"]
    assert all(len(line) > 80 for line in lines)


def test_a_short_template_of_ones_own_keeps_the_template_where_descriptions_are_shortened():
    style = SkillPrompt(instruction="", short_template="{name}", budget=500)
    assert said(LONG, style, can_load=True).count("<location>") == 3
