import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_builder import build
from satchel.catalog.catalog_entries import HOST, Group, Status
from satchel.catalog.unit_entries import build_plugins
from satchel.diagnostics import Where, make_diagnostic
from satchel.names import BASIC_GROUP
from satchel.sources.plugin_formats import TOOLKIT
from satchel.sources.search_roots import Precedence

NAMES = st.sampled_from(["alpha", "beta", "gamma"])
SCOPES = st.sampled_from(list(Precedence))


def codes(entry):
    return [item.code for item in entry.diagnostics]


# ---- the whole ----------------------------------------------------------------------------


def test_of_nothing_comes_a_catalog_with_only_the_basic_group(make):
    catalog = make.catalog()
    assert (catalog.generation, list(catalog.groups)) == (1, [BASIC_GROUP])
    assert catalog.groups[BASIC_GROUP].active
    assert (catalog.all_skills, catalog.all_tools, catalog.all_plugins) == ((), (), ())


def test_unchanged_input_returns_the_previous_catalog_itself(make):
    skills = [make.skill("a"), make.skill("b", broken=True)]
    plugins = [make.plugin("p", "t"), make.plugin("q", state=Status.FAILED)]
    odd = [make_diagnostic("source-missing", Where("/x"), "does not exist")]
    first = make.catalog(skills, plugins, diagnostics=odd)
    assert make.catalog(skills, plugins, first, diagnostics=odd) is first


def test_each_change_counts_the_generation_up_by_one(make):
    first = make.catalog([make.skill("a")])
    second = make.catalog([make.skill("a", text="new")], previous=first)
    assert (first.generation, second.generation) == (1, 2)


def test_an_entry_keeps_the_generation_in_which_it_became_what_it_is(make):
    first = make.catalog([make.skill("a"), make.skill("b")])
    second = make.catalog([make.skill("a"), make.skill("b", text="new")], previous=first)
    assert second.skills["a"] == first.skills["a"]
    assert second.skills["b"].generation == 2


def test_what_is_wrong_with_the_sources_is_listed_once(make):
    odd = make_diagnostic("source-missing", Where("/x"), "does not exist")
    assert make.catalog(diagnostics=[odd, odd]).source_diagnostics == (odd,)


def test_what_did_not_change_is_the_very_same_entry(make):
    kept, near, far = make.skill("k"), make.skill("a"), make.skill("a", source="s", order=1)
    first = make.catalog([kept, near, far])
    second = make.catalog([kept, near, far, make.skill("new")], previous=first)
    assert second.skills["k"] is first.skills["k"]
    third = make.catalog([kept, far], previous=second)
    assert (third.skills["a"].source, third.skills["a"].diagnostics) == ("s", ())


def test_a_new_diagnostic_alone_makes_a_new_generation(make):
    first = make.catalog([make.skill("a")])
    odd = [make_diagnostic("source-missing", Where("/x"), "does not exist")]
    second = make.catalog([make.skill("a")], previous=first, diagnostics=odd)
    assert second.generation == 2
    assert second.skills["a"].generation == 1


@given(st.lists(st.tuples(NAMES, SCOPES, st.booleans(), st.sampled_from("xy")), max_size=6))
def test_the_catalog_does_not_depend_on_the_order_of_the_findings(make, described):
    skills = [
        make.skill(name, scope=scope, source=scope.name, broken=bad, text=text, key=f"k{at}")
        for at, (name, scope, bad, text) in enumerate(described)
    ]
    plugins = [
        make.plugin(
            name,
            "t",
            scope=scope,
            state=Status.FAILED if bad else Status.OK,
            unit=f"u{at}",
            order=at,
        )
        for at, (name, scope, bad, _) in enumerate(described)
    ]
    expected = make.catalog(skills, plugins)
    assert make.catalog(skills[::-1], plugins[::-1]) == expected
    assert make.catalog(reversed(skills), iter(plugins), expected) is expected


# ---- skills -------------------------------------------------------------------------------


def test_a_good_skill_is_served_as_its_manifest_says(make):
    skill = make.catalog([make.skill("pdf", text="Reads PDFs.", key="area/pdf")]).skills["pdf"]
    assert (skill.state, skill.description) == (Status.OK, "Reads PDFs.")
    assert (skill.source, skill.path) == ("skills", "/skills/area/pdf")


