"""Recordings: what they hold, how they are read, and how a replay compares."""

import asyncio
import json
import stat

import pytest

from satchel import DefinitionError, Recording, Satchel, ToolCall, ToolError, replay

SKILL = "---\nname: fares\ndescription: Fares of trains.\n---\n{}\n"
GREET = ToolCall(name="greet", arguments={"name": "Ada"}, id="1")
STEP = (
    '{"satchel-recording": 1}\n'
    '{"kind": "step", "groups": [], "prompt": "", "tools": [], "switched": {"on": [1]}}\n'
)
LOAD = ToolCall(name="load_skill", arguments={"name": "fares"}, id="2")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "fares").mkdir()
    (tmp_path / "fares" / "SKILL.md").write_text(SKILL.format("599 kr."))
    return tmp_path


def opened(folder, greet=None):
    app = Satchel(skills=[folder])

    def plain(name: str) -> str:
        """Greet somebody."""
        return f"Hello {name}"

    app.register_tool(greet or plain, name="greet")
    return app


def recorded(folder, calls=(GREET, LOAD)):
    session, recording = opened(folder).session(), Recording()
    recording.add_messages([{"role": "user", "content": "Hi"}])
    step = session.step()
    recording.add_step(step)
    recording.add_calls(calls, asyncio.run(step.execute(calls)))
    recording.add_step(session.step())
    return recording


def replayed(recording, app, **options):
    result = asyncio.run(replay(recording, app.session(), **options))
    return [(item.entry, item.kind, item.message) for item in result], result


def test_a_file_holds_all_that_was_said_and_only_the_user_can_read_it(folder, tmp_path):
    recording, path = recorded(folder), tmp_path / "talk.jsonl"
    recording.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0] == {"satchel-recording": 1}
    assert [line["kind"] for line in lines[1:]] == ["message", "step", "call", "call", "step"]
    assert list(Recording.load(path)) == list(recording)
    assert len(Recording.load(path)) == 5


def test_any_text_survives_also_half_a_surrogate_and_line_separators(tmp_path):
    recording = Recording()
    recording.add_messages([{"role": "user", "content": "a\u2028b\x85c \ud83d d \x0c"}])
    recording.save(tmp_path / "talk")
    assert list(Recording.load(tmp_path / "talk")) == list(recording)


def test_a_call_with_a_broken_json_text_is_recorded_as_the_model_wrote_it(folder):
    recording = recorded(folder, [ToolCall(name="greet", arguments='{"name":', id="1")])
    assert next(item for item in recording if item["kind"] == "call")["call"]["arguments"] == (
        '{"name":'
    )
    assert replayed(recording, opened(folder)) == ([], ())


def test_calls_without_a_result_are_refused_and_nothing_is_recorded(folder):
    results = asyncio.run(opened(folder).session().execute([GREET]))
    recording = Recording()
    with pytest.raises(ValueError, match="2 and 1"):
        recording.add_calls([GREET, LOAD], results)
    assert len(recording) == 0


@pytest.mark.parametrize("run", [False, True])
def test_nothing_differs_while_nothing_was_edited(folder, run):
    assert replayed(recorded(folder), opened(folder), run=run) == ([], ())


def test_edited_text_of_a_skill_is_found_because_loading_is_repeated(folder):
    recording = recorded(folder)
    (folder / "fares" / "SKILL.md").write_text(SKILL.format("649 kr."))
    messages, (item,) = replayed(recording, opened(folder))
    assert messages == [(3, "result", "the call of 'load_skill' answers differently")]
    assert "-599 kr." in item.diff
    assert "+649 kr." in item.diff


def test_an_edited_description_changes_prompt_and_tools_of_each_step(folder):
    recording = recorded(folder)
    text = SKILL.format("599 kr.").replace("Fares of trains", "Prices")
    (folder / "fares" / "SKILL.md").write_text(text)
    messages, _ = replayed(recording, opened(folder))
    assert [(entry, kind) for entry, kind, _ in messages] == [(1, "prompt"), (4, "prompt")]


