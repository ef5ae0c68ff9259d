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
    Satchel,
    Settings,
    SkillPrompt,
    State,
    Tool,
    tool,
    well_known_places,
)
from satchel.text import has_hidden


@tool
def shout(text: str, mark: str = "!") -> str:
    """Say it loudly."""
    return text.upper() + mark


def call(bag, name, **arguments):
    return asyncio.run(bag.session().call(name, arguments))


def names(bag) -> list[str]:
    return shown(bag.session())


def shown(session) -> list[str]:
    return [schema["function"]["name"] for schema in session.schemas()]


def troubles(catalog) -> list[str]:
    """What is wrong, whatever plugins happen to be installed where the tests run."""
    return [item.code for item in catalog.diagnostics if item.code != "plugin-not-enabled"]


def test_an_empty_satchel_has_nothing_to_say():
    bag = Satchel()
    assert bag.session().prompt() == ""
    assert bag.session().schemas() == []
    assert list(bag.catalog.groups) == ["basic"]


def test_one_path_may_be_given_where_several_are_meant(tmp_path, write_skill):
    write_skill(tmp_path, "pdf")
    assert list(Satchel(skills=tmp_path).catalog.skills) == ["pdf"]
    assert list(Satchel(skills=str(tmp_path)).catalog.skills) == ["pdf"]


def test_a_folder_that_is_a_skill_itself_may_be_named(tmp_path, write_skill):
    folder = write_skill(tmp_path, "pdf")
    assert list(Satchel(skills=folder).catalog.skills) == ["pdf"]


def test_an_empty_path_is_refused_because_it_would_mean_the_current_folder():
    with pytest.raises(DefinitionError, match="empty path"):
        Satchel(skills=[""])


def test_nothing_on_disk_makes_it_raise(tmp_path):
    file = tmp_path / "file"
    file.write_text("no folder")
    bag = Satchel(skills=[tmp_path / "missing", file], plugins=[file], entry_points=["missing"])
    assert sorted(troubles(bag.catalog)) == ["plugin-not-installed", *["source-missing"] * 2]


def test_the_current_folder_may_change_without_losing_the_sources(
    tmp_path, monkeypatch, write_skill
):
    write_skill(tmp_path / "project" / "skills", "pdf")
    monkeypatch.chdir(tmp_path / "project")
    bag = Satchel(skills=["skills"])
    monkeypatch.chdir(tmp_path)
    assert bag.refresh() == ()
    assert bag.catalog.skills["pdf"].source == "skills"


def test_a_catalog_never_changes(tmp_path, write_skill):
    write_skill(tmp_path, "pdf")
    bag = Satchel(skills=[tmp_path])
    before = bag.catalog
    with pytest.raises(TypeError):
        before.skills["docx"] = before.skills["pdf"]
    write_skill(tmp_path, "docx")
    (change,) = bag.refresh()
    assert (change.event, change.name, change.generation) == ("added", "docx", 2)
    assert list(before.skills) == ["pdf"]
    assert bag.catalog.generation == 2


def test_nothing_new_is_no_new_generation(tmp_path, write_skill):
    write_skill(tmp_path, "pdf")
    bag = Satchel(skills=[tmp_path])
    before = bag.catalog
    assert bag.refresh() == ()
    assert bag.catalog is before


# ---- what the host adds ------------------------------------------------------------------------


def test_a_tool_of_the_host_is_basic_and_callable_at_once():
    bag = Satchel()
    made = bag.register_tool(shout)
    assert isinstance(made, Tool)
    assert names(bag) == ["shout"]
    assert call(bag, "shout", text="hi").text == "HI!"
    assert shout("hi") == "HI!", "the function stays what it was"


def test_presets_are_invisible_and_the_model_cannot_replace_them():
    bag = Satchel()
    bag.register_tool(shout, presets={"mark": "?"})
    (schema,) = bag.session().schemas()
    assert list(schema["function"]["parameters"]["properties"]) == ["text"]
    assert call(bag, "shout", text="hi").text == "HI?"
    refused = call(bag, "shout", text="hi", mark="!!!")
    assert refused.is_error
    assert "HI" not in refused.text


def test_a_group_is_off_until_it_is_activated_and_its_notes_come_with_it():
    bag = Satchel()
    bag.create_group("loud", "For shouting.", notes="Use sparingly.")
    bag.register_tool(shout, group="loud")
    session, other = bag.session(), bag.session()
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