def test_a_skill_that_never_was_good_is_listed_under_its_folder_name(make):
    catalog = make.catalog([make.skill("pdf", broken=True, key="area/folder")])
    (skill,) = catalog.all_skills
    assert (skill.name, skill.state, codes(skill)) == (
        "folder",
        Status.FAILED,
        ["skill-no-frontmatter"],
    )
    assert not catalog.skills


def test_a_broken_edit_keeps_the_last_good_skill_and_says_so(make):
    first = make.catalog([make.skill("a", text="good")])
    second = make.catalog([make.skill("a", text="bad", broken=True)], previous=first)
    skill = second.skills["a"]
    assert (skill.state, skill.description) == (Status.STALE, "good")
    assert codes(skill) == ["skill-no-frontmatter", "last-good"]
    assert skill.diagnostics[-1].message == (
        "the newest version of this skill is broken; the last good one is served"
    )
    assert skill.digest != first.skills["a"].digest


def test_a_stale_skill_stays_stale_through_another_broken_edit_and_then_recovers(make):
    first = make.catalog([make.skill("a", text="good")])
    second = make.catalog([make.skill("a", text="bad", broken=True)], previous=first)
    third = make.catalog([make.skill("a", text="worse", broken=True)], previous=second)
    assert (third.skills["a"].state, third.skills["a"].description) == (Status.STALE, "good")
    mended = make.catalog([make.skill("a", text="mended")], previous=third).skills["a"]
    assert (mended.state, mended.description, mended.diagnostics) == (Status.OK, "mended", ())


def test_a_deleted_skill_goes_even_if_it_was_stale(make):
    first = make.catalog([make.skill("a")])
    second = make.catalog([make.skill("a", broken=True)], previous=first)
    assert make.catalog([], previous=second).all_skills == ()


def test_a_settling_skill_stays_as_it_was(make):
    first = make.catalog([make.skill("a", text="good")])
    torn = make.skill("a", text="torn", broken=True, unsettled=True)
    assert make.catalog([torn], previous=first) is first


def test_a_settling_skill_that_never_was_is_not_listed_yet(make):
    torn = make.skill("a", broken=True, unsettled=True)
    assert make.catalog([torn]).all_skills == ()


def test_a_settling_skill_wins_its_name_when_the_one_that_shadowed_it_goes(make):
    near = make.skill("a", source="near")
    far = make.skill("a", source="far", scope=Precedence.USER, text="far")
    first = make.catalog([near, far])
    torn = replace(far, finding=replace(far.finding, manifest=None), is_settling=True)
    second = make.catalog([torn], previous=first)
    assert (second.skills["a"].source, second.skills["a"].diagnostics) == ("far", ())


def test_a_stale_skill_that_was_shadowed_is_stale_again_when_it_wins(make):
    near = make.skill("a", source="near")
    far = {"source": "far", "scope": Precedence.USER}
    first = make.catalog([make.skill("a", text="good", **far)])
    second = make.catalog([near, make.skill("a", broken=True, **far)], previous=first)
    torn = make.skill("a", text="torn", broken=True, unsettled=True, **far)
    third = make.catalog([torn], previous=second)
    assert (third.skills["a"].state, codes(third.skills["a"])) == (
        Status.STALE,
        ["skill-no-frontmatter", "last-good"],
    )


@pytest.mark.parametrize("unsettled", [False, True])
def test_a_broken_skill_keeps_up_with_the_order_of_the_places(make, unsettled):
    """
    Its place may have moved behind another while its last good version is served.
    """
    first = make.catalog([make.skill("a", source="one", text="one", order=0)])
    broken = make.skill("a", source="one", broken=True, order=1, unsettled=unsettled)
    other = make.skill("a", source="two", text="two", order=0)
    assert make.catalog([broken, other], previous=first).skills["a"].source == "two"


# ---- plugins and tools --------------------------------------------------------------------


