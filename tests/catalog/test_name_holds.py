import pytest

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_builder import build
from satchel.catalog.catalog_entries import Status
from satchel.catalog.name_holds import NameRules
from satchel.catalog.unit_entries import build_plugins


def held(plugins, **rules):
    """The sources whose tools are held."""
    entries = build_plugins(plugins, Catalog())
    catalog = build([], entries, Catalog(), names=NameRules(**rules))
    return [entry.source for entry in catalog.all_tools if entry.state is Status.HELD]


def owned_by(*owners):
    return lambda _kind, _name: owners


def test_a_newcomer_does_not_take_the_name_of_an_owner_that_comes_later(make):
    plugins = [make.plugin("new", "a", order=0), make.plugin("old", "a", order=1)]
    assert held(plugins, owners=owned_by("/plugins/old")) == ["new"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"state": Status.FAILED}, ["new"]),
        ({"state": Status.REVOKED}, ["new"]),
        ({"state": Status.REVOKED, "is_untrusted": True}, []),
        ({"state": Status.DISABLED}, []),
        ({"state": Status.FAILED, "is_untrusted": True}, ["new"]),
    ],
)
def test_an_owner_keeps_its_name_while_it_may_return(make, parts, expected):
    plugins = [make.plugin("new", "a"), make.plugin("old", **parts)]
    assert held(plugins, owners=owned_by("/plugins/old")) == expected


def test_only_a_tool_that_an_unfinished_plugin_declares_and_comes_first_for_is_awaited(make):
    late = make.plugin("late", "a", order=9)
    first = make.plugin("first", "a", order=0, state=Status.SETTLING)
    assert held([late], unfinished=(first,)) == ["late"]
    other = make.plugin("first", "b", order=0, state=Status.SETTLING)
    assert held([late], unfinished=(other,)) == []
    last = make.plugin("last", "a", order=10, state=Status.SETTLING)
    assert held([late], unfinished=(last,)) == []


def test_the_last_good_version_of_an_unfinished_plugin_does_not_wait_for_itself(make):
    served = make.plugin("same", "a", order=5)
    unfinished = make.plugin("same", "a", order=0, state=Status.SETTLING)
    assert held([served], unfinished=(unfinished,)) == []


def test_an_owner_that_is_gone_yields_to_the_next_one(make):
    plugins = [make.plugin("new", "a", order=0), make.plugin("old", "a", order=1)]
    assert held(plugins, owners=owned_by("/plugins/gone", "/plugins/old")) == ["new"]
    assert held(plugins, owners=owned_by("/plugins/gone")) == []


def test_owners_are_asked_only_about_names_that_are_contested(make):
    asked = []

    def owners(_kind, name):
        asked.append(name)
        return ()

    held([make.plugin("p", "a"), make.plugin("q", "b", "c"), make.plugin("r", "c")], owners=owners)
    assert asked == ["c"]


def test_what_the_user_chose_is_never_held(make):
    plugins = [make.plugin("new", "a", order=0), make.plugin("old", "a", order=1)]
    rules = {"owners": owned_by("/plugins/old"), "is_chosen": lambda kind, address: True}
    assert held(plugins, **rules) == []


def test_a_held_tool_with_the_name_of_a_session_tool_says_so_once(make):
    entries = build_plugins([make.plugin("p", "load_skill")], Catalog())
    (tool,) = build([], entries, Catalog()).all_tools
    assert tool.state is Status.HELD
    assert [item.code for item in tool.diagnostics] == ["tool-name-held"]
