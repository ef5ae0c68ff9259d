"""Calls whose tools have contracts: judged, settled, handed their values, and kept in the state."""

import logging

import pytest
from contracted import PLACES, WAYS, appends, hold, holding, in_time

from satchel import (
    DROP_STEP,
    DefinitionError,
    Satchel,
    ToolCall,
    ToolConfigParam,
    ToolContext,
    ToolContract,
    ToolError,
    ToolInvariant,
    ToolResult,
    ToolStateEffect,
    ToolStateRead,
)

SEARCH = {
    "query": "str - what to look for",
    "bundled": "bool = False - b",
    "web": "bool = False - w",
}


def find(query: str, limit: int, user: str, bundled: bool = False, web: bool = False) -> str:
    """Find."""
    return f"{user} found {query!r} ({limit}, {bundled}, {web})"


def _with(call, **arguments):
    from dataclasses import replace

    return replace(call, arguments={**call.arguments, **arguments})


WEB_TOO = ToolInvariant(
    id="web-too",
    rule="What is bundled is searched on the web.",
    check=lambda call, state, config: (
        not call.arguments.get("bundled") or call.arguments.get("web")
    ),
    correct=lambda call, state, config: (_with(call, web=True), True),
)
NO_SECRETS = ToolInvariant(
    id="no-secrets",
    rule="Never look for secrets.",
    check=lambda call, state, config: "secret" not in call.arguments["query"],
)
NO_TWINS = ToolInvariant(
    id="no-twins",
    rule="No two calls are the same.",
    check=lambda call, state, config, plan: (
        call.arguments not in [other.arguments for other in plan.before]
    ),
    correct=lambda call, state, config, plan: DROP_STEP,
)


def searching(**options) -> Satchel:
    return holding(
        find,
        SEARCH,
        invariants=(NO_SECRETS, WEB_TOO, NO_TWINS),
        config_params=(ToolConfigParam("limit", 5, int),),
        state_reads=(ToolStateRead("user", "nobody"),),
        state_effects=(appends("found"),),
        **options,
    )


def call(query: str, id: str = "", **arguments) -> ToolCall:  # noqa: A002
    return ToolCall(name="find", arguments={"query": query, **arguments}, id=id)


# ---- one call, however it is made ---------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
def test_a_call_is_corrected_handed_its_values_run_and_kept(way, place, caplog):
    session = searching().session()
    session.state["user"] = "Ada"
    with caplog.at_level(logging.INFO, "satchel.contracts"):
        result = in_time(way(place(session), "find", {"query": "x", "bundled": True}, call_id="7"))
    assert result.text == "Ada found 'x' (5, True, True)"
    assert result.call_id == "7"
    assert session.state["found"] == [result.text]
    assert [record.getMessage() for record in caplog.records] == ["find was corrected by web-too"]
    assert "web-too" not in f"{result.content}{result.metadata}", "the model is not told"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
def test_a_call_that_breaks_a_rule_is_answered_in_the_words_of_the_rule(way, place):
    ran = []

    def find(query: str) -> str:
        ran.append(query)
        return query

    session = holding(
        find, {"query": "str - q"}, invariants=(NO_SECRETS,), state_effects=(appends(),)
    ).session()
    result = in_time(way(place(session), "find", {"query": "a secret"}, call_id="c"))
    assert (result.is_error, result.error_code, result.call_id) == (True, "rejected", "c")
    assert "Never look for secrets." in result.text
    assert result.metadata["rejected"] == ("no-secrets",)
    assert (ran, session.state) == ([], {})


@pytest.mark.parametrize("way", WAYS)
def test_arguments_may_be_the_text_of_a_model(way):
    session = searching().session()
    assert "'x'" in in_time(way(session, "find", '{"query": "x"}')).text
    broken = in_time(way(session, "find", '{"query": ', call_id="c"))
    assert (broken.error_code, broken.call_id) == ("invalid_arguments", "c")
    assert in_time(way(session, "find", {"query": 3.5})).error_code == "invalid_arguments"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["limit", "user"])
def test_a_model_does_not_set_what_the_host_hands_over(way, name):
    session = searching().session()
    result = in_time(way(session, "find", {"query": "x", name: 99}))
    assert result.error_code == "invalid_arguments"
    assert session.state == {}


