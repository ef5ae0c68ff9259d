"""A step is one consistent view; sessions know nothing of each other, and pin nothing old."""

import asyncio
import gc
import json
from contextlib import aclosing
from weakref import ref

import pytest
from conversation import META, answer, choose, echo, maps_and_web, names, refused, say, schema

from satchel import Satchel, ToolCall, ToolContext, tool
from satchel.runtime.executors import Sequential


def picture(place) -> str:
    """Return all that a model is shown, byte for byte."""
    return json.dumps(
        [
            place.prompt(),
            place.skill_prompt(),
            place.activated_notes(),
            place.schemas("openai"),
            place.schemas("anthropic"),
            list(place.active_groups),
        ]
    )


@tool
def whistle() -> str:
    """Whistle."""
    return "tune"


@tool
def count(context: ToolContext) -> int:
    """Count."""
    context.state["calls"] = context.state.get("calls", 0) + 1
    return context.state["calls"]


def louder(text: str, volume: int = 1) -> str:
    """Say it loudly."""
    return text.upper()


# ---- nothing of a step changes ------------------------------------------------------------------


def replace_echo(app, session, skills):
    app.register_tool(louder, name="echo", on_conflict="override")


def remove_echo(app, session, skills):
    app.remove_tool("echo")


def add_a_tool(app, session, skills):
    app.register_tool(whistle, name="a_first")


def remove_a_group(app, session, skills):
    app.remove_group("maps")


def add_a_group(app, session, skills):
    app.create_group("extra", "More.", notes="Read me.", active=True)


def activate_as_host(app, session, skills):
    session.activate("web")


def deactivate_as_host(app, session, skills):
    session.deactivate("maps")


def edit_a_skill(app, session, skills):
    text = "---\nname: pdf\ndescription: Another one.\n---\nOther.\n"
    (skills / "pdf/SKILL.md").write_text(text)
    app.refresh()


def delete_a_skill(app, session, skills):
    (skills / "pdf/SKILL.md").unlink()
    app.refresh()


def load_another_state(app, session, skills):
    session.load_state_dict({"version": 1, "groups": {"on": ["web"]}, "tools": ["route", "echo"]})


def add_in_the_background(app, session, skills):
    app.register_tool(whistle, background=True)


EVENTS = [
    *(replace_echo, remove_echo, add_a_tool, remove_a_group, add_a_group, activate_as_host),
    *(deactivate_as_host, edit_a_skill, delete_a_skill, load_another_state, add_in_the_background),
]


@pytest.fixture
def skills(tmp_path, write_skill):
    write_skill(tmp_path, "pdf", description="Reads PDF files.")
    return tmp_path


@pytest.mark.parametrize("event", EVENTS)
def test_nothing_of_a_step_changes_and_the_next_one_sees_it(event, skills):
    app = maps_and_web(skills=[skills])
    session = app.session()
    session.activate("maps")
    step = session.step()
    before = picture(step)
    number = step.generation
    event(app, session, skills)
    assert picture(step) == before
    assert step.generation == number
    assert say(step, "echo", text="hi") == "hi", "the version of the step"
    assert say(step, "route", start="a", end="b") == "a to b"
    assert "Do it." in say(step, "load_skill", name="pdf")
    after = session.step()
    assert picture(after) != before
    assert picture(after) == picture(session)


def test_the_next_step_runs_what_is_there_by_then():
    app = maps_and_web()
    session = app.session()
    step = session.step()
    app.register_tool(louder, name="echo", on_conflict="override")
    assert say(session.step(), "echo", text="hi") == "HI"
    assert say(session, "echo", text="hi") == "HI"
    app.remove_tool("echo")
    assert answer(session.step(), "echo", text="hi").error_code == "tool_not_found"
    assert say(step, "echo", text="hi") == "hi", "however often it changed since"


