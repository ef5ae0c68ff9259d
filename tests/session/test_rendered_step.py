"""What a model is shown where there is much, and while others publish."""

import json

import pytest
from conversation import META, answer, echo, maps_and_web, names, parameters, say

from satchel import NotFoundError, Satchel, SkillPrompt
from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import GroupEntry, SkillEntry, ToolEntry
from satchel.formats.skill_manifest import SkillManifest
from satchel.session.session import Session
from satchel.session.session_options import SessionOptions
from satchel.settings import Limits
from satchel.shared import SharedState
from satchel.sources.search_roots import Precedence
from satchel.tools import FunctionTool
from satchel.tools.dialects import DIALECTS

BUDGET = 16_000


def whence(name):
    return {
        "name": name,
        "source": "skills",
        "scope": Precedence.PROJECT,
        "path": f"/skills/{name}",
        "unit": f"/skills/{name}",
        "rank": (0, name),
    }


def a_skill(number):
    name = f"skill-{number:05}"
    about = f"Subject {number}. " + "What it is for, at length. " * 8
    manifest = SkillManifest(
        name=name,
        description=about,
        license=None,
        compatibility=None,
        allowed_tools=(),
        metadata={},
        fields={},
        body=f"Body {number}.",
    )
    return SkillEntry(
        **whence(name), description=about, manifest=manifest, key=name, digest=str(number)
    )


def a_tool(number):
    name = f"tool_{number:04}"

    def work(subject: str) -> str:
        return f"{name} {subject}"

    about = f"Handle subject {number}. " + "What it is for, at length. " * 8
    function_tool = FunctionTool(work, name=name, description=about)
    groups = (f"group{number % 20:02}",)
    return ToolEntry(
        **whence(name), description=about, groups=groups, version="1", tool=function_tool
    )


def a_group(number):
    name = f"group{number:02}"
    tools = tuple(f"tool_{n:04}" for n in range(number, 2000, 20))
    about = f"Group {number}. " + "What it is for, at length. " * 100
    return GroupEntry(**whence(name), description=about, notes="Note. " * 20, tools=tools)


@pytest.fixture(scope="module")
def crowd():
    """Return what sessions share of 10,000 skills, and 2,000 tools in 20 groups."""
    shared = SharedState(Limits(), SkillPrompt())
    basic = GroupEntry(**whence("basic"), description="Always there.", active=True)
    catalog = Catalog(
        generation=1,
        all_skills=tuple(map(a_skill, range(10_000))),
        all_tools=tuple(map(a_tool, range(2_000))),
        all_groups=(basic, *map(a_group, range(20))),
    )
    shared.publish(catalog)
    return shared


def test_the_prompt_stays_within_its_budget_and_says_what_it_left_out(crowd):
    prompt = Session(crowd, SessionOptions()).prompt()
    listed = prompt.count("skill-0")
    assert 0 < listed < 10_000
    assert 0.8 * BUDGET < len(prompt) <= BUDGET
    assert " (10,000): skill-00000, skill-00001" in prompt
    assert f", and {10_000 - listed:,} more" in prompt
    assert "call search_skills first" in prompt.splitlines()[0]


def test_without_a_search_the_prompt_sends_to_no_one_who_is_not_there(crowd):
    session = Session(crowd, SessionOptions(search=False))
    assert "search_skills" not in session.prompt()
    assert " more\n" in session.prompt()
    assert "search_skills" not in names(session)


def test_what_was_left_out_is_in_no_enum_and_can_be_found_and_loaded(crowd):
    session = Session(crowd, SessionOptions())
    assert "skill-09876" not in session.prompt()
    assert "enum" not in parameters(session, "load_skill")["properties"]["name"]
    message = say(session, "search_skills", words="subject 9876")
    assert message.startswith("- skill-09876: Subject 9876.")
    assert len(message) < 5_000
    assert "Body 9876." in say(session, "load_skill", name="skill-09876")
    near = answer(session, "load_skill", name="skil-09876").text
    assert "skill-09876" in near
    assert len(near) < 300


