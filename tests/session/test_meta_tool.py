"""`reset_equipped_tools`: the model chooses its groups."""

import json

import pytest
from conversation import (
    META,
    answer,
    choose,
    echo,
    fetch,
    locked,
    maps_and_web,
    names,
    parameters,
    refused,
    route,
    say,
    schema,
)

from satchel import ConflictError, NotFoundError, Satchel
from satchel.tools.dialects import DIALECTS

NOTHING_ACTIVE = "No tool group is active; only the tools that are always available are left."


# ---- what it shows ---------------------------------------------------------------------------


def test_each_group_is_a_boolean_with_the_description_of_the_group():
    shown = parameters(maps_and_web().session(), META)
    assert shown["properties"] == {
        "maps": {"type": "boolean", "description": "Geocoding and routes."},
        "web": {"type": "boolean", "description": "Reading pages."},
    }
    assert shown["additionalProperties"] is False
    assert "required" not in shown


def test_a_group_without_a_description_is_described_by_what_is_in_it(tmp_path, write_skill):
    app = Satchel()
    for name in ("tools", "skills", "nothing"):
        app.create_group(name)
    app.register_tool(echo, group="tools")
    app.register_skill(write_skill(tmp_path, "pdf"), group="skills")
    messages = {
        name: item["description"]
        for name, item in parameters(app.session(), META)["properties"].items()
    }
    assert messages == {
        "tools": "Tools: echo.",
        "skills": "Skills: pdf.",
        "nothing": "Tool group nothing.",
    }


def test_it_is_not_there_where_there_is_nothing_to_choose_or_the_host_wants_none():
    app = Satchel()
    app.register_tool(echo)
    assert names(app.session()) == ["echo"]
    assert META in names(maps_and_web().session())
    session = maps_and_web().session(meta_tool=False)
    assert names(session) == ["echo"]
    assert answer(session, META, maps=True).error_code == "tool_not_found"
    assert session.active_groups == ("basic",)


def test_its_schema_follows_the_groups_of_the_moment(tmp_path, write_plugin):
    app = maps_and_web(plugins=[tmp_path])
    session = app.session()

    def shown():
        return list(parameters(session, META)["properties"])

    assert shown() == ["maps", "web"]
    app.create_group("extra")
    assert shown() == ["extra", "maps", "web"]
    app.remove_group("maps")
    assert shown() == ["extra", "web"]
    source = "from satchel import tool\n@tool\ndef hi() -> str:\n    return 'hi'\n"
    write_plugin(tmp_path, "late", "description: Comes late.\n", tools=source)
    app.refresh()
    assert shown() == ["extra", "late", "web"]
    assert choose(session, late=True).startswith("Active tool groups: late.")
    assert say(session, "hi") == "hi"


def test_there_is_no_switch_for_basic():
    session = maps_and_web().session()
    assert "basic" not in parameters(session, META)["properties"]
    assert "Tool group 'basic' is always active." in refused(session, META, basic=False, maps=True)
    assert session.active_groups == ("basic",)
    assert choose(session, basic=True, maps=True).startswith("Active tool groups: maps.")


def test_basic_cannot_be_deactivated_or_removed():
    app = maps_and_web()
    session = app.session()
    with pytest.raises(ConflictError, match="always active"):
        session.deactivate("maps", "basic")
    with pytest.raises(ConflictError, match="cannot be removed"):
        app.remove_group("basic")
    session.load_state_dict({"version": 1, "groups": {"off": ["basic"]}})
    assert say(session, "echo", text="still") == "still"


def test_what_an_author_wrote_is_on_one_line_and_without_what_cannot_be_seen():
    app = Satchel()
    app.create_group("odd", "Two\nlines\u202e and\x00 more\U000e0041.")
    message = parameters(app.session(), META)["properties"]["odd"]["description"]
    assert message == "Two lines and more."


@pytest.mark.parametrize("name", ["self", "context", "arguments", "groups", "a.b", "0"])
def test_a_group_of_any_name_can_be_chosen(name):
    app = Satchel()
    app.create_group(name, "Odd.")
    app.register_tool(echo, group=name)
    session = app.session()
    assert choose(session) == NOTHING_ACTIVE
    assert choose(session, **{name: True}) == f"Active tool groups: {name}."
    assert say(session, "echo", text="x") == "x"


# ---- what it does ----------------------------------------------------------------------------