def test_a_group_may_be_active_from_the_start_and_be_switched_off():
    bag = Satchel()
    bag.create_group("loud", notes="n", active=True)
    session = bag.session()
    assert session.active_groups == ("basic", "loud")
    session.deactivate("loud")
    assert session.active_groups == ("basic",)


def test_groups_are_switched_all_or_none():
    bag = Satchel()
    bag.create_group("loud")
    session = bag.session()
    with pytest.raises(NotFoundError, match="did you mean loud"):
        session.activate("loud", "loudd")
    assert session.active_groups == ("basic",)
    with pytest.raises(ConflictError, match="always active"):
        session.deactivate("basic")


def test_a_group_is_described_once():
    bag = Satchel()
    bag.create_group("loud")
    with pytest.raises(ConflictError, match="already described"):
        bag.create_group("loud")


@pytest.mark.parametrize("name", ["", "no spaces", "../up", "a" * 65, "basic"])
def test_an_impossible_group_name_is_refused(name):
    with pytest.raises(DefinitionError, match="group name"):
        Satchel().create_group(name)


def test_two_tools_of_one_name_are_refused_and_the_way_out_is_named():
    bag = Satchel()
    bag.register_tool(shout)
    with pytest.raises(ConflictError, match="give name="):
        bag.register_tool(shout)
    bag.register_tool(shout, name="yell")
    assert names(bag) == ["shout", "yell"]


def test_a_tool_in_a_group_that_nobody_described_is_refused():
    with pytest.raises(NotFoundError, match="no group named 'loud'"):
        Satchel().register_tool(shout, group="loud")


def test_options_for_a_finished_tool_are_refused():
    bag = Satchel()
    made = bag.register_tool(shout)
    bag.remove_tool("shout")
    with pytest.raises(DefinitionError, match="an object already"):
        bag.register_tool(made, name="yell")
    bag.register_tool(made)


def test_the_host_wins_over_a_plugin_and_the_loser_stays_reachable(tmp_path, write_plugin):
    source = """
        from satchel import tool
        @tool
        def shout(text: str) -> str:
            return "plugin"
    """
    write_plugin(tmp_path, "loud", tools=source)
    bag = Satchel(plugins=[tmp_path])
    bag.register_tool(shout)
    assert call(bag, "shout", text="a").text == "A!"
    loser = bag.catalog.tool("loud:shout")
    assert loser.state is State.SHADOWED
    assert [item.code for item in loser.diagnostics] == ["tool-shadowed"]
    bag.remove_tool("shout")
    assert call(bag, "shout", text="a").text == "plugin"


def test_what_the_host_added_can_be_removed(tmp_path, write_skill):
    bag = Satchel()
    bag.create_group("loud", active=True)
    bag.register_tool(shout, group="loud")
    bag.register_skill(write_skill(tmp_path, "pdf"))
    assert list(bag.catalog.skills) == ["pdf"]
    bag.remove_skill("pdf")
    bag.remove_group("loud")
    assert bag.catalog.skills == {}
    assert bag.catalog.tools == {}
    assert list(bag.catalog.groups) == ["basic"]
    for remove in (bag.remove_tool, bag.remove_group, bag.remove_skill):
        with pytest.raises(NotFoundError):
            remove("loud")
    with pytest.raises(ConflictError, match="cannot be removed"):
        bag.remove_group("basic")


# ---- groups of several kinds -------------------------------------------------------------------


def seen_skills(bag, *active) -> list[str]:
    session = bag.session()
    session.activate(*active)
    return [name for name in bag.catalog.skills if f"<name>{name}</name>" in session.prompt()]


def test_a_tool_of_several_groups_is_there_while_one_of_them_is_active():
    bag = Satchel()
    for group in ("loud", "words", "other"):
        bag.create_group(group)
    bag.register_tool(shout, group=["words", "loud"])
    assert bag.catalog.tools["shout"].groups == ("words", "loud")
    assert [bag.catalog.groups[name].tools for name in ("loud", "other", "words")] == [
        ("shout",),
        (),
        ("shout",),
    ]
    session = bag.session(meta_tool=False)
    for group in ("loud", "words"):
        session.activate(group)
        assert shown(session) == ["shout"]
        assert asyncio.run(session.call("shout", {"text": "a"})).text == "A!"
    session.deactivate("loud")
    assert shown(session) == ["shout"]
    session.deactivate("words")
    assert shown(session) == []
    assert asyncio.run(session.call("shout", {"text": "a"})).is_error