def test_every_way_to_call_is_of_the_step():
    app = maps_and_web()
    session = app.session()
    step = session.step()
    app.register_tool(louder, name="echo", on_conflict="override")
    call = ToolCall(name="echo", arguments={"text": "hi"}, id="1")

    async def main():
        yield (await step.call("echo", {"text": "hi"})).text
        async with aclosing(step.stream("echo", {"text": "hi"})) as items:
            yield [item.text async for item in items][-1]
        (result,) = await step.execute([call])
        yield result.text
        async for _, result in step.execute_streaming([call]):
            yield result.text

    async def gathered():
        return [text async for text in main()]

    assert asyncio.run(gathered()) == ["hi"] * 4


def test_a_plugin_that_is_rewritten_meanwhile_still_runs_as_it_was(tmp_path, write_plugin):
    def source(word):
        return f"from satchel import tool\n@tool\ndef speak() -> str:\n    return '{word}'\n"

    write_plugin(tmp_path, "demo", tools=source("one"))
    app = Satchel(plugins=[tmp_path])
    session = app.session()
    step = session.step()
    write_plugin(tmp_path, "demo", tools=source("two and more"))
    app.refresh()
    assert say(step, "speak") == "one"
    assert say(session.step(), "speak") == "two and more"


def test_a_session_asked_directly_follows_at_once():
    app = maps_and_web()
    session = app.session()
    app.register_tool(whistle)
    assert say(session, "whistle") == "tune"
    assert "whistle" in names(session)


# ---- groups that are switched inside a step -----------------------------------------------------


def test_what_the_model_activates_counts_from_the_next_step_and_is_said_until_then():
    session = maps_and_web().session()
    step = session.step()
    before = picture(step)
    choose(step, maps=True)
    assert picture(step) == before
    message = refused(step, "route", start="a", end="b")
    assert message == (
        "Tool 'route' is in tool group 'maps', "
        "which is active from the next step on. Try again then."
    )
    assert say(session.step(), "route", start="a", end="b") == "a to b"


def test_what_the_model_deactivates_serves_until_the_step_is_over():
    session = maps_and_web().session()
    session.activate("maps")
    step = session.step()
    choose(step, web=True)
    assert say(step, "route", start="a", end="b") == "a to b"
    assert "is not active" in refused(session.step(), "route", start="a", end="b")


def test_calls_of_one_step_see_no_switch_between_them():
    session = maps_and_web().session()
    step = session.step()
    calls = [
        ToolCall(name=META, arguments={"maps": True}),
        ToolCall(name="route", arguments={"start": "a", "end": "b"}),
    ]
    switched, routed = asyncio.run(step.execute(calls, executor=Sequential()))
    assert not switched.is_error
    assert "from the next step on" in routed.text


def test_the_groups_to_choose_from_are_those_of_the_step():
    app = maps_and_web()
    session = app.session()
    step = session.step()
    app.create_group("extra")
    assert "There is no tool group 'extra'" in refused(step, META, extra=True)
    app.remove_group("web")
    choose(step, maps=True, web=True)
    assert session.step().active_groups == ("basic", "maps")
    app.create_group("web", "It came back.")
    assert session.step().active_groups == ("basic", "maps", "web")


def test_a_skill_loaded_in_a_step_switches_its_groups_on_for_the_next(tmp_path, write_skill):
    text = "---\nname: way\ndescription: Ways.\ngroups: maps\n---\nGo.\n"
    write_skill(tmp_path, "way", text=text)
    session = maps_and_web(skills=[tmp_path]).session()
    step = session.step()
    say(step, "load_skill", name="way")
    assert "from the next step on" in refused(step, "route", start="a", end="b")
    assert "route" in names(session.step())


# ---- sessions know nothing of each other --------------------------------------------------------


