from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.catalog.catalog_entries import SkillEntry, Status
from satchel.catalog.name_conflicts import (
    resolve_plugins,
    resolve_skills,
    resolve_tools,
    unshadowed,
)
from satchel.diagnostics import Severity, Where, make_diagnostic
from satchel.sources.search_roots import Precedence


def skill(name="a", *, source="s", key="", rank=(0,), digest="x", **parts):
    path = f"/{source}/{key or name}"
    return SkillEntry(
        name=name,
        description="",
        source=source,
        scope=parts.get("scope", Precedence.EXPLICIT),
        path=path,
        unit=path,
        rank=rank,
        state=parts.get("state", Status.OK),
        manifest=None,
        key=key or name,
        digest=digest,
    )


ENTRIES = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(list(Precedence)),
        st.sampled_from(list(Status)),
        st.sampled_from("xy"),
    ),
    max_size=8,
).map(
    lambda items: [
        skill(name, scope=scope, rank=(at,), state=state, digest=digest, source=f"s{at}")
        for at, (name, scope, state, digest) in enumerate(items)
    ]
)


def winners(entries):
    return {entry.name: entry.source for entry in entries if entry.is_served}


def test_the_nearer_scope_wins():
    entries = [
        skill(scope=Precedence.USER, source="far"),
        skill(scope=Precedence.PROJECT, source="near"),
    ]
    assert winners(resolve_skills(entries)) == {"a": "near"}


@pytest.mark.parametrize(
    "forged", ["\u0441\u043e\u0440\u0443", "c\u1ecdpy", "copy\u0323", "cop\u0177", "copy\u0301"]
)
def test_a_name_of_another_alphabet_yields_to_the_one_that_it_reads_like(forged):
    entries = [
        skill(forged, source="forged", scope=Precedence.EXPLICIT),
        skill("copy", source="real", scope=Precedence.USER),
        skill("\u0434\u0430\u043d\u043d\u044b\u0435", source="honest"),
        skill("\u0441\u0430\u0445\u0430\u0440", source="honest"),
    ]
    resolved = resolve_skills(entries)
    served = winners(resolved)
    assert sorted(served.values()) == ["honest", "honest", "real"]
    (forged,) = (entry for entry in resolved if entry.source == "forged")
    assert "\\u" in forged.diagnostics[-1].message
    assert winners(resolve_skills(entries[:1])) == {entries[0].name: "forged"}
    # What is not served hides no name.
    off = [entries[0], replace(entries[1], state=Status.DISABLED)]
    assert winners(resolve_skills(off)) == {entries[0].name: "forged"}


def test_in_one_scope_the_first_in_rank_wins():
    entries = [skill(rank=(1,), source="second"), skill(rank=(0,), source="first")]
    assert winners(resolve_skills(entries)) == {"a": "first"}


def test_the_loser_names_the_winner_and_stays_reachable():
    winner, loser = resolve_skills(
        [skill(source="one"), skill(source="two", rank=(1,), digest="other")]
    )
    assert winner.diagnostics == ()
    (problem,) = loser.diagnostics
    assert (loser.state, problem.code) == (Status.SHADOWED, "skill-shadowed")
    assert "'one'" in problem.message
    assert "two:a" in problem.fix


def test_a_loser_in_the_same_place_is_reachable_by_its_folder():
    _, loser = resolve_skills([skill(key="one"), skill(key="two", rank=(1,), digest="other")])
    assert loser.diagnostics[0].fix.endswith("or ask for 's:two'")


def in_folder(is_hidden, **parts):
    return replace(skill(**parts), finding=SimpleNamespace(is_hidden=is_hidden))


def test_of_two_versions_in_one_source_the_one_in_a_hidden_folder_is_a_mirror():
    visible = in_folder(False, key="one")
    hidden = in_folder(True, key="two", rank=(1,), digest="other")
    served, mirror = resolve_skills([visible, hidden])
    (problem,) = mirror.diagnostics
    assert (served.state, mirror.state) == (Status.OK, Status.SHADOWED)
    assert problem.code == "skill-mirrored"
    assert visible.path in problem.message


def test_a_broken_copy_in_a_hidden_folder_does_not_matter_while_the_visible_one_is_served():
    broken = in_folder(True, key="two", rank=(1,), state=Status.FAILED)
    broken = replace(broken, manifest=None)
    visible = in_folder(False, key="one")
    served, mirror = resolve_skills([visible, broken])
    assert (served.state, mirror.state) == (Status.OK, Status.SHADOWED)
    (problem,) = mirror.diagnostics
    assert (problem.code, problem.severity) == ("skill-mirrored", Severity.INFO)
    mirror.finding.problems = ("why",)
    assert unshadowed(mirror).state is Status.FAILED
    assert unshadowed(mirror).diagnostics == ("why",)
    for other in ([], [in_folder(False, key="one", source="t")]):
        assert resolve_skills([*other, broken])[-1].state is Status.FAILED


def test_only_a_broken_copy_in_a_hidden_folder_is_a_mirror():
    visible = in_folder(False, key="one")
    broken = replace(in_folder(False, key="two", state=Status.FAILED), manifest=None)
    assert resolve_skills([visible, broken])[-1].state is Status.FAILED
    hidden = [
        in_folder(True, key="one"),
        replace(in_folder(True, key="two", state=Status.FAILED), manifest=None),
    ]
    assert resolve_skills(hidden)[-1].state is Status.FAILED


