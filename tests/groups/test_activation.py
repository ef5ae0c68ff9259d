from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.catalog import Catalog, SkillEntry, State
from satchel.errors import ConflictError
from satchel.groups import Activation, in_order_of_appearance, view_of
from satchel.names import BASIC_GROUP
from satchel.sources import Scope

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


def test_a_group_that_begins_active_can_be_switched_off_and_on_again(catalog):
    off = Activation().deactivate("web")
    assert shown(catalog, off) == (["basic"], ["say"])
    assert shown(catalog, off.activate("web")) == shown(catalog, Activation())


def test_a_group_that_was_activated_can_be_switched_off(catalog):
    activation = Activation().activate("maps").deactivate("maps")
    assert shown(catalog, activation) == shown(catalog, Activation())


def test_basic_cannot_be_switched_off():
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


def test_skills_are_visible_whatever_is_active(catalog):
    with_skill = replace(catalog, all_skills=(_skill(),))
    for activation in (Activation(), Activation().deactivate("web")):
        assert [skill.name for skill in view_of(with_skill, activation).skills] == ["pdf"]


def _skill():
    return SkillEntry(
        name="pdf",
        description="",
        source="skills",
        scope=Scope.EXPLICIT,
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
def test_a_tool_is_seen_exactly_when_its_group_is(catalog, steps):
    groups, tools = shown(catalog, stepped(steps))
    assert tools == [name for name, tool in catalog.tools.items() if tool.group in groups]
    assert "say" in tools


def test_what_is_shadowed_by_a_tool_of_a_group_that_is_off_is_seen_itself(catalog):
    say = catalog.tools["say"]
    winner = replace(say, group="maps", rank=(-1,), source="nearer")
    loser = replace(say, state=State.SHADOWED)
    both = replace(catalog, all_tools=(winner, loser))
    assert view_of(both, Activation()).tools == (loser,)
    assert view_of(both, Activation().activate("maps")).tools == (winner,)


@given(st.lists(st.sampled_from(["fetch", "geocode", "route", "gone"]), unique=True))
def test_tools_seen_before_keep_their_order_and_new_ones_follow(catalog, seen):
    tools = tuple(catalog.tools.values())
    names = [tool.name for tool in in_order_of_appearance(tools, tuple(seen))]
    known = [name for name in seen if name in catalog.tools]
    assert names == known + [tool.name for tool in tools if tool.name not in seen]