@pytest.mark.parametrize("way", WAYS)
def test_configuration_comes_from_the_call_then_the_state_then_the_default(way):
    session = searching().session()

    def limit(context=None):
        return in_time(way(session, "find", {"query": "x"}, context=context)).text.split("(")[1][0]

    assert limit() == "5"
    session.state["config"] = {"limit": "6"}
    assert limit() == "6"
    assert limit(ToolContext(config={"limit": "7"})) == "7"
    assert limit(ToolContext(config={"limit": None})) == "6", "none is no value"


@pytest.mark.parametrize("way", WAYS)
def test_a_value_is_normalised_once_for_each_call(way):
    times = []

    def normalized(value):
        times.append(value)
        return value + 1

    def show(limit: int) -> int:
        return limit

    app = holding(
        show,
        {},
        config_params=(ToolConfigParam("limit", 1, normalized),),
        invariants=(
            ToolInvariant(
                id="r", rule="A rule.", check=lambda call, state, config: config["limit"] == 2
            ),
        ),
    )
    assert in_time(way(app.session(), "show")).text == "2"
    assert times == [1]


@pytest.mark.parametrize("way", WAYS)
def test_a_value_that_is_refused_is_reported_without_what_was_raised(way, caplog):
    session = searching().session()
    session.state["config"] = {"limit": "/etc/passwd"}
    result = in_time(way(session, "find", {"query": "x"}, call_id="c"))
    assert (result.error_code, result.call_id) == ("rejected", "c")
    assert "find: the configured value of 'limit'" in result.text
    assert "passwd" not in result.text
    assert "the configured value of 'limit' is invalid (ValueError: " in caplog.text


@pytest.mark.parametrize("way", WAYS)
def test_a_read_without_a_value_names_its_key(way):
    def whoami(user: str) -> str:
        return user

    session = holding(whoami, {}, state_reads=(ToolStateRead("user"),)).session()
    result = in_time(way(session, "whoami", call_id="c"))
    assert (result.is_error, result.call_id) == (True, "c")
    assert "'user'" in result.text
    session.state["user"] = "Ada"
    assert in_time(way(session, "whoami")).text == "Ada"


@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_failed_writes_nothing(way):
    def fail() -> str:
        raise ToolError("no")

    session = holding(fail, {}, state_effects=(appends(),)).session()
    assert in_time(way(session, "fail")).error_code == "tool_error"
    assert session.state == {}


@pytest.mark.parametrize("way", WAYS)
def test_an_effect_that_cannot_be_written_is_reported_and_leaves_the_state(way):
    def note() -> dict:
        return {"first": [1], "log": "x"}

    session = holding(
        note, {}, state_effects=(ToolStateEffect(key="first", type_hint=list), appends("log"))
    ).session()
    session.state["log"] = "a text"
    result = in_time(way(session, "note", call_id="c"))
    assert (result.error_code, result.call_id) == ("effect_failed", "c")
    assert "'log'" in result.text
    assert session.state == {"log": "a text"}


@pytest.mark.parametrize("way", WAYS)
def test_an_effect_without_an_end_is_an_answer_and_no_error(way):
    def note() -> ToolResult:
        knot = []
        knot.append(knot)
        return ToolResult(metadata={"effects": {"log": knot}})

    session = holding(note, {}, state_effects=(appends("log"),)).session()
    assert in_time(way(session, "note")).error_code == "effect_failed"
    assert session.state == {}


@pytest.mark.parametrize("way", WAYS)
def test_an_effect_may_be_more_than_the_model_sees(way):
    def note() -> ToolResult:
        return ToolResult(metadata={"effects": {"log": ["a", "b"]}})

    session = holding(note, {}, state_effects=(appends("log"),)).session()
    in_time(way(session, "note"))
    assert session.state == {"log": ["a", "b"]}


@pytest.mark.parametrize("way", WAYS)
def test_a_result_may_speak_of_a_task_of_its_own(way):
    def submit() -> ToolResult:
        return ToolResult(metadata={"task_id": "job-7", "effects": {"log": "job-7"}})

    session = holding(submit, {}, state_effects=(appends("log"),)).session()
    in_time(way(session, "submit"))
    assert session.state == {"log": ["job-7"]}