def test_a_plugin_is_listed_with_its_tools(make):
    catalog = make.catalog(plugins=[make.plugin("p", "b", "a", version="2", description="d")])
    plugin = catalog.plugins["p"]
    assert (plugin.version, plugin.description, plugin.state) == ("2", "d", Status.OK)
    assert [(tool.name, tool.source, tool.group) for tool in catalog.all_tools] == [
        ("a", "p", BASIC_GROUP),
        ("b", "p", BASIC_GROUP),
    ]


def test_a_plugin_that_never_was_good_brings_nothing(make):
    catalog = make.catalog(plugins=[make.plugin("p", "t", state=Status.FAILED)])
    assert catalog.all_plugins[0].state is Status.FAILED
    assert (dict(catalog.tools), dict(catalog.plugins)) == ({}, {})


def test_a_disabled_plugin_brings_nothing(make):
    catalog = make.catalog(plugins=[make.plugin("p", "t", state=Status.DISABLED)])
    assert catalog.all_plugins[0].state is Status.DISABLED
    assert not catalog.tools


def test_a_broken_plugin_serves_its_last_good_version(make):
    first = make.catalog(plugins=[make.plugin("p", "t", version="1")])
    broken = make.plugin("p", version="2", state=Status.FAILED, digest="2")
    second = make.catalog(plugins=[broken], previous=first)
    plugin = second.plugins["p"]
    assert (plugin.state, plugin.version, plugin.digest) == (Status.STALE, "1", "2")
    assert codes(plugin) == ["plugin-syntax", "last-good"]
    assert second.tools["t"].state is Status.STALE
    third = make.catalog(plugins=[replace(broken, digest="3")], previous=second)
    assert third.tools["t"].state is Status.STALE


def test_a_diagnostic_that_names_the_last_good_version_is_the_only_one_to_do_so(make):
    first = make.catalog(plugins=[make.plugin("p", "t")])
    failure = make_diagnostic("provider-failed", Where("/p"), "no answer; the last good one stays")
    broken = make.plugin("p", state=Status.FAILED, diagnostics=(failure,))
    second = make.catalog(plugins=[broken], previous=first)
    assert second.plugins["p"].state is Status.STALE
    assert second.plugins["p"].diagnostics == (failure,)


@pytest.mark.parametrize("state", [Status.REVOKED, Status.DISABLED])
def test_what_must_not_be_used_has_no_last_good_version(make, state):
    first = make.catalog(plugins=[make.plugin("p", "t")])
    second = make.catalog(plugins=[make.plugin("p", "t", state=state)], previous=first)
    assert [entry.state for entry in second.all_plugins] == [state]
    assert dict(second.plugins) == dict(second.tools) == {}


def test_a_plugin_whose_tools_wait_for_a_value_serves_the_rest(make):
    first = make.catalog(plugins=[make.plugin("p", "t")])
    waiting = make.plugin("p", state=Status.HELD, groups=(Group(name="maps"),), digest="2")
    second = make.catalog(plugins=[waiting], previous=first)
    assert (second.plugins["p"].state, list(second.tools)) == (Status.DEGRADED, [])
    assert second.groups["maps"].state is Status.OK


def test_a_degraded_plugin_serves_its_good_tools_unless_there_is_a_last_good_version(make):
    flawed = make.plugin("p", "t", digest="2", state=Status.DEGRADED)
    cold = make.catalog(plugins=[flawed])
    assert (cold.plugins["p"].state, list(cold.tools)) == (Status.DEGRADED, ["t"])
    assert cold.tools["t"].state is Status.OK
    first = make.catalog(plugins=[make.plugin("p", "t", "u")])
    hot = make.catalog(plugins=[flawed], previous=first)
    assert (hot.plugins["p"].state, list(hot.tools)) == (Status.STALE, ["t", "u"])
    mended = make.catalog(plugins=[make.plugin("p", "t")], previous=hot)
    assert (mended.plugins["p"].state, list(mended.tools)) == (Status.OK, ["t"])


def test_a_degraded_version_is_no_last_good_one(make):
    first = make.catalog(plugins=[make.plugin("p", "t", state=Status.DEGRADED)])
    second = make.catalog(plugins=[make.plugin("p", state=Status.FAILED)], previous=first)
    assert second.all_plugins[0].state is Status.FAILED


