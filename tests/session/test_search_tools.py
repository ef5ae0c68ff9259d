"""`search_tools` and `search_skills`: the model finds what it was not shown."""

import pytest
from conversation import (
    META,
    answer,
    choose,
    echo,
    locked,
    maps_and_web,
    names,
    parameters,
    refused,
    say,
)

from satchel import Satchel

KEEP = "and every group to keep set to true."
ALONE = " Or call activate_tools with its name, for this tool alone."
CHOOSE = "which is not active. Call reset_equipped_tools with {!r} " + KEEP


def searched(app, words, **options):
    return say(app.session(search=True, **options), "search_tools", words=words)


# ---- when they are there -----------------------------------------------------------------------


def test_little_out_of_sight_needs_no_search_but_the_host_may_want_it():
    app = maps_and_web()
    assert names(app.session()) == ["echo", META]
    assert names(app.session(search=True)) == ["echo", META, "search_tools", "activate_tools"]
    assert names(app.session(search=False)) == ["echo", META]


@pytest.mark.parametrize(("count", "is_there"), [(29, False), (30, True)])
def test_many_tools_in_groups_bring_the_search_and_it_stays_while_groups_are_switched(
    count, is_there
):
    app = Satchel()
    app.create_group("many")
    for number in range(count):
        app.register_tool(echo, name=f"tool_{number}", group="many")
    assert ("search_tools" in names(app.session())) is is_there
    assert "search_tools" not in names(app.session(search=False))
    session = app.session()
    session.activate("many")
    assert ("search_tools" in names(session)) is is_there


def test_a_search_that_is_not_there_cannot_be_called():
    assert answer(maps_and_web().session(), "search_tools", words="x").error_code == (
        "tool_not_found"
    )


def test_skills_are_searched_where_the_host_wants_it_and_there_are_some(tmp_path, write_skill):
    write_skill(tmp_path, "pdf")
    app = Satchel(skills=[tmp_path])
    assert "search_skills" not in names(app.session())
    assert "search_skills" in names(app.session(search=True))
    assert "search_skills" not in names(Satchel().session(search=True))


def test_a_skill_that_is_found_by_one_inside_it_says_so(tmp_path, write_skill):
    folder = write_skill(tmp_path, "outdoors", description="For the weekend.")
    write_skill(folder / "parts", "hike", description="Walks up a mountain.")
    session = Satchel(skills=tmp_path).session(search=True)
    assert say(session, "search_skills", words="a mountain") == (
        "- outdoors: For the weekend. It contains hike. (call load_skill with name 'outdoors'.)"
    )


def test_skills_are_searched_where_all_are_in_groups_that_are_not_active(tmp_path, write_skill):
    app = maps_and_web()
    app.register_skill(write_skill(tmp_path, "pdf"), group="maps")
    session = app.session(search=True)
    assert "'maps' and every group" in say(session, "search_skills", words="pdf")


@pytest.mark.parametrize(("count", "is_there"), [(29, False), (30, True)])
def test_many_skills_out_of_sight_bring_the_search(tmp_path, write_skill, count, is_there):
    for number in range(count):
        write_skill(tmp_path, f"skill-{number}")
    app = maps_and_web()
    app.register_skill(tmp_path, group="maps")
    assert ("search_skills" in names(app.session())) is is_there


# ---- what they answer --------------------------------------------------------------------------


def test_what_is_active_must_be_called():
    app = maps_and_web()
    session = app.session(search=True)
    assert say(session, "search_tools", words="say again") == (
        "- echo: Say it again. (active: call it.)"
    )
    session.activate("maps")
    message = say(session, "search_tools", words="way between places")
    assert message == "- route: Find the way between two places. (active: call it.)"


def test_what_is_inactive_says_how_to_get_it_and_doing_so_helps():
    session = maps_and_web().session(search=True)
    message = say(session, "search_tools", words="way between places")
    how = CHOOSE.format("maps") + ALONE
    assert message == f"- route: Find the way between two places. (in tool group 'maps', {how})"
    choose(session, maps=True)
    assert say(session, "route", start="a", end="b") == "a to b"


def test_where_the_model_cannot_choose_the_user_must_be_asked():
    message = searched(maps_and_web(), "way between places", meta_tool=False)
    assert "(in tool group 'maps', which is not active. Ask the user to activate it.)" in message


def test_what_is_unavailable_says_why():
    message = searched(locked(), "vault")
    assert (
        "- unlock: Open the vault. (in tool group 'vault', which is unavailable: it requires "
        "VAULT_KEY to be configured. Tell the user.)"
    ) in message


