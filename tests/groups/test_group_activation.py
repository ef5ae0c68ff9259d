from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import SkillEntry, Status
from satchel.errors import ConflictError
from satchel.formats.skill_manifest import SkillManifest
from satchel.groups.group_activation import Activation, stable_order, view_of
from satchel.names import BASIC_GROUP
from satchel.sources.search_roots import Precedence
from satchel.tools import FunctionTool

HIDES = "disable-model-invocation"
NAMES = st.sampled_from(["maps", "web", "absent"])
STEPS = st.lists(st.tuples(st.booleans(), NAMES), max_size=8)


def shown(catalog, activation):
    view = view_of(catalog, activation)
    return [group.name for group in view.groups], [tool.name for tool in view.tools]


def stepped(steps):
    activation = Activation()
    for on, name in steps:
        activation = activation.activate(name) if on else activation.deactivate(name)
    return activation


def test_a_new_conversation_sees_basic_and_what_begins_active(catalog):
    assert shown(catalog, Activation()) == (["basic", "web"], ["fetch", "say"])


def test_activating_a_group_shows_its_tools_in_the_order_of_names(catalog):
    groups, tools = shown(catalog, Activation().activate("maps"))
    assert groups == ["basic", "maps", "web"]
    assert tools == ["fetch", "geocode", "route", "say"]


def test_a_group_that_begins_active_can_be_deactivated_and_on_again(catalog):
    off = Activation().deactivate("web")
    assert shown(catalog, off) == (["basic"], ["say"])
    assert shown(catalog, off.activate("web")) == shown(catalog, Activation())


def test_a_group_that_was_activated_can_be_deactivated(catalog):
    activation = Activation().activate("maps").deactivate("maps")
    assert shown(catalog, activation) == shown(catalog, Activation())


def test_basic_cannot_be_deactivated():
    with pytest.raises(ConflictError, match="'basic' is always active"):
        Activation().deactivate(BASIC_GROUP)


def test_basic_is_active_whatever_a_saved_state_says(catalog):
    assert "basic" in shown(catalog, Activation(off=frozenset({BASIC_GROUP})))[0]


def test_a_choice_outlives_the_group_it_is_about(catalog):
    """
    A plugin that goes and comes back finds its group as it was.
    """
    activation = Activation().activate("maps")
    assert shown(Catalog(), activation) == ([], [])
    assert "maps" in shown(catalog, activation)[0]


def test_an_activation_never_changes():
    before = Activation()
    before.activate("maps")
    before.deactivate("web")
    assert before == Activation()


def test_only_some_groups_are_on_and_all_other_known_ones_off(catalog):
    only = Activation().activate("gone").only(["maps", "new"], catalog.groups)
    assert (only.on, only.off) == (frozenset({"maps", "new"}), frozenset({"web"}))
    assert shown(catalog, only)[0] == ["basic", "maps"]
    assert shown(catalog, only.only([], catalog.groups))[0] == ["basic"]


def test_a_group_that_lacks_something_is_never_active(catalog):
    groups = tuple(replace(group, missing=("KEY",)) for group in catalog.all_groups)
    lacking = replace(catalog, all_groups=groups)
    activation = Activation().activate("maps")
    assert shown(lacking, activation) == (["basic"], ["say"])
    assert shown(catalog, activation)[0] == ["basic", "maps", "web"], "it is remembered"


def test_a_tool_of_several_groups_is_seen_while_one_of_them_is_active(catalog):
    both = replace(catalog.tools["route"], groups=("maps", "web"))
    shared = replace(catalog, all_tools=(both,))
    for activation, seen in (
        (Activation(), [both]),
        (Activation().activate("maps"), [both]),
        (Activation().deactivate("web").activate("maps"), [both]),
        (Activation().deactivate("web"), []),
    ):
        assert list(view_of(shared, activation).tools) == seen


