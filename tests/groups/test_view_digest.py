from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import Satchel
from satchel.catalog.catalog_changes import Change, Event
from satchel.catalog.catalog_entries import SkillEntry, Status
from satchel.formats.skill_manifest import SkillManifest
from satchel.groups.group_activation import Activation, view_of
from satchel.groups.view_digest import changes_between, digest_catalog, digest_view
from satchel.sources.search_roots import Precedence
from satchel.tools import FunctionTool

TOOL = FunctionTool(lambda: None, name="any")


@pytest.fixture(scope="module")
def runnable(catalog):
    """The catalog, as if its plugin had been imported."""
    tools = tuple(replace(entry, tool=TOOL) for entry in catalog.all_tools)
    return replace(catalog, all_tools=tools)


def seen(catalog, *active, own=()):
    activation = Activation().only(active, catalog.groups)
    return digest_view(catalog, view_of(catalog, activation), own)


def reported(before, after):
    return [
        (str(change.event), change.kind, change.name, change.message)
        for change in changes_between(before, after)
    ]


def skill(name="pdf", fields=(), **parts):
    given_parts = {
        "description": "",
        "source": "skills",
        "scope": Precedence.EXPLICIT,
        "path": f"/skills/{name}",
        "unit": f"/skills/{name}",
        "rank": (),
        "manifest": SkillManifest(
            name=name,
            description="",
            license=None,
            compatibility=None,
            allowed_tools=(),
            metadata={},
            fields=dict(fields),
            body="",
        ),
        "key": name,
        "digest": "1",
    }
    return SkillEntry(name=name, **given_parts | parts)


def with_skills(catalog, *skills):
    return replace(catalog, all_skills=skills)


def edited(catalog, kind, name, **parts):
    """The next generation, with one entry changed."""
    entries = tuple(
        replace(entry, **parts) if entry.name == name else entry for entry in getattr(catalog, kind)
    )
    return replace(catalog, generation=catalog.generation + 1, **{kind: entries})


def test_a_sight_names_the_tools_skills_and_groups_of_a_view_but_not_basic(runnable):
    sight = seen(with_skills(runnable, skill()), "web", own=["load_skill"])
    assert set(sight.entries) == {
        ("tool", "load_skill"),
        ("tool", "say"),
        ("tool", "fetch"),
        ("skill", "pdf"),
        ("group", "maps"),
        ("group", "web"),
    }
    assert sight.generation == runnable.generation


def test_what_cannot_be_called_and_what_is_not_for_the_model_is_out_of_sight(catalog):
    hidden = skill(fields={"disable-model-invocation": "true"})
    assert {kind for kind, _ in seen(with_skills(catalog, hidden)).entries} == {"group"}


def test_before_the_first_sight_nothing_changed(runnable):
    assert changes_between(None, seen(runnable)) == ()


def test_equal_sights_have_no_changes_whatever_their_generations(runnable):
    sight = seen(runnable, "web")
    later = replace(runnable, generation=9)
    assert changes_between(sight, sight) == changes_between(sight, seen(later, "web")) == ()


def test_a_group_that_is_switched_brings_its_tools_and_takes_them_along(runnable):
    off, on = seen(runnable), seen(runnable, "maps")
    assert reported(off, on) == [
        ("changed", "group", "maps", "active"),
        ("added", "tool", "geocode", ""),
        ("added", "tool", "route", ""),
    ]
    assert reported(on, off) == [
        ("changed", "group", "maps", "inactive"),
        ("removed", "tool", "geocode", ""),
        ("removed", "tool", "route", ""),
    ]


def test_a_group_that_comes_says_whether_it_is_active(runnable):
    nothing = replace(runnable, all_groups=(), all_tools=())
    assert reported(seen(nothing), seen(runnable, "web"))[:2] == [
        ("added", "group", "maps", ""),
        ("added", "group", "web", "active"),
    ]
    assert reported(seen(runnable, "web"), seen(nothing))[:2] == [
        ("removed", "group", "maps", ""),
        ("removed", "group", "web", ""),
    ]