def test_what_the_decorator_says_of_groups_counts_unless_the_host_says_otherwise():
    @tool(group=("loud", "words"))
    def yell() -> str:
        return "!"

    bag = Satchel()
    for group in ("loud", "words"):
        bag.create_group(group)
    bag.register_tool(yell)
    assert bag.catalog.tools["yell"].groups == ("loud", "words")
    bag.register_tool(yell, group="words", on_conflict="override")
    assert bag.catalog.tools["yell"].groups == ("words",)


@pytest.mark.parametrize("group", [7, ["loud", 7], object()])
def test_a_group_that_is_no_text_is_refused(group, tmp_path, write_skill):
    bag = Satchel()
    with pytest.raises(DefinitionError, match="named by text"):
        bag.register_tool(shout, group=group)
    with pytest.raises(DefinitionError, match="named by text"):
        bag.register_skill(write_skill(tmp_path, "pdf"), group=group)
    for parts in ({"skills": group}, {"requires": group}):
        with pytest.raises(DefinitionError, match="named by text"):
            bag.create_group("loud", **parts)
    assert (list(bag.catalog.groups), bag.catalog.tools, bag.catalog.skills) == (["basic"], {}, {})


def test_if_one_of_several_groups_is_unknown_nothing_is_added(tmp_path, write_skill):
    bag = Satchel()
    bag.create_group("loud")
    before = bag.catalog
    with pytest.raises(NotFoundError, match="'wrods'"):
        bag.register_tool(shout, group=["loud", "wrods"])
    with pytest.raises(NotFoundError, match="'wrods'"):
        bag.register_skill(write_skill(tmp_path, "pdf"), group=["loud", "wrods"])
    assert bag.catalog is before


def test_a_group_may_claim_skills_wherever_they_come_from(tmp_path, write_skill):
    for name in ("pdf", "docx", "free"):
        write_skill(tmp_path, name)
    bag = Satchel(skills=[tmp_path])
    bag.create_group("papers", skills=["pdf", "docx"])
    assert bag.catalog.groups["papers"].skills == ("docx", "pdf")
    assert seen_skills(bag) == ["free"]
    assert seen_skills(bag, "papers") == ["docx", "free", "pdf"]
    bag.remove_group("papers")
    assert seen_skills(bag) == ["docx", "free", "pdf"], "they are not the host's to remove"


def test_a_skill_that_a_group_claims_and_nobody_has_is_told_until_it_comes(tmp_path, write_skill):
    bag = Satchel(skills=[tmp_path])
    bag.create_group("papers", skills="pdf")
    assert troubles(bag.catalog) == ["plugin-group-unknown"]
    write_skill(tmp_path, "pdf")
    bag.refresh()
    assert (troubles(bag.catalog), seen_skills(bag)) == ([], [])


def test_a_skill_may_be_registered_into_groups(tmp_path, write_skill):
    bag = Satchel()
    for group in ("papers", "office"):
        bag.create_group(group)
    bag.register_skill(write_skill(tmp_path / "one", "pdf"), group="papers")
    write_skill(tmp_path / "two", "docx")
    bag.register_skill(tmp_path / "two", group=["papers", "office"])
    assert seen_skills(bag) == []
    assert seen_skills(bag, "papers") == ["docx", "pdf"]
    assert seen_skills(bag, "office") == ["docx"]
    write_skill(tmp_path / "two", "xlsx")
    bag.refresh()
    assert bag.catalog.skills["xlsx"].groups == ("papers", "office")


def test_a_folder_that_is_registered_again_moves_into_the_groups_that_are_given(
    tmp_path, write_skill
):
    folder = write_skill(tmp_path, "pdf")
    bag = Satchel()
    for group in ("papers", "office"):
        bag.create_group(group)
    bag.register_skill(folder)
    assert seen_skills(bag) == ["pdf"]
    bag.register_skill(folder, group="papers")
    assert (bag.catalog.skills["pdf"].groups, len(bag.catalog.all_skills)) == (("papers",), 1)
    bag.register_skill(folder, group="office")
    assert bag.catalog.skills["pdf"].groups == ("office",)
    before = bag.catalog
    bag.register_skill(folder)
    assert bag.catalog is before, "without a word about groups it stays where it is"


