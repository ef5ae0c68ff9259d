"""Calls with contracts while other things happen: reloads, middleware, background, steps."""

import asyncio
import gc
import tracemalloc
from dataclasses import replace

import pytest
from contracted import WAYS, appends, as_call, as_stream, hold, holding, in_time

from satchel import (
    DROP_STEP,
    Satchel,
    ToolCall,
    ToolConfigParam,
    ToolContext,
    ToolContract,
    ToolInvariant,
    ToolResult,
    ToolStateEffect,
    ToolStateRead,
)
from satchel.runtime.executors import Concurrent, Sequential


def never(id: str = "never") -> ToolInvariant:  # noqa: A002
    return ToolInvariant(id=id, rule="Not any more.", check=lambda call, state, config: False)


def always(id: str, to: str) -> ToolInvariant:  # noqa: A002
    """Return a rule that corrects the word to another."""
    return ToolInvariant(
        id=id,
        rule="A word of ours.",
        check=lambda call, state, config: call.arguments["word"] == to,
        correct=lambda call, state, config: (replace(call, arguments={"word": to}), True),
    )


class Talk:
    """A satchel with `wait`, which waits until it is told, and `say`; both are held."""

    def __init__(self, **parts) -> None:
        self.app, self.began, self.go_on = Satchel(), asyncio.Event(), asyncio.Event()
        hold(self.app, self._wait, options={"name": "wait"}, state_effects=(appends(),))
        hold(self.app, self._say, {"word": "str - w"}, options={"name": "say"}, **parts)
        self.session = self.app.session()

    async def _wait(self) -> str:
        self.began.set()
        await self.go_on.wait()
        return "waited"

    def _say(self, word: str) -> str:
        return word

    def hold_again(self, name: str = "say", schema=None, **parts) -> None:
        self.app.remove_contract(name)
        schema = {"word": "str - w"} if schema is None else schema
        self.app.register_contract(
            ToolContract(name=name, schema=schema, description="Anew.", **parts)
        )


# ---- a reload between validation and the call ---------------------------------------------


async def run_meanwhile(talk, change, plan, place=None, executor=None):
    """Run a plan, and change something while its first call runs."""
    place = place or talk.session
    work = asyncio.create_task(place.execute(plan, executor=executor or Sequential()))
    await talk.began.wait()
    change()
    talk.go_on.set()
    return await work


PLAN = [
    ToolCall(name="wait", id="w"),
    ToolCall(name="say", arguments={"word": "a"}, id="1"),
    ToolCall(name="say", arguments={"word": "b"}, id="2"),
]


def test_a_call_that_begins_after_a_reload_is_held_to_the_new_rules():
    async def main():
        talk = Talk(state_effects=(appends(),))

        def change():
            talk.hold_again(invariants=(never(),), state_effects=(appends(),))

        results = await run_meanwhile(talk, change, PLAN)
        assert [result.error_code for result in results] == [None, "rejected", "rejected"]
        assert results[1].metadata["rejected"] == ("never",)
        assert talk.session.state == {"log": ["waited"]}

    in_time(main())


def test_what_a_call_brings_is_written_once_by_the_contract_that_it_began_with():
    async def main():
        talk = Talk(state_effects=(appends("old"),))
        change = lambda: talk.hold_again(state_effects=(appends("old"), appends("new")))  # noqa: E731
        await run_meanwhile(talk, change, PLAN)
        return talk.session.state

    assert in_time(main()) == {"log": ["waited"]}, "one value for two keys is for neither"

    async def renamed():
        talk = Talk(state_effects=(appends("old"),))
        await run_meanwhile(talk, lambda: talk.hold_again(state_effects=(appends("new"),)), PLAN)
        return talk.session.state

    assert in_time(renamed()) == {"log": ["waited"], "new": ["a", "b"]}

    async def same():
        talk = Talk(state_effects=(appends(),))
        await run_meanwhile(talk, lambda: talk.hold_again(state_effects=(appends(),)), PLAN)
        return talk.session.state

    assert in_time(same()) == {"log": ["waited", "a", "b"]}