def test_a_call_that_no_longer_fits_its_tool_is_found_without_running_it(folder):
    ran = []

    def greet(first: str) -> str:
        """Greet somebody."""
        ran.append(first)
        return first

    messages, _ = replayed(recorded(folder), opened(folder, greet))
    assert ("tools", "tool 'greet' is described differently") in [item[1:] for item in messages]
    refused = [message for _, kind, message in messages if kind == "call"]
    assert len(refused) == 1
    assert "the call of 'greet' would be refused now:" in refused[0]
    assert "first" in refused[0]
    assert ran == []


def test_a_tool_that_is_gone_is_found(folder):
    messages, _ = replayed(recorded(folder), Satchel(skills=[folder]))
    kinds = [(kind, message.split(":")[0]) for _, kind, message in messages]
    assert ("tools", "tool 'greet' is gone") in kinds
    assert ("call", "the call of 'greet' would be refused now") in kinds


def test_other_answers_are_found_only_if_the_calls_are_made_again(folder):
    def greet(name: str) -> str:
        """Greet somebody."""
        raise ToolError(f"{name} is away")

    recording, app = recorded(folder), opened(folder, greet)
    assert replayed(recording, app) == ([], ())
    messages, _ = replayed(recording, app, run=True)
    assert messages == [(2, "result", "the call of 'greet' gave an answer, and gives an error")]


def test_groups_that_the_model_chose_are_chosen_again(folder):
    def grouped():
        app = opened(folder)
        app.create_group("maps", notes="Be exact.")
        app.register_tool(lambda: "here", name="where", description="Where?", group="maps")
        return app

    session, recording = grouped().session(), Recording()
    choose = ToolCall(name="reset_equipped_tools", arguments={"maps": True}, id="g")
    recording.add_step(step := session.step())
    recording.add_calls([choose], asyncio.run(step.execute([choose])))
    recording.add_step(session.step())
    assert replayed(recording, grouped()) == ([], ())
    without = opened(folder)
    without.create_group("web", active=True)
    messages, _ = replayed(recording, without)
    assert (2, "groups", "active groups were basic, maps, and are basic, web") in messages


def with_maps(folder, description="Where?"):
    app = opened(folder)
    app.create_group("maps", notes="Be exact.")
    app.create_group("web", active=True)
    app.register_tool(lambda: "here", name="where", description=description, group="maps")
    app.register_tool(lambda: "x", name="fetch", description="Fetch.", group="web")
    return app


def test_what_the_host_switched_at_the_start_and_between_steps_is_switched_again(folder):
    session, recording = with_maps(folder).session(), Recording()
    session.deactivate("web")
    recording.add_step(session.step())
    session.activate("maps")
    recording.add_step(step := session.step())
    calls = [ToolCall(name="where")]
    recording.add_calls(calls, asyncio.run(step.execute(calls)))
    session.activate_tools("fetch")
    recording.add_step(session.step())
    saved = Recording.loads(recording.dumps())
    assert replayed(saved, with_maps(folder), run=True) == ([], ())
    messages, _ = replayed(saved, with_maps(folder, "Another place?"))
    assert messages == [
        (1, "tools", "tool 'where' is described differently"),
        (3, "tools", "tool 'where' is described differently"),
    ]


def test_a_skill_that_the_host_loaded_is_loaded_again(folder):
    session, recording = opened(folder).session(), Recording()
    for load in (session.load_skill, lambda _: None):
        load("fares")
        step = session.step()
        recording.add_step(step)
        recording.add_calls([LOAD], asyncio.run(step.execute([LOAD])))
    assert "loaded before" in list(recording)[1]["result"]["content"][0]["text"]
    assert replayed(Recording.loads(recording.dumps()), opened(folder))[0] == []


def test_a_single_tool_that_the_host_disabled_again_is_off_in_the_replay(folder):
    session, recording = with_maps(folder).session(), Recording()
    session.deactivate("web")
    session.activate_tools("fetch", "where")
    recording.add_step(session.step())
    session.deactivate_tools("fetch")
    recording.add_step(session.step())
    session.activate_tools("fetch")
    recording.add_step(session.step())
    offered = [{tool["name"] for tool in entry["tools"]} for entry in recording]
    assert ["fetch" in names for names in offered] == [True, False, True]
    assert replayed(recording, with_maps(folder)) == ([], ())