def test_two_sessions_never_see_each_others_groups_skills_files_and_state(tmp_path, write_skill):
    write_skill(tmp_path, "pdf", body="The instructions.\n")
    (tmp_path / "pdf/guide.md").write_text("the guide")
    app = maps_and_web(skills=[tmp_path])
    app.register_tool(count)
    one, other = app.session(), app.session()
    untouched = app.session()
    fresh, saved = picture(other), untouched.state_dict()
    choose(one, maps=True)
    say(one, "count")
    say(one, "load_skill", name="pdf")
    say(one, "read_skill_file", skill="pdf", path="guide.md")
    assert picture(other) == fresh
    assert untouched.state_dict() == saved
    assert other.active_groups == ("basic",)
    assert other.loaded_skills == ()
    assert other.state == {}
    assert "is not loaded" in refused(other, "read_skill_file", skill="pdf", path="guide.md")
    assert "The instructions." in say(other, "load_skill", name="pdf")
    assert "the guide" in say(other, "read_skill_file", skill="pdf", path="guide.md")
    assert say(other, "count") == "1"


def test_the_wording_of_one_session_is_its_own(tmp_path, write_skill):
    from dataclasses import replace

    write_skill(tmp_path, "pdf")
    app = Satchel(skills=[tmp_path])
    one, other = app.session(), app.session()
    one.skill_style = replace(one.skill_style, instruction="Mine.")
    assert one.prompt().startswith("Mine.")
    assert "Mine." not in other.prompt()


# ---- what changed ------------------------------------------------------------------------------


def test_a_step_reports_what_came_went_and_changed_since_the_one_before(skills):
    app = maps_and_web(skills=[skills])
    session = app.session()
    assert session.changes() == ()
    assert session.step().changes == ()
    assert session.changes() == ()
    app.register_tool(whistle)
    app.register_tool(louder, name="echo", on_conflict="override")
    edit_a_skill(app, session, skills)
    session.activate("maps")
    waiting = session.changes()
    messages = {(change.event, change.kind, change.name, change.message) for change in waiting}
    assert messages == {
        ("changed", "group", "maps", "active"),
        ("changed", "skill", "pdf", ""),
        ("changed", "tool", "echo", ""),
        ("added", "tool", "route", ""),
        ("added", "tool", "whistle", ""),
    }
    assert session.changes() == waiting, "asking begins no step"
    step = session.step()
    assert step.changes == waiting
    assert step.changes.text == waiting.text
    for word in ("whistle", "echo", "route", "pdf", "maps"):
        assert word in step.changes.text
    assert session.step().changes == ()
    assert session.step().changes.text == ""
    app.remove_tool("whistle")
    session.deactivate("maps")
    gone = {(change.event, change.name) for change in session.step().changes}
    assert gone == {("removed", "whistle"), ("removed", "route"), ("changed", "maps")}


def test_what_a_step_reports_stays_the_same_after_later_steps(skills):
    app = maps_and_web(skills=[skills])
    session = app.session()
    session.step()
    app.register_tool(whistle)
    step = session.step()
    message = step.changes.text
    app.remove_tool("whistle")
    session.step()
    assert step.changes.text == message
    assert "whistle" in message


def test_what_no_session_shows_is_reported_to_none(skills):
    app = maps_and_web(skills=[skills])
    session = app.session()
    session.step()
    app.register_tool(whistle, group="maps")
    (skills / "pdf/SKILL.md").write_text(
        "---\nname: pdf\ndescription: Hidden.\ndisable-model-invocation: true\n---\nx\n"
    )
    app.refresh()
    messages = [(change.event, change.kind, change.name) for change in session.step().changes]
    assert ("removed", "skill", "pdf") in messages
    assert "whistle" not in {name for _, _, name in messages}


# ---- same bytes --------------------------------------------------------------------------------


def test_an_unchanged_catalog_gives_the_same_bytes_across_calls_sessions_and_reloads(skills):
    app = maps_and_web(skills=[skills])
    session = app.session()
    session.activate("maps")
    before = picture(session)
    assert picture(session) == before
    assert picture(session.step()) == before
    other = app.session()
    other.activate("maps")
    assert picture(other) == before
    fresh = maps_and_web(skills=[skills]).session()
    fresh.activate("maps")
    assert picture(fresh) == before
    same = (skills / "pdf/SKILL.md").read_bytes()
    (skills / "pdf/SKILL.md").write_bytes(same)
    app.refresh()
    (skills / "pdf/notes.txt").write_text("more")
    (skills / "pdf/notes.txt").unlink()
    app.refresh()
    assert picture(session) == before