def test_what_a_reload_prunes_is_no_effect():
    async def main():
        talk = Talk(state_effects=(appends(),))
        drop = ToolInvariant(
            id="drop",
            rule="No more.",
            check=lambda c, s, k: False,
            correct=lambda c, s, k: DROP_STEP,
        )
        results = await run_meanwhile(
            talk, lambda: talk.hold_again(invariants=(drop,), state_effects=(appends(),)), PLAN
        )
        assert results[1].metadata["pruned"] == ("drop",)
        assert talk.session.state == {"log": ["waited"]}

    in_time(main())


def test_what_a_reloaded_call_brings_waits_for_the_calls_ahead_of_it():
    async def main():
        talk, go_on, message = Talk(), asyncio.Event(), asyncio.Queue()

        async def hold_up() -> str:
            await go_on.wait()
            return "held up"

        async def speak(word: str) -> str:
            message.put_nowait(word)
            return word

        hold(talk.app, hold_up, state_effects=(appends(),))
        hold(talk.app, speak, {"word": "str - w"})
        plan = [ToolCall(name="wait"), ToolCall(name="hold_up")]
        plan += [ToolCall(name="speak", arguments={"word": word}) for word in "ab"]
        work = asyncio.create_task(talk.session.execute(plan, executor=Concurrent(2)))
        await talk.began.wait()
        talk.hold_again("speak", state_effects=(appends(),))
        go_on.set()
        assert [await message.get(), await message.get()] == ["a", "b"]
        assert talk.session.state == {}
        talk.go_on.set()
        await work
        return talk.session.state

    assert in_time(main()) == {"log": ["waited", "held up", "a", "b"]}


def test_a_contract_that_goes_or_comes_meanwhile_counts_for_what_begins_later():
    async def going():
        talk = Talk(invariants=(always("x", "x"),), state_effects=(appends(),))
        results = await run_meanwhile(talk, lambda: talk.app.remove_contract("say"), PLAN)
        # They were corrected when the plan was judged.
        return [result.text for result in results], talk.session.state

    assert in_time(going()) == (["waited", "x", "x"], {"log": ["waited"]})

    async def coming():
        talk = Talk()
        talk.app.remove_contract("say")

        def change():
            talk.app.register_contract(
                ToolContract(
                    name="say",
                    schema={"word": "str - w"},
                    description="S.",
                    invariants=(always("x", "x"),),
                    state_effects=(appends(),),
                )
            )

        results = await run_meanwhile(talk, change, PLAN)
        return [result.text for result in results], talk.session.state

    assert in_time(coming()) == (["waited", "x", "x"], {"log": ["waited", "x", "x"]})


def test_a_running_call_ends_on_its_own_version():
    async def main():
        talk = Talk(state_effects=(appends(),))
        await run_meanwhile(
            talk, lambda: talk.hold_again("wait", {}, state_effects=(appends("new"),)), PLAN
        )
        return talk.session.state

    assert in_time(main()) == {"log": ["waited", "a", "b"]}


def test_a_running_single_call_ends_on_its_own_version():
    async def main(way):
        talk = Talk()
        work = asyncio.create_task(way(talk.session, "wait"))
        await talk.began.wait()
        talk.hold_again("wait", {}, invariants=(never(),), state_effects=(appends("new"),))
        talk.go_on.set()
        assert (await work).text == "waited"
        assert talk.session.state == {"log": ["waited"]}
        assert (await way(talk.session, "wait")).error_code == "rejected"

    for way in WAYS:
        in_time(main(way))


