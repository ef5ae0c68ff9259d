import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.errors import DefinitionError
from satchel.prompt import skill_listing
from satchel.prompt.listing_words import ListingForm, ModelAbilities, instruction_for
from satchel.prompt.skill_listing import PromptListing, SkillTexts, render_skills
from satchel.prompt.skill_prompt import DEFAULT_BUDGET, SkillPrompt
from satchel.text import has_hidden, one_line, xml, xml_path

READER = instruction_for(
    ListingForm.FULL, ModelAbilities(can_load=False, can_search=False), is_cut=False
)
LOADER = instruction_for(
    ListingForm.FULL, ModelAbilities(can_load=True, can_search=False), is_cut=False
)


class SkillLine(NamedTuple):
    name: str
    description: str
    folder: str
    scope: int = 0
    groups: tuple[str, ...] = ()
    source: str = "skills"


PDF = SkillLine(name="pdf", description="Reads PDFs.", folder="/skills/pdf")
BARE = SkillPrompt(instruction="")
UNBOUND = SkillPrompt(instruction="", budget=None)

LINES = st.lists(
    st.builds(
        SkillLine,
        name=st.text(),
        description=st.text(),
        folder=st.text(),
        scope=st.just(0),
        groups=st.just(()),
        source=st.text(),
    ),
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
        scope=st.integers(0, 2),
        groups=st.sampled_from([(), ("git",)]),
        source=st.sampled_from(["a", "b"]),
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


SIGNS_LIKE_LESS_THAN = {0xFF1C: "<", 0xFE64: "<"}
"""Compatibility forms, which look the same to a model."""


def folded(line):
    return (line.name.casefold(), line.name)


# ---- the page -----------------------------------------------------------------------------


def test_without_skills_there_is_nothing_to_say():
    assert render_skills([], SkillPrompt()) == PromptListing()


def test_the_default_block_is_that_of_the_format():
    assert said([PDF], SkillPrompt()) == (
        f"{READER}\n\n"
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
    assert said([PDF], SkillPrompt(), can_load=True).startswith(LOADER)
    assert "load_skill" in LOADER
    assert "load_skill" not in said([PDF], SkillPrompt())
    mine = SkillPrompt(instruction="Mine.")
    assert said([PDF], mine) == said([PDF], mine, can_load=True)
    assert said([PDF], BARE, can_load=True).startswith("<available_skills>")


def test_skills_are_sorted_by_name_whatever_the_capitals():
    lines = [SkillLine(name=name, description="", folder="") for name in ("c", "B", "a", "C")]
    assert names_in(said(lines, BARE)) == ["a", "B", "C", "c"]
    style = SkillPrompt(instruction="", budget=75)
    lines = [line._replace(description="y" * 50) for line in lines]
    assert "(4): a, B, C, c" in said(lines, style, can_load=True)


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
@example([SkillLine(name="\uff1c\ufe64", description="", folder="")])
def test_no_field_leaves_its_element(lines):
    result = skills_in(said(lines, UNBOUND))
    for skill, line in zip(result, sorted(lines, key=folded), strict=True):
        place = {"location"} if xml_path(line.folder) else set()
        assert set(skill) == {"name", "description"} | place
        assert skill["name"] == one_line(line.name).translate(SIGNS_LIKE_LESS_THAN)
        if place:
            assert one_line(skill["location"]) == one_line(line.folder + "/SKILL.md")


def test_blanks_in_a_path_are_kept_because_it_must_still_open():
    (skill,) = skills_in(said([SkillLine(name="a", description="b", folder="/two  blanks")], BARE))
    assert skill["location"] == "/two  blanks/SKILL.md"


@given(LINES, st.integers(0, 600) | st.none())
def test_nothing_invisible_gets_into_the_prompt(lines, budget):
    assert not has_hidden(said(lines, SkillPrompt(budget=budget)))


@given(LINES, st.integers(0, 600), st.booleans())
def test_a_cut_never_leaves_half_of_what_was_escaped(lines, budget, can_load):
    prompt = said(lines, SkillPrompt(instruction="", budget=budget), can_load=can_load)
    assert re.sub("&(amp|lt|gt|quot);", "", prompt).count("&") == 0
    ET.fromstring(prompt)


# ---- the forms ----------------------------------------------------------------------------


def wordy(count, length=300, **options):
    return [
        SkillLine(
            name=f"skill-{at:04}", description=f"{at:04} " + "y" * length, folder="/s", **options
        )
        for at in range(count)
    ]


def lines_of(listing):
    return [line for line in listing.text.splitlines() if line.startswith("- ")]


def test_without_a_budget_everything_is_said():
    lines = wordy(500, 1_000)
    listing = render_skills(lines, UNBOUND)
    assert [skill["description"] for skill in skills_in(listing.text)] == [
        line.description for line in lines
    ]
    assert (listing.form, listing.described, listing.left_out) == (ListingForm.FULL, 500, 0)


def test_there_is_a_budget_unless_it_is_disabled():
    assert 0.8 * DEFAULT_BUDGET < len(said(wordy(50), SkillPrompt())) <= DEFAULT_BUDGET == 16_000


def test_over_the_budget_each_skill_takes_a_line_with_its_description():
    lines = wordy(60, 150)
    listing = render_skills(lines, SkillPrompt(), can_load=True)
    assert (listing.form, listing.cut_at) == (ListingForm.LINES, None)
    assert lines_of(listing) == [f"- {line.name}: {line.description}" for line in lines]
    assert "shortened" not in listing.text
    assert "When a task matches the description" in listing.text


def test_a_model_that_opens_the_files_learns_where_they_are():
    listing = render_skills(wordy(60, 150), SkillPrompt())
    assert lines_of(listing)[0] == f"- skill-0000: 0000 {'y' * 150} (/s/SKILL.md)"


def test_the_long_descriptions_are_shortened_first():
    lines = [SkillLine(name="short", description="Reads PDFs.", folder="/s"), *wordy(100)]
    listing = render_skills(lines, SkillPrompt(), can_load=True, can_search=True)
    shown = dict(line[2:].split(": ") for line in lines_of(listing))
    assert shown.pop("short") == "Reads PDFs."
    assert set(map(len, shown.values())) == {listing.cut_at}
    assert all(text.endswith("…") for text in shown.values())
    assert "Long descriptions are shortened. If none seems to match, call search_skills." in (
        listing.text
    )


def test_then_names_are_listed_by_source_with_as_many_descriptions_as_fit():
    lines = [
        *wordy(300, source="/home/me/skills"),
        *[
            SkillLine(name=f"Git-{at}", description="y" * 90, folder="/s", groups=("git",))
            for at in range(200)
        ],
    ]
    listing = render_skills(lines, SkillPrompt(), can_load=True, can_search=True)
    assert (listing.form, listing.left_out) == (ListingForm.NAMES, 0)
    assert listing.described == len(lines_of(listing))
    assert "\nskills (300): skill-0000, skill-0001, " in listing.text
    assert f"\ngroup git ({200 - listing.described}): Git-" in listing.text
    assert (
        "There are too many to describe them all here. For each task, call search_skills "
        in (listing.text.splitlines()[0])
    )
    assert "/home/me" not in listing.text


def test_without_load_skill_names_stand_after_the_folder_that_holds_them():
    lines = [
        SkillLine(name=f"s{at}", description="y" * 500, folder=f"/my skills/{place}/s{at}")
        for at, place in enumerate("abab")
    ]
    listing = render_skills(lines, SkillPrompt(budget=400))
    assert listing.text.splitlines()[3:5] == [
        "/my skills/a (2): s0, s2",
        "/my skills/b (2): s1, s3",
    ]
    assert "read FOLDER/NAME/SKILL.md first" in listing.text


def test_then_names_are_left_out_of_each_source_and_counted():
    lines = [*wordy(3_000, source="many"), *wordy(9, source="few")]
    listing = render_skills(lines, SkillPrompt(), can_load=True, can_search=True)
    named = listing.text.count("skill-")
    assert named == 3_009 - listing.left_out < 3_009
    few, many = listing.text.splitlines()[3:5]
    assert few == "few (9): " + ", ".join(line.name for line in lines[-9:])
    assert many.startswith("many (3,000): skill-0000, ")
    assert many.endswith(f", and {listing.left_out:,} more")


def test_where_no_name_fits_the_skills_are_counted():
    none = SkillPrompt(instruction="", budget=0)
    assert "\n1 skill is not listed here; ask the user" in said([PDF], none, can_load=True)
    assert "\n2 skills are not listed here; call search_skills to find them\n" in said(
        [PDF, PDF], none, can_search=True
    )


def test_where_not_even_one_name_of_a_source_fits_none_is_left_in_the_text():
    listing = render_skills([PDF, PDF], SkillPrompt(instruction="", budget=0), can_load=True)
    assert (listing.described, listing.left_out, listing.total) == (0, 2, 2)
    assert "pdf" not in listing.text


def test_a_listing_that_names_everything_leaves_nothing_out():
    assert render_skills([PDF], BARE).left_out == 0
    nothing = render_skills([], BARE)
    assert (nothing.total, nothing.described, nothing.left_out) == (0, 0, 0)


def test_the_names_of_a_folder_are_sorted_whatever_comes_first():
    lines = [
        SkillLine(name=name, description="y" * 500, folder=f"/my skills/{name}", scope=scope)
        for name, scope in (("B", 0), ("a", 1), ("c", 0))
    ]
    listing = render_skills(lines, SkillPrompt(budget=350))
    assert "/my skills (3): a, B, c" in listing.text.splitlines()


def test_skills_of_the_basic_group_are_listed_under_their_source():
    lines = [line._replace(groups=("basic",)) for line in wordy(300, source="/home/me/skills")]
    listing = render_skills(lines, SkillPrompt(budget=3_000), can_load=True)
    assert "\nskills (300): skill-0000, " in listing.text
    several = [line._replace(groups=("basic", "git")) for line in lines]
    assert "\ngroup git (" in render_skills(several, SkillPrompt(budget=3_000), can_load=True).text


def test_sources_without_a_place_are_counted_together():
    lines = [
        SkillLine(name="n" * 30, description="", folder="/s", source=f"s{at}") for at in range(40)
    ]
    listing = render_skills(lines, SkillPrompt(instruction="", budget=900), can_load=True)
    assert f"\n{listing.left_out} more skills are not listed here; ask the user" in listing.text
    assert listing.text.count("(1): ") == 40 - listing.left_out > 0


# ---- which come first ---------------------------------------------------------------------


def test_what_is_likely_used_is_described_even_where_not_all_names_fit():
    lines = wordy(3_000)
    first = frozenset({"skill-2900", "skill-2999"})
    listing = render_skills(lines, SkillPrompt(), can_load=True, first=lambda: first)
    assert [line.split(":")[0] for line in lines_of(listing)] == ["- skill-2900", "- skill-2999"]
    assert listing.described == 2


def test_what_is_likely_used_comes_before_a_nearer_one_of_an_active_group():
    grouped = [line._replace(groups=("git",), scope=0) for line in wordy(300)]
    lines = [*grouped, SkillLine(name="z", description="y" * 90, folder="/s", scope=2)]
    listing = render_skills(
        lines, SkillPrompt(budget=1_000), can_load=True, first=lambda: frozenset({"z"})
    )
    assert [line.split(":")[0] for line in lines_of(listing)] == ["- z"]


def test_those_of_active_groups_follow_and_take_half_of_the_budget_at_most():
    lines = [
        *wordy(3_000),
        *[
            SkillLine(name=f"git-{at:03}", description="y" * 200, folder="/s", groups=("git",))
            for at in range(500)
        ],
    ]
    listing = render_skills(lines, SkillPrompt(), can_load=True)
    described = lines_of(listing)
    assert all(line.startswith("- git-") for line in described)
    assert 6_000 < sum(map(len, described)) <= 8_000


def test_of_the_rest_the_nearest_sources_come_first():
    lines = [
        SkillLine(name=f"{name}-{at:03}", description="y" * 60, folder="/s", scope=scope)
        for name, scope in (("a", 4), ("b", 0), ("c", 2))
        for at in range(200)
    ]
    listing = render_skills(lines, SkillPrompt(), can_load=True)
    assert 0 < listing.described < 200
    assert all(line.startswith("- b-") for line in lines_of(listing))


def test_no_one_asks_what_comes_first_if_everything_is_described():
    def first():
        raise AssertionError

    render_skills(wordy(100), SkillPrompt(), first=first)


# ---- the budget ---------------------------------------------------------------------------


REAL_LENGTHS = st.lists(st.integers(20, 900), min_size=1, max_size=40)


@given(REAL_LENGTHS, st.integers(10, 2_500), st.booleans())
def test_whenever_something_is_cut_most_of_the_budget_is_used(lengths, count, can_load):
    lines = [
        SkillLine(
            name=f"skill-{at}",
            description="y" * lengths[at % len(lengths)],
            folder=f"/skills/skill-{at}",
            source=f"source-{at % 7}",
        )
        for at in range(count)
    ]
    listing = render_skills(lines, SkillPrompt(), can_load=can_load, can_search=True)
    is_cut = listing.cut_at is not None or listing.form is ListingForm.NAMES
    assert len(listing.text) <= DEFAULT_BUDGET
    assert not is_cut or len(listing.text) >= 0.8 * DEFAULT_BUDGET


@given(
    st.integers(30, 320),
    st.lists(
        st.tuples(st.sampled_from(["add", "remove", "edit"]), st.integers(0, 10**6)), max_size=6
    ),
)
def test_an_edit_changes_its_own_line_unless_the_form_or_the_length_changes(count, edits):
    skills = {line.name: line for line in wordy(count, 250)}
    before = render_skills([*skills.values()], SkillPrompt(), can_load=True)
    for kind, number in edits:
        name = f"skill-{number % count:04}" if kind != "add" else f"skill-{number % count:04}-more"
        if kind == "remove":
            skills.pop(name, None)
        else:
            skills[name] = SkillLine(name=name, description=f"{number} new " * 40, folder="/s")
        after = render_skills([*skills.values()], SkillPrompt(), can_load=True)
        if (
            (before.form, before.cut_at)
            == (after.form, after.cut_at)
            == (
                ListingForm.LINES,
                before.cut_at,
            )
        ):
            changed = set(lines_of(before)) ^ set(lines_of(after))
            assert all(line.startswith(f"- {name}: ") for line in changed)
        before = after


def test_lengths_move_in_steps_of_a_quarter():
    lengths = {
        render_skills(wordy(count, 900), SkillPrompt(), can_load=True).cut_at
        for count in (*range(20, 60), *range(60, 400, 8))
    } - {None}
    ordered = sorted(lengths)
    assert len(ordered) > 10
    assert all(b <= 1.25 * a for a, b in pairwise(ordered))
    assert ordered[0] < 25


def test_a_budget_can_be_measured_in_tokens():
    words = SkillPrompt(budget=100, instruction="", measure=lambda text: len(text.split()))
    lines = [SkillLine(name="a", description="one two three " * 40, folder="/a")] * 4
    listing = render_skills(lines, words, can_load=True)
    assert listing.form is ListingForm.LINES
    assert 80 <= len(listing.text.split()) <= 100


def test_what_is_measured_is_the_page_that_is_returned():
    pages = []

    def measure(page):
        pages.append(page)
        return len(page)

    for count in (1, 10, 100, 400, 1_000):
        prompt = said(wordy(count), SkillPrompt(measure=measure))
        assert prompt in pages or count > 100
        assert prompt == said(wordy(count), SkillPrompt())


@pytest.mark.parametrize("count", [1, 100, 200, 400, 10_000])
def test_however_many_skills_there_are_few_and_small_pages_are_measured(count):
    sizes = []

    def measure(page):
        sizes.append(len(page))
        return len(page)

    render_skills(wordy(count, 1_000), SkillPrompt(measure=measure), can_load=True)
    assert len(sizes) <= 25
    # But for the one that is looked at because it may well be the answer.
    assert all(size <= 5 * DEFAULT_BUDGET for size in sorted(sizes)[:-1])


def test_of_many_skills_only_as_many_are_written_as_may_fit(monkeypatch):
    looked = []
    monkeypatch.setattr(
        skill_listing, "one_line", lambda text: looked.append(text) or one_line(text)
    )
    monkeypatch.setattr(skill_listing, "xml", lambda text: looked.append(text) or xml(text))
    assert render_skills(wordy(10_000, 1_000), SkillPrompt(), can_load=True).left_out > 8_000
    assert len(looked) < 4_000
    # Once as it is and once cut.
    assert max(Counter(looked).values()) <= 2


@given(PLAIN, st.integers(0, 2_000), st.booleans())
def test_a_prompt_keeps_its_budget_and_never_drops_a_skill_silently(lines, budget, can_load):
    listing = render_skills(lines, SkillPrompt(instruction="", budget=budget), can_load=can_load)
    assert listing.total == len(lines)
    counted = re.findall(r"and (\d+) more|(\d+)(?: more)? skills? (?:is|are) not", listing.text)
    assert sum(int(number) for pair in counted for number in pair if number) == listing.left_out
    # Only where not even the line that says so fits is the budget passed.
    assert len(listing.text) <= budget or listing.left_out == len(lines)


@given(PLAIN, st.integers(0, 2_000))
def test_a_prompt_within_its_budget_is_not_cut(lines, spare):
    whole = said(lines, UNBOUND)
    style = SkillPrompt(instruction="", budget=len(whole) + spare)
    assert said(lines, style) == whole


# ---- exactly as much as fits ----------------------------------------------------------------


@given(
    st.lists(st.from_regex(r"[a-z]{1,4}", fullmatch=True), min_size=3, max_size=20, unique=True),
    st.integers(1, 6),
    st.booleans(),
    st.booleans(),
)
@example(["a", "b", "c", "d", "e"], 1, True, True)
def test_all_names_are_listed_where_they_fit_exactly(names, sources, can_load, can_search):
    lines = [
        SkillLine(
            name=name,
            description="y" * 500,
            folder=f"/{at % sources}/{name}",
            source=f"{at % sources}",
        )
        for at, name in enumerate(names)
    ]
    pages = []

    def measure(page):
        pages.append(page)
        return 0 if is_complete(page) else 1

    def is_complete(page):
        head, _, listed = page.partition("<available_skills>")
        return "too many" in head and " more" not in listed and "- " not in listed

    render_skills(
        lines, SkillPrompt(budget=0, measure=measure), can_load=can_load, can_search=can_search
    )
    complete = min(filter(is_complete, pages), key=len)
    listing = render_skills(
        lines, SkillPrompt(budget=len(complete)), can_load=can_load, can_search=can_search
    )
    assert (listing.text, listing.left_out) == (complete, 0)


@pytest.mark.parametrize("count", [80, 110, 139])
@pytest.mark.parametrize("sources", [1, 4])
def test_all_of_many_names_are_listed_where_they_fit_exactly(count, sources):
    lines = [
        SkillLine(
            name=f"{at:03}", description="y" * 500, folder=f"/{at:03}", source=f"{at % sources}"
        )
        for at in range(count)
    ]

    def measure(page):
        _, _, listed = page.partition("<available_skills>")
        return 0 if "too many" in page and "- " not in listed else 1

    complete = said(lines, SkillPrompt(budget=0, measure=measure), can_load=True)
    assert " more" not in complete.partition("<available_skills>")[2]
    assert said(lines, SkillPrompt(budget=len(complete)), can_load=True) == complete


def holding(*lines, **options):
    """Return a style without words around the lines, whose budget holds exactly these."""
    bare = {"instruction": "", "opening": "", "closing": ""}
    return SkillPrompt(**bare, budget=len("\n".join(lines)), **options)


def short_of(style):
    return replace(style, budget=style.budget - 1)


def test_two_skills_are_sorted_too():
    assert names_in(said([PDF._replace(name=name) for name in "ba"], UNBOUND)) == ["a", "b"]


def test_a_description_is_shortened_to_twenty_characters_and_no_further():
    skill = PDF._replace(description="y" * 50)
    style = holding(line := "- pdf: " + "y" * 19 + "…")
    assert said([skill], style, can_load=True) == line
    assert said([skill], short_of(style), can_load=True) == "skills (1): pdf"


def test_what_fits_with_the_names_of_the_others_is_described_one_by_one():
    skills = [PDF._replace(name=f"{at:02}", description="y" * 150) for at in range(20)]
    described = [f"- {skill.name}: {'y' * 99}…" for skill in skills]
    for count in range(1, 5):
        names = f"skills ({20 - count}): " + ", ".join(skill.name for skill in skills[count:])
        style = holding(*described[:count], names)
        assert said(skills, style, can_load=True).splitlines() == [*described[:count], names]
        assert render_skills(skills, short_of(style), can_load=True).described == count - 1


def test_all_but_one_are_described_where_the_last_description_does_not_fit():
    blank = [PDF._replace(name=name, description="") for name in "abcdef"]
    long = PDF._replace(name="z", description="y" * 20)
    lines = [*(f"- {skill.name}: " for skill in blank), "skills (1): z"]
    assert said([*blank, long], holding(*lines), can_load=True).splitlines() == lines


def test_as_many_names_are_listed_as_fit_and_the_rest_is_counted():
    skills = [PDF._replace(name=f"{at:02}", description="y" * 150) for at in range(20)]
    for count in range(1, 5):
        names = ", ".join(skill.name for skill in skills[:count])
        style = holding(line := f"skills (20): {names}, and {20 - count} more")
        assert said(skills, style, can_load=True) == line
        assert render_skills(skills, short_of(style), can_load=True).left_out > 20 - count


def test_without_load_skill_only_the_names_that_fit_stand_after_their_folder():
    skills = [PDF._replace(description="y" * 150, folder=f"/s/{at:02}") for at in range(20)]
    style = holding(line := "/s (20): 00, 01, and 18 more")
    assert said(skills, style) == line


def test_names_are_shared_out_equally_among_the_sources():
    skills = [
        PDF._replace(name=f"{source}{at}", description="y" * 150, source=source)
        for source, count in (("a", 9), ("b", 2), ("c", 9))
        for at in range(count)
    ]
    lines = ["a (9): a0, a1, a2, and 6 more", "b (2): b0, b1", "c (9): c0, c1, c2, and 6 more"]
    assert said(skills, holding(*lines), can_load=True).splitlines() == lines


def test_all_that_are_likely_used_stay_described_where_no_other_fits():
    skills = [PDF._replace(name=f"{at:03}", description="y" * 90) for at in range(513)]
    described = [f"- {skill.name}: {'y' * 90}" for skill in skills[:23]]
    names = "skills (490): " + ", ".join(skill.name for skill in skills[23:])
    first = frozenset(skill.name for skill in skills[:23])
    shown = said(skills, holding(*described, names), can_load=True, first=lambda: first)
    assert shown.splitlines() == [*described, names]


def test_only_a_skill_that_is_likely_used_is_described_before_all_are_named():
    skills = [PDF._replace(name=f"{at:02}", description="y" * 30) for at in range(99)]
    first = {"first": lambda: frozenset({"39"})}
    style = SkillPrompt(instruction="", budget=290)
    assert render_skills(skills, style, can_load=True).described == 0
    assert lines_of(render_skills(skills, style, can_load=True, **first)) == ["- 39: " + "y" * 30]


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
    for field in ("template", "line_template"):
        with pytest.raises(DefinitionError, match="the skill template"):
            SkillPrompt(**{field: template})


@given(st.text(alphabet="{}name!:.[]0 dir", max_size=12))
def test_a_template_that_is_accepted_can_be_filled_in(template):
    try:
        style = SkillPrompt(template=template)
    except DefinitionError:
        return
    assert said([PDF], style).startswith(READER)


@given(st.text(alphabet="{}name", max_size=8), st.text())
def test_what_is_filled_in_is_never_read_as_a_template(name, description):
    (skill,) = skills_in(
        said([SkillLine(name=name, description=description, folder="{dir}")], UNBOUND)
    )
    assert (skill["name"], skill["location"]) == (name, "{dir}/SKILL.md")


@pytest.mark.parametrize("bounds", [{"budget": -1}, {"description_length": -1}])
def test_a_negative_bound_is_refused(bounds):
    with pytest.raises(DefinitionError, match="cannot be negative"):
        SkillPrompt(**bounds)


def test_a_template_of_ones_own_is_kept_where_descriptions_are_shortened():
    template = "* {name}: {description}"
    bare = {"instruction": "", "opening": "", "closing": "", "budget": 300}
    lines = said(wordy(3), SkillPrompt(**bare, template=template), can_load=True).splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "* skill-0000",
        "* skill-0001",
        "* skill-0002",
    ]
    assert all(len(line) > 80 for line in lines)


def test_the_line_of_the_shortened_form_can_be_worded():
    style = SkillPrompt(line_template="{name} = {description}", budget=1_200, opening="<skills>")
    prompt = said(wordy(9), style, can_load=True)
    assert "<skills>\nskill-0000 = 0000 yy" in prompt


def test_an_instruction_of_ones_own_stays_and_the_form_is_explained_after_it():
    def start(count, **options):
        style = SkillPrompt(instruction="Mine.")
        return said(wordy(count), style, can_load=True, **options).splitlines()[0]

    assert start(2) == "Mine."
    assert start(100) == "Mine. Long descriptions are shortened."
    assert start(900, can_search=True) == (
        "Mine. There are too many to describe them all here. "
        "For each task, call search_skills first, with words of the task."
    )


def test_a_text_in_place_of_the_list_of_the_first_skills_is_refused():
    with pytest.raises(DefinitionError, match="must be a list of names"):
        SkillPrompt(first="pdf")


def test_texts_of_former_descriptions_do_not_pile_up():
    texts = SkillTexts()
    for version in range(1_000):
        skills = [PDF._replace(description=f"Version {version}."), PDF._replace(name="xlsx")]
        texts = texts.renewed(len(skills))
        render_skills(skills, BARE, texts=texts)
        assert texts.plain.cache_info().currsize < 80
    assert texts.escaped.cache_info().hits, "what did not change is not written again"


@pytest.mark.parametrize(("count", "most"), [(10, 84), (512, 1_088), (9_000, 1_088)])
def test_texts_are_kept_until_most_of_them_are_of_former_descriptions(count, most):
    texts = SkillTexts()
    for number in range(most):
        texts.plain(str(number))
    assert texts.renewed(count) is texts
    texts.plain("one more")
    assert texts.renewed(count) is not texts
