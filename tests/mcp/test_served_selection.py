"""What a server shows, by groups and by names."""

import pytest

from satchel import Satchel, tool
from satchel.mcp.served_selection import ServedSelection, with_those_of_skills


@tool
def echo(text: str) -> str:
    """Say it again."""
    return text


@pytest.fixture
def app():
    app = Satchel()
    app.create_group("maps", "Geocoding and routes.")
    app.create_group("always", "On by default.", active=True)
    app.create_group("vault", "Secrets.", requires=["VAULT_KEY"])
    app.register_tool(echo, group="maps")
    return app


def test_by_default_what_a_new_session_has_active_is_shown(app):
    assert ServedSelection().active_in(app.catalog) == {"basic", "always"}


def test_groups_are_added_to_those_that_are_active_anyway(app):
    assert ServedSelection(groups=frozenset({"maps"})).active_in(app.catalog) == {
        "basic",
        "always",
        "maps",
    }


def test_every_group_leaves_out_what_is_unavailable(app):
    assert ServedSelection(every_group=True).active_in(app.catalog) == {"basic", "always", "maps"}


def test_a_fixed_choice_shows_its_groups_and_no_others(app):
    assert ServedSelection().only(["maps"]).active_in(app.catalog) == {"basic", "maps"}


def test_a_choice_within_a_fixed_one_shows_no_more_than_that():
    assert ServedSelection().only(["maps"]).only(["maps", "web"]).groups == {"maps"}


def test_groups_that_do_not_exist_are_shown_once_they_do(app):
    choice = ServedSelection(groups=frozenset({"later"}))
    assert "later" not in choice.active_in(app.catalog)
    app.create_group("later")
    assert "later" in choice.active_in(app.catalog)


@pytest.mark.parametrize(
    ("enable", "disable", "served"),
    [
        ((), (), ["geocode", "route"]),
        (("geo*",), (), ["geocode"]),
        ((), ("geo*",), ["route"]),
        (("*",), ("route",), ["geocode"]),
        (("Route",), (), []),
        (("tool:geo*",), (), ["geocode"]),
        ((), ("tool:route",), ["geocode"]),
        (("skill:geo*",), (), []),
        (("mcp:map",), (), ["geocode", "route"]),
        (("tool:mcp:map:r*",), (), ["route"]),
        ((), ("mcp:map:route",), ["geocode"]),
    ],
)
def test_tools_are_chosen_by_patterns_of_all_their_names(enable, disable, served):
    choice = ServedSelection(enable=enable, disable=disable)
    names = ("geocode", "route")
    assert [n for n in names if choice.enables(n, f"mcp:map:{n}", "mcp:map")] == served


def test_what_visible_skills_ask_for_is_added_whole_chains_of_it(app, tmp_path, write_skill):
    head = "---\nname: {}\ndescription: D.\ngroups: {}\n---\nBody\n"
    write_skill(tmp_path, "first", text=head.format("first", "maps"))
    write_skill(tmp_path / "inner", "second", text=head.format("second", "deep"))
    app.create_group("deep")
    app.register_skill(tmp_path / "first")
    app.register_skill(tmp_path / "inner", group="maps")
    active = ServedSelection().active_in(app.catalog)
    assert with_those_of_skills(app.catalog, active) == {*active, "maps", "deep"}


def test_a_skill_may_ask_for_a_group_by_one_of_its_tools(app, tmp_path, write_skill):
    text = "---\nname: first\ndescription: D.\ngroups: [echo, nothing]\n---\nBody\n"
    app.register_skill(write_skill(tmp_path, "first", text=text))
    assert "maps" in with_those_of_skills(app.catalog, frozenset({"basic"}))