@given(STEPS)
def test_a_skill_is_seen_while_one_of_its_groups_is_active_or_if_it_has_none(catalog, steps):
    skills = tuple(
        replace(_skill(), name=name, groups=groups)
        for name, groups in (("a", ()), ("b", ("maps",)), ("c", ("maps", "web")), ("d", ("gone",)))
    )
    view = view_of(replace(catalog, all_skills=skills), stepped(steps))
    active = {group.name for group in view.groups}
    assert view.skills == tuple(
        skill for skill in skills if not skill.groups or active.intersection(skill.groups)
    )


def test_a_skill_that_is_off_does_not_shadow_one_that_is_on(catalog):
    winner = replace(_skill(), source="near", groups=("maps",))
    loser = replace(_skill(), source="far", state=Status.SHADOWED)
    both = replace(catalog, all_skills=(winner, loser))
    assert view_of(both, Activation()).skills == (loser,)
    assert view_of(both, Activation().activate("maps")).skills == (winner,)


def test_of_what_is_active_the_served_one_is_seen_in_whatever_order(catalog):
    say = catalog.tools["say"]
    served = replace(say, source="good")
    first, second = (replace(say, source=f"s{at}", state=Status.SHADOWED) for at in range(2))
    for tools in ((first, served, second), (served, first), (second, first, served)):
        assert view_of(replace(catalog, all_tools=tools), Activation()).tools == (served,)
    losers = replace(catalog, all_tools=(first, second))
    assert view_of(losers, Activation()).tools == (first,), "the nearest"


@pytest.mark.parametrize("state", [Status.FAILED, Status.DISABLED, Status.HELD])
def test_what_is_neither_served_nor_shadowed_is_not_seen(catalog, state):
    say = replace(catalog.tools["say"], state=state)
    assert view_of(replace(catalog, all_tools=(say,)), Activation()).tools == ()


def test_a_view_knows_its_tools_by_name_and_the_skills_that_are_for_the_model(catalog):
    def manifest(**fields):
        return SkillManifest(
            name="x",
            description="",
            license=None,
            compatibility=None,
            allowed_tools=(),
            metadata={},
            fields=fields,
            body="",
        )

    skills = (
        replace(_skill(), name="open", manifest=manifest()),
        replace(_skill(), name="said", manifest=manifest(**{HIDES: "false"})),
        replace(_skill(), name="hidden", manifest=manifest(**{HIDES: "true"})),
        _skill(),
    )
    view = view_of(replace(catalog, all_skills=skills), Activation())
    assert dict(view.by_name) == {"fetch": catalog.tools["fetch"], "say": catalog.tools["say"]}
    assert [skill.name for skill in view.skills] == ["open", "said", "hidden", "pdf"]
    assert [skill.name for skill in view.model_skills] == ["open", "said"]


def test_skills_of_no_group_are_visible_whatever_is_active(catalog):
    with_skill = replace(catalog, all_skills=(_skill(),))
    for activation in (Activation(), Activation().deactivate("web")):
        assert [skill.name for skill in view_of(with_skill, activation).skills] == ["pdf"]


def _skill():
    return SkillEntry(
        name="pdf",
        description="",
        source="skills",
        scope=Precedence.EXPLICIT,
        path="/skills/pdf",
        unit="/skills/pdf",
        rank=(),
        manifest=None,
        key="pdf",
        digest="",
    )


@given(STEPS, NAMES)
def test_the_last_word_about_a_group_counts(catalog, steps, name):
    assert ("maps" in shown(catalog, stepped(steps).activate("maps"))[0]) is True
    last = stepped([*steps, (False, name)])
    assert name not in shown(catalog, last)[0]


@given(STEPS)
def test_a_tool_is_seen_exactly_when_one_of_its_groups_is(catalog, steps):
    groups, tools = shown(catalog, stepped(steps))
    assert tools == [
        name for name, tool in catalog.tools.items() if not set(groups).isdisjoint(tool.groups)
    ]
    assert "say" in tools


