import asyncio
import gc
import json
import threading

import pytest

from satchel import (
    ConflictError,
    DefinitionError,
    Limits,
    NotFoundError,
    Project,
    Satchel,
    Settings,
    SkillPrompt,
    Status,
    Tool,
    conventional_roots,
    tool,
)
from satchel.text import has_hidden


@tool
def shout(text: str, mark: str = "!") -> str:
    """Say it loudly."""
    return text.upper() + mark


def call(app, name, **arguments):
    return asyncio.run(app.session().call(name, arguments))


def names(app) -> list[str]:
    return shown(app.session())


def shown(session) -> list[str]:
    return [schema["function"]["name"] for schema in session.schemas()]


def problem_codes(catalog) -> list[str]:
    """Return the problems, without those of plugins installed beside the tests."""
    return [item.code for item in catalog.diagnostics if item.code != "plugin-not-enabled"]


def test_an_empty_satchel_has_an_empty_prompt():
    app = Satchel()
    assert app.session().prompt() == ""
    assert app.session().schemas() == []
    assert list(app.catalog.groups) == ["basic"]


def test_a_single_path_may_replace_a_list(tmp_path, write_skill):
    write_skill(tmp_path, "pdf")
    assert list(Satchel(skills=tmp_path).catalog.skills) == ["pdf"]
    assert list(Satchel(skills=str(tmp_path)).catalog.skills) == ["pdf"]


def test_a_folder_that_is_a_skill_itself_may_be_named(tmp_path, write_skill):
    folder = write_skill(tmp_path, "pdf")
    assert list(Satchel(skills=folder).catalog.skills) == ["pdf"]


def test_an_empty_path_is_refused():
    with pytest.raises(DefinitionError, match="empty path"):
        Satchel(skills=[""])


def test_nothing_on_disk_makes_it_raise(tmp_path):
    file = tmp_path / "file"
    file.write_text("no folder")
    app = Satchel(skills=[tmp_path / "missing", file], plugins=[file], entry_points=["missing"])
    assert sorted(problem_codes(app.catalog)) == ["plugin-not-installed", *["source-missing"] * 2]


def test_the_current_folder_may_change_without_losing_the_sources(
    tmp_path, monkeypatch, write_skill
):
    write_skill(tmp_path / "project" / "skills", "pdf")
    monkeypatch.chdir(tmp_path / "project")
    app = Satchel(skills=["skills"])
    monkeypatch.chdir(tmp_path)
    assert app.refresh() == ()
    assert app.catalog.skills["pdf"].source == "skills"


def test_a_catalog_never_changes(tmp_path, write_skill):
    write_skill(tmp_path, "pdf")
    app = Satchel(skills=[tmp_path])
    before = app.catalog
    with pytest.raises(TypeError):
        before.skills["docx"] = before.skills["pdf"]
    write_skill(tmp_path, "docx")
    (change,) = app.refresh()
    assert (change.event, change.name, change.generation) == ("added", "docx", 2)
    assert list(before.skills) == ["pdf"]
    assert app.catalog.generation == 2


def test_without_changes_there_is_no_new_generation(tmp_path, write_skill):
    write_skill(tmp_path, "pdf")
    app = Satchel(skills=[tmp_path])
    before = app.catalog
    assert app.refresh() == ()
    assert app.catalog is before


# ---- what the host adds ------------------------------------------------------------------------


def test_a_tool_of_the_host_is_basic_and_callable_at_once():
    app = Satchel()
    function_tool = app.register_tool(shout)
    assert isinstance(function_tool, Tool)
    assert names(app) == ["shout"]
    assert call(app, "shout", text="hi").text == "HI!"
    assert shout("hi") == "HI!", "the function stays what it was"


def test_presets_are_invisible_and_the_model_cannot_replace_them():
    app = Satchel()
    app.register_tool(shout, presets={"mark": "?"})
    (schema,) = app.session().schemas()
    assert list(schema["function"]["parameters"]["properties"]) == ["text"]
    assert call(app, "shout", text="hi").text == "HI?"
    refused = call(app, "shout", text="hi", mark="!!!")
    assert refused.is_error
    assert "HI" not in refused.text


