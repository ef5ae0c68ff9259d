from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_builder import build
from satchel.catalog.catalog_entries import Group, Status, ToolContribution
from satchel.catalog.unit_entries import build_plugins
from satchel.diagnostics import Where, make_diagnostic


def switched_off(*words):
    """Switch off what answers to one of these words, perhaps of one kind: `tool:a`."""

    def off(kind, name, others):
        for text in (name, *others):
            for word in (text, f"{kind}:{text}"):
                if word in words:
                    return make_diagnostic(
                        "disabled", Where("/satchel.toml"), f"off by {word}", "mend"
                    )
        return None

    return off


def tool(name, *groups):
    return ToolContribution(
        name=name, description="", path=f"/{name}.py", version="1", groups=groups
    )


def built(plugins=(), skills=(), *, off, previous=None):
    previous = previous or Catalog()
    return build(skills, build_plugins(plugins, previous), previous, (), off)


def states(entries):
    return {entry.address: str(entry.state) for entry in entries}


def test_what_is_off_says_why_and_nothing_else(make):
    catalog = built(skills=[make.skill("a", broken=True), make.skill("b")], off=switched_off("a"))
    entry = catalog.skill("a")
    assert entry.state is Status.DISABLED
    assert [item.message for item in entry.diagnostics] == ["off by a"]
    assert list(catalog.skills) == ["b"]


@pytest.mark.parametrize("word", ["near:t", "near", "tool:near"])
def test_what_is_off_does_not_compete(make, word):
    plugins = [
        make.plugin("near", tool("t", "g")),
        make.plugin("far", tool("t", "g"), order=1),
    ]
    catalog = built(plugins, off=switched_off(word))
    assert states(catalog.all_tools) == {"near:t": "disabled", "far:t": "ok"}
    assert catalog.tools["t"].diagnostics == ()


@pytest.mark.parametrize("groups", [(Group(name="g"),), ()], ids=["described", "only-named"])
def test_a_group_takes_along_what_is_in_it_alone(make, groups):
    plugin = make.plugin("p", tool("t", "g"), tool("u", "g", "h"), groups=groups)
    catalog = built([plugin], off=switched_off("group:g"))
    assert states(catalog.all_tools) == {"p:t": "disabled", "p:u": "ok"}
    (problem,) = catalog.tool("t").diagnostics
    assert problem.message == "tool 't' is disabled with the group 'g'"
    assert (str(problem.where), problem.fix) == ("/satchel.toml", "mend")
    assert "g" not in catalog.groups
    assert catalog.groups["h"].tools == ("u",)


def test_a_skill_goes_with_its_groups_too(make):
    group = Group(name="g", skills=("s",))
    skills = [make.skill("s", source="p")]
    catalog = built([make.plugin("p", groups=(group,))], skills, off=switched_off("group:g"))
    assert catalog.skill("s").state is Status.DISABLED


def test_a_group_is_off_when_all_its_descriptions_are(make):
    plugins = [
        make.plugin("p", tool("t", "g"), groups=(Group(name="g", description="One."),)),
        make.plugin("q", order=1, groups=(Group(name="g", description="Two."),)),
    ]
    half = built(plugins, off=switched_off("p:g"))
    assert (half.groups["g"].description, half.groups["g"].diagnostics) == ("Two.", ())
    assert list(half.tools) == ["t"]
    whole = built(plugins, off=switched_off("group:g"))
    assert states(whole.all_groups) == {
        "satchel:basic": "ok",
        "p:g": "disabled",
        "q:g": "disabled",
    }
    assert list(whole.tools) == []


def test_the_same_choice_again_makes_no_new_generation(make):
    plugins, skills = [make.plugin("p", tool("t", "g"))], [make.skill("a")]
    off = switched_off("a", "group:g")
    first = built(plugins, skills, off=off)
    assert built(plugins, skills, off=off, previous=first) is first
    second = built(plugins, skills, off=switched_off(), previous=first)
    assert (second.generation, second.skills["a"].generation) == (2, 2)


STEPS = st.lists(
    st.tuples(st.booleans(), st.sampled_from([(), ("name",), ("folder",), ("skills",)])), min_size=1
)


@given(STEPS)
def test_however_it_came_about_a_catalog_is_as_a_cold_one_but_for_what_is_stale(make, steps):
    """The skill `name` lies in `folder`, which is what it is called while it is broken."""
    live, has_good = Catalog(), False
    for broken, words in steps:
        skills, off = [make.skill("name", key="folder", broken=broken)], switched_off(*words)
        live = built(skills=skills, off=off, previous=live)
        cold = built(skills=skills, off=off)
        # Also its address by the folder is no way to switch off what has a name.
        is_off = bool({"name", "skills"}.intersection(words))
        has_good = not is_off and (has_good or not broken)
        (entry,), (fresh,) = live.all_skills, cold.all_skills
        assert (entry.state is Status.STALE) is (has_good and broken)
        if entry.state is not Status.STALE:
            assert replace(entry, generation=1) == fresh