@pytest.mark.parametrize("name", [None, 3, ["find"], {"find": 1}, ""])
@pytest.mark.parametrize("way", WAYS)
def test_a_name_that_is_no_text_is_an_answer_also_under_a_policy(way, name):
    session = searching().session(plan_policy=lambda plan, state: None)
    assert in_time(way(session, name, call_id="c")).error_code == "tool_not_found"
    rejected = session.validate([ToolCall(name=name)]).rejected
    assert [item.code for item in rejected] == ["tool_not_found"]


# ---- several calls ------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_results_stand_in_the_order_of_the_calls_each_with_what_became_of_it(place):
    session = searching().session()
    session.state["user"] = "Ada"
    calls = [
        call("a", "0"),
        call("secret", "1"),
        call("a", "2"),
        call("b", "3", bundled=True),
        ToolCall(name="nope", id="4"),
        call(3.5, "5"),
    ]
    results = in_time(place(session).execute(calls))
    assert [result.call_id for result in results] == list("012345")
    assert [result.error_code for result in results] == [
        *(None, "rejected", None),
        *(None, "tool_not_found", "invalid_arguments"),
    ]
    assert results[2].metadata["pruned"] == ("no-twins",)
    assert "No two calls are the same." in results[2].text
    assert not results[2].is_error
    assert session.state["found"] == [results[0].text, results[3].text]
    assert results[3].text.endswith("(5, True, True)")


def test_the_same_call_object_may_stand_in_a_plan_twice():
    def tick(context: ToolContext) -> str:
        return context.call_id

    session = holding(tick, {}, state_effects=(appends(),)).session()
    twice = ToolCall(name="tick", id="t")
    results = in_time(session.execute([twice, twice]))
    assert [result.text for result in results] == ["t", "t"]
    assert session.state["log"] == ["t", "t"]


def test_calls_without_a_contract_run_in_the_same_plan():
    app = searching()
    app.register_tool(lambda text: text, name="echo", description="Echo.")
    results = in_time(
        app.session().execute([ToolCall(name="echo", arguments={"text": "e"}), call("secret")])
    )
    assert [results[0].text, results[1].error_code] == ["e", "rejected"]


def test_one_context_for_a_plan_wins_over_that_of_a_call():
    session = searching().session()
    own = ToolCall(name="find", arguments={"query": "x"}, context=ToolContext(config={"limit": 8}))
    assert "(8," in in_time(session.execute([own]))[0].text
    context = ToolContext(config={"limit": 9})
    assert "(9," in in_time(session.execute([own], context=context))[0].text


# ---- validating ---------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_a_plan_can_be_judged_without_running_anything(place):
    ran, normalized = [], []

    def echo(text: str) -> None:
        """Echo."""
        ran.append(text)

    def find(query: str, limit: int, bundled: bool = False, web: bool = False) -> str:
        ran.append(query)
        return query

    app = holding(
        find,
        SEARCH,
        invariants=(NO_SECRETS, WEB_TOO, NO_TWINS),
        config_params=(
            ToolConfigParam("limit", 5, lambda value: normalized.append(value) or value),
        ),
        state_effects=(appends(),),
    )
    app.register_tool(echo)
    session = app.session()
    session.state["kept"] = {"as": ["it", "was"]}
    calls = [
        call("a"),
        call("secret"),
        call("b", bundled=True),
        call("a"),
        ToolCall(name="nope"),
        ToolCall(name="echo", arguments={"txt": 1}),
        ToolCall(name="echo", arguments={"text": "fine"}),
    ]
    problems = place(session).validate(calls, config={"limit": 7})
    assert [item.arguments for item in problems.plan] == [
        {"query": "a"},
        {"query": "b", "bundled": True, "web": True},
        {"text": "fine"},
    ]
    assert [(item.index, item.ids) for item in problems.corrected] == [(2, ("web-too",))]
    assert [(item.index, item.ids) for item in problems.pruned] == [(3, ("no-twins",))]
    assert [(item.index, item.code) for item in problems.rejected] == [
        *((1, "rejected"), (4, "tool_not_found"), (5, "invalid_arguments")),
    ]
    assert (ran, session.state) == ([], {"kept": {"as": ["it", "was"]}})
    assert calls[2].arguments == {"query": "b", "bundled": True}
    assert set(normalized) == {7}
    assert place(session).validate(problems.plan).plan == problems.plan