def test_a_group_is_inactive_until_it_is_activated_with_its_notes():
    app = Satchel()
    app.create_group("loud", "For shouting.", notes="Use sparingly.")
    app.register_tool(shout, group="loud")
    session, other = app.session(), app.session()
    assert shown(session) == ["reset_equipped_tools"]
    assert "'loud', which is not active" in asyncio.run(session.call("shout", {"text": "a"})).text
    session.activate("loud")
    assert shown(session) == ["reset_equipped_tools", "shout"]
    assert session.active_groups == ("basic", "loud")
    assert "## About Tool Group 'loud'\n\nUse sparingly." in session.prompt()
    assert asyncio.run(session.call("shout", '{"text": "a"}')).text == "A!"
    assert shown(other) == ["reset_equipped_tools"], "activation belongs to one session"
    session.deactivate("loud")
    assert session.prompt() == ""


def test_a_group_may_be_active_from_the_start_and_be_deactivated():
    app = Satchel()
    app.create_group("loud", notes="n", active=True)
    session = app.session()
    assert session.active_groups == ("basic", "loud")
    session.deactivate("loud")
    assert session.active_groups == ("basic",)


def test_groups_are_activated_all_or_none():
    app = Satchel()
    app.create_group("loud")
    session = app.session()
    with pytest.raises(NotFoundError, match="did you mean loud"):
        session.activate("loud", "loudd")
    assert session.active_groups == ("basic",)
    with pytest.raises(ConflictError, match="always active"):
        session.deactivate("basic")


def test_a_group_is_defined_once():
    app = Satchel()
    app.create_group("loud")
    with pytest.raises(ConflictError, match="already exists"):
        app.create_group("loud")


@pytest.mark.parametrize("name", ["", "no spaces", "../up", "a" * 65, "basic"])
def test_an_impossible_group_name_is_refused(name):
    with pytest.raises(DefinitionError, match="group name"):
        Satchel().create_group(name)


def test_two_tools_of_one_name_are_refused_with_a_fix():
    app = Satchel()
    app.register_tool(shout)
    with pytest.raises(ConflictError, match="pass name="):
        app.register_tool(shout)
    app.register_tool(shout, name="yell")
    assert names(app) == ["shout", "yell"]


def test_a_tool_in_an_undefined_group_is_refused():
    with pytest.raises(NotFoundError, match="no group named 'loud'"):
        Satchel().register_tool(shout, group="loud")


def test_options_for_a_finished_tool_are_refused():
    app = Satchel()
    function_tool = app.register_tool(shout)
    app.remove_tool("shout")
    with pytest.raises(DefinitionError, match="already a Tool"):
        app.register_tool(function_tool, name="yell")
    app.register_tool(function_tool)


def test_the_host_wins_over_a_plugin_and_the_loser_stays_reachable(tmp_path, write_plugin):
    source = """
        from satchel import tool
        @tool
        def shout(text: str) -> str:
            "Say it loud."
            return "plugin"
    """
    write_plugin(tmp_path, "loud", tools=source)
    app = Satchel(plugins=[tmp_path])
    app.register_tool(shout)
    assert call(app, "shout", text="a").text == "A!"
    loser = app.catalog.tool("loud:shout")
    assert loser.state is Status.SHADOWED
    assert [item.code for item in loser.diagnostics] == ["tool-shadowed"]
    app.remove_tool("shout")
    assert call(app, "shout", text="a").text == "plugin"


def test_entries_of_the_host_can_be_removed(tmp_path, write_skill):
    app = Satchel()
    app.create_group("loud", active=True)
    app.register_tool(shout, group="loud")
    app.register_skill(write_skill(tmp_path, "pdf"))
    assert list(app.catalog.skills) == ["pdf"]
    app.remove_skill("pdf")
    app.remove_group("loud")
    assert app.catalog.skills == {}
    assert app.catalog.tools == {}
    assert list(app.catalog.groups) == ["basic"]
    for remove in (app.remove_tool, app.remove_group, app.remove_skill):
        with pytest.raises(NotFoundError):
            remove("loud")
    with pytest.raises(ConflictError, match="cannot be removed"):
        app.remove_group("basic")


# ---- groups of several kinds -------------------------------------------------------------------