@pytest.mark.parametrize(
    ("kind", "name", "parts", "word"),
    [
        ("all_tools", "say", {"version": "2"}, "tool"),
        ("all_tools", "say", {"description": "New."}, "tool"),
        ("all_tools", "say", {"source": "other"}, "tool"),
        ("all_skills", "pdf", {"version": "2"}, "skill"),
        ("all_skills", "pdf", {"description": "New."}, "skill"),
        ("all_skills", "pdf", {"path": "/moved"}, "skill"),
        ("all_groups", "maps", {"description": "New."}, "group"),
        # Without a description, its tools are what is said of it.
        ("all_groups", "maps", {"tools": ("x",)}, "group"),
        ("all_groups", "maps", {"notes": "New."}, "group"),
        ("all_groups", "maps", {"missing": ("KEY",)}, "group"),
    ],
)
def test_what_the_model_would_notice_is_a_change(runnable, kind, name, parts, word):
    before = with_skills(runnable, skill())
    after = edited(before, kind, name, **parts)
    (change,) = changes_between(seen(before), seen(after))
    source = parts.get("source", "skills" if word == "skill" else "demo")
    assert change == Change(
        event=Event.CHANGED,
        kind=word,
        name=name,
        source=source,
        generation=after.generation,
        message="",
    )


@pytest.mark.parametrize(
    ("kind", "name", "parts"),
    [
        ("all_tools", "say", {"generation": 7, "path": "/moved"}),
        ("all_skills", "pdf", {"generation": 7}),
        ("all_skills", "pdf", {"digest": "of a broken edit", "state": Status.STALE}),
        ("all_groups", "maps", {"generation": 7, "path": "/moved"}),
    ],
)
def test_what_the_model_would_not_notice_is_none(runnable, kind, name, parts):
    before = with_skills(runnable, skill())
    assert reported(seen(before), seen(edited(before, kind, name, **parts))) == []


def test_the_sessions_own_tools_come_and_go_too(runnable):
    assert reported(seen(runnable), seen(runnable, own=["load_skill"])) == [
        ("added", "tool", "load_skill", "")
    ]
    (change,) = changes_between(seen(runnable, own=["load_skill"]), seen(runnable))
    assert (change.event, change.name, change.source) == (Event.REMOVED, "load_skill", "satchel")


def test_a_tool_of_a_view_hides_that_of_the_session(runnable):
    assert seen(runnable, own=["say"]).entries["tool", "say"].source == "demo"


CHOICES = st.sets(st.sampled_from(["maps", "web"]))


@given(CHOICES, CHOICES)
def test_the_changes_lead_from_one_sight_to_the_other_in_the_order_of_kinds_and_names(
    runnable, first, second
):
    before, after = seen(runnable, *first), seen(runnable, *second)
    changes = changes_between(before, after)
    keys = [(change.kind, change.name) for change in changes]
    assert keys == sorted(set(keys))
    there = set(before.entries)
    for change in changes:
        (there.discard if change.event is Event.REMOVED else there.add)((change.kind, change.name))
    assert there == set(after.entries)


def test_a_skill_behind_one_that_is_hidden_from_the_model_is_no_news(tmp_path, write_skill):
    hidden = "---\nname: s\ndescription: d\ndisable-model-invocation: true\n---\nDo it.\n"
    write_skill(tmp_path / "a", "s", text=hidden)
    app = Satchel(skills=[tmp_path / "a", tmp_path / "b"])
    session = app.session()
    session.step()
    write_skill(tmp_path / "b", "s")
    app.refresh()
    assert session.changes() == ()


def test_a_digest_of_an_earlier_generation_misses_no_change_in_between(runnable):
    skills = with_skills(runnable, skill("a"), skill("b"))
    old = digest_catalog(skills)
    second = replace(
        edited(skills, "all_skills", "a", version="2", generation=skills.generation + 1),
        changed_skills=frozenset({"a"}),
    )
    third = replace(
        edited(second, "all_skills", "b", version="2", generation=skills.generation + 2),
        changed_skills=frozenset({"b"}),
    )
    assert digest_catalog(second, old) == digest_catalog(second)
    assert digest_catalog(third, old) == digest_catalog(third)
    assert digest_catalog(third, digest_catalog(second, old)) == digest_catalog(third)


@pytest.mark.parametrize("state", list(Status))
def test_a_view_may_show_what_is_served_or_shadowed_and_nothing_else(runnable, state):
    digest = digest_catalog(with_skills(runnable, skill("a", state=state)))
    is_shown = state in {Status.OK, Status.STALE, Status.DEGRADED, Status.SHADOWED}
    assert ("a" in digest.by_kind["skill"]) is is_shown


def test_a_digest_forgets_one_of_two_skills_of_a_name(runnable):
    one, other = skill("a"), skill("a", path="/other/a", source="other", state=Status.SHADOWED)
    both = with_skills(runnable, one, other)
    left = replace(both, generation=both.generation + 1, all_skills=(one,))
    assert digest_catalog(left, digest_catalog(both)) == digest_catalog(left)
