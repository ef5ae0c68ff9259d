"""An edit of a skill gives the catalog of a whole build, or is left to one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.catalog.catalog_entries import Group
from satchel.catalog.skill_edits import edit_skills
from satchel.diagnostics import Where, make_diagnostic
from satchel.groups.view_digest import digest_catalog
from satchel.shared import CatalogCache

NAMES = ("alpha", "beta", "gamma", "delta")
SKILLS = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(["one", "two"]),
        st.booleans(),
        st.sampled_from([(), ("red",), ("red", "blue")]),
    ),
    min_size=1,
    max_size=6,
)


def skills_of(make, drawn):
    return [
        make.skill(name, text=text, broken=broken, groups=groups, key=f"{name}-{at}")
        for at, (name, text, broken, groups) in enumerate(drawn)
    ]


@given(before=SKILLS, edits=st.lists(st.sampled_from(["one", "two", "three", ""]), min_size=6))
def test_an_edited_catalog_equals_a_built_one_or_there_is_none(make, before, edits):
    found = skills_of(make, before)
    plugins = [make.plugin("p", "t", groups=(Group(name="red", skills=("alpha",)),))]
    first = make.catalog(found, plugins)
    after = [
        make.skill(name, text=text, broken=not text, groups=groups, key=f"{name}-{at}")
        for at, ((name, _, _, groups), text) in enumerate(zip(before, edits, strict=False))
    ]
    edited = [new for old, new in zip(found, after, strict=True) if old != new]
    result = edit_skills(edited, first, ())
    built = make.catalog(after, plugins, first)
    if result is not None:
        assert (result.generation, result.parts) == (built.generation, built.parts)
        assert digest_catalog(result, digest_catalog(first)) == digest_catalog(built)


def test_an_edit_looks_at_no_other_skill(make):
    found = [make.skill("alpha"), make.skill("beta")]
    first = make.catalog(found)
    second = edit_skills([make.skill("alpha", text="new")], first, ())
    assert second is not None
    assert second.skills["alpha"].description == "new"
    assert second.skills["alpha"].generation == 2
    assert second.skills["beta"] is first.skills["beta"]


def test_a_prompt_after_several_edits_shares_what_did_not_change(make):
    first = make.catalog([make.skill("alpha"), make.skill("beta")])
    second = edit_skills([make.skill("alpha", text="new")], first, ())
    third = edit_skills([make.skill("alpha", text="newer")], second, ())
    seen = CatalogCache(first)
    last = CatalogCache(third, CatalogCache(second, seen)) if seen.digest else None
    assert last.digest == digest_catalog(third)
    assert last.digest.by_key["skill", "beta"] is seen.digest.by_key["skill", "beta"]


def test_an_edit_that_changes_nothing_returns_the_previous_catalog(make):
    first = make.catalog([make.skill("alpha")])
    assert edit_skills([make.skill("alpha")], first, ()) is first


def test_new_diagnostics_make_a_new_catalog(make):
    first = make.catalog([make.skill("alpha")])
    odd = make_diagnostic("source-missing", Where("/x"), "does not exist")
    second = edit_skills([], first, (odd, odd))
    assert second is not None
    assert second.source_diagnostics == (odd,)


@pytest.mark.parametrize("edit", ["renamed", "broken", "contested", "new"])
def test_an_edit_that_may_affect_other_entries_is_left_to_a_build(make, edit):
    twins = [make.skill("gamma", key="one"), make.skill("gamma", key="two")]
    first = make.catalog([make.skill("alpha"), *twins])
    edited = {
        "renamed": make.skill("beta", key="alpha"),
        "broken": make.skill("alpha", broken=True),
        "contested": make.skill("gamma", key="one", text="new"),
        "new": make.skill("omega"),
    }
    assert edit_skills([edited[edit]], first, ()) is None


def test_the_edited_skill_is_found_by_its_name(make):
    first = make.catalog([make.skill("alpha"), make.skill("beta")])
    second = edit_skills([make.skill("beta", text="new")], first, ())
    assert list(second.skills) == ["alpha", "beta"]
    assert second.skills["beta"] is second.all_skills[1]
    assert first.skills["beta"] is first.all_skills[1]