def test_a_new_generation_that_shows_nothing_new_gives_the_same_bytes(skills):
    app = maps_and_web(skills=[skills])
    session = app.session()
    before, number = picture(session), app.catalog.generation
    (skills / "pdf/SKILL.md").write_text(
        "---\nname: pdf\ndescription: Reads PDF files.\n---\nOther instructions.\n"
    )
    app.refresh()
    assert app.catalog.generation > number
    assert picture(session) == before


def test_the_order_of_switching_and_describing_groups_makes_no_difference():
    one, other = maps_and_web(), Satchel()
    other.create_group("web", "Reading pages.", notes="Be polite.")
    other.create_group("maps", "Geocoding and routes.", notes="Geocode first.")
    for name in ("echo", "route", "fetch"):
        entry = one.catalog.tools[name]
        other.register_tool(entry.tool, group=entry.group)
    first, second = one.session(), other.session()
    first.activate("maps", "web")
    second.activate("web")
    second.activate("maps")
    assert picture(first) == picture(second)


def test_new_tools_are_appended_also_after_others_went_and_came_back():
    app = Satchel()
    for name in ("b", "c", "d"):
        app.register_tool(whistle, name=name)
    session = app.session()
    assert names(session) == ["b", "c", "d"]
    app.register_tool(whistle, name="a")
    assert names(session) == ["b", "c", "d", "a"]
    app.remove_tool("c")
    assert names(session) == ["b", "d", "a"]
    app.register_tool(whistle, name="a2")
    assert names(session) == ["b", "d", "a", "a2"]
    before = session.schemas()
    app.register_tool(whistle, name="c")
    assert names(session) == ["b", "c", "d", "a", "a2"], "what came back takes its old place"
    app.remove_tool("c")
    assert session.schemas() == before
    for _ in "ab":  # each session has its own order, of the same tools
        assert names(session) == ["b", "d", "a", "a2"]
        assert names(app.session()) == ["b", "d", "a", "a2"], "as they were registered"


def test_a_group_that_is_activated_adds_its_tools_at_the_end():
    session = maps_and_web().session()
    before = session.schemas()
    session.activate("web")
    assert session.schemas()[: len(before)] == before
    session.activate("maps")
    assert names(session) == ["echo", META, "fetch", "route"]
    session.deactivate("web")
    assert names(session) == ["echo", META, "route"]
    session.activate("web")
    assert names(session) == ["echo", META, "fetch", "route"]


def spoil(place):
    for item in place.schemas("anthropic"):
        item["input_schema"].clear()
        item["name"] = "spoiled"


def test_what_a_session_hands_out_is_the_callers_own():
    app = maps_and_web()
    session = app.session()
    before = json.dumps(session.schemas("anthropic"))
    spoil(session)
    for place in (session, session.step(), app.session(), app.session().step()):
        assert json.dumps(place.schemas("anthropic")) == before


def test_what_is_done_to_the_schemas_of_a_step_stays_in_its_session():
    app = maps_and_web()
    session = app.session()
    step = session.step()
    before = json.dumps(step.schemas("anthropic"))
    spoil(step)
    assert step.schemas("anthropic") is step.schemas("anthropic")
    for place in (session, app.session(), app.session().step()):
        assert json.dumps(place.schemas("anthropic")) == before
    del step
    assert json.dumps(session.step().schemas("anthropic")) == before


def test_what_a_step_shows_of_its_tools_is_what_it_runs():
    app = maps_and_web()
    session = app.session()
    step = session.step()
    app.register_tool(louder, name="echo", on_conflict="override")
    assert "volume" not in schema(step, "echo")["input_schema"]["properties"]
    assert "invalid" in answer(step, "echo", text="x", volume=2).error_code
    assert "volume" in schema(session.step(), "echo")["input_schema"]["properties"]


# ---- what is let go ----------------------------------------------------------------------------


