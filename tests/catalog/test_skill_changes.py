"""A catalog that is built of the changed skills is the one that is built of all."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.catalog.catalog_builder import build
from satchel.catalog.catalog_changes import diff
from satchel.catalog.catalog_entries import Group
from satchel.catalog.disable_rules import nothing_disabled
from satchel.catalog.name_holds import NameRules
from satchel.catalog.unit_entries import SkillChanges, build_plugins, skill_unit
from satchel.diagnostics import Where, make_diagnostic
from satchel.groups.view_digest import digest_catalog
from satchel.shared import CatalogCache

SKILL = st.tuples(
    st.sampled_from(["alpha", "beta", "gamma", "delta"]),
    st.sampled_from(["one", "two", "", "late"]),  # two of them are broken
    st.sampled_from([(), ("red",), ("red", "blue")]),
)
FOLDERS = st.sampled_from(["a", "b", "c", ".hidden/d", "e"])
STATES = st.lists(
    st.tuples(st.dictionaries(FOLDERS, SKILL), st.booleans(), st.sampled_from(["t", "u"])),
    min_size=2,
    max_size=4,
)
"""What each folder has, whether a plugin lists a skill in its group, and its tool."""
UNITS = st.lists(FOLDERS.map("/skills/{}".format), max_size=3, unique=True)
OWNERS = st.dictionaries(st.sampled_from(["alpha", "beta", "gamma"]), UNITS)
"""Who served a name, the oldest first."""


def skills_of(make, folders, before):
    """Return the skills by their unit; those that did not change are the same as before."""
    skills = {}
    for key, (name, text, groups) in folders.items():
        is_broken = text in {"", "late"}
        new = make.skill(
            name, key=key, text=text, broken=is_broken, groups=groups, unsettled=text == "late"
        )
        unit = skill_unit(new.finding)
        skills[unit] = before[unit] if before.get(unit) == new else new
    return skills


def after(make, previous, before, skills, **options):
    """Return the catalog after some skills became others, as it is built of the changed ones."""
    changed = [
        ranked
        for unit, ranked in skills.items()
        if before.get(unit) is not ranked or ranked.finding.is_suspect
    ]
    units = {skill_unit(ranked.finding) for ranked in changed} | (before.keys() - skills.keys())
    names = {unit: before[unit].finding.name for unit in units & before.keys()}
    plugins = build_plugins(options.pop("plugins", ()), previous)
    changes = SkillChanges(names, options.pop("keeps_plugins", True))
    return build(changed, plugins, previous, changes=changes, **options)


def is_alpha(kind, name, _others):
    problem = make_diagnostic("disabled", Where("/satchel.toml"), "is disabled")
    return problem if (kind, name) == ("skill", "alpha") else None


SHADOWS_THE_ONLY_ONE_OF_A_GROUP = [
    ({"b": ("alpha", "one", ()), "c": ("beta", "two", ("red",))}, False, "t"),
    ({"b": ("beta", "one", ()), "c": ("beta", "two", ("red",))}, False, "t"),
]


@example(states=SHADOWS_THE_ONLY_ONE_OF_A_GROUP, has_plugins=False, disable=False, owners={})
@given(states=STATES, has_plugins=st.booleans(), disable=st.booleans(), owners=OWNERS)
def test_a_catalog_of_the_changed_skills_is_that_of_all(make, states, has_plugins, disable, owners):
    names = NameRules(owners=lambda _kind, name: tuple(owners.get(name, ())))
    reason = is_alpha if disable else nothing_disabled
    last, before, before_plugins, listed_before = make.catalog(), {}, (), None
    for folders, lists_alpha, tool in states:
        # With groups, the pass builds a whole catalog while something is disabled.
        chosen = {it: (*skill[:2], () if disable else skill[2]) for it, skill in folders.items()}
        skills = skills_of(make, chosen, before)
        listed = ("alpha",) if lists_alpha and has_plugins and not disable else ()
        red = Group(name="red", skills=listed)
        plugins = (make.plugin("p", "one" if disable else tool, groups=(red,)),)[:has_plugins]
        whole = build(
            skills.values(), build_plugins(plugins, last), last, disable_reason=reason, names=names
        )
        if listed == listed_before:
            options = {"disable_reason": reason, "names": names}
            options |= {"keeps_plugins": plugins == before_plugins, "plugins": plugins}
            part = after(make, last, before, skills, **options)
            assert (part.generation, part.parts) == (whole.generation, whole.parts)
            assert diff(last, part) == diff(last, whole)
            assert digest_catalog(part, digest_catalog(last)) == digest_catalog(whole)
        last, before, before_plugins, listed_before = whole, skills, plugins, listed


def test_a_changed_plugin_does_not_touch_the_skills(make):
    skills = {skill_unit(it.finding): it for it in [make.skill("alpha"), make.skill("beta")]}
    first = make.catalog(skills.values(), [make.plugin("p", "t")])
    options = {"plugins": [make.plugin("p", "t", "u", digest="2")], "keeps_plugins": False}
    second = after(make, first, skills, skills, **options)
    assert list(second.tools) == ["t", "u"]
    assert second.all_skills == first.all_skills
    assert second.all_skills[0] is first.all_skills[0]
    assert second.changed_skills == frozenset()


@pytest.mark.parametrize("edit", ["new", "gone", "edited"])
def test_no_other_skill_is_built_again(make, edit):
    skills = {skill_unit(it.finding): it for it in [make.skill("alpha"), make.skill("beta")]}
    first = make.catalog(skills.values())
    now = dict(skills)
    changed = make.skill("alpha" if edit == "edited" else "aleph", text="new")
    if edit == "gone":
        del now[skill_unit(make.skill("alpha").finding)]
    else:
        now[skill_unit(changed.finding)] = changed
    second = after(make, first, skills, now)
    assert second.generation == 2
    assert second.skills["beta"] is first.skills["beta"]
    assert second.changed_skills == {"aleph" if edit == "new" else "alpha"}


def test_a_prompt_after_several_edits_shares_what_did_not_change(make):
    skills = {skill_unit(it.finding): it for it in [make.skill("alpha"), make.skill("beta")]}
    (unit, _), _ = skills.items()
    first = make.catalog(skills.values())
    second = after(make, first, skills, skills | {unit: make.skill("alpha", text="new")})
    third = after(make, second, skills, skills | {unit: make.skill("alpha", text="newer")})
    seen = CatalogCache(first)
    last = CatalogCache(third, CatalogCache(second, seen)) if seen.digest else None
    assert last.digest == digest_catalog(third)
    assert last.digest.by_kind["skill"]["beta"] is seen.digest.by_kind["skill"]["beta"]


def test_an_edit_that_changes_nothing_returns_the_previous_catalog(make):
    skills = {skill_unit(it.finding): it for it in [make.skill("alpha")]}
    first = make.catalog(skills.values())
    assert after(make, first, skills, {unit: replace(it) for unit, it in skills.items()}) is first


def test_new_diagnostics_make_a_new_catalog(make):
    first = make.catalog([make.skill("alpha")])
    odd = make_diagnostic("source-missing", Where("/x"), "does not exist")
    second = after(make, first, {}, {}, diagnostics=(odd, odd))
    assert second.source_diagnostics == (odd,)