def test_a_step_holds_its_calls_to_what_it_began_with():
    async def main():
        talk = Talk(invariants=(always("x", "x"),), state_effects=(appends(),))
        step = talk.session.step()
        change = lambda: talk.hold_again(invariants=(never(),))  # noqa: E731
        results = await run_meanwhile(talk, change, PLAN, place=step)
        assert [result.text for result in results] == ["waited", "x", "x"]
        assert talk.session.state == {"log": ["waited", "x", "x"]}
        assert (await step.call("say", {"word": "y"})).text == "x"
        assert (await talk.session.call("say", {"word": "y"})).error_code == "rejected"

    in_time(main())


def test_a_tool_that_goes_meanwhile_is_reported_for_its_calls():
    async def main():
        talk = Talk(state_effects=(appends(),))
        results = await run_meanwhile(talk, lambda: talk.app.remove_tool("say"), PLAN)
        assert [result.error_code for result in results] == [
            None,
            "tool_not_found",
            "tool_not_found",
        ]
        assert talk.session.state == {"log": ["waited"]}

    in_time(main())


PLUGIN = """
    from satchel import DROP_STEP, ToolContract, ToolInvariant, ToolStateEffect, hookimpl, tool

    @tool
    def say(word: str) -> str:
        return word

    RULE = ToolInvariant(id="{id}", rule="Be brief.", check=lambda call, state, config: {check})

    @hookimpl
    def satchel_contracts():
        effects = [ToolStateEffect(key="{key}", type_hint=list, merge="append")]
        return [ToolContract(name="say", schema={{"word": "str - w"}}, description="Say.",
            invariants=[RULE], state_effects=effects)]
"""


def test_a_plugin_that_is_edited_while_an_earlier_call_runs(tmp_path, write_plugin):
    def write(**parts):
        write_plugin(tmp_path, "demo", tools=PLUGIN.format(**parts))

    write(id="old", check="True", key="old")

    async def main():
        app = Satchel(plugins=[tmp_path])
        began, go_on = asyncio.Event(), asyncio.Event()

        async def wait() -> str:
            began.set()
            await go_on.wait()
            return "waited"

        app.register_tool(wait)
        session = app.session()
        plan = [ToolCall(name="wait"), *PLAN[1:]]
        work = asyncio.create_task(session.execute(plan, executor=Sequential()))
        await began.wait()
        write(id="new", check="call.arguments['word'] != 'a'", key="new")
        app.refresh()
        go_on.set()
        results = await work
        assert [result.error_code for result in results] == [None, "rejected", None]
        assert results[1].metadata["rejected"] == ("new",)
        assert session.state == {"new": ["b"]}

    in_time(main())


# ---- middleware ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_middleware_sees_the_corrected_call_and_its_settled_configuration(way):
    seen = []

    async def look(call, inner):
        seen.append((dict(call.arguments), dict(call.context.config)))
        async for item in inner(call):
            yield item

    app = holding(
        lambda word, limit: f"{word} {limit}",
        {"word": "str - w"},
        options={"name": "say"},
        invariants=(always("x", "x"),),
        config_params=(ToolConfigParam("limit", "5", int),),
    )
    app.register_middleware(look)
    context = ToolContext(config={"other": 1})
    result = in_time(way(app.session(), "say", {"word": "y"}, context=context))
    assert result.text == "x 5"
    assert seen == [({"word": "x"}, {"other": 1, "limit": 5})]


def sending(app, source: str, target: str, **arguments) -> None:
    async def send(call, inner):
        changed = {"arguments": arguments} if arguments else {}
        async for item in inner(replace(call, name=target, **changed)):
            yield item

    app.register_middleware(send, tool=source)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("held", [True, False])