def seen_skills(app, *active) -> list[str]:
    session = app.session()
    session.activate(*active)
    return [name for name in app.catalog.skills if f"<name>{name}</name>" in session.prompt()]


def test_a_tool_of_several_groups_is_there_while_one_of_them_is_active():
    app = Satchel()
    for group in ("loud", "words", "other"):
        app.create_group(group)
    app.register_tool(shout, group=["words", "loud"])
    assert app.catalog.tools["shout"].groups == ("words", "loud")
    assert [app.catalog.groups[name].tools for name in ("loud", "other", "words")] == [
        ("shout",),
        (),
        ("shout",),
    ]
    session = app.session(meta_tool=False)
    for group in ("loud", "words"):
        session.activate(group)
        assert shown(session) == ["shout"]
        assert asyncio.run(session.call("shout", {"text": "a"})).text == "A!"
    session.deactivate("loud")
    assert shown(session) == ["shout"]
    session.deactivate("words")
    assert shown(session) == []
    assert asyncio.run(session.call("shout", {"text": "a"})).is_error


def test_groups_of_the_host_win_over_those_of_the_decorator():
    @tool(group=("loud", "words"))
    def yell() -> str:
        return "!"

    app = Satchel()
    for group in ("loud", "words"):
        app.create_group(group)
    app.register_tool(yell)
    assert app.catalog.tools["yell"].groups == ("loud", "words")
    app.register_tool(yell, group="words", on_conflict="override")
    assert app.catalog.tools["yell"].groups == ("words",)


@pytest.mark.parametrize("group", [7, ["loud", 7], object()])
def test_a_group_that_is_not_a_string_is_refused(group, tmp_path, write_skill):
    app = Satchel()
    with pytest.raises(DefinitionError, match="must be a string"):
        app.register_tool(shout, group=group)
    with pytest.raises(DefinitionError, match="must be a string"):
        app.register_skill(write_skill(tmp_path, "pdf"), group=group)
    for parts in ({"skills": group}, {"requires": group}):
        with pytest.raises(DefinitionError, match="must be a string"):
            app.create_group("loud", **parts)
    assert (list(app.catalog.groups), app.catalog.tools, app.catalog.skills) == (["basic"], {}, {})


def test_if_one_of_several_groups_is_unknown_nothing_is_added(tmp_path, write_skill):
    app = Satchel()
    app.create_group("loud")
    before = app.catalog
    with pytest.raises(NotFoundError, match="'wrods'"):
        app.register_tool(shout, group=["loud", "wrods"])
    with pytest.raises(NotFoundError, match="'wrods'"):
        app.register_skill(write_skill(tmp_path, "pdf"), group=["loud", "wrods"])
    assert app.catalog is before


def test_a_group_may_claim_skills_wherever_they_come_from(tmp_path, write_skill):
    for name in ("pdf", "docx", "free"):
        write_skill(tmp_path, name)
    app = Satchel(skills=[tmp_path])
    app.create_group("papers", skills=["pdf", "docx"])
    assert app.catalog.groups["papers"].skills == ("docx", "pdf")
    assert seen_skills(app) == ["free"]
    assert seen_skills(app, "papers") == ["docx", "free", "pdf"]
    app.remove_group("papers")
    assert seen_skills(app) == ["docx", "free", "pdf"], "they are not the host's to remove"


def test_a_missing_skill_of_a_group_is_reported_until_it_exists(tmp_path, write_skill):
    write_skill(tmp_path, "free")
    app = Satchel(skills=[tmp_path])
    app.create_group("papers", skills="pdf")
    assert problem_codes(app.catalog) == ["plugin-group-unknown"]
    write_skill(tmp_path, "pdf")
    app.refresh()
    assert (problem_codes(app.catalog), seen_skills(app)) == ([], ["free"])


def test_a_skill_may_be_registered_into_groups(tmp_path, write_skill):
    app = Satchel()
    for group in ("papers", "office"):
        app.create_group(group)
    app.register_skill(write_skill(tmp_path / "one", "pdf"), group="papers")
    write_skill(tmp_path / "two", "docx")
    app.register_skill(tmp_path / "two", group=["papers", "office"])
    assert seen_skills(app) == []
    assert seen_skills(app, "papers") == ["docx", "pdf"]
    assert seen_skills(app, "office") == ["docx"]
    write_skill(tmp_path / "two", "xlsx")
    app.refresh()
    assert app.catalog.skills["xlsx"].groups == ("papers", "office")