def test_what_was_activated_in_the_step_says_so():
    session = maps_and_web().session(search=True)
    step = session.step()
    choose(step, maps=True)
    message = say(step, "search_tools", words="way between places")
    assert (
        "(in tool group 'maps', which is active from the next step on. Try again then.)" in message
    )


def test_what_is_not_of_the_step_is_not_found_in_it():
    app = maps_and_web()
    session = app.session(search=True)
    step = session.step()
    app.register_tool(echo, name="juggle", group="maps", description="Juggle torches.")
    assert "juggle" not in say(step, "search_tools", words="juggle torches")
    assert "juggle" in say(session.step(), "search_tools", words="juggle torches")
    app.remove_tool("juggle")
    assert "juggle" not in say(session.step(), "search_tools", words="juggle torches")


def test_skills_say_how_to_read_them(tmp_path, write_skill):
    write_skill(tmp_path, "pdf", description="Reads PDF files.")
    app = Satchel(skills=[tmp_path])
    assert say(app.session(search=True), "search_skills", words="pdf") == (
        "- pdf: Reads PDF files. (call load_skill with name 'pdf'.)"
    )
    message = say(app.session(search=True, skill_tools=False), "search_skills", words="pdf")
    assert message == f"- pdf: Reads PDF files. (read {tmp_path}/pdf/SKILL.md.)"


def test_skills_of_groups_say_how_to_get_them(tmp_path, write_skill):
    app = locked()
    for name, group in (("aaa", "maps"), ("bbb", "vault"), ("ccc", ["vault", "web"])):
        app.register_skill(write_skill(tmp_path, name, description="Folding paper."), group=group)
    session = app.session(search=True)
    message = say(session, "search_skills", words="folding paper")
    assert f"- aaa: Folding paper. (in tool group 'maps', {CHOOSE.format('maps')})" in message
    assert "- bbb: Folding paper. (in tool group 'vault', which is unavailable: it " in message
    assert f"- ccc: Folding paper. (in tool group 'web', {CHOOSE.format('web')})" in message
    choose(session, maps=True)
    assert "(call load_skill with name 'aaa'.)" in say(session, "search_skills", words="paper")


def test_a_search_without_words_or_without_luck_says_what_to_do():
    session = maps_and_web().session(search=True)
    assert refused(session, "search_tools", words=" \n") == (
        "Say in a few words what the tool is for."
    )
    message = say(session, "search_tools", words="zeppelin")
    assert message == "No tool was found. Try other words, or continue without one."


@pytest.mark.parametrize("words", ['" OR *', "'; DROP", "\x00", "x" * 100_000, "💥", "a" * 3000])
def test_any_words_are_answered_in_short(words):
    result = answer(maps_and_web().session(search=True), "search_tools", words=words)
    assert len(result.text) < 1000
    assert result.error_code in {None, "tool_error"}


def test_descriptions_are_short_and_on_one_line_and_ten_are_enough():
    app = Satchel()
    app.create_group("many")
    for number in range(25):
        description = "Juggle\ntorches\u202e. " + "Long. " * 200
        app.register_tool(echo, name=f"j{number}", group="many", description=description)
    message = searched(app, "juggle")
    lines = message.splitlines()
    assert len(lines) == 10
    described = [line.partition(": ")[2].partition(" (in tool group")[0] for line in lines]
    assert {len(description) for description in described} == {300}
    assert "\u202e" not in message


def test_their_schema_has_text_and_no_internal_names():
    session = maps_and_web().session(search=True)
    shown = parameters(session, "search_tools")
    assert list(shown["properties"]) == ["words"]
    assert shown["required"] == ["words"]


def test_a_tool_is_found_by_each_of_its_groups_and_a_skill_by_its_group(tmp_path, write_skill):
    write_skill(tmp_path, "pay", description="Handles a thing.")
    app = Satchel()
    app.create_group("maps", "Places.")
    app.create_group("travel", "Trips and journeys.")
    app.create_group("money", "Money and invoices.")
    app.register_tool(echo, name="geocode", group=["maps", "travel"])
    app.register_skill(tmp_path, group="money")
    session = app.session(search=True)
    assert "geocode" in answer(session, "search_tools", words="journeys").text
    assert "pay" in answer(session, "search_skills", words="invoices").text


def test_skills_that_are_hidden_crowd_out_none_that_is_not(tmp_path, write_skill):
    hidden = "---\nname: {}\ndescription: About pdf.\ndisable-model-invocation: true\n---\nx\n"
    for number in range(60):
        name = f"pdf-{number}"
        write_skill(tmp_path, name, text=hidden.format(name))
    write_skill(tmp_path, "open-one", description="Something with pdf in it, and more words.")
    session = Satchel(skills=[tmp_path]).session(search=True)
    assert "open-one" in answer(session, "search_skills", words="pdf").text
