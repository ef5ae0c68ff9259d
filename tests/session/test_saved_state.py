"""What a session remembers, as JSON, and back."""

import asyncio
import copy
import json
import shutil

import pytest
from conversation import choose, echo, locked, maps_and_web, names, refused, say
from hypothesis import given
from hypothesis import strategies as st

from satchel import ConflictError, DefinitionError, Satchel, ToolContext


def through_json(state):
    return json.loads(json.dumps(state))


@pytest.fixture
def root(tmp_path, write_skill):
    folder = write_skill(tmp_path / "skills", "pdf", body="The instructions.\n")
    (folder / "guide.md").write_text("the guide")
    write_skill(tmp_path / "skills", "note")
    return tmp_path / "skills"


@pytest.fixture
def app(root):
    return maps_and_web(skills=[root])


def grown(app):
    """Return a session with something of everything."""
    session = app.session()
    session.prompt()
    session.schemas()
    choose(session, web=True)
    session.schemas()
    say(session, "load_skill", name="pdf")
    say(session, "read_skill_file", skill="pdf", path="guide.md")
    session.state.update(calls=3, deep={"list": [1, 2.5, None, True, "ü\u202e"]})
    return session


# ---- there and back -----------------------------------------------------------------------------


def test_everything_comes_back_through_json(app):
    session = grown(app)
    saved = through_json(session.state_dict())
    assert saved == session.state_dict(), "it is JSON, and nothing of it was lost"
    other = app.session()
    assert other.load_state_dict(saved) == ()
    assert other.state_dict() == saved
    assert other.active_groups == ("basic", "web")
    assert other.loaded_skills == ("pdf",)
    assert other.state == session.state
    assert json.dumps(other.schemas()) == json.dumps(session.schemas()), "in the same order"
    assert other.prompt() == session.prompt()
    assert "was loaded before" in say(other, "load_skill", name="pdf")
    assert "was read before" in say(other, "read_skill_file", skill="pdf", path="guide.md")


def test_it_comes_back_in_another_process_just_the_same(app, root):
    session = grown(app)
    saved = through_json(session.state_dict())
    other = maps_and_web(skills=[root]).session()
    assert other.load_state_dict(saved, strict=True) == ()
    assert other.state_dict() == saved
    assert json.dumps(other.schemas()) == json.dumps(session.schemas())


def test_a_new_session_can_be_saved_and_taken_up(app):
    saved = through_json(app.session().state_dict())
    session = grown(app)
    assert session.load_state_dict(saved) == ()
    assert (session.active_groups, session.loaded_skills, session.state) == (("basic",), (), {})
    assert session.state_dict() == saved


def test_it_takes_the_place_of_what_was_remembered(app):
    session = app.session()
    session.activate("maps")
    session.state["old"] = 1
    session.load_skill("note")
    session.load_state_dict(grown(app).state_dict())
    assert session.active_groups == ("basic", "web")
    assert session.loaded_skills == ("pdf",)
    assert "old" not in session.state


def test_what_was_deactivated_stays_off():
    app = Satchel()
    app.create_group("ready", active=True)
    app.register_tool(echo, group="ready")
    session = app.session()
    session.deactivate("ready")
    other = app.session()
    other.load_state_dict(through_json(session.state_dict()))
    assert other.active_groups == ("basic",)


def test_a_saved_state_is_a_copy_on_its_way_out_and_in(app):
    session = grown(app)
    saved = session.state_dict()
    before = copy.deepcopy(saved)
    session.state["deep"]["list"].append("later")
    session.activate("maps")
    say(session, "load_skill", name="note")
    assert saved == before
    other = app.session()
    other.load_state_dict(saved)
    saved["state"]["deep"]["list"].append("more")
    saved["skills"]["pdf"]["read"].clear()
    saved["groups"]["on"].clear()
    assert other.state_dict() == before


def test_there_are_no_changes_to_report_after_it_was_taken_up(app):
    session = app.session()
    session.step()
    session.load_state_dict(grown(app).state_dict())
    assert session.changes() == ()
    assert session.step().changes == ()


def test_a_changed_skill_or_file_is_given_again_afterwards(app, root):
    saved = through_json(grown(app).state_dict())
    (root / "pdf/guide.md").write_text("another guide")
    app.refresh()
    session = app.session()
    session.load_state_dict(saved)
    message = say(session, "read_skill_file", skill="pdf", path="guide.md")
    assert message == "another guide"
    assert "The instructions." in say(session, "load_skill", name="pdf")