def test_a_folder_that_is_registered_again_moves_into_the_groups_that_are_given(
    tmp_path, write_skill
):
    folder = write_skill(tmp_path, "pdf")
    app = Satchel()
    for group in ("papers", "office"):
        app.create_group(group)
    app.register_skill(folder)
    assert seen_skills(app) == ["pdf"]
    app.register_skill(folder, group="papers")
    assert (app.catalog.skills["pdf"].groups, len(app.catalog.all_skills)) == (("papers",), 1)
    app.register_skill(folder, group="office")
    assert app.catalog.skills["pdf"].groups == ("office",)
    before = app.catalog
    app.register_skill(folder)
    assert app.catalog is before, "without a word about groups it stays where it is"


def test_removing_a_group_removes_entries_that_are_only_in_it(tmp_path, write_skill):
    app = Satchel()
    for group in ("papers", "office"):
        app.create_group(group)
    app.register_tool(shout, group="papers")
    app.register_tool(shout, name="yell", group=["papers", "office"])
    app.register_tool(shout, name="free")
    app.register_skill(write_skill(tmp_path, "pdf"), group="papers")
    app.register_skill(write_skill(tmp_path, "docx"), group=["papers", "office"])
    app.register_skill(write_skill(tmp_path, "md"))
    app.remove_group("papers")
    catalog = app.catalog
    assert list(catalog.groups) == ["basic", "office"]
    assert {name: entry.groups for name, entry in catalog.tools.items()} == {
        "free": ("basic",),
        "yell": ("office",),
    }
    assert {name: entry.groups for name, entry in catalog.skills.items()} == {
        "docx": ("office",),
        "md": (),
    }
    assert problem_codes(catalog) == []


def test_a_group_of_a_folder_holds_tools_and_skills(tmp_path, write_plugin, write_skill):
    manifest = "groups:\n  maps:\n    tools: [route]\n    skills: [driving]\n  geo:\n"
    source = """
        from satchel import tool
        @tool(group="geo")
        def route() -> str:
            "Find the way."
            return "left"
    """
    folder = write_plugin(tmp_path / "plugins", "demo", manifest, tools=source)
    write_skill(folder / "skills", "driving")
    write_skill(folder / "skills", "always")
    app = Satchel(plugins=[tmp_path / "plugins"])
    assert app.catalog.tools["route"].groups == ("geo", "maps")
    assert app.catalog.groups["maps"].skills == ("driving",)
    assert seen_skills(app) == seen_skills(app, "geo") == ["always"]
    assert seen_skills(app, "maps") == ["always", "driving"]
    assert problem_codes(app.catalog) == []


def test_middleware_of_a_group_runs_for_its_tools_in_every_group():
    met = []

    async def guard(call, inner):
        met.append((call.name, call.groups))
        async for item in inner(call):
            yield item

    app = Satchel()
    for group in ("loud", "words"):
        app.create_group(group)
    app.register_tool(shout, group=["words", "loud"])
    app.register_middleware(guard, group="loud")
    session = app.session()
    session.activate("words")
    assert asyncio.run(session.call("shout", {"text": "a"})).text == "A!"
    assert met == [("shout", ("words", "loud"))]


def test_a_found_skill_cannot_be_removed_and_the_error_has_a_fix(tmp_path, write_skill):
    write_skill(tmp_path, "pdf")
    with pytest.raises(ConflictError, match="delete its folder"):
        Satchel(skills=[tmp_path]).remove_skill("pdf")


def test_a_skill_that_is_registered_is_watched_like_any_other(tmp_path, write_skill):
    folder = write_skill(tmp_path, "pdf")
    app = Satchel()
    with app.watching():
        app.register_skill(folder)
        seen = threading.Event()
        app.subscribe(lambda change: seen.set() if change.event == "changed" else None)
        write_skill(tmp_path, "pdf", description="Edited.")
        assert seen.wait(120)
    assert app.catalog.skills["pdf"].description == "Edited."


# ---- plugins -----------------------------------------------------------------------------------