def test_each_call_sets_the_final_state_of_all_groups():
    session = maps_and_web().session()
    choose(session, maps=True)
    assert session.active_groups == ("basic", "maps")
    choose(session, web=True)
    assert session.active_groups == ("basic", "web")
    choose(session, maps=True, web=True)
    assert session.active_groups == ("basic", "maps", "web")
    choose(session, maps=False, web=True)
    assert session.active_groups == ("basic", "web")


def test_what_is_active_from_the_start_is_deactivated_by_being_left_out():
    app = maps_and_web()
    app.create_group("ready", "Active at first.", active=True)
    session = app.session()
    assert session.active_groups == ("basic", "ready")
    assert choose(session, maps=True) == "Active tool groups: maps." + note(
        "maps", "Geocode first."
    )
    assert session.active_groups == ("basic", "maps")


def note(name, text):
    return f"\n\n## About Tool Group '{name}'\n\n{text}"


def test_the_answer_names_all_active_groups_with_their_notes_those_of_before_included():
    session = maps_and_web().session()
    session.activate("maps")
    message = choose(session, maps=True, web=True)
    assert message == (
        "Active tool groups: maps, web."
        + note("maps", "Geocode first.")
        + note("web", "Be polite.")
    )


@pytest.mark.parametrize("arguments", [{}, {"maps": False}, {"maps": None}])
def test_that_nothing_is_active_is_said(arguments):
    session = maps_and_web().session()
    session.activate("maps", "web")
    assert choose(session, **arguments) == NOTHING_ACTIVE
    assert session.active_groups == ("basic",)


@pytest.mark.parametrize("value", ["true", " True "])
def test_a_switch_as_models_write_it_is_understood(value):
    session = maps_and_web().session()
    choose(session, maps=value, web="false")
    assert session.active_groups == ("basic", "maps")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"mapz": True}, "There is no tool group 'mapz'. Did you mean maps?"),
        ({"mapz": False}, "There is no tool group 'mapz'. Did you mean maps?"),
        ({"\x1b[31m\x00": True}, "There is no tool group '[31m'."),
        ({"x" * 100_000: True}, "There is no tool group 'xxx"),
        ({"basic": False}, "Tool group 'basic' is always active."),
        ({"vault": True}, "Tool group 'vault' is unavailable: it requires VAULT_KEY"),
        ({"web": "perhaps"}, "web: must be true or false"),
        ({"web": 1}, "web: must be true or false"),
        ({"web": [True]}, "web: must be true or false"),
    ],
)
def test_one_bad_switch_among_good_ones_and_nothing_changes(bad, message):
    session = locked().session()
    session.activate("web")
    before = session.state_dict()
    text = refused(session, META, maps=True, **bad)
    assert message in text
    assert len(text) < 500
    assert session.state_dict() == before
    assert session.active_groups == ("basic", "web")


def test_all_that_is_wrong_is_reported_at_once():
    text = refused(locked().session(), META, mapz=True, vault=True)
    assert "'mapz'" in text
    assert "'vault'" in text
    assert text.endswith("Nothing was changed.")


@pytest.mark.parametrize(
    ("notes", "in_prompt", "in_answer"),
    [("prompt", True, False), ("answer", False, True), ("both", True, True)],
)
def test_notes_go_where_the_host_wants_them(notes, in_prompt, in_answer):
    session = maps_and_web().session(notes=notes)
    message = choose(session, maps=True)
    assert message.startswith("Active tool groups: maps.")
    assert ("Geocode first." in message) is in_answer
    assert ("Geocode first." in session.prompt()) is in_prompt
    assert ("Geocode first." in session.step().prompt()) is in_prompt
    assert "Geocode first." in session.activated_notes(), "the host can always ask for them"


# ---- what is unavailable -----------------------------------------------------------------------


def test_a_group_that_lacks_its_configuration_says_so_wherever_it_is_met():
    app = locked()
    session = app.session()
    reason = "it requires VAULT_KEY to be configured"
    assert f"Unavailable: vault ({reason})." in schema(session, META)["description"]
    assert "vault" not in parameters(session, META)["properties"]
    with pytest.raises(ConflictError, match=f"'vault' is unavailable: {reason}") as problem:
        session.activate("maps", "vault")
    assert problem.value.fix, "the host is told how to mend it"
    assert session.active_groups == ("basic",)
    message = refused(session, "unlock", text="x")
    assert (
        message
        == f"Tool 'unlock' is in tool group 'vault', which is unavailable: {reason}. Tell the user."
    )
    assert names(session) == ["echo", META]


def test_a_group_that_has_its_configuration_is_as_any_other():
    session = locked(config={"host": {"VAULT_KEY": "k"}}).session()
    assert "Unavailable" not in schema(session, META)["description"]
    choose(session, vault=True)
    assert say(session, "unlock", text="open") == "open"