def test_only_what_was_listed_and_still_is_can_be_read(app, root):
    saved = through_json(grown(app).state_dict())
    (root / "pdf/later.md").write_text("later")
    app.refresh()
    saved["skills"]["pdf"]["files"] += ["../note/SKILL.md", "/etc/passwd", "gone.md"]
    session = app.session()
    session.load_state_dict(saved)
    for path in ("later.md", "../note/SKILL.md", "/etc/passwd", "gone.md"):
        message = refused(session, "read_skill_file", skill="pdf", path=path)
        assert message.startswith("There is no file ")


def test_a_call_that_runs_keeps_hold_of_the_same_state(app):
    session = app.session()
    held = session.state
    saved = grown(app).state_dict()

    async def main():
        async def restore_and_count(context: ToolContext) -> int:
            session.load_state_dict(saved)
            context.state["calls"] += 1
            return context.state["calls"]

        app.register_tool(restore_and_count)
        return await session.call("restore_and_count")

    assert asyncio.run(main()).structured == 4
    assert session.state is held
    assert session.state["calls"] == 4


# ---- what no longer exists ----------------------------------------------------------------------


def test_what_is_gone_is_a_diagnostic_and_the_rest_is_taken_up(app, root):
    session = grown(app)
    session.load_skill("note")
    session.activate("maps")
    saved = through_json(session.state_dict())
    app.remove_group("maps")
    shutil.rmtree(root / "pdf")
    app.refresh()
    other = app.session()
    problems = other.load_state_dict(saved)
    assert [(item.code, item.message) for item in problems] == [
        ("saved-group-missing", "the group 'maps' no longer exists"),
        ("saved-skill-missing", "the skill 'pdf' no longer exists"),
    ]
    assert all(item.fix for item in problems)
    assert other.active_groups == ("basic", "web")
    assert other.loaded_skills == ("note",)
    assert other.state == session.state


def test_a_group_that_comes_back_is_found_as_it_was(app):
    saved = {"version": 1, "groups": {"on": ["later"]}}
    session = app.session()
    (problem,) = session.load_state_dict(saved)
    assert "'later'" in problem.message
    app.create_group("later")
    assert session.active_groups == ("basic", "later")


def test_strict_raises_instead_and_changes_nothing(app):
    saved = grown(app).state_dict()
    saved["groups"]["on"] += ["gone"]
    saved["skills"]["lost"] = {"digest": "1", "files": [], "read": {}}
    session = app.session()
    session.activate("maps")
    session.state["mine"] = 1
    before = session.state_dict()
    with pytest.raises(ConflictError, match="'gone' no longer exists; the skill 'lost'"):
        session.load_state_dict(saved, strict=True)
    assert session.state_dict() == before
    assert session.state == {"mine": 1}


def test_a_group_that_became_unavailable_is_not_active():
    saved = {"version": 1, "groups": {"on": ["vault", "maps"]}}
    session = locked().session()
    session.load_state_dict(saved)
    assert session.active_groups == ("basic", "maps")
    assert "unlock" not in names(session)


def test_a_skill_of_a_long_name_comes_back(tmp_path, write_skill):
    for place in ("near", "far"):
        write_skill(tmp_path / place, "pdf", body=f"{place}.\n")
    app = Satchel(skills=[tmp_path / "near", tmp_path / "far"])
    (address,) = {e.address for e in app.catalog.all_skills} - {app.catalog.skills["pdf"].address}
    session = app.session()
    session.load_skill(address)
    other = app.session()
    assert other.load_state_dict(through_json(session.state_dict())) == ()
    assert other.loaded_skills == (address,)


# ---- what cannot be saved -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [1, object()]}, r"state\['a'\]\[1\] is a object"),
        ({"a": {1: 2}}, r"state\['a'\] is a dict"),
        ({"a": float("nan")}, r"state\['a'\] is a float"),
        ({"a": float("inf")}, r"state\['a'\] is a float"),
        ({"a": b"x"}, r"state\['a'\] is a bytes"),
        ({"a": {1, 2}}, r"state\['a'\] is a set"),
        ({1: 2}, r"state is a dict"),
    ],
)
def test_what_json_has_no_word_for_is_named(value, where):
    session = Satchel().session()
    session.state.update(value)
    with pytest.raises(DefinitionError, match=where):
        session.state_dict()