def test_a_plugin_that_was_disabled_has_no_last_good_version(make):
    first = make.catalog(plugins=[make.plugin("p", "t", state=Status.DISABLED)])
    second = make.catalog(plugins=[make.plugin("p", "t", state=Status.FAILED)], previous=first)
    assert second.all_plugins[0].state is Status.FAILED


def test_a_settling_plugin_stays_as_it_was_or_is_not_listed_yet(make):
    torn = make.plugin("p", state=Status.SETTLING, digest="torn")
    assert make.catalog(plugins=[torn]).all_plugins == ()
    first = make.catalog(plugins=[make.plugin("p", "t")])
    assert make.catalog(plugins=[torn], previous=first) is first


def test_what_the_host_adds_is_served_but_is_no_plugin_of_the_list(make):
    host = make.plugin(HOST, "t", source=HOST, unit=HOST, rank=(-1, HOST))
    catalog = make.catalog(plugins=[host])
    assert (list(catalog.tools), catalog.all_plugins) == (["t"], ())


def test_the_plugin_that_is_shadowed_brings_no_tools(make):
    near = make.plugin("p", "near")
    far = make.plugin("p", "far", source="dist", scope=Precedence.PLUGIN)
    assert list(make.catalog(plugins=[far, near]).tools) == ["near"]


def test_of_two_tools_of_one_name_the_nearer_is_served_and_the_other_is_listed(make):
    catalog = make.catalog(plugins=[make.plugin("b", "t"), make.plugin("a", "t")])
    assert catalog.tools["t"].source == "a"
    assert [(tool.source, tool.state) for tool in catalog.all_tools] == [
        ("a", Status.OK),
        ("b", Status.SHADOWED),
    ]


# ---- groups -------------------------------------------------------------------------------


def test_a_tool_belongs_to_the_group_that_it_names_itself(make):
    plugin = make.plugin(
        "p", make.tool("t", "maps"), groups=(Group(name="p", tools=("t",)), Group(name="maps"))
    )
    assert make.catalog(plugins=[plugin]).tools["t"].group == "maps"


def test_a_tool_belongs_to_the_group_that_lists_it(make):
    plugin = make.plugin("p", "t", groups=(Group(name="p"), Group(name="maps", tools=("t",))))
    assert make.catalog(plugins=[plugin]).tools["t"].group == "maps"


def test_a_tool_belongs_to_the_groups_that_it_names_and_then_to_those_that_list_it(make):
    groups = (
        Group(name="first", tools=("t",)),
        Group(name="second", tools=("t",)),
        Group(name="third"),
    )
    tool = make.tool("t", "third", "second")
    catalog = make.catalog(plugins=[make.plugin("p", tool, groups=groups)])
    assert catalog.tools["t"].groups == ("third", "second", "first")
    assert catalog.tools["t"].group == "third"
    for name in ("first", "second", "third"):
        assert catalog.groups[name].tools == ("t",)


def test_a_group_lists_only_tools_of_its_owner(make):
    lister = make.plugin("p", groups=(Group(name="maps", tools=("t",)),))
    owner = make.plugin("q", "t", order=1, groups=(Group(name="q"),))
    assert make.catalog(plugins=[lister, owner]).tools["t"].groups == ("q",)


def test_a_tool_that_no_group_claims_belongs_to_the_first_group_of_its_plugin(make):
    plugin = make.plugin("p", "t", groups=(Group(name="first"), Group(name="second")))
    assert make.catalog(plugins=[plugin]).tools["t"].group == "first"


def test_a_tool_that_the_host_adds_without_a_word_is_basic(make):
    host = make.plugin(HOST, "t", source=HOST, groups=(Group(name="maps"),))
    assert make.catalog(plugins=[host]).tools["t"].group == BASIC_GROUP


def test_a_group_says_what_its_owner_says_and_lists_its_served_tools(make):
    groups = (Group(name="maps", description="Maps.", notes="Geocode first.", active=True),)
    catalog = make.catalog(plugins=[make.plugin("p", "b", "a", groups=groups)])
    group = catalog.groups["maps"]
    assert (group.description, group.notes, group.active) == ("Maps.", "Geocode first.", True)
    assert (group.tools, group.source) == (("a", "b"), "p")