def test_a_call_that_a_middleware_sends_to_another_tool_is_held_to_that_tools_contract(way, held):
    app = Satchel()
    if held:
        hold(app, lambda word: "never", {"word": "str - w"}, options={"name": "ask"})
    else:
        app.register_tool(lambda word: "never", name="ask", description="Ask.")
    hold(
        app,
        lambda word, limit: f"{word} {limit}",
        {"word": "str - w"},
        options={"name": "say"},
        invariants=(
            ToolInvariant(
                id="no-bad",
                rule="Nothing bad.",
                check=lambda call, s, c: call.arguments["word"] != "bad",
            ),
            always("x", "x"),
        ),
        config_params=(ToolConfigParam("limit", "5", int),),
        state_effects=(appends(),),
    )
    sending(app, "ask", "say")
    session = app.session()
    assert in_time(way(session, "ask", {"word": "y"})).text == "x 5"
    assert session.state == {"log": ["x 5"]}
    refused = in_time(way(session, "ask", {"word": "bad"}))
    assert (refused.error_code, refused.metadata["rejected"]) == ("rejected", ("no-bad",))
    assert session.state == {"log": ["x 5"]}


@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_is_sent_away_from_its_contract_is_not_written_by_two(way):
    app = Satchel()
    hold(app, lambda: "never", options={"name": "ask"}, state_effects=(appends("asked"),))
    hold(app, lambda: "said", options={"name": "say"}, state_effects=(appends("log"),))
    sending(app, "ask", "say")
    session = app.session()
    in_time(way(session, "ask"))
    assert session.state == {"log": ["said"]}


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_of_another_tool_s_contract_is_no_effect_of_the_first(way):
    never = ToolInvariant(id="never", rule="Never.", check=lambda *args: False, correct=DROP_STEP)
    app = Satchel()
    hold(app, lambda: "never", options={"name": "ask"}, state_effects=(appends("asked"),))
    hold(app, lambda: "said", options={"name": "say"}, invariants=(never,))
    sending(app, "ask", "say")
    session = app.session()
    assert in_time(way(session, "ask")).text == "say was left out: Never."
    assert session.state == {}


def test_a_middleware_that_changes_an_answer_changes_what_is_written():
    async def louder(call, inner):
        async for item in inner(call):
            yield replace(item, structured="LOUD") if isinstance(item, ToolResult) else item

    app = holding(lambda: "quiet", options={"name": "say"}, state_effects=(appends(),))
    app.register_middleware(louder)
    session = app.session()
    in_time(session.call("say"))
    assert session.state == {"log": ["LOUD"]}


def test_what_middleware_throws_away_or_loses_is_not_written():
    async def thrice(call, inner):
        for _ in range(3):
            items = [item async for item in inner(replace(call, name="say"))]
        yield items[-1]

    async def losing(call, inner):
        async for item in inner(replace(call, name="say")):
            if isinstance(item, ToolResult):
                raise TypeError("lost")
            yield item

    for layer, log in ((thrice, ["said"]), (losing, None)):
        app = Satchel()
        app.register_tool(lambda: "never", name="ask")
        hold(app, lambda: "said", options={"name": "say"}, state_effects=(appends("log"),))
        app.register_middleware(layer, tool="ask")
        for way in WAYS:
            session = app.session()
            in_time(way(session, "ask"))
            assert session.state.get("log") == log


# ---- background ---------------------------------------------------------------------------


class Behind:
    """A tool that goes on in the background, and ends when it is told to."""

    def __init__(self, answer="there", **parts) -> None:
        self.go_on, self.answer, self.got = asyncio.Event(), answer, []
        self.app = Satchel()
        hold(
            self.app,
            self.work,
            {"word": "str = 'w' - w"},
            options={"name": "work", "background": True},
            **{"state_effects": (appends(),), **parts},
        )
        self.session = self.app.session()

    async def work(self, word: str = "w") -> str:
        self.got.append(word)
        await self.go_on.wait()
        return self.answer

    async def end(self):
        self.go_on.set()
        return await self.session.call("wait_task", {"task_id": "task_1"})


@pytest.mark.parametrize("way", WAYS)
def test_what_a_background_tool_brings_is_written_when_it_ends(way):
    async def main():
        behind = Behind(invariants=(always("x", "x"),))
        answer = await way(behind.session, "work", {"word": "y"}, call_id="c")
        assert answer.metadata["task_id"] == "task_1"
        assert behind.session.state == {}, "nothing is there for the answer that it goes on"
        ended = await behind.end()
        assert ended.metadata["status"] == "done"
        assert (behind.session.state, behind.got) == ({"log": ["there"]}, ["x"])

    in_time(main())