def test_with_run_code_off_tools_are_listed_but_no_code_runs(tmp_path, write_plugin):
    source = """
        from satchel import tool
        @tool
        def shout(text: str) -> str:
            "Say it loudly."
        raise AssertionError("it ran")
    """
    write_plugin(tmp_path, "loud", tools=source)
    catalog = Satchel(plugins=[tmp_path], run_code=False).catalog
    entry = catalog.tools["shout"]
    assert (entry.description, entry.group, entry.tool) == ("Say it loudly.", "loud", None)
    assert problem_codes(catalog) == []


def test_two_plugins_may_have_helpers_of_one_name(tmp_path, write_plugin):
    for name in ("one", "two"):
        source = f"""
            from satchel import tool
            import words
            @tool
            def say_{name}() -> str:
                return words.WORD
        """
        write_plugin(tmp_path, name, tools=source, words=f"WORD = '{name}'\n")
    app = Satchel(plugins=[tmp_path])
    assert call(app, "say_one").text == "one"
    assert call(app, "say_two").text == "two"


def test_a_broken_nearer_plugin_does_not_shadow_a_good_one(tmp_path, write_plugin):
    good = "from satchel import tool\n@tool\ndef say() -> str:\n    return 'good'\n"
    write_plugin(tmp_path / "near", "demo", tools="raise RuntimeError\n")
    write_plugin(tmp_path / "far", "demo", tools=good)
    app = Satchel(plugins=[tmp_path / "near", tmp_path / "far"])
    assert call(app, "say").text == "good"
    assert [str(entry.state) for entry in app.catalog.all_plugins if entry.name == "demo"] == [
        "failed",
        "ok",
    ]


def test_a_tool_of_a_disabled_group_shadows_nothing(tmp_path, write_plugin):
    for name, active in (("first", "off"), ("second", "on")):
        source = f"from satchel import tool\n@tool\ndef say() -> str:\n    return '{name}'\n"
        write_plugin(tmp_path, name, f"active: {active}\n", tools=source)
    app = Satchel(plugins=[tmp_path])
    session = app.session()
    assert asyncio.run(session.call("say")).text == "second"
    session.activate("first")
    assert asyncio.run(session.call("say")).text == "first"
    assert shown(session) == ["say", "reset_equipped_tools"]


def test_tools_that_are_new_to_a_session_come_last():
    app = Satchel()
    app.register_tool(shout, name="middle")
    session = app.session()

    def seen():
        return [schema["function"]["name"] for schema in session.schemas()]

    assert seen() == ["middle"]
    app.register_tool(shout, name="early")
    app.register_tool(shout, name="late")
    assert seen() == ["middle", "early", "late"]
    app.remove_tool("middle")
    assert seen() == ["early", "late"]
    app.register_tool(shout, name="middle")
    assert seen() == ["middle", "early", "late"], "it returns to where a cache may still have it"


def test_nothing_invisible_reaches_the_model_through_a_schema():
    hidden = "Say\U000e0041 it\u202e."

    class Whisper(Tool):
        name = "whisper"
        description = hidden

        @property
        def parameters(self):
            about = {"type": "string", "description": hidden}
            properties = {"description": {"anyOf": [about], "description": hidden}}
            return {"type": "object", "properties": properties}

        async def execute(self, description: str) -> str:
            return description

    app = Satchel()
    app.register_tool(Whisper())
    (schema,) = app.session().schemas()
    assert json.dumps(schema).count("Say it.") == 3
    assert not has_hidden(json.dumps(schema, ensure_ascii=False))
    assert call(app, "whisper", description="a").text == "a"


def test_the_length_of_descriptions_applies_wherever_it_is_set(tmp_path, write_skill):
    write_skill(tmp_path, "pdf", description="x" * 300)
    for arguments in (
        {"settings": Settings(limits=Limits(description_shown=50))},
        {"skill_style": SkillPrompt(description_length=50)},
    ):
        prompt = Satchel(skills=[tmp_path], **arguments).session().prompt()
        assert "x" * 49 + "…" in prompt
        assert "x" * 50 not in prompt


