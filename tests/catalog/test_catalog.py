from dataclasses import FrozenInstanceError, replace

import pytest

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import Status
from satchel.diagnostics import Where, make_diagnostic
from satchel.errors import NotFoundError


def test_a_catalog_never_changes(make):
    catalog = make.catalog([make.skill("a")])
    with pytest.raises(FrozenInstanceError):
        catalog.generation = 7
    with pytest.raises(TypeError):
        catalog.skills["b"] = catalog.skills["a"]


def test_the_first_catalog_is_empty():
    catalog = Catalog()
    assert (catalog.generation, catalog.entries, catalog.diagnostics) == (0, (), ())


def test_the_mappings_hold_what_is_served_in_the_order_of_names(make):
    catalog = make.catalog(
        [make.skill("c"), make.skill("a"), make.skill("b", broken=True)],
        [make.plugin("q"), make.plugin("p", "t")],
    )
    assert list(catalog.skills) == ["a", "c"]
    assert list(catalog.plugins) == ["p", "q"]
    assert list(catalog.tools) == ["t"]
    assert [entry.name for entry in catalog.all_skills] == ["a", "b", "c"]


def test_each_finding_is_among_the_diagnostics_once(make):
    odd = make_diagnostic("source-missing", Where("/x"), "does not exist")
    catalog = make.catalog([make.skill("b", broken=True)], diagnostics=[odd])
    assert [item.code for item in catalog.diagnostics] == ["source-missing", "skill-no-frontmatter"]
    both = Catalog(generation=1, source_diagnostics=(odd, *catalog.all_skills[0].diagnostics, odd))
    assert both.diagnostics == (odd, *catalog.all_skills[0].diagnostics)


def test_a_name_means_what_is_served(make):
    catalog = make.catalog([make.skill("a", source="one"), make.skill("a", source="two", order=1)])
    assert catalog.skill("a").source == "one"


def test_an_address_reaches_what_is_shadowed(make):
    catalog = make.catalog([make.skill("a", source="one"), make.skill("a", source="two", order=1)])
    result = catalog.skill("two:a")
    assert (result.source, result.state) == ("two", Status.SHADOWED)
    assert catalog.skill("one:a").state is Status.OK


def test_a_folder_distinguishes_two_skills_of_one_name_in_one_place(make):
    catalog = make.catalog([make.skill("a", key="x/one"), make.skill("a", key="x/two", text="2")])
    assert catalog.skill("skills:a").key == "x/one"
    assert catalog.skill("skills:x/two").key == "x/two"


def test_a_name_that_only_something_broken_bears_finds_that(make):
    catalog = make.catalog([make.skill("a", broken=True)])
    assert catalog.skill("a").state is Status.FAILED


@pytest.mark.parametrize("kind", ["skill", "tool", "group", "plugin"])
def test_an_unknown_name_raises_with_the_near_misses(make, kind):
    catalog = make.catalog([make.skill("alpha")], [make.plugin("alpha", "alpha")])
    taken_name = "basic" if kind == "group" else "alpha"
    with pytest.raises(NotFoundError, match=f"there is no {kind} named") as caught:
        getattr(catalog, kind)(taken_name + "x")
    assert caught.value.near == (taken_name,)
    assert getattr(catalog, kind)(taken_name).name == taken_name


def test_only_accepted_tools_and_skills_are_in_a_part_of_a_catalog(make):
    skills = [make.skill(name, groups=("maps",)) for name in ("a", "b")]
    tools = [make.tool(name, "maps") for name in ("c", "d")]
    catalog = make.catalog(skills, [make.plugin("p", *tools)])
    part = catalog.only(lambda entry: entry.name in {"a", "d"})
    assert ([*part.skills], [*part.tools]) == (["a"], ["d"])
    assert (part.groups["maps"].skills, part.groups["maps"].tools) == (("a",), ("d",))


def test_a_tool_has_the_digest_and_the_runner_of_its_own_plugin(make):
    plugins = [
        make.plugin("p", "a", digest="1", runner="one", compatible_with=("0",)),
        make.plugin("q", "b", digest="2", runner="two"),
    ]
    catalog = make.catalog([], plugins)
    assert (catalog.plugin_digest_of("a"), catalog.plugin_digest_of("b")) == ("1", "2")
    assert (catalog.runner_name_of("a"), catalog.runner_name_of("b")) == ("one", "two")
    assert (catalog.compatible_digests_of("a"), catalog.compatible_digests_of("b")) == (("0",), ())


def test_a_tool_that_is_not_served_has_no_digest_and_no_runner(make):
    catalog = make.catalog([], [make.plugin("p", "a", digest="1", runner="one")])
    assert catalog.plugin_digest_of("other") == catalog.runner_name_of("other") == ""
    assert catalog.compatible_digests_of("other") == ()
    assert replace(catalog, all_plugins=()).runner_name_of("a") == ""


def test_a_skill_is_found_by_its_folder_if_it_can_be_used(make):
    skills = [make.skill("a"), make.skill("a", source="other", order=1, text="2")]
    catalog = make.catalog([*skills, make.skill("b", broken=True)])
    assert {*catalog.skills_by_folder} == {"/skills/a", "/other/a"}