def test_a_background_tool_does_not_block_the_calls_behind_it():
    async def main():
        behind = Behind()
        hold(behind.app, lambda: "b", options={"name": "b"}, state_effects=(appends(),))
        results = await behind.session.execute([ToolCall(name="work"), ToolCall(name="b")])
        assert len(results) == 2
        assert behind.session.state == {"log": ["b"]}
        await behind.end()
        assert behind.session.state == {"log": ["b", "there"]}

    in_time(main())


def test_a_background_task_that_cannot_be_written_says_so():
    async def main():
        behind = Behind()
        behind.session.state["log"] = "no list"
        await behind.session.call("work")
        ended = await behind.end()
        assert (ended.is_error, ended.error_code) == (True, "effect_failed")
        assert ended.metadata["status"] == "failed"
        assert behind.session.state == {"log": "no list"}

    in_time(main())


def test_a_background_task_that_is_cancelled_writes_nothing():
    async def main():
        behind = Behind()
        await behind.session.call("work")
        ended = await behind.session.call("cancel_task", {"task_id": "task_1"})
        assert ended.metadata["status"] == "cancelled"
        assert behind.session.state == {}

    in_time(main())


def test_a_background_call_that_a_rule_refuses_begins_nothing():
    async def main():
        behind = Behind(invariants=(never(),))
        assert (await behind.session.call("work")).error_code == "rejected"
        assert (behind.got, behind.session.state) == ([], {})

    in_time(main())


def test_a_middleware_that_sends_a_call_to_a_background_tool_keeps_its_contract():
    async def main():
        behind = Behind(invariants=(always("x", "x"),))
        app = behind.app
        app.register_tool(lambda word: word, name="other", description="Other.", background=True)
        sending(app, "other", "work")
        answer = await behind.session.call("other", {"word": "y"})
        assert answer.metadata["task_id"] == "task_1"
        assert behind.session.state == {}
        await behind.end()
        assert (behind.got, behind.session.state) == (["x"], {"log": ["there"]})

    in_time(main())


def test_a_background_task_ends_by_the_contract_that_it_began_with():
    async def main():
        behind = Behind()
        await behind.session.call("work")
        behind.app.remove_contract("work")
        await behind.end()
        assert behind.session.state == {"log": ["there"]}

    in_time(main())


# ---- what the model reads -----------------------------------------------------------------


def codes(app: Satchel) -> list[str]:
    others = {"plugin-not-enabled", "tool-undescribed"}
    return [it.code for it in app.catalog.diagnostics if it.code not in others]


def remembering(notes: str = "Known: {{DOCS}}", preserve: bool = False, **options) -> Satchel:
    app = Satchel(**options)
    app.create_group("docs", "Documents.", notes=notes)
    hold(
        app,
        lambda text: text,
        {"text": "str - t"},
        options={"name": "note", "group": "docs", "description": "Note."},
        state_effects=(
            appends("docs", prompt_template_var="DOCS", preserve_across_turns=preserve),
        ),
    )
    return app


def test_notes_are_filled_with_what_tools_wrote():
    session = remembering().session()
    session.activate("docs")
    assert "Known: \n" in session.activated_notes() + "\n"
    in_time(session.call("note", {"text": "<b>{{DOCS}}&"}))
    notes = session.activated_notes()
    assert r'Known: ["\u003cb\u003e{\u007bDOCS}}\u0026"]' in notes
    assert notes in session.prompt()


def test_the_prompt_of_a_step_stays_as_it_was_when_the_step_began():
    session = remembering().session()
    session.activate("docs")
    step = session.step()
    before = step.prompt(), step.activated_notes()
    in_time(step.call("note", {"text": "new"}))
    assert (step.prompt(), step.activated_notes()) == before
    assert '["new"]' in session.step().prompt()
    step = session.step()
    session.state["docs"].append("changed in place")
    assert '["new"]' in step.prompt()