def busy(skills):
    """Return a satchel and a session that did everything once."""
    (skills / "pdf/guide.md").write_text("guide")
    app = maps_and_web(skills=[skills])
    app.register_tool(count)
    app.register_tool(whistle, idempotent=True)
    session = app.session(search=True)

    async def passing(call, inner):
        async for item in inner(call):
            yield item

    app.register_middleware(passing)
    session.prompt()
    for dialect in ("openai", "gemini"):
        session.schemas(dialect)
    say(session, "count")
    say(session, "whistle")
    say(session, "load_skill", name="pdf")
    say(session, "read_skill_file", skill="pdf", path="guide.md")
    say(session, "search_tools", words="route")
    refused(session, "nope")
    choose(session, maps=True)
    step = session.step()
    say(step, "echo", text="x")
    asyncio.run(
        step.execute([ToolCall(name="echo", arguments={"text": "x"}), ToolCall(name="nope")])
    )
    assert step.changes
    del step
    return app, session


def test_a_session_that_ended_is_garbage(skills):
    app, session = busy(skills)
    gone = ref(session)
    del session
    gc.collect()
    assert gone() is None
    assert app.catalog.tools


def test_an_idle_session_pins_no_old_generation(skills):
    app, session = busy(skills)
    old = ref(app.catalog)
    app.register_tool(whistle, name="newer")
    gc.collect()
    assert old() is None
    assert session.active_groups == ("basic", "maps")


def test_a_step_keeps_its_generation_for_as_long_as_it_is_held():
    app = maps_and_web()
    session = app.session()
    step = session.step()
    old = ref(app.catalog)
    app.register_tool(whistle)
    gc.collect()
    assert old() is not None
    del step
    gc.collect()
    assert old() is None
    assert session.step().generation == app.catalog.generation


@pytest.mark.parametrize("options", [{}, {"idempotent": True}])
def test_a_task_that_has_ended_pins_no_old_generation(options):
    app = maps_and_web()
    app.register_tool(whistle, background=True, **options)
    session = app.session()

    async def main():
        await session.call("whistle")
        return await session.call("wait_task", {"task_id": "task_1"})

    assert asyncio.run(main()).text.endswith("tune")
    old = ref(app.catalog)
    app.register_tool(echo, name="newer")
    gc.collect()
    assert old() is None
    assert say(session, "view_task", task_id="task_1").endswith("tune")


def test_a_step_shows_the_tools_of_its_view_and_the_sessions_own():
    app = maps_and_web()
    session = app.session()
    session.activate("maps")
    step = session.step()
    assert [created.name for created in step.own_tools] == [META]
    assert [*(entry.name for entry in step.view.tools), META] == names(step)
    app.register_tool(echo, name=META)
    assert session.step().own_tools == ()


def test_schemas_come_as_the_host_registered_then_by_path_then_as_defined(tmp_path):
    code = "from satchel import tool\n"
    for first, second in (("zoom", "aim"), ("zip", "add")):
        folder = tmp_path / f"of_{first}"
        folder.mkdir()
        (folder / "toolkit.yaml").write_text(f"name: {folder.name}\nactive: true\n")
        text = "".join(f"@tool\ndef {name}():\n    'Do it.'\n" for name in (first, second))
        (folder / "tools.py").write_text(code + text)
    app = Satchel(plugins=[tmp_path])
    app.register_tool(whistle, name="z")
    app.register_tool(whistle, name="a")

    def order(app):
        return names(app.session())[: len(app.catalog.tools)]

    assert order(app) == ["z", "a", "zip", "add", "zoom", "aim"]
    session = app.session()
    before = names(session)
    text = "".join(f"@tool\ndef {name}():\n    'Do it.'\n" for name in ("new", "add", "zip"))
    (tmp_path / "of_zip" / "tools.py").write_text(code + text)
    app.refresh()
    assert names(session) == [*before, "new"], "an open session appends"
    assert order(app)[2:] == ["new", "add", "zip", "zoom", "aim"]
    assert order(app)[2:] == order(Satchel(plugins=[tmp_path])), "hot as cold"