def test_the_code_of_a_shadowed_plugin_does_not_run(tmp_path, write_plugin):
    good = "from satchel import tool\n@tool\ndef say() -> str:\n    return 'near'\n"
    write_plugin(tmp_path / "near", "demo", tools=good)
    bad = "from satchel import tool\nraise AssertionError('it ran')\n"
    write_plugin(tmp_path / "far", "demo", tools=bad)
    app = Satchel(plugins=[tmp_path / "near", tmp_path / "far"])
    assert call(app, "say").text == "near"
    (loser,) = [entry for entry in app.catalog.all_plugins if entry.state is Status.SHADOWED]
    assert [item.code for item in loser.diagnostics] == ["plugin-shadowed"]


def test_one_invalid_tool_is_refused_and_the_others_are_served(tmp_path, write_plugin):
    source = """
        from satchel import tool
        @tool
        def good() -> str:
            return "good"
        @tool(name="not a name")
        def bad() -> str: ...
    """
    write_plugin(tmp_path, "demo", tools=source)
    app = Satchel(plugins=[tmp_path])
    assert call(app, "good").text == "good"
    (problem,) = app.catalog.plugins["demo"].diagnostics
    assert problem.code == "plugin-tool-invalid"
    assert "_satchel" not in problem.message


def test_the_modules_of_a_satchel_are_removed_with_it(tmp_path, write_plugin):
    import sys

    source = "from satchel import tool\n@tool\ndef say() -> str:\n    return 'x'\n"
    write_plugin(tmp_path, "fleeting", tools=source)

    def modules() -> list[str]:
        return [name for name in sys.modules if name.startswith("_satchel_plugin_fleeting")]

    app = Satchel(plugins=[tmp_path])
    assert modules()
    del app
    gc.collect()
    assert not modules()


# ---- watching ----------------------------------------------------------------------------------


def test_the_async_watch_yields_every_change_and_ends(tmp_path, write_skill):
    async def main():
        app = Satchel(skills=[tmp_path])
        async with app.watch() as changes:
            for name in ("a", "b", "c"):
                write_skill(tmp_path, name)
                async with asyncio.timeout(120):
                    change = await anext(changes)
                assert (change.event, change.kind, change.name) == ("added", "skill", name)
        assert [change async for change in changes] == []
        assert changes.dropped == 0

    asyncio.run(main())


def test_the_watch_keeps_the_catalog_current_without_being_read(tmp_path, write_skill):
    async def main():
        app = Satchel(skills=[tmp_path])
        heard = asyncio.Event()
        loop = asyncio.get_running_loop()
        app.subscribe(lambda _change: loop.call_soon_threadsafe(heard.set))
        async with app.watch():
            write_skill(tmp_path, "pdf")
            async with asyncio.timeout(120):
                await heard.wait()
        assert list(app.catalog.skills) == ["pdf"]

    asyncio.run(main())


def test_cancelling_the_task_ends_the_watch(tmp_path):
    async def main():
        app = Satchel(skills=[tmp_path])
        armed = asyncio.Event()

        async def follow():
            async with app.watch() as changes:
                armed.set()
                async for _ in changes:
                    raise AssertionError("nothing changes")

        task = asyncio.create_task(follow())
        await armed.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert "satchel-watch" not in {thread.name for thread in threading.enumerate()}

    asyncio.run(main())


def test_two_watches_of_one_satchel_share_one_thread(tmp_path, write_skill):
    async def main():
        app = Satchel(skills=[tmp_path])
        async with app.watch() as first, app.watch() as second:
            threads = [thread.name for thread in threading.enumerate()]
            assert threads.count("satchel-watch") == 1
            write_skill(tmp_path, "pdf")
            async with asyncio.timeout(120):
                assert await anext(first) == await anext(second)

    asyncio.run(main())


def test_a_failing_listener_does_not_affect_others(tmp_path, write_skill, caplog):
    app = Satchel(skills=[tmp_path])
    heard = []

    def fail(_change):
        raise RuntimeError("boom")

    app.subscribe(fail)
    undo = app.subscribe(heard.append)
    write_skill(tmp_path, "pdf")
    app.refresh()
    assert [change.name for change in heard] == ["pdf"]
    assert "a listener failed" in caplog.text
    undo()
    undo()
    write_skill(tmp_path, "docx")
    app.refresh()
    assert len(heard) == 1