def test_the_answer_of_the_meta_tool_is_filled():
    session = remembering().session()
    session.state["docs"] = ["a"]
    messages = in_time(session.call("reset_equipped_tools", {"docs": True})).text
    assert 'Known: ["a"]' in messages


def test_a_skill_that_switches_a_group_on_brings_its_filled_notes_and_no_filled_body(
    tmp_path, write_skill
):
    text = (
        "---\nname: pdf\ndescription: D.\nmetadata:\n  include_tools: docs\n---\nBody {{DOCS}}.\n"
    )
    write_skill(tmp_path, "pdf", text=text)
    session = remembering(skills=[tmp_path]).session()
    session.state["docs"] = ["a"]
    messages = in_time(session.call("load_skill", {"name": "pdf"})).text
    assert "docs" in session.active_groups
    assert "Body {{DOCS}}." in messages
    assert 'Known: ["a"]' in messages


def test_a_turn_clears_what_is_not_to_be_preserved():
    for preserve in (False, True):
        session = remembering(preserve=preserve).session()
        session.activate("docs")
        session.state["own"] = "the host's"
        in_time(session.call("note", {"text": "a"}))
        session.new_turn()
        kept = {"docs": ["a"]} if preserve else {}
        assert session.state == {"own": "the host's", **kept}
        session.new_turn()


def test_a_turn_clears_also_what_tools_out_of_sight_wrote():
    session = remembering().session()
    session.state["docs"] = ["a"]
    assert "docs" not in session.active_groups
    session.new_turn()
    assert session.state == {}


def test_a_template_of_the_host_is_filled_and_what_is_unknown_is_reported():
    session = remembering().session()
    session.state["docs"] = ["a"]
    text, problems = session.fill("{{DOCS}} {{OTHER}} {{ DOCS }} {{other}}")
    assert text == '["a"]  {{ DOCS }} {{other}}'
    assert [(item.code, "OTHER" in item.message) for item in problems] == [
        ("prompt-variable-unknown", True)
    ]
    assert session.fill("nothing").text == "nothing"
    assert session.prompt_variables() == {"DOCS": '["a"]'}
    session.new_turn()
    assert session.prompt_variables() == {"DOCS": ""}
    assert session.fill("{{DOCS}}") == ("", ())


def test_a_value_for_the_prompt_has_a_limit():
    session = remembering().session()
    session.state["docs"] = "x" * 1_000_000
    text = session.prompt_variables()["DOCS"]
    assert len(text) < 300_000
    assert "left out" in text[-100:]


def test_sections_of_plugins_are_filled(tmp_path, write_plugin):
    source = """
        from satchel import ToolContract, ToolStateEffect, hookimpl, tool

        @tool
        def note(text: str) -> str:
            "Write the text down."
            return text

        @hookimpl
        def satchel_contracts():
            return [ToolContract(name="note", schema={"text": "str - t"},
                description="Note.", state_effects=[
                ToolStateEffect(key="docs", type_hint=list, merge="append",
                    prompt_template_var="DOCS")])]

        @hookimpl
        def satchel_prompt_sections():
            return ["Section: {{DOCS}}{{NOBODY}}."]
    """
    write_plugin(tmp_path, "demo", tools=source)
    app = Satchel(plugins=[tmp_path])
    session = app.session()
    assert "Section: ." in session.prompt_sections()
    in_time(session.call("note", {"text": "a"}))
    assert 'Section: ["a"].' in session.prompt()
    assert codes(app) == ["prompt-variable-unknown"]


def test_a_variable_in_notes_that_is_not_filled_is_reported_in_the_catalog():
    app = remembering(notes="{{DOCS}} {{NOBODY}}")
    assert codes(app) == ["prompt-variable-unknown"]
    session = app.session()
    session.activate("docs")
    assert "NOBODY" not in session.activated_notes()
    app.remove_contract("note")
    assert codes(app) == ["prompt-variable-unknown"] * 2