@pytest.mark.parametrize(
    ("state", "notes"),
    [(Status.OK, "Of its owner.\n\nOf another."), (Status.DISABLED, "Of its owner.")],
)
def test_a_group_has_the_notes_of_its_owner_and_of_other_plugins_that_are_served(
    make, state, notes
):
    owner = make.plugin("p", groups=(Group(name="maps", description="", notes="Of its owner."),))
    other = make.plugin("q", "t", notes={"maps": "Of another."}, state=state)
    assert make.catalog(plugins=[owner, other]).groups["maps"].notes == notes


def test_of_two_descriptions_of_one_group_the_nearer_counts_and_both_share_it(make):
    near = make.plugin("a", "x", groups=(Group(name="maps", description="near"),))
    far = make.plugin("b", "y", groups=(Group(name="maps", description="far"),))
    group = make.catalog(plugins=[far, near]).groups["maps"]
    assert (group.description, group.tools) == ("near", ("x", "y"))
    assert codes(group) == ["group-declared-twice"]


def test_no_one_describes_the_basic_group_again(make):
    plugin = make.plugin(
        "p", groups=(Group(name=BASIC_GROUP, description="mine now", active=False),)
    )
    group = make.catalog(plugins=[plugin]).groups[BASIC_GROUP]
    assert (group.active, group.source, codes(group)) == (
        True,
        "satchel",
        ["group-declared-twice"],
    )


def test_a_group_that_is_only_named_exists_with_a_diagnostic(make):
    plugin = make.plugin("p", make.tool("t", "maps"), make.tool("u", "maps"))
    group = make.catalog(plugins=[plugin]).groups["maps"]
    assert (group.active, group.tools) == (False, ("t", "u"))
    assert codes(group) == ["plugin-group-unknown"]


def test_of_several_groups_that_a_tool_names_the_undescribed_ones_say_so(make):
    plugin = make.plugin("p", make.tool("t", "known", "odd"), groups=(Group(name="known"),))
    catalog = make.catalog(plugins=[plugin])
    results = {name: codes(group) for name, group in catalog.groups.items()}
    assert results == {BASIC_GROUP: [], "known": [], "odd": ["plugin-group-unknown"]}
    assert "tool 't' is in group 'odd'" in catalog.groups["odd"].diagnostics[0].message


def test_what_a_group_lacks_is_reported_by_its_entry(make):
    groups = (Group(name="maps", requires=("KEY", "URL"), missing=("URL",)), Group(name="web"))
    catalog = make.catalog(plugins=[make.plugin("p", groups=groups)])
    assert (catalog.groups["maps"].missing, catalog.groups["maps"].is_available) == (
        ("URL",),
        False,
    )
    assert catalog.groups["web"].is_available


def test_a_shadowed_tool_names_no_group(make):
    near = make.plugin("a", "t")
    far = make.plugin("b", make.tool("t", "maps"))
    catalog = make.catalog(plugins=[near, far])
    assert [group.name for group in catalog.all_groups] == [BASIC_GROUP]


# ---- skills in groups ---------------------------------------------------------------------


def with_host(*groups):
    return {"source": HOST, "unit": HOST, "rank": (-1, HOST), "groups": groups}


def test_a_skill_that_is_not_claimed_is_in_no_group(make):
    catalog = make.catalog([make.skill("a")], [make.plugin("p", groups=(Group(name="p"),))])
    assert catalog.skills["a"].groups == ()
    assert catalog.groups["p"].skills == ()


def test_a_skill_is_in_the_groups_of_its_owner_that_list_it(make):
    groups = (
        Group(name="maps", skills=("a",)),
        Group(name="web"),
        Group(name="geo", skills=("a", "b")),
    )
    skills = [make.skill("a", source="p"), make.skill("b", source="p")]
    catalog = make.catalog(skills, [make.plugin("p", groups=groups)])
    assert catalog.skills["a"].groups == ("maps", "geo")
    assert catalog.groups["geo"].skills == ("a", "b")
    assert (catalog.groups["maps"].skills, catalog.groups["web"].skills) == (("a",), ())