def test_rules_are_asked_with_the_configuration_that_a_plan_would_have():
    def show(limit: int) -> int:
        return limit

    rule = ToolInvariant(
        id="few", rule="At most ten.", check=lambda call, state, config: config["limit"] <= 10
    )
    app = holding(show, {}, config_params=(ToolConfigParam("limit", 5),), invariants=(rule,))
    session, plan = app.session(), [ToolCall(name="show")]
    assert session.validate(plan).plan
    assert [it.ids for it in session.validate(plan, config={"limit": 11}).rejected] == [("few",)]
    session.state["config"] = {"limit": 12}
    assert not session.validate(plan).plan
    assert session.validate(plan, config={"limit": 1}).plan
    own = ToolCall(name="show", context=ToolContext(config={"limit": 2}))
    assert session.validate([own]).plan


def test_a_tool_that_is_out_of_sight_is_no_part_of_a_plan():
    app = Satchel()
    app.create_group("maps", "Maps.")
    hold(app, lambda: "way", options={"name": "route", "group": "maps", "description": "Route."})
    session = app.session()
    (rejected,) = session.validate([ToolCall(name="route")]).rejected
    assert (rejected.code, "maps" in rejected.message) == ("tool_not_found", True)
    session.activate("maps")
    assert session.validate([ToolCall(name="route")]).plan


# ---- the policy ---------------------------------------------------------------------------


def at_most(count: int):
    return lambda plan, state: None if len(plan) <= count else f"At most {count} calls."


@pytest.mark.parametrize("is_set_later", [True, False])
def test_a_policy_refuses_the_whole_of_what_contracts_left(is_set_later):
    if is_set_later:
        session = searching().session()
        assert session.plan_policy is None
        session.plan_policy = at_most(1)
    else:
        session = searching().session(plan_policy=at_most(1))
    results = in_time(session.execute([call("a"), call("secret"), call("a"), call("b")]))
    assert [result.error_code for result in results] == [
        *("plan_refused", "rejected", None, "plan_refused"),
    ]
    assert results[2].metadata["pruned"]
    assert "At most 1 calls." in results[0].text
    assert session.state == {}
    kept = in_time(session.execute([call("a"), call("secret"), call("a")]))
    assert [result.error_code for result in kept] == [None, "rejected", None]


def test_a_policy_sees_corrected_calls_and_the_state():
    seen = []

    def policy(plan, state):
        seen.append(([item.arguments for item in plan], dict(state)))

    session = searching().session(plan_policy=policy)
    session.state["user"] = "Ada"
    in_time(session.execute([call("a", bundled=True)]))
    assert seen == [([{"query": "a", "bundled": True, "web": True}], {"user": "Ada"})]


@pytest.mark.parametrize("way", WAYS)
def test_a_policy_judges_single_calls_as_plans_of_one_with_or_without_a_contract(way):
    app = Satchel()
    app.register_tool(lambda: "ran", name="plain", description="Plain.")
    session = app.session(plan_policy=lambda plan, state: "Not now.")
    result = in_time(way(session, "plain", call_id="c"))
    assert (result.error_code, result.call_id) == ("plan_refused", "c")
    assert "Not now." in result.text


async def later(plan, state):
    return None


@pytest.mark.parametrize("answer", [True, 7, [], later, object()])
def test_a_policy_that_answers_nonsense_refuses(answer, caplog):
    policy = answer if answer is later else lambda plan, state: answer
    session = searching().session(plan_policy=policy)
    result = in_time(session.call("find", {"query": "x"}))
    assert result.error_code == "plan_refused"
    assert "the plan policy failed" in caplog.text


def test_a_policy_that_raises_refuses_and_says_nothing_of_it_to_the_model(caplog):
    def policy(plan, state):
        raise RuntimeError("/home/secret")

    session = searching().session(plan_policy=policy)
    result = in_time(session.call("find", {"query": "x"}))
    assert result.error_code == "plan_refused"
    assert "secret" not in result.text
    assert "secret" in caplog.text


def test_a_policy_cannot_change_the_state():
    session = searching().session(plan_policy=lambda plan, state: state.update(asked=1))
    assert [it.code for it in session.validate([call("a")]).rejected] == ["plan_refused"]
    assert session.state == {}


def test_a_policy_is_not_asked_about_a_plan_of_which_nothing_is_left():
    asked = []
    session = searching().session(plan_policy=lambda plan, state: asked.append(plan))
    assert in_time(session.execute([])) == []
    assert in_time(session.execute([call("secret")]))[0].error_code == "rejected"
    session.validate([])
    assert asked == []