def test_a_group_that_goes_takes_along_what_the_host_put_into_it_alone(tmp_path, write_skill):
    bag = Satchel()
    for group in ("papers", "office"):
        bag.create_group(group)
    bag.register_tool(shout, group="papers")
    bag.register_tool(shout, name="yell", group=["papers", "office"])
    bag.register_tool(shout, name="free")
    bag.register_skill(write_skill(tmp_path, "pdf"), group="papers")
    bag.register_skill(write_skill(tmp_path, "docx"), group=["papers", "office"])
    bag.register_skill(write_skill(tmp_path, "md"))
    bag.remove_group("papers")
    catalog = bag.catalog
    assert list(catalog.groups) == ["basic", "office"]
    assert {name: entry.groups for name, entry in catalog.tools.items()} == {
        "free": ("basic",),
        "yell": ("office",),
    }
    assert {name: entry.groups for name, entry in catalog.skills.items()} == {
        "docx": ("office",),
        "md": (),
    }
    assert troubles(catalog) == []


def test_a_group_of_a_folder_holds_tools_and_skills(tmp_path, write_plugin, write_skill):
    manifest = "groups:\n  maps:\n    tools: [route]\n    skills: [driving]\n  geo:\n"
    source = """
        from satchel import tool
        @tool(group="geo")
        def route() -> str:
            return "left"
    """
    folder = write_plugin(tmp_path / "plugins", "demo", manifest, tools=source)
    write_skill(folder / "skills", "driving")
    write_skill(folder / "skills", "always")
    bag = Satchel(plugins=[tmp_path / "plugins"])
    assert bag.catalog.tools["route"].groups == ("geo", "maps")
    assert bag.catalog.groups["maps"].skills == ("driving",)
    assert seen_skills(bag) == seen_skills(bag, "geo") == ["always"]
    assert seen_skills(bag, "maps") == ["always", "driving"]
    assert troubles(bag.catalog) == []


def test_a_layer_of_a_group_is_met_by_way_of_any_other_group():
    met = []

    async def guard(call, inner):
        met.append((call.name, call.groups))
        async for item in inner(call):
            yield item

    bag = Satchel()
    for group in ("loud", "words"):
        bag.create_group(group)
    bag.register_tool(shout, group=["words", "loud"])
    bag.register_middleware(guard, group="loud")
    session = bag.session()
    session.activate("words")
    assert asyncio.run(session.call("shout", {"text": "a"})).text == "A!"
    assert met == [("shout", ("words", "loud"))]


def test_a_skill_that_was_found_among_others_is_not_removed_but_the_way_is_named(
    tmp_path, write_skill
):
    write_skill(tmp_path, "pdf")
    with pytest.raises(ConflictError, match="delete its folder"):
        Satchel(skills=[tmp_path]).remove_skill("pdf")


def test_a_skill_that_is_registered_is_watched_like_any_other(tmp_path, write_skill):
    folder = write_skill(tmp_path, "pdf")
    bag = Satchel()
    with bag.watching():
        bag.register_skill(folder)
        seen = threading.Event()
        bag.subscribe(lambda change: seen.set() if change.event == "changed" else None)
        write_skill(tmp_path, "pdf", description="Edited.")
        assert seen.wait(20)
    assert bag.catalog.skills["pdf"].description == "Edited."


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
    assert troubles(catalog) == []


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
    bag = Satchel(plugins=[tmp_path])
    assert call(bag, "say_one").text == "one"
    assert call(bag, "say_two").text == "two"


def test_a_broken_nearer_plugin_does_not_shadow_a_good_one(tmp_path, write_plugin):
    good = "from satchel import tool\n@tool\ndef say() -> str:\n    return 'good'\n"
    write_plugin(tmp_path / "near", "demo", tools="raise RuntimeError\n")
    write_plugin(tmp_path / "far", "demo", tools=good)
    bag = Satchel(plugins=[tmp_path / "near", tmp_path / "far"])
    assert call(bag, "say").text == "good"
    assert [str(entry.state) for entry in bag.catalog.all_plugins if entry.name == "demo"] == [
        "failed",
        "ok",
    ]