def test_what_is_shadowed_by_a_tool_of_a_group_that_is_off_is_seen_itself(catalog):
    say = catalog.tools["say"]
    winner = replace(say, groups=("maps",), rank=(-1,), source="nearer")
    loser = replace(say, state=Status.SHADOWED)
    both = replace(catalog, all_tools=(winner, loser))
    assert view_of(both, Activation()).tools == (loser,)
    assert view_of(both, Activation().activate("maps")).tools == (winner,)


@given(st.lists(st.sampled_from(["fetch", "geocode", "route", "gone"]), unique=True))
def test_tools_seen_before_keep_their_order_and_new_ones_follow(catalog, seen):
    tools = tuple(catalog.tools)
    names = stable_order(tools, tuple(seen))
    present = tuple(name for name in seen if name in catalog.tools)
    assert names == present + tuple(name for name in tools if name not in seen)


def test_an_order_that_stayed_as_it_was_is_the_very_same():
    seen = ("b", "a")
    assert stable_order(("b", "a"), seen) is seen


def test_whether_a_group_is_active_is_a_boolean(catalog):
    missing = replace(catalog.groups["web"], missing=("key",))
    assert Activation().is_active(missing) is False


def test_a_view_is_compared_and_shown_without_its_index(catalog):
    view = view_of(catalog, Activation())
    assert hash(view) == hash(view_of(catalog, Activation()))
    assert "by_name" not in repr(view)


# ---- tools that are called before their groups are active ----------------------------------


@pytest.fixture
def callable_catalog(catalog):
    """The catalog with a function behind every tool, registered in the opposite order of names."""
    tools = [
        replace(entry, tool=FunctionTool(lambda: "", name=entry.name), rank=(-at,))
        for at, entry in enumerate(catalog.all_tools)
    ]
    return replace(catalog, all_tools=tuple(tools))


def names(entries):
    return [entry.name for entry in entries]


def test_tools_of_inactive_groups_are_deferred_only_if_the_session_defers(callable_catalog):
    now = view_of(callable_catalog, Activation())
    assert (names(now.tools), names(now.deferred_tools)) == (["fetch", "say"], [])
    later = view_of(callable_catalog, Activation(defers=True))
    assert later.deferred == {"geocode", "route"}
    assert names(later.tools) == ["fetch", "say", "geocode", "route"]


def test_what_is_sent_and_what_is_deferred_are_in_the_order_of_registration(callable_catalog):
    view = view_of(callable_catalog, Activation(defers=True))
    assert names(view.sent_tools) == ["say", "fetch"]
    assert names(view.deferred_tools) == ["route", "geocode"]


def test_a_tool_that_is_active_alone_is_not_deferred(callable_catalog):
    alone = Activation(defers=True, tools=frozenset({"route"}))
    view = view_of(callable_catalog, alone)
    assert (names(view.sent_tools), names(view.deferred_tools)) == (
        ["say", "route", "fetch"],
        ["geocode"],
    )


def test_the_tools_of_a_group_that_lacks_something_are_neither_deferred_nor_active(
    callable_catalog,
):
    groups = [
        replace(group, missing=("KEY",) if group.name == "maps" else ())
        for group in callable_catalog.all_groups
    ]
    lacking = replace(callable_catalog, all_groups=tuple(groups))
    activation = Activation(defers=True, tools=frozenset({"route"}))
    view = view_of(lacking, activation)
    assert (names(view.tools), names(view.deferred_tools)) == (["fetch", "say"], [])


def test_a_tool_that_cannot_be_called_is_neither_sent_nor_deferred(callable_catalog):
    tools = [
        replace(entry, tool=None) if entry.name in {"route", "say"} else entry
        for entry in callable_catalog.all_tools
    ]
    partly = replace(callable_catalog, all_tools=tuple(tools))
    view = view_of(partly, Activation(defers=True))
    assert names(view.sent_tools) == ["fetch"]
    assert view.deferred == {"geocode"}