def test_tools_out_of_sight_are_found_with_the_way_to_get_them(crowd):
    session = Session(crowd, SessionOptions())
    message = say(session, "search_tools", words="tool_1234")
    assert message.startswith("- tool_1234: Handle subject 1234.")
    assert "(in tool group 'group14', which is not active. " in message.splitlines()[0]
    say(session, META, group14=True)
    assert say(session, "tool_1234", subject="x") == "tool_1234 x"


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_all_that_is_shown_of_what_is_not_active_stays_bounded(crowd, dialect):
    session = Session(crowd, SessionOptions())
    shown = session.schemas(dialect)
    assert len(json.dumps(shown)) < 24_000
    (meta,) = (item for item in shown if META in json.dumps(item))
    for number in range(20):
        assert f"group{number:02}" in json.dumps(meta)


def test_an_active_group_shows_its_tools_and_no_others(crowd):
    session = Session(crowd, SessionOptions())
    before = names(session)
    session.activate("group03")
    after = names(session)
    assert after[: len(before)] == before
    assert after[len(before) :] == [f"tool_{n:04}" for n in range(3, 2000, 20)]


def test_many_skills_cost_nothing_in_the_schema_of_the_loader(crowd):
    session = Session(crowd, SessionOptions())
    before = parameters(session, "load_skill")
    session.skill_style = SkillPrompt(budget=None)
    assert session.skill_prompt().count("<skill>") == 10_000
    assert parameters(session, "load_skill") == before


def test_a_step_keeps_the_wording_that_it_began_with(crowd):
    session = Session(crowd, SessionOptions())
    step = session.step()
    before = step.prompt()
    session.skill_style = SkillPrompt(instruction="Other words.")
    assert step.prompt() == before
    assert session.prompt().startswith("Other words.")


def test_sessions_that_see_the_same_share_the_work(crowd):
    def showing(**options):
        session = Session(crowd, SessionOptions(**options))
        return session._rendered(session._shared_view())

    one, other = showing(), showing()
    assert one is other
    assert showing(search=False) is not one


# ---- odd catalogs ------------------------------------------------------------------------------


def test_nothing_to_say_is_nothing():
    session = Satchel().session()
    assert (session.prompt(), session.skill_prompt(), session.activated_notes()) == ("", "", "")
    assert session.schemas() == []
    assert session.step().schemas("gemini") == []


def test_prompt_is_the_skills_and_then_the_notes(tmp_path, write_skill):
    write_skill(tmp_path, "pdf")
    session = maps_and_web(skills=[tmp_path]).session()
    session.activate("maps", "web")
    assert session.prompt() == f"{session.skill_prompt()}\n\n{session.activated_notes()}"
    assert session.activated_notes() == (
        "## About Tool Group 'maps'\n\nGeocode first.\n\n## About Tool Group 'web'\n\nBe polite."
    )


@pytest.mark.parametrize("dialect", ["", "OpenAI", "opnai", "x" * 10_000])
def test_an_unknown_dialect_is_refused_by_session_and_step(dialect):
    session = maps_and_web().session()
    for place in (session, session.step()):
        with pytest.raises(NotFoundError, match="there is no dialect"):
            place.schemas(dialect)


@pytest.mark.parametrize(
    "name",
    ["load_skill", "read_skill_file", "run_skill_script", "search_tools", "search_skills", META],
)
def test_a_tool_of_the_catalog_wins_over_the_sessions_own(tmp_path, write_skill, name):
    folder = write_skill(tmp_path, "pdf") / "scripts"
    folder.mkdir()
    (folder / "run.py").write_text("print(1)")
    app = maps_and_web(skills=[tmp_path])
    app.register_tool(echo, name=name)
    session = app.session(scripts=True, search=True)
    shown = names(session)
    assert len(shown) == len(set(shown)) == 8
    assert list(parameters(session, name)["properties"]) == ["text"]
    assert say(session, name, text="mine") == "mine"


def test_what_is_published_while_a_session_is_asked_for_its_schemas_mixes_nothing(monkeypatch):
    app = maps_and_web()
    session = app.session()
    session.activate("maps")
    shared_view, published = SharedState.shared_view, []

    def publishing(*asked):
        result = shared_view(*asked)
        if not published:
            published.append(True)
            app.remove_tool("route")
        return result

    monkeypatch.setattr(SharedState, "shared_view", publishing)
    assert names(session) == ["echo", "route", META]
    assert published
    assert names(session) == ["echo", META]