def test_a_tool_of_a_group_that_is_off_does_not_shadow_one_whose_group_is_on(
    tmp_path, write_plugin
):
    for name, active in (("first", "off"), ("second", "on")):
        source = f"from satchel import tool\n@tool\ndef say() -> str:\n    return '{name}'\n"
        write_plugin(tmp_path, name, f"active: {active}\n", tools=source)
    bag = Satchel(plugins=[tmp_path])
    session = bag.session()
    assert asyncio.run(session.call("say")).text == "second"
    session.activate("first")
    assert asyncio.run(session.call("say")).text == "first"
    assert shown(session) == ["say", "reset_equipped_tools"]


def test_tools_that_are_new_to_a_session_come_last():
    bag = Satchel()
    bag.register_tool(shout, name="middle")
    session = bag.session()

    def seen():
        return [schema["function"]["name"] for schema in session.schemas()]

    assert seen() == ["middle"]
    bag.register_tool(shout, name="early")
    bag.register_tool(shout, name="late")
    assert seen() == ["middle", "early", "late"]
    bag.remove_tool("middle")
    assert seen() == ["early", "late"]
    bag.register_tool(shout, name="middle")
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

    bag = Satchel()
    bag.register_tool(Whisper())
    (schema,) = bag.session().schemas()
    assert json.dumps(schema).count("Say it.") == 3
    assert not has_hidden(json.dumps(schema, ensure_ascii=False))
    assert call(bag, "whisper", description="a").text == "a"


def test_a_length_of_descriptions_counts_wherever_it_is_set(tmp_path, write_skill):
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
    write_plugin(tmp_path / "far", "demo", tools="raise AssertionError('it ran')\n")
    bag = Satchel(plugins=[tmp_path / "near", tmp_path / "far"])
    assert call(bag, "say").text == "near"
    (loser,) = [entry for entry in bag.catalog.all_plugins if entry.state is State.SHADOWED]
    assert [item.code for item in loser.diagnostics] == ["plugin-shadowed"]


def test_one_tool_that_cannot_be_is_refused_and_the_others_serve(tmp_path, write_plugin):
    source = """
        from satchel import tool
        @tool
        def good() -> str:
            return "good"
        @tool(name="not a name")
        def bad() -> str: ...
    """
    write_plugin(tmp_path, "demo", tools=source)
    bag = Satchel(plugins=[tmp_path])
    assert call(bag, "good").text == "good"
    (problem,) = bag.catalog.plugins["demo"].diagnostics
    assert problem.code == "plugin-tool-invalid"
    assert "_satchel" not in problem.message


def test_the_modules_of_a_satchel_go_with_it(tmp_path, write_plugin):
    import sys

    source = "from satchel import tool\n@tool\ndef say() -> str:\n    return 'x'\n"
    write_plugin(tmp_path, "fleeting", tools=source)

    def modules() -> list[str]:
        return [name for name in sys.modules if name.startswith("_satchel_plugin_fleeting")]

    bag = Satchel(plugins=[tmp_path])
    assert modules()
    del bag
    gc.collect()
    assert not modules()


# ---- watching ----------------------------------------------------------------------------------


def test_the_async_watch_yields_every_change_and_ends(tmp_path, write_skill):
    async def main():
        bag = Satchel(skills=[tmp_path])
        async with bag.watch() as changes:
            for name in ("a", "b", "c"):
                write_skill(tmp_path, name)
                async with asyncio.timeout(20):
                    change = await anext(changes)
                assert (change.event, change.kind, change.name) == ("added", "skill", name)
        assert [change async for change in changes] == []
        assert changes.dropped == 0

    asyncio.run(main())


def test_the_watch_keeps_the_catalog_current_without_being_read(tmp_path, write_skill):
    async def main():
        bag = Satchel(skills=[tmp_path])
        heard = asyncio.Event()
        loop = asyncio.get_running_loop()
        bag.subscribe(lambda _change: loop.call_soon_threadsafe(heard.set))
        async with bag.watch():
            write_skill(tmp_path, "pdf")
            async with asyncio.timeout(20):
                await heard.wait()
        assert list(bag.catalog.skills) == ["pdf"]

    asyncio.run(main())


