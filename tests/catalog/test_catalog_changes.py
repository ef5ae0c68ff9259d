from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_changes import Event, diff, entry_kind, loaded_events
from satchel.catalog.catalog_entries import Status
from satchel.sources.search_roots import Precedence

STATES = st.sampled_from(["absent", "good", "other", "broken", "renamed"])


def short(changes):
    return [(str(change.event), change.kind, change.name) for change in changes]


def test_a_first_generation_is_reported_entry_by_entry(make):
    catalog = make.catalog([make.skill("a")], [make.plugin("p", "t")])
    assert short(loaded_events(catalog)) == [
        ("loaded", "plugin", "p"),
        ("loaded", "group", "basic"),
        ("loaded", "skill", "a"),
        ("loaded", "tool", "t"),
    ]
    assert {change.generation for change in loaded_events(catalog)} == {1}


def test_each_kind_of_entry_has_its_word(make):
    catalog = make.catalog([make.skill("a")], [make.plugin("p", "t")])
    assert [entry_kind(entry) for entry in catalog.entries] == ["plugin", "group", "skill", "tool"]


def test_nothing_leads_from_a_generation_to_itself(make):
    catalog = make.catalog([make.skill("a")])
    assert diff(catalog, catalog) == ()


def test_departures_come_first(make):
    first = make.catalog([make.skill("a")])
    second = make.catalog([make.skill("b")], previous=first)
    assert short(diff(first, second)) == [("removed", "skill", "a"), ("added", "skill", "b")]


def test_a_skill_lives_through_every_event(make):
    moments = [
        ([make.skill("a")], "added", ""),
        ([make.skill("a", text="new")], "changed", "SKILL.md"),
        (
            [make.skill("a", text="x", broken=True)],
            "stale",
            "stale: /skills/a/SKILL.md: is broken",
        ),
        (
            [make.skill("a", text="y", broken=True)],
            "changed",
            "stale: /skills/a/SKILL.md: is broken",
        ),
        ([make.skill("a")], "recovered", ""),
        ([], "removed", ""),
    ]
    catalog = make.catalog()
    for skills, event, message in moments:
        new = make.catalog(skills, previous=catalog)
        (change,) = diff(catalog, new)
        assert (change.event, change.message) == (event, message)
        assert change.generation == new.generation
        catalog = new


def test_an_entry_that_never_was_good_recovers_as_well(make):
    first = make.catalog([make.skill("a", broken=True)])
    second = make.catalog([make.skill("a")], previous=first)
    assert short(diff(first, second)) == [("recovered", "skill", "a")]


def test_the_removal_of_what_was_not_served_says_so(make):
    first = make.catalog([make.skill("a", broken=True)])
    (change,) = diff(first, make.catalog(previous=first))
    assert (change.event, change.message) == ("removed", "while it was not served")


def test_a_stale_entry_that_another_one_shadows_did_not_recover(make):
    far = {"source": "far", "scope": Precedence.USER}
    first = make.catalog([make.skill("a", **far)])
    second = make.catalog([make.skill("a", broken=True, **far)], previous=first)
    near = make.skill("a", source="near", text="near")
    third = make.catalog([near, make.skill("a", broken=True, **far)], previous=second)
    events = {(change.source, str(change.event)) for change in diff(second, third)}
    assert events == {("near", "added"), ("far", "changed")}


def test_a_loser_that_wins_has_changed_and_says_nothing_more(make):
    near, far = make.skill("a", source="near"), make.skill("a", source="far", order=1)
    first = make.catalog([near, far])
    second = make.catalog([far], previous=first)
    changes = [(str(c.event), c.source, c.message) for c in diff(first, second)]
    assert changes == [("removed", "near", ""), ("changed", "far", "")]


def test_of_two_of_one_name_and_source_the_one_that_is_served_is_reported(make):
    broken = make.skill("a", broken=True)
    first = make.catalog([broken, make.skill("a", key="b")])
    second = make.catalog([broken, make.skill("a", key="b", text="new")], previous=first)
    assert short(diff(first, second)) == [("changed", "skill", "a")]