def test_a_plugin_claims_no_skill_of_another_and_is_informed(make):
    lister = make.plugin("p", groups=(Group(name="maps", skills=("a",)),))
    catalog = make.catalog([make.skill("a", source="q")], [lister])
    assert catalog.skills["a"].groups == ()
    (problem,) = catalog.groups["maps"].diagnostics
    assert (problem.code, str(problem.where)) == ("plugin-group-unknown", "/plugins/p")
    assert "lists the skill 'a', which does not exist" in problem.message


def test_the_host_claims_skills_wherever_they_come_from(make):
    host = make.plugin(HOST, **with_host(Group(name="mine", skills=("a", "gone"))))
    plugin = make.plugin("p", groups=(Group(name="p", skills=("a",)),))
    skills = [make.skill("a", source="p"), make.skill("a", source="far", order=1, text="far")]
    catalog = make.catalog(skills, [plugin, host])
    assert catalog.skills["a"].groups == ("p", "mine")
    assert catalog.skill("far:a").groups == ("mine",)
    assert catalog.groups["mine"].skills == ("a",), "once, and only what is served"
    assert [item.message for item in catalog.groups["mine"].diagnostics] == [
        "group 'mine' lists the skill 'gone', which does not exist"
    ]


def test_a_skill_is_in_the_groups_of_its_place_first(make):
    host = make.plugin(HOST, **with_host(Group(name="near"), Group(name="far", skills=("a",))))
    catalog = make.catalog([make.skill("a", groups=("near",))], [host])
    assert catalog.skills["a"].groups == ("near", "far")


def test_a_group_that_only_a_skill_names_exists_with_a_diagnostic(make):
    catalog = make.catalog([make.skill("a", groups=("odd",))])
    (problem,) = catalog.groups["odd"].diagnostics
    assert (problem.code, catalog.groups["odd"].skills) == ("plugin-group-unknown", ("a",))
    assert "skill 'a' is in group 'odd'" in problem.message
    assert "where the skill is defined" in problem.fix


def test_a_skill_that_is_not_served_names_no_group_and_is_in_none(make):
    broken = make.skill("a", groups=("odd",), broken=True)
    catalog = make.catalog([broken])
    assert catalog.all_skills[0].groups == ("odd",)
    assert [group.name for group in catalog.all_groups] == [BASIC_GROUP]


def test_a_plugin_that_brings_nothing_is_reported_once(make):
    reported = make_diagnostic("plugin-unused", Where("/plugins/q"), "has nothing of its format")
    plugins = [
        make.plugin("p", missing_skills=()),
        make.plugin("q", missing_skills=(), diagnostics=(reported,)),
        make.plugin("r", "t", missing_skills=()),
    ]
    entries = {entry.name: entry for entry in make.catalog(plugins=plugins).all_plugins}
    assert {name: codes(entry) for name, entry in entries.items()} == {
        "p": ["plugin-unused"],
        "q": ["plugin-unused"],
        "r": [],
    }
    assert entries["q"].diagnostics == (reported,)


def test_a_plugin_that_brings_nothing_claims_no_skill(make):
    off = make.plugin("p", groups=(Group(name="maps", skills=("a",)),), state=Status.DISABLED)
    catalog = make.catalog([make.skill("a", source="p")], [off])
    assert (catalog.skills["a"].groups, list(catalog.groups)) == ((), [BASIC_GROUP])


def test_a_skill_follows_its_group_in_and_out_and_is_otherwise_the_very_same(make):
    skill = make.skill("a", source="p")
    inside = make.plugin("p", groups=(Group(name="p", skills=("a",)),), digest="2")
    first = make.catalog([skill], [make.plugin("p", groups=(Group(name="p"),))])
    second = make.catalog([skill], [inside], first)
    assert (second.skills["a"].groups, second.skills["a"].generation) == (("p",), 2)
    third = make.catalog([skill, make.skill("b")], [inside], second)
    assert third.skills["a"] is second.skills["a"]
    fourth = make.catalog([skill], [make.plugin("p", groups=(Group(name="p"),))], third)
    assert fourth.skills["a"].groups == ()


# ---- histories ----------------------------------------------------------------------------

STATES = st.sampled_from(["absent", "good", "other", "broken"])