def test_a_catalog_with_other_diagnostics_alone_is_an_event(tmp_path, write_skill):
    write_skill(tmp_path / "skills", "pdf")
    app = Satchel(skills=[tmp_path / "skills"])
    changes, catalogs = [], []
    app.subscribe(changes.append)
    undo = app.subscribe_catalogs(catalogs.append)
    (tmp_path / "skills" / "SKILL.md.d").mkdir()
    (tmp_path / "skills" / "empty" / "skill.md").parent.mkdir()
    (tmp_path / "skills" / "empty" / "skill.md").write_text("no name")
    app.refresh()
    assert not changes
    assert catalogs == [app.catalog]
    app.refresh()
    assert len(catalogs) == 1
    undo()
    write_skill(tmp_path / "skills", "docx")
    app.refresh()
    assert len(catalogs) == 1


def test_a_failing_scan_does_not_end_the_watch(tmp_path, write_skill, monkeypatch, caplog):
    from satchel import reconciler as room

    app = Satchel(skills=[tmp_path], settings=Settings())
    real, failures = room.reconcile, iter([True])
    seen = threading.Event()
    app.subscribe(lambda _change: seen.set())
    with app.watching():

        def look(*arguments):
            if next(failures, False):
                raise RuntimeError("a fault of ours")
            return real(*arguments)

        monkeypatch.setattr(room, "reconcile", look)
        write_skill(tmp_path, "pdf")
        assert seen.wait(120)
    assert "pdf" in app.catalog.skills
    assert "scanning the sources failed" in caplog.text


# ---- the well-known places ---------------------------------------------------------------------


def test_project_folders_are_searched_only_if_the_project_is_named(
    tmp_path, monkeypatch, write_skill
):
    home, project = tmp_path / "home", tmp_path / "project"
    monkeypatch.setenv("HOME", str(home))
    for base, folder, name in (
        (home, "skills", "one"),
        (home, ".agents/skills", "two"),
        (home, ".satchel/skills", "three"),
        (home, ".claude/skills", "four"),
        (project, ".agents/skills", "five"),
        (project, "skills", "two"),
    ):
        write_skill(base / folder, name, description=f"In {base.name}.")
    app = Satchel(roots=conventional_roots())
    assert sorted(app.catalog.skills) == ["one", "three", "two"]
    assert problem_codes(app.catalog) == [], "well-known places may be missing"
    trusted = Project(project, trust="data")
    app = Satchel(roots=conventional_roots(project, claude=True), project=trusted)
    assert sorted(app.catalog.skills) == ["five", "four", "one", "three", "two"]
    assert app.catalog.skills["two"].description == "In project.", "the project is nearer"