def test_a_state_that_holds_itself_ends():
    session = Satchel().session()
    session.state["me"] = session.state
    with pytest.raises(DefinitionError):
        session.state_dict()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_that_python_writes_in_no_json_is_named(sign):
    session = Satchel().session()
    session.state["large"] = sign * 10**3000
    json.dumps(session.state_dict())
    session.state["huge"] = sign * 10**5000
    with pytest.raises(DefinitionError, match="huge"):
        session.state_dict()


# ---- garbage ------------------------------------------------------------------------------------

GARBAGE = [
    *(None, 5, "x", [], (), {}, {"version": 2}, {"version": "1"}, {"version": None}),
    *({"version": 1, "groups": x} for x in (5, [], "x", {"on": "maps"}, {"on": [1]}, {"off": {}})),
    *({"version": 1, "skills": x} for x in (5, [], {"pdf": None}, {"pdf": {}}, {5: {}})),
    {"version": 1, "skills": {"pdf": {"digest": 5, "files": [], "read": {}}}},
    {"version": 1, "skills": {"pdf": {"digest": "1", "files": "x", "read": {}}}},
    {"version": 1, "skills": {"pdf": {"digest": "1", "files": [], "read": {"a": 5}}}},
    {"version": 1, "skills": {"pdf": {"digest": "1", "files": [], "read": {5: "a"}}}},
    *({"version": 1, "tools": x} for x in (5, "x", [1], {}, [None])),
    *({"version": 1, "state": x} for x in (5, [], "x", {1: 2}, {"a": b"x"}, {"a": {2: 3}})),
]


@pytest.mark.parametrize("junk", GARBAGE, ids=repr)
@pytest.mark.parametrize("strict", [False, True])
def test_what_is_no_saved_session_is_refused_and_nothing_changes(app, junk, strict):
    session = grown(app)
    shown, before = json.dumps(session.schemas()), session.state_dict()
    with pytest.raises(DefinitionError):
        session.load_state_dict(junk, strict=strict)
    assert session.state_dict() == before
    assert json.dumps(session.schemas()) == shown


WORDS = st.sampled_from(["maps", "web", "gone", "basic", "pdf", "guide.md", ""]) | st.text()
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


def mostly(strategy):
    return strategy | strategy | strategy | ANYTHING


def fields(**strategies):
    return st.fixed_dictionaries({}, optional={k: mostly(s) for k, s in strategies.items()})


SKILL = fields(
    digest=WORDS, files=st.lists(WORDS, max_size=4), read=st.dictionaries(WORDS, WORDS, max_size=3)
)
SAVED = fields(
    version=st.just(1),
    groups=fields(on=st.lists(WORDS, max_size=3), off=st.lists(WORDS, max_size=3)),
    skills=st.dictionaries(WORDS, mostly(SKILL), max_size=3),
    tools=st.lists(WORDS, max_size=4),
    state=st.dictionaries(WORDS, ANYTHING, max_size=4),
).map(lambda result: {"version": 1, **result})


@pytest.fixture(scope="module")
def one_app(tmp_path_factory, write_skill):
    root = tmp_path_factory.mktemp("skills")
    (write_skill(root, "pdf") / "guide.md").write_text("the guide")
    return maps_and_web(skills=[root])


@given(junk=mostly(SAVED), strict=st.booleans())
def test_garbage_is_refused_without_a_trace_or_taken_up_whole(one_app, junk, strict):
    session = one_app.session()
    session.activate("maps")
    session.load_skill("pdf")
    session.state["mine"] = [1]
    shown, before = json.dumps(session.schemas()), session.state_dict()
    try:
        session.load_state_dict(junk, strict=strict)
    except (DefinitionError, ConflictError):
        assert session.state_dict() == before
        assert json.dumps(session.schemas()) == shown
        return
    saved = through_json(session.state_dict())
    again = one_app.session()
    again.load_state_dict(saved)
    assert again.state_dict() == saved
    assert "basic" in session.active_groups
    assert set(names(session)) >= {"echo", "load_skill"}
    session.prompt()
    assert session.loaded_skills in {(), ("pdf",)} or all(
        one_app.catalog.skill(name) for name in session.loaded_skills
    )


def test_a_saved_session_does_not_bring_back_a_hidden_skill(tmp_path, write_skill):
    write_skill(tmp_path, "pdf")
    app = Satchel(skills=[tmp_path])
    session = app.session()
    session.load_skill("pdf")
    later = app.session(disable=["skill:pdf"])
    assert [item.code for item in later.load_state_dict(session.state_dict())] == [
        "saved-skill-missing"
    ]
    call = later.call("read_skill_file", {"skill": "pdf", "path": "SKILL.md"})
    assert asyncio.run(call).is_error