@given(st.lists(st.tuples(STATES, STATES, STATES), min_size=1, max_size=8))
def test_a_live_catalog_equals_a_fresh_one_but_for_last_good_versions(make, history):
    """
    Hot equals cold: where the newest versions are good, no history shows.
    """
    live = Catalog()
    for moment in history:
        skills = [
            make.skill(
                "a",
                source=f"p{at}",
                order=at,
                text=state,
                broken=state == "broken",
                groups=("named",) if state == "other" else (),
            )
            for at, state in enumerate(moment)
            if state != "absent"
        ]
        plugins = [
            make.plugin(
                f"p{at}",
                make.tool("t", *(["named"] if state == "good" else []), version=state),
                digest=state,
                state=Status.FAILED if state == "broken" else Status.OK,
                groups=(Group(name="shared", skills=("a",) if state == "good" else ()),),
            )
            for at, state in enumerate(moment)
            if state != "absent"
        ]
        live = build(skills, build_plugins(plugins, live), live)
        fresh = make.catalog(skills, plugins)
        if "broken" not in moment:
            assert [undated(entry) for entry in live.entries] == [
                undated(entry) for entry in fresh.entries
            ]
        for skill in live.all_skills:
            assert (skill.digest == fresh_digest(fresh, skill)) or skill.state is Status.SHADOWED


def undated(entry):
    return replace(entry, generation=0)


def fresh_digest(fresh, skill):
    return next(other.digest for other in fresh.all_skills if other.unit == skill.unit)


@given(st.permutations(range(4)))
def test_the_served_skill_is_the_nearest_good_one_in_any_order(make, order):
    scopes = (Precedence.BUNDLED, Precedence.USER, Precedence.PROJECT, Precedence.EXPLICIT)
    skills = [
        make.skill("a", source=scope.name, scope=scope, broken=scope is Precedence.EXPLICIT)
        for scope in scopes
    ]
    catalog = make.catalog([skills[at] for at in order])
    assert catalog.skills["a"].scope is Precedence.PROJECT


def test_all_orders_of_five_findings_give_one_catalog(make):
    skills = [
        make.skill("a", source="x", order=0),
        make.skill("a", source="y", order=1),
        make.skill("b", source="x", order=0, broken=True),
        make.skill("b", source="y", order=1),
        make.skill("c", source="y", order=1),
    ]
    catalogs = [make.catalog(order) for order in itertools.permutations(skills)]
    assert all(catalog == catalogs[0] for catalog in catalogs)


def test_a_stale_skill_that_was_shadowed_is_stale_again_when_it_settles_alone(make):
    far = make.skill("b", source="s", order=1)
    near = make.skill("b", source="r")
    good = make.catalog([far])
    broken = make.skill("b", source="s", order=1, broken=True)
    shadowed = make.catalog([near, broken], previous=good)
    assert [entry.state for entry in shadowed.all_skills] == [Status.OK, Status.SHADOWED]
    unsettled = make.skill("b", source="s", order=1, broken=True, unsettled=True)
    alone = make.catalog([unsettled], previous=shadowed)
    (entry,) = alone.all_skills
    assert entry.state is Status.STALE
    assert codes(entry) == ["skill-no-frontmatter", "last-good"]


def test_an_open_plugin_keeps_its_tools_and_takes_new_metadata_when_its_extension_breaks(make):
    policy = replace(TOOLKIT, has_extension=True)
    old = make.plugin("p", "t", policy=policy, version="1", description="Old.", skills=("/old",))
    first = make.catalog(plugins=[old])
    new = {"policy": policy, "version": "2", "description": "New.", "skills": ("/new",)}
    degraded = make.plugin("p", state=Status.DEGRADED, digest="2", **new)
    plugin = make.catalog(plugins=[degraded], previous=first).plugins["p"]
    assert (plugin.state, plugin.version, plugin.description) == (Status.STALE, "2", "New.")
    assert (plugin.contribution.skills, [tool.name for tool in plugin.contribution.tools]) == (
        ("/new",),
        ["t"],
    )
    failed = make.plugin("p", state=Status.FAILED, digest="3", **new)
    plugin = make.catalog(plugins=[failed], previous=first).plugins["p"]
    assert (plugin.version, plugin.contribution.skills) == ("1", ("/old",))