def test_cancelling_the_task_ends_the_watch(tmp_path):
    async def main():
        bag = Satchel(skills=[tmp_path])
        armed = asyncio.Event()

        async def follow():
            async with bag.watch() as changes:
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
        bag = Satchel(skills=[tmp_path])
        async with bag.watch() as first, bag.watch() as second:
            threads = [thread.name for thread in threading.enumerate()]
            assert threads.count("satchel-watch") == 1
            write_skill(tmp_path, "pdf")
            async with asyncio.timeout(20):
                assert await anext(first) == await anext(second)

    asyncio.run(main())


def test_a_listener_that_fails_disturbs_nobody(tmp_path, write_skill, caplog):
    bag = Satchel(skills=[tmp_path])
    heard = []

    def fail(_change):
        raise RuntimeError("boom")

    bag.subscribe(fail)
    undo = bag.subscribe(heard.append)
    write_skill(tmp_path, "pdf")
    bag.refresh()
    assert [change.name for change in heard] == ["pdf"]
    assert "a listener failed" in caplog.text
    undo()
    undo()
    write_skill(tmp_path, "docx")
    bag.refresh()
    assert len(heard) == 1


def test_a_look_that_fails_does_not_end_the_watch(tmp_path, write_skill, monkeypatch, caplog):
    from satchel import satchel as room

    bag = Satchel(skills=[tmp_path], settings=Settings())
    real, failures = room.look, iter([True])
    seen = threading.Event()
    bag.subscribe(lambda _change: seen.set())
    with bag.watching():

        def look(*arguments):
            if next(failures, False):
                raise RuntimeError("a fault of ours")
            return real(*arguments)

        monkeypatch.setattr(room, "look", look)
        write_skill(tmp_path, "pdf")
        assert seen.wait(20)
    assert "pdf" in bag.catalog.skills
    assert "looking at the sources failed" in caplog.text


# ---- the well-known places ---------------------------------------------------------------------


def test_the_users_places_are_known_and_a_projects_only_when_it_is_named(
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
    bag = Satchel(places=well_known_places())
    assert sorted(bag.catalog.skills) == ["one", "three", "two"]
    assert troubles(bag.catalog) == [], "well-known places may be missing"
    bag = Satchel(places=well_known_places(project, claude=True))
    assert sorted(bag.catalog.skills) == ["five", "four", "one", "three", "two"]
    assert bag.catalog.skills["two"].description == "In project.", "the project is nearer"


# ---- real skills -------------------------------------------------------------------------------


def test_every_real_skill_loads_or_says_why_not(shared):
    corpus = shared / "corpus"
    roots = [folder for folder in sorted(corpus.iterdir()) if folder.is_dir()]
    settings = Settings(limits=Limits(find_depth=12, find_folders=20_000))
    catalog = Satchel(skills=roots, settings=settings).catalog
    found = {entry.path for entry in catalog.all_skills}
    for file in corpus.rglob("SKILL.md"):
        nested = any(str(parent) in found for parent in file.parent.parents)
        assert nested or str(file.parent) in found, file
    for entry in catalog.all_skills:
        if entry.state is State.FAILED:
            assert "quirks" in entry.path
            assert any(item.severity == "error" for item in entry.diagnostics)
    whole = SkillPrompt(budget=None)
    prompt = Satchel(skills=roots, skill_style=whole).session().prompt()
    assert prompt.count("<skill>") == prompt.count("</description>") > 600


def test_a_session_may_have_some_of_the_tools_only():
    bag = Satchel()
    for name in ("read_mail", "read_file", "write_file"):
        bag.register_tool(lambda: "done", name=name, description="Do it.")

    def names(**chosen):
        return [schema["name"] for schema in bag.session(**chosen).schemas("mcp")]

    assert names(enable="read_*") == ["read_file", "read_mail"]
    assert names(disable=["*_file"]) == ["read_mail"]
    assert names(enable=["*_file"], disable=["write_*"]) == ["read_file"]
    assert names() == ["read_file", "read_mail", "write_file"]
    result = asyncio.run(bag.session(disable="write_*").call("write_file", {}))
    assert result.is_error
    assert "There is no tool 'write_file'" in result.text
    bag.register_tool(lambda: "done", name="read_news", description="Do it.")
    assert names(enable="read_*") == ["read_file", "read_mail", "read_news"]