def test_a_change_of_many_files_names_three_and_counts_the_rest(make):
    first = make.catalog([make.skill("a", files=("b", "c", "d", "e"))])
    second = make.catalog([make.skill("a", files=("b", "f"), text="new")], previous=first)
    (change,) = diff(first, second)
    assert change.message == "SKILL.md, b, c and 3 more"


def test_a_change_of_a_plugin_names_both_versions(make):
    first = make.catalog(plugins=[make.plugin("p", version="1")])
    second = make.catalog(plugins=[make.plugin("p", version="2")], previous=first)
    third = make.catalog(plugins=[make.plugin("p", version="2", digest="2")], previous=second)
    assert diff(first, second)[0].message == "version 1 -> 2"
    assert diff(second, third)[0].message == ""


def test_a_change_of_a_tool_says_only_that_it_changed(make):
    first = make.catalog(plugins=[make.plugin("p", make.tool("t", version="1"))])
    second = make.catalog(plugins=[make.plugin("p", make.tool("t", version="2"))], previous=first)
    changes = [(change.event, change.kind, change.message) for change in diff(first, second)]
    assert changes == [(Event.CHANGED, "plugin", ""), (Event.CHANGED, "tool", "")]


def test_a_state_without_a_diagnostic_is_reported_by_its_name(make):
    catalog = make.catalog(plugins=[make.plugin("p", state=Status.DISABLED)])
    assert loaded_events(catalog)[0].message == "disabled"


def test_the_worst_diagnostic_is_the_one_that_is_reported(make):
    first = make.catalog(plugins=[make.plugin("p")])
    broken = make.plugin("p", state=Status.FAILED, digest="2")
    second = make.catalog(plugins=[broken], previous=first)
    plugin = second.all_plugins[0]
    assert plugin.state is Status.STALE
    turned = replace(second, all_plugins=(replace(plugin, diagnostics=plugin.diagnostics[::-1]),))
    assert diff(first, turned)[0].message == "stale: /plugins/p/tools.py:3: is broken"


def test_the_json_shape_is_an_interface(make):
    (change, *_) = loaded_events(make.catalog([make.skill("a")]))
    assert change.as_dict() == {
        "event": "loaded",
        "kind": "group",
        "name": "basic",
        "source": "satchel",
        "generation": 1,
        "message": "",
    }


@given(st.lists(st.tuples(STATES, STATES), min_size=1, max_size=6))
def test_the_events_replayed_over_the_old_entries_give_the_new_ones(make, history):
    catalog = Catalog()
    for moment in history:
        skills, plugins = [], []
        for at, state in enumerate(moment):
            if state == "absent":
                continue
            name = "b" if state == "renamed" else "a"
            broken = state == "broken"
            parts = {"source": f"s{at}", "order": at}
            skills.append(make.skill(name, key="k", text=state, broken=broken, **parts))
            plugins.append(
                make.plugin(
                    name,
                    f"t-{state}",
                    digest=state,
                    state=Status.FAILED if broken else Status.OK,
                    **parts,
                )
            )
        new = make.catalog(skills, plugins, catalog)
        assert replayed(catalog, new) == {dated(entry) for entry in new.entries}
        catalog = new


def dated(entry):
    return entry_kind(entry), entry.name, entry.source, entry.generation


def replayed(old, new):
    """Apply the events alone to what is known of the old generation."""
    generations = {dated(entry)[:3]: entry.generation for entry in old.entries}
    for change in diff(old, new):
        key = (change.kind, change.name, change.source)
        if change.event is Event.REMOVED:
            del generations[key]
        else:
            assert (key in generations) is (change.event is not Event.ADDED)
            generations[key] = change.generation
    return {(*key, generation) for key, generation in generations.items()}


@pytest.mark.parametrize("event", list(Event))
def test_an_event_prints_as_its_word(event):
    assert f"{event}" == event.value


@pytest.mark.parametrize("is_first_broken", [True, False])
def test_of_two_skills_of_one_name_in_a_source_the_served_one_is_reported(make, is_first_broken):
    skills = [
        make.skill("a", key="a", order=0, broken=is_first_broken),
        make.skill("a", key="x/a", order=1, broken=not is_first_broken),
    ]
    (change,) = diff(make.catalog(), make.catalog(skills, previous=make.catalog()))[-1:]
    assert (change.event, change.name, change.message) == (Event.ADDED, "a", "")
