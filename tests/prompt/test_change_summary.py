import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.catalog.catalog_changes import Change, Event
from satchel.prompt.change_summary import render_changes
from satchel.text import has_hidden


def change(event, kind, name, message="", source="here"):
    return Change(
        event=Event(event), kind=kind, name=name, source=source, generation=2, message=message
    )


def test_without_changes_there_is_nothing_to_say():
    assert render_changes([]) == ""


def test_what_came_changed_and_went_is_reported_by_kind():
    assert render_changes(
        [
            change("removed", "skill", "d"),
            change("added", "tool", "a"),
            change("added", "tool", "b"),
            change("changed", "tool", "c"),
            change("changed", "group", "maps", "active"),
            change("changed", "group", "web", "inactive"),
            change("added", "group", "new"),
        ]
    ) == (
        "Since the last step: new tools: a, b; changed tools: c; gone skills: d; "
        "new tool groups: new; tool groups active now: maps; tool groups no longer active: web."
    )


def test_of_many_names_ten_are_named():
    ten = [change("added", "tool", f"t{at}") for at in range(10)]
    names = ", ".join(item.name for item in ten)
    assert render_changes(ten) == f"Since the last step: new tools: {names}."
    for count in (1, 5):
        others = [change("added", "tool", f"u{at}") for at in range(count)]
        summary = f"Since the last step: new tools: {names} and {count} more."
        assert render_changes([*ten, *others]) == summary


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (["added", "changed"], "new tools: a"),
        (["changed", "changed"], "changed tools: a"),
        (["removed", "added"], "changed tools: a"),
        (["changed", "removed"], "gone tools: a"),
        (["added", "removed"], None),
        (["stale"], None),
        (["loaded"], None),
    ],
)
def test_of_several_changes_the_outcome_is_reported(events, message):
    summary = render_changes([change(event, "tool", "a") for event in events])
    assert summary == (f"Since the last step: {message}." if message else "")


def test_a_skill_that_comes_from_elsewhere_now_has_changed():
    gone, come = (change("removed", "skill", "pdf"), change("added", "skill", "pdf", source="b"))
    assert render_changes([gone, come]) == "Since the last step: changed skills: pdf."


def test_a_group_that_was_switched_twice_is_as_it_was_left():
    both = [change("changed", "group", "maps", word) for word in ("active", "inactive")]
    assert render_changes(both) == "Since the last step: tool groups no longer active: maps."


def test_a_group_that_changed_otherwise_was_not_switched():
    assert render_changes([change("changed", "group", "maps")]) == (
        "Since the last step: changed tool groups: maps."
    )


def test_plugins_are_not_for_the_model():
    assert render_changes([change("added", "plugin", "acme")]) == ""


@given(st.lists(st.builds(change, st.sampled_from(list(Event)), st.just("tool"), st.text())))
def test_it_is_one_line_without_anything_hidden(changes):
    text = render_changes(changes)
    assert not has_hidden(text)
    assert "\n" not in text