def test_an_unavailable_group_may_be_deactivated():
    session = locked().session()
    session.deactivate("vault")
    assert choose(session, vault=False) == NOTHING_ACTIVE


def test_a_group_that_is_active_at_first_but_unavailable_is_not_active():
    app = Satchel()
    app.create_group("vault", "Secrets.", active=True, notes="Hush.", requires=["VAULT_KEY"])
    app.register_tool(echo, group="vault")
    session = app.session()
    assert session.active_groups == ("basic",)
    assert (names(session), session.prompt()) == ([META], "")
    assert "VAULT_KEY" in refused(session, "echo", text="x")


# ---- tools of groups that are not active -------------------------------------------------------


def test_a_tool_of_an_inactive_group_says_how_to_get_it_and_doing_so_helps():
    session = maps_and_web().session()
    result = answer(session, "route", start="a", end="b")
    assert result.error_code == "tool_not_found"
    assert result.text == (
        "Tool 'route' is in tool group 'maps', which is not active. Call reset_equipped_tools with "
        "'maps' and every group to keep set to true."
    )
    choose(session, maps=True)
    assert say(session, "route", start="a", end="b") == "a to b"


def test_where_the_model_cannot_choose_it_is_to_ask_the_user():
    session = maps_and_web().session(meta_tool=False)
    message = refused(session, "route", start="a", end="b")
    assert (
        message
        == "Tool 'route' is in tool group 'maps', which is not active. Ask the user to activate it."
    )
    session.activate("maps")
    assert say(session, "route", start="a", end="b") == "a to b"


def test_a_tool_of_two_groups_names_the_one_that_can_be_had():
    app = locked()
    app.register_tool(echo, name="both", group=["vault", "web"])
    message = refused(app.session(), "both", text="x")
    assert message.startswith("Tool 'both' is in tool group 'web', which is not active.")
    assert "'web' and every group" in message


@pytest.mark.parametrize("name", ["rout", "Route", "route ", "rou\x00te", "\u202eroute"])
def test_an_unknown_tool_names_near_misses_and_that_they_are_out_of_reach(name):
    session = maps_and_web().session()
    text = refused(session, name)
    assert "Did you mean route (in a tool group that is not active)?" in text
    session.activate("maps")
    assert "Did you mean route?" in refused(session, name)


@pytest.mark.parametrize("name", ["", " ", "\x00", "\ud800", "x" * 1_000_000, "💥" * 50, "../.."])
def test_any_strange_name_is_answered_in_one_short_line(name):
    text = refused(maps_and_web().session(), name)
    assert text.startswith("There is no tool ")
    assert len(text) < 250
    assert text.isprintable()
    text.encode()


@pytest.mark.parametrize("name", [None, 5, b"echo", ["echo"], {"name": "echo"}, object()])
def test_a_name_that_is_no_text_is_reported(name):
    result = answer(maps_and_web().session(), name)
    assert (result.error_code, result.text) == (
        "tool_not_found",
        "The name of a tool must be a string.",
    )


def test_the_host_gets_near_misses_and_all_or_nothing():
    session = maps_and_web().session()
    with pytest.raises(NotFoundError, match="did you mean maps"):
        session.activate("web", "mapz")
    assert session.active_groups == ("basic",)
    session.activate("maps", "web")
    with pytest.raises(NotFoundError, match="did you mean maps"):
        session.deactivate("web", "mapz")
    assert session.active_groups == ("basic", "maps", "web")


def test_a_tool_of_the_host_with_that_name_wins():
    app = maps_and_web()
    app.register_tool(echo, name=META)
    session = app.session()
    assert names(session).count(META) == 1
    assert say(session, META, text="mine") == "mine"


# ---- many groups -------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_with_very_many_groups_it_stays_bounded_and_each_can_still_be_chosen(many, dialect):
    session = many.session()
    (shown,) = (s for s in session.schemas(dialect) if META in json.dumps(s))
    written = json.dumps(shown)
    assert len(written) < 64_000
    assert "44 more groups can be activated by name but are not described here" in written
    choose(session, g000=True, g299=True)
    assert session.active_groups == ("basic", "g000", "g299")


@pytest.fixture(scope="module")
def many():
    app = Satchel()
    for number in range(300):
        app.create_group(f"g{number:03}", f"Group {number}. " + "Long. " * 500)
    app.register_tool(echo)
    app.register_tool(route, group="g000")
    app.register_tool(fetch, group="g299")
    return app