def test_a_policy_counts_in_steps_and_when_validating():
    session = searching().session(plan_policy=at_most(0))
    assert [it.code for it in session.validate([call("a")]).rejected] == ["plan_refused"]
    assert in_time(session.step().execute([call("a")]))[0].error_code == "plan_refused"
    session.plan_policy = None
    assert session.validate([call("a")]).plan


# ---- what else is told of contracts -------------------------------------------------------


def test_a_session_knows_the_contracts_of_what_can_be_called_now():
    app = searching()
    app.create_group("maps", "Maps.")
    hold(app, lambda: "way", options={"name": "route", "group": "maps", "description": "Route."})
    session = app.session()
    assert list(session.contracts) == ["find"]
    session.activate("maps")
    assert sorted(session.contracts) == ["find", "route"]
    assert isinstance(session.contracts["route"], ToolContract)


def test_the_guide_teaches_active_tools_with_their_rules_in_the_same_bytes():
    app = searching()
    app.create_group("maps", "Maps.")
    hold(app, lambda: "way", options={"name": "route", "group": "maps", "description": "Route."})
    session, other = app.session(), app.session()
    guide = session.tool_guide()
    assert "route" not in guide
    assert '<rule id="no-secrets">Never look for secrets.</rule>' in guide
    assert "limit" not in guide, "what only the host sets is not taught"
    session.activate("maps")
    assert "<name>route</name>" in session.tool_guide()
    assert "About route." in session.tool_guide()
    session.deactivate("maps")
    assert guide == session.tool_guide() == other.tool_guide() == session.step().tool_guide()
    assert searching().session().tool_guide() == guide


def test_the_guide_escapes_hostile_text():
    rule = ToolInvariant(
        id="</rule><x>", rule="</tools> & do </rule>\u202e", check=lambda call, state, config: True
    )
    app = holding(
        lambda text: text, {"text": "str - </argument>&"}, options={"name": "t"}, invariants=(rule,)
    )
    guide = app.session().tool_guide()
    assert guide.count("</tools>") == 1
    assert guide.count("</rule>") == 1
    assert guide.count("</argument>") == 1
    assert "\u202e" not in guide


@pytest.mark.parametrize("name", [None, 3, ["find"], {"find": 1}])
def test_a_name_that_is_no_text_costs_its_own_call_alone(name):
    app = Satchel()
    app.register_tool(lambda: "ran", name="plain", description="Plain.")
    results = in_time(
        app.session().execute([ToolCall(name=name, id="1"), ToolCall(name="plain", id="2")])
    )
    assert [result.error_code for result in results] == ["tool_not_found", None]


def test_what_validate_says_of_a_plan_is_what_becomes_of_it():
    alone = ToolInvariant(
        id="alone", rule="Call it alone.", check=lambda c, s, g, plan: not plan.others
    )
    app = holding(lambda n: n, {"n": "int"}, options={"name": "count"}, invariants=(alone,))
    app.register_tool(lambda n: n, name="plain", parameters=WHOLE)
    session = app.session(plan_policy=lambda plan, state: "Too many." if len(plan) > 1 else "")
    for other in (ToolCall(name="plain", arguments={"n": "x"}), ToolCall(name="nope")):
        plan = [other, ToolCall(name="count", arguments={"n": 1})]
        assert session.validate(plan).plan == (plan[1],)
        wrong, right = in_time(session.execute(plan))
        assert (wrong.is_error, right.structured) == (True, 1)


def test_a_policy_without_complaints_accepts_and_changes_no_call():
    def spoil(plan, state):
        plan[0].arguments["n"] = 99
        return ""

    session = holding(lambda n: n, {"n": "int"}, options={"name": "count"}).session()
    session.plan_policy = spoil
    assert in_time(session.call("count", {"n": 1})).structured == 1


@pytest.mark.parametrize("policy", [3, "few"])
def test_a_policy_that_cannot_be_called_is_refused(policy):
    with pytest.raises(DefinitionError, match="a plan policy is a function"):
        Satchel().session(plan_policy=policy)
    session = Satchel().session()
    with pytest.raises(DefinitionError, match="a plan policy is a function"):
        session.plan_policy = policy


WHOLE = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