def test_one_variable_of_two_keys_is_reported_and_the_first_counts():
    app = remembering()
    hold(
        app,
        lambda: "x",
        options={"name": "zz"},
        state_effects=(ToolStateEffect(key="other", prompt_template_var="DOCS"),),
    )
    assert codes(app) == ["prompt-variable-contested"]
    session = app.session()
    session.state.update(docs=["first"], other="second")
    assert session.prompt_variables() == {"DOCS": '["first"]'}


# ---- saved sessions -----------------------------------------------------------------------


def test_what_tools_wrote_is_saved_and_taken_up_again():
    app = remembering()
    session = app.session()
    session.activate("docs")
    in_time(session.call("note", {"text": "a"}))
    saved = session.state_dict()
    other = app.session()
    other.load_state_dict(saved)
    assert other.state == {"docs": ["a"]}
    in_time(other.call("note", {"text": "b"}))
    assert other.state == {"docs": ["a", "b"]}
    assert session.state == {"docs": ["a"]}
    assert other.prompt() != session.prompt()


def test_what_is_written_is_no_part_of_the_result_that_it_came_in():
    value = {"rows": [1]}
    app = holding(
        lambda: ToolResult(structured=value),
        options={"name": "t"},
        state_effects=(ToolStateEffect(key="rows", type_hint=list),),
    )
    session = app.session()
    result = in_time(session.call("t"))
    session.state["rows"].append(2)
    assert (value, result.structured) == ({"rows": [1]}, {"rows": [1]})


def test_a_state_that_is_taken_up_meanwhile_is_written_into():
    async def main():
        talk = Talk()
        saved = talk.session.state_dict()
        work = asyncio.create_task(talk.session.call("wait"))
        await talk.began.wait()
        talk.session.load_state_dict(saved)
        talk.go_on.set()
        await work
        assert talk.session.state == {"log": ["waited"]}

    in_time(main())


def test_two_sessions_never_write_into_each_other():
    app = remembering(preserve=True)
    one, other = app.session(), app.session()
    for session in (one, other):
        session.activate("docs")
    in_time(one.call("note", {"text": "a"}))
    assert other.state == {}
    other.new_turn()
    assert one.state == {"docs": ["a"]}


def test_a_required_read_that_comes_from_another_tool():
    app = Satchel()
    hold(
        app,
        lambda: {"ids": [1, 2]},
        options={"name": "find"},
        state_effects=(ToolStateEffect(key="ids", type_hint=list),),
    )
    hold(app, lambda ids: f"{ids}", options={"name": "use"}, state_reads=(ToolStateRead("ids"),))
    session = app.session()
    assert in_time(as_call(session, "use")).is_error
    results = in_time(
        session.execute([ToolCall(name="find"), ToolCall(name="use")], executor=Sequential())
    )
    assert results[1].text == "[1, 2]"
    assert in_time(as_stream(session, "use")).text == "[1, 2]"


# ---- many sessions ------------------------------------------------------------------------


@pytest.mark.slow
def test_contracts_and_policies_cost_an_idle_session_nothing():
    def bytes_per_session(app, **options):
        one = app.session(**options)
        one.step().prompt()
        gc.collect()
        tracemalloc.start()
        sessions = [app.session(**options) for _ in range(2_000)]
        for session in sessions:
            session.step()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return size / len(sessions)

    app = Satchel()
    app.register_tool(lambda word: word, name="say", description="Say.")
    without = bytes_per_session(app)
    contract = ToolContract(
        name="say", schema={"word": "str - w"}, description="Say.", state_effects=(appends(),)
    )
    app.register_contract(contract)
    assert bytes_per_session(app) < without + 16
    assert bytes_per_session(app, plan_policy=lambda plan, state: None) < without + 16