def test_the_message_of_a_broken_copy_says_why_it_cannot_be_read():
    reason = make_diagnostic("skill-unreadable", Where("x"), "the first reason", "")
    other = make_diagnostic("skill-unreadable", Where("x"), "another one", "")
    broken = in_folder(True, key="two", state=Status.FAILED)
    broken = replace(broken, manifest=None, diagnostics=(reason, other))
    _, mirror = resolve_skills([in_folder(False, key="one"), broken])
    assert mirror.diagnostics[0].message.endswith("the first reason")


@pytest.mark.parametrize(
    ("codes", "state"),
    [((), Status.OK), (("last-good",), Status.STALE), (("provider-failed",), Status.STALE)],
)
def test_an_entry_without_its_conflict_is_as_it_was(codes, state):
    problems = tuple(make_diagnostic(code, Where("x"), "why", "") for code in codes)
    manifest = SimpleNamespace(is_for_model=True)
    entries = [
        skill(source="first"),
        replace(
            skill(source="second", rank=(1,), digest="other", state=state),
            manifest=manifest,
            diagnostics=problems,
        ),
    ]
    loser = next(entry for entry in resolve_skills(entries) if entry.source == "second")
    assert loser.state is Status.SHADOWED
    assert unshadowed(loser) == entries[1]


@pytest.mark.parametrize(
    ("winner", "loser"),
    [
        (in_folder(False), in_folder(True, source="t", rank=(1,), digest="other")),
        (in_folder(True), in_folder(True, key="two", rank=(1,), digest="other")),
        (in_folder(False), in_folder(False, key="two", rank=(1,), digest="other")),
        (in_folder(True), in_folder(False, key="two", rank=(1,), digest="other")),
        (in_folder(False), skill(key="two", rank=(1,), digest="other")),
    ],
    ids=["another source", "both hidden", "both visible", "the first is hidden", "no folder"],
)
def test_any_other_version_is_shadowed(winner, loser):
    _, shadowed = resolve_skills([winner, loser])
    assert [problem.code for problem in shadowed.diagnostics] == ["skill-shadowed"]


def test_a_loser_without_an_address_of_its_own_can_only_be_renamed(make):
    plugins = [make.plugin("p", "t"), make.plugin("p", "t", source="other", order=1)]
    loser = make.catalog(plugins=[*plugins, make.plugin("q", state=Status.DISABLED)]).all_plugins[1]
    assert loser.state is Status.SHADOWED
    twin = resolve_plugins([replace(loser, state=Status.OK), replace(loser, state=Status.OK)])[1]
    assert twin.diagnostics[-1].fix == "rename one of the two in its manifest"


def test_identical_bytes_count_once_without_a_warning():
    _, loser = resolve_skills([skill(source="one"), skill(source="two", rank=(1,))])
    assert (loser.state, loser.diagnostics[0].code) == (Status.SHADOWED, "skill-duplicate")


def test_a_stale_winner_is_no_duplicate_of_what_it_shadows():
    """
    Its digest names the broken bytes, not those that are served.
    """
    _, loser = resolve_skills([skill(state=Status.STALE), skill(source="two", rank=(1,))])
    assert loser.diagnostics[0].code == "skill-shadowed"


def test_shadowed_plugins_and_tools_are_distinguished_by_their_codes(make):
    catalog = make.catalog(
        plugins=[
            make.plugin("p", "t"),
            make.plugin("p", "u", source="other", order=1),
            make.plugin("q", "t"),
        ]
    )
    codes = {entry.name: [item.code for item in entry.diagnostics] for entry in catalog.entries}
    assert (codes["p"], codes["t"]) == (["plugin-shadowed"], ["tool-shadowed"])
    assert resolve_plugins(()) == resolve_tools(()) == []


@given(ENTRIES)
def test_each_name_is_served_exactly_once_if_anything_good_bears_it(entries):
    settled = resolve_skills(entries)
    served = [entry.name for entry in settled if entry.is_served]
    assert sorted(served) == sorted({entry.name for entry in entries if entry.is_served})


@given(ENTRIES)
def test_what_is_not_good_is_left_as_it_is(entries):
    settled = {entry.source: entry for entry in resolve_skills(entries)}
    for entry in entries:
        if not entry.is_served:
            assert settled[entry.source] == entry


@given(ENTRIES, st.randoms())
def test_the_winner_does_not_depend_on_the_order_of_the_input(entries, random):
    shuffled = random.sample(entries, len(entries))
    assert resolve_skills(shuffled) == resolve_skills(entries)


@given(ENTRIES)
def test_no_good_entry_is_shadowed_by_a_farther_one(entries):
    settled = resolve_skills(entries)
    served = {entry.name: entry for entry in settled if entry.is_served}
    was_stale = {entry.source: entry.state is Status.STALE for entry in entries}
    for entry in settled:
        if entry.state is Status.SHADOWED and entry.diagnostics:
            winner = served[entry.name]
            assert (was_stale[winner.source], winner.scope, winner.rank) < (
                was_stale[entry.source],
                entry.scope,
                entry.rank,
            )