def test_a_program_in_the_home_folder_has_the_skills_of_the_user(
    tmp_path, write_skill, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    write_skill(tmp_path / ".agents/skills", "own")
    app = Satchel(roots=conventional_roots(tmp_path))
    assert sorted(app.catalog.skills) == ["own"]
    assert problem_codes(app.catalog) == []


# ---- real skills -------------------------------------------------------------------------------


def test_every_real_skill_loads_or_says_why_not(shared):
    corpus = shared / "corpus"
    roots = [folder for folder in sorted(corpus.iterdir()) if folder.is_dir()]
    settings = Settings(limits=Limits(find_depth=12, find_folders=20_000))
    catalog = Satchel(skills=roots, settings=settings).catalog
    results = {entry.path for entry in catalog.all_skills}
    for file in corpus.rglob("SKILL.md"):
        nested = any(str(parent) in results for parent in file.parent.parents)
        assert nested or str(file.parent) in results, file
    for entry in catalog.all_skills:
        if entry.state is Status.FAILED:
            assert "quirks" in entry.path
            assert any(item.severity == "error" for item in entry.diagnostics)
    whole = SkillPrompt(budget=None)
    prompt = Satchel(skills=roots, skill_style=whole).session().prompt()
    assert prompt.count("<skill>") == prompt.count("</description>") > 600


def test_a_session_may_have_only_some_of_the_tools():
    app = Satchel()
    for name in ("read_mail", "read_file", "write_file"):
        app.register_tool(lambda: "done", name=name, description="Do it.")

    def names(**chosen):
        return [schema["name"] for schema in app.session(**chosen).schemas("mcp")]

    assert names(enable="read_*") == ["read_mail", "read_file"]
    assert names(disable=["*_file"]) == ["read_mail"]
    assert names(enable=["*_file"], disable=["write_*"]) == ["read_file"]
    assert names() == ["read_mail", "read_file", "write_file"]
    result = asyncio.run(app.session(disable="write_*").call("write_file", {}))
    assert result.is_error
    assert "There is no tool 'write_file'" in result.text
    app.register_tool(lambda: "done", name="read_news", description="Do it.")
    assert names(enable="read_*") == ["read_mail", "read_file", "read_news"]


def test_a_pattern_that_hides_everything_is_logged_with_near_misses(caplog):
    app = Satchel()
    app.register_tool(lambda: "done", name="read_mail", description="Do it.")

    def logged(*patterns):
        caplog.clear()
        app.session(enable=patterns)
        return [record.getMessage() for record in caplog.records]

    assert logged("tool:read_*", "read_mail", "*:read_mail", "tool:load_*") == []
    assert logged("read_male", "skill:*") == [
        "session(enable=...): no tool and no skill matches 'read_male'; did you mean read_mail?",
        "session(enable=...): no tool and no skill matches 'skill:*'",
    ]


@pytest.mark.parametrize("option", ["enable", "disable"])
def test_a_pattern_for_a_kind_that_no_session_has_is_logged(caplog, option):
    Satchel().session(**{option: ["plugin:team"]})
    (record,) = caplog.records
    assert record.getMessage() == (
        f"session({option}=...): no tool and no skill matches 'plugin:team'; "
        "write 'team' for all of a source"
    )
    caplog.clear()
    Satchel().session(disable=["team", "skill:later"])
    assert not caplog.records


@pytest.mark.parametrize("option", ["enable", "disable"])
@pytest.mark.parametrize("value", [5, [5], [""], None, [None]])
def test_what_is_no_pattern_is_refused_with_an_example(option, value):
    with pytest.raises(DefinitionError, match=f"{option} has .* not a pattern"):
        Satchel().session(**{option: value})


def test_a_session_may_have_only_some_of_the_skills(tmp_path, write_skill):
    for root, name in (("one", "pdf"), ("one", "docs"), ("two", "tests")):
        write_skill(tmp_path / root, name)
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    app = Satchel(skills=[one, two])
    app.register_tool(lambda: "done", name="read", description="Do it.")

    def seen(**chosen):
        session = app.session(search=True, **chosen)
        prompt, schemas = session.prompt(), str(session.schemas("mcp"))
        skills = [name for name in ("docs", "pdf", "tests") if f"<name>{name}</name>" in prompt]
        result = asyncio.run(session.call("search_skills", {"words": "thing"})).text
        assert all(
            (f"- {name}:" in result) == (name in skills) for name in ("docs", "pdf", "tests")
        )
        return skills, "'read'" in schemas

    assert seen() == (["docs", "pdf", "tests"], True)
    assert seen(enable="pdf") == (["pdf"], False)
    assert seen(enable="skill:pdf") == (["pdf"], True)
    assert seen(enable="tool:read") == (["docs", "pdf", "tests"], True)
    assert seen(disable=["skill:d*", "read"]) == (["pdf", "tests"], False)
    assert seen(disable=[two]) == (["docs", "pdf"], True)
    assert seen(enable=[f"{one}:docs"]) == (["docs"], False)

    session = app.session(disable="pdf")
    answer = asyncio.run(session.call("load_skill", {"name": "pdf"}))
    assert answer.is_error
    with pytest.raises(NotFoundError):
        session.load_skill("pdf")
    write_skill(tmp_path / "one", "pdf", description="A later version.")
    app.refresh()
    assert "pdf" not in session.prompt()


def test_the_host_chooses_what_the_model_reads_of_an_exception():
    def explode():
        """Explode."""
        raise ValueError("boom")

    app = Satchel(errors="message")
    app.register_tool(explode)
    result = asyncio.run(app.session().call("explode", {}))
    assert result.text.endswith("ValueError: boom")
    with pytest.raises(DefinitionError, match="'summary', 'message' or a function, not 'all'"):
        Satchel(errors="all")
