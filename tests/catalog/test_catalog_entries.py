from dataclasses import replace
from types import SimpleNamespace

import pytest

from satchel.catalog.catalog_entries import Group, Status
from satchel.sources.skill_files import IN_FOLDER


@pytest.mark.parametrize("state", list(Status))
def test_only_what_is_ok_or_stale_reaches_the_model(make, state):
    skill = replace(make.catalog([make.skill("a")]).skills["a"], state=state)
    assert skill.is_served is (state in {Status.OK, Status.STALE, Status.DEGRADED})


def test_an_address_is_the_source_and_the_name(make):
    assert make.catalog([make.skill("a", source="here")]).skills["a"].address == "here:a"


def test_two_versions_of_an_entry_have_one_identity(make):
    first = make.catalog([make.skill("a")])
    second = make.catalog([make.skill("a", text="new")], previous=first)
    assert first.skills["a"].identity == second.skills["a"].identity
    assert first.skills["a"] != second.skills["a"]


def test_entries_of_two_kinds_sources_or_names_are_never_taken_for_each_other(make):
    catalog = make.catalog(
        [make.skill("x"), make.skill("x", source="b", order=1), make.skill("y")],
        [make.plugin("x", "x", "y")],
    )
    identities = [entry.identity for entry in catalog.entries]
    assert len(set(identities)) == len(identities) == 7


def test_a_place_in_the_order_is_no_part_of_what_an_entry_is(make):
    first = make.catalog([make.skill("a", order=0)], [make.plugin("p", "t", order=0)])
    moved = [make.skill("a", order=5)], [make.plugin("p", "t", order=5)]
    assert make.catalog(*moved, previous=first) is first


@pytest.mark.parametrize("state", list(Status))
def test_only_what_is_broken_now_falls_back_to_its_last_good_version(state):
    assert state.falls_back is (state in {Status.DEGRADED, Status.SETTLING, Status.FAILED})


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_revoked_plugin_brings_its_groups_only_if_it_keeps_them(make, is_kept):
    parts = {"groups": (Group(name="maps"),), "state": Status.REVOKED}
    kept = {"keeps_groups": True} if is_kept else {}
    catalog = make.catalog([], [make.plugin("p", **parts, **kept)])
    assert ("maps" in catalog.groups) is is_kept


def test_a_connected_server_is_a_plugin_that_says_so(make):
    entries = make.catalog([], [make.plugin("p"), make.plugin("mcp:s", is_server=True)]).plugins
    assert [entries[name].is_server for name in ("p", "mcp:s")] == [False, True]


def test_a_skill_without_a_finding_is_in_its_folder(make):
    skill = make.catalog([make.skill("a", source="here")]).skills["a"]
    by_hand = replace(skill, finding=None)
    assert by_hand.access is IN_FOLDER
    assert by_hand.folder == "/here/a"
    server = replace(IN_FOLDER, has_folder=False)
    remote = SimpleNamespace(access=server)
    assert replace(skill, finding=remote).folder == ""