def test_a_group_of_the_host_that_is_gone_is_found(folder):
    session, recording = with_maps(folder).session(), Recording()
    session.activate("maps")
    recording.add_step(session.step())
    messages, _ = replayed(recording, opened(folder))
    assert (0, "groups", "active groups were basic, maps, web, and are basic") in messages
    assert (0, "tools", "tool 'where' is gone") in messages


def test_a_group_that_is_active_by_itself_now_is_found(folder):
    recording = Recording()
    recording.add_step(with_maps(folder).session().step())
    app = opened(folder)
    app.create_group("maps", active=True)
    app.create_group("web")
    messages, _ = replayed(recording, app)
    assert messages[0] == (0, "groups", "active groups were basic, web, and are basic, maps")


def test_a_group_that_a_skill_no_longer_activates_is_found(folder):
    skill = folder / "fares" / "SKILL.md"
    plain = skill.read_text()
    skill.write_text(plain.replace("---\n599", "metadata:\n  groups: maps\n---\n599"))
    session, recording = with_maps(folder).session(), Recording()
    recording.add_step(step := session.step())
    recording.add_calls([LOAD], asyncio.run(step.execute([LOAD])))
    recording.add_step(session.step())
    assert "maps" in session.step().active_groups
    assert replayed(recording, with_maps(folder)) == ([], ())
    skill.write_text(plain)
    messages, _ = replayed(recording, with_maps(folder))
    assert (2, "groups", "active groups were basic, maps, web, and are basic, web") in messages


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "line 1"),
        ("{}\n", "line 1"),
        ('{"satchel-recording": 2}\n', "line 1"),
        ('{"satchel-recording": 1}\n{"kind": "dream"}\n', "line 2"),
        ('{"satchel-recording": 1}\n\n{"kind": "dream"}\n', "line 3"),
        ('{"satchel-recording": 1}\n{"kind": "step", "groups": []}\n', "line 2"),
        (STEP.replace("[1]", '"maps"'), "line 2"),
        (STEP, "line 2"),
        ('{"satchel-recording": 1}\n{"kind": "call", "call": {}, "result": {}}\n', "line 2"),
        ('{"satchel-recording": 1}\n[' + "\n", "line 2"),
        ("[" * 100_000, "line 1"),
    ],
)
def test_what_is_no_recording_is_refused_with_its_line(text, line):
    with pytest.raises(DefinitionError, match=line):
        Recording.loads(text)


def test_a_file_that_is_not_utf8_is_refused_with_its_line(tmp_path):
    (tmp_path / "talk").write_bytes(b'{"satchel-recording": 1}\n\xff\xfe\n')
    with pytest.raises(DefinitionError, match=r"line 2 of the recording cannot be read: .* UTF-8"):
        Recording.load(tmp_path / "talk")


@pytest.mark.parametrize("run", [False, True])
def test_the_calls_of_one_message_are_judged_together(folder, run):
    def ruled():
        app = opened(folder)

        def policy(plan, _state):
            return None if len(plan) == 2 else "Send both calls together."

        return app.session(plan_policy=policy)

    session, recording = ruled(), Recording()
    calls = [GREET, GREET.changed(id="3")]
    recording.add_step(step := session.step())
    recording.add_calls(calls, asyncio.run(step.execute(calls)))
    assert asyncio.run(replay(recording, ruled(), run=run)) == ()
    alone = Recording()
    alone.add_step(step := session.step())
    alone.add_calls(calls[:1], asyncio.run(step.execute(calls[:1])))
    assert asyncio.run(replay(alone, ruled(), run=run)) == (), "it was refused before, too"
    (difference,) = asyncio.run(replay(alone, opened(folder).session(), run=True))
    assert difference.message == "the call of 'greet' gave an error, and gives an answer"
