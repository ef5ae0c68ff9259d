"""`activate_tools` and `defer_loading`: single tools without the rest of their groups."""

import json

import pytest
from conversation import META, choose, echo, locked, maps_and_web, names, refused, say

from satchel import ConflictError, NotFoundError, Satchel, ToolError


def maps_with_two():
    app = maps_and_web()
    app.register_tool(echo, name="geocode", group="maps")
    return app


def test_the_host_activates_one_tool_without_the_rest_of_its_group():
    session = maps_with_two().session()
    session.activate_tools("route")
    assert names(session) == ["echo", "route", META]
    assert session.active_groups == ("basic",)
    assert "Geocode first" not in session.prompt(), "the notes are those of active groups"
    assert say(session, "route", start="A", end="B") == "A to B"
    session.deactivate_tools("route")
    assert names(session) == ["echo", META]


def test_the_model_activates_what_it_found_and_reads_the_notes_of_its_group():
    session = maps_with_two().session(search=True)
    result = say(session, "search_tools", words="way")
    assert "call activate_tools with its name, for this tool alone" in result
    step = session.step()
    answer = say(step, "activate_tools", names=["route"])
    assert answer.startswith("Active from the next step on: route.")
    assert "Geocode first." in answer
    assert "active alone from the next step on" in refused(step, "route", start="A", end="B")
    following = session.step()
    assert "route" in names(following)
    assert "geocode" not in names(following)
    assert following.changes.text.startswith("Since the last step: new tools: route")
    assert "active: call it." in say(following, "search_tools", words="way")


def test_each_call_sets_the_final_list_and_the_choice_of_groups_leaves_it():
    session = maps_and_web().session(search=True)
    say(session, "activate_tools", names=["route"])
    choose(session, web=True)
    assert {"route", "fetch"} <= set(names(session))
    choose(session)
    assert "route" in names(session)
    assert "fetch" not in names(session)
    assert say(session, "activate_tools", names=[]).startswith("No single tool is active")
    assert "route" not in names(session)


def test_an_unknown_or_unavailable_tool_changes_nothing():
    session = locked().session(search=True)
    wrong = refused(session, "activate_tools", names=["route", "fetsh"])
    assert wrong == "There is no tool 'fetsh'. Did you mean fetch? Nothing was changed."
    wrong = refused(session, "activate_tools", names=["unlock"])
    assert wrong == (
        "tool 'unlock' is unavailable: it requires VAULT_KEY to be configured. Tell the user. "
        "Nothing was changed."
    )
    assert "route" not in names(session)
    with pytest.raises(NotFoundError, match="fetch"):
        session.activate_tools("route", "fetsh")
    with pytest.raises(ConflictError, match="VAULT_KEY"):
        session.activate_tools("unlock")
    assert "route" not in names(session)


def test_a_session_whose_groups_only_the_host_chooses_does_not_offer_it():
    session = maps_and_web().session(search=True, meta_tool=False)
    assert "activate_tools" not in names(session)
    assert "activate_tools" not in say(session, "search_tools", words="way")


def test_a_saved_session_keeps_its_single_tools():
    app = maps_and_web()
    session = app.session()
    session.activate_tools("route")
    restored = app.session()
    restored.load_state_dict(json.loads(json.dumps(session.state_dict())))
    assert "route" in names(restored)


def test_two_sessions_do_not_share_their_single_tools():
    app = maps_and_web()
    one, other = app.session(), app.session()
    one.activate_tools("route")
    assert "route" not in names(other)
    other.activate_tools("fetch")
    assert names(one) == ["echo", "route", META]


# ---- defer_loading -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "search"),
    [
        ("anthropic", {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}),
        ("openai-responses", {"type": "tool_search"}),
    ],
)
def test_a_provider_with_its_own_search_gets_the_schemas_to_load_later(dialect, search):
    session = locked().session(defer_loading=True)
    first, *schemas = session.step().schemas(dialect)
    assert first == search
    late = {item["name"] for item in schemas if item.get("defer_loading")}
    assert late == {"route", "fetch"}, "`unlock` is not configured"
    assert {item["name"] for item in schemas} - late == {"echo", META}


@pytest.mark.parametrize("dialect", ["openai", "openai-strict", "gemini", "mcp"])
def test_the_others_leave_the_schema_out_until_the_tool_or_its_group_is_active(dialect):
    session = maps_and_web().session(defer_loading=True)
    plain = maps_and_web().session()
    assert session.schemas(dialect) == plain.schemas(dialect)
    for each in (session, plain):
        each.activate_tools("route")
        each.activate("web")
    assert session.schemas(dialect) == plain.schemas(dialect)


def test_a_call_of_a_deferred_tool_runs_and_one_of_an_unavailable_group_does_not():
    session = locked().session(defer_loading=True)
    step = session.step()
    assert say(step, "fetch", url="x") == "x"
    assert "unavailable" in refused(step, "unlock", text="x")
    assert refused(locked().session().step(), "fetch", url="x")


def test_the_middleware_of_its_group_holds_for_a_deferred_tool():
    app = Satchel()
    app.create_group("web")
    app.register_tool(echo, group="web")

    async def refuse(call, _next):
        raise ToolError(f"{call.name} is not allowed")
        yield

    app.register_middleware(refuse, group="web")
    session = app.session(defer_loading=True)
    assert refused(session, "echo", text="x") == "echo is not allowed"


def test_without_inactive_groups_nothing_is_deferred():
    app = Satchel()
    app.register_tool(echo)
    assert names(app.session(defer_loading=True)) == ["echo"]


def test_a_deferred_tool_is_no_change_until_it_is_active():
    session = maps_and_web().session(defer_loading=True)
    session.step()
    session.activate("web")
    assert "fetch" in session.changes().text
