"""Providers: a host's own source of skills, plugins, tools and groups."""

import asyncio
import threading
from pathlib import Path

import pytest

from satchel import (
    ConflictError,
    Contribution,
    DefinitionError,
    Group,
    NotFoundError,
    Satchel,
    Settings,
    Skill,
    Status,
    tool,
)
from satchel.settings import WatchTimings


class Given:
    """A provider that returns what the test gives it, and records how it was asked."""

    def __init__(self, *answers, name="db", watch=()):
        self.name, self.watch, self.answers, self.asked = name, watch, list(answers), []

    def contribute(self, last, changed):
        self.asked.append((last, changed))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer() if callable(answer) else answer


class Raising:
    def __getattr__(self, name):
        raise RuntimeError(name)


def skills(*names, **changes):
    texts = {"description": "Does a thing.", "body": "Do it.", **changes}
    return Contribution(skills=[Skill(name=name, **texts) for name in names])


def codes(app):
    return [item.code for item in app.catalog.diagnostics if item.code != "plugin-not-enabled"]


def greet(name: str) -> str:
    """Greet somebody.

    Args:
        name: Whom.
    """
    return f"Hello {name}"


def call(session, name, /, **arguments):
    return asyncio.run(session.step().call(name, arguments)).text


# ---- what it contributes -----------------------------------------------------------------------


def test_its_skills_are_loaded_read_and_found_like_any_other():
    app = Satchel(providers=[Given(skills("pdf", files={"refs/a.md": "More."}))])
    session = app.session(search=True)
    assert app.catalog.skill("db:pdf").source == "db"
    assert "<name>pdf</name>" in session.prompt()
    assert "<location>" not in session.prompt()
    loaded = call(session, "load_skill", name="pdf")
    assert "Do it." in loaded
    assert "no folder on this machine" in loaded
    assert call(session, "read_skill_file", skill="pdf", path="refs/a.md") == "More."
    assert "pdf: Does a thing" in call(session, "search_skills", words="thing")


def test_without_the_skill_tools_the_model_cannot_read_them_so_they_are_not_listed():
    app = Satchel(providers=Given(skills("pdf")))
    assert app.session(skill_tools=False).prompt() == ""


def test_its_scripts_are_never_run():
    app = Satchel(providers=[Given(skills("pdf", files={"scripts/a.py": "print(1)"}))])
    session = app.session(scripts=True)
    call(session, "load_skill", name="pdf")
    assert "run_skill_script" not in str(session.schemas())


def test_its_tools_and_groups_work_like_those_of_a_plugin():
    group = Group(name="talk", description="Talking.", notes="Be kind.", tools=("greet",))
    app = Satchel(providers=[Given(Contribution(tools=[greet], groups=[group]))])
    session = app.session()
    assert "greet" not in str(session.schemas())
    session.activate("talk")
    assert "Be kind." in session.prompt()
    assert call(session, "greet", name="Ada") == "Hello Ada"
    assert app.catalog.plugins["db"].state is Status.OK


def test_its_folders_are_scanned_and_its_plugins_loaded(tmp_path, write_skill, write_plugin):
    write_skill(tmp_path / "skills", "pdf")
    write_plugin(tmp_path / "plugins", "clock")
    parts = Contribution(skills=[tmp_path / "skills"], plugins=[tmp_path / "plugins"])
    app = Satchel(providers=[Given(parts)])
    assert app.catalog.skills["pdf"].source == "db"
    assert "clock" in app.catalog.plugins


def test_a_link_in_its_folders_stays_inside(tmp_path, write_skill):
    outside = write_skill(tmp_path / "outside", "pdf")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "pdf").symlink_to(outside)
    app = Satchel(providers=[Given(Contribution(skills=[tmp_path / "skills"]))])
    assert not app.catalog.skills
    assert "source-link-outside" in codes(app)


def test_what_it_does_not_return_any_more_is_removed():
    app = Satchel(providers=[Given(skills("a", "b"), skills("b"))])
    app.refresh()
    assert list(app.catalog.skills) == ["b"]


def test_a_method_of_the_provider_is_the_same_tool_each_time():
    class WithMethod(Given):
        def look(self) -> str:
            """Look."""
            return "seen"

        def contribute(self, last, changed):
            return Contribution(tools=[self.look])

    app = Satchel(providers=[WithMethod()])
    generation = app.catalog.generation
    assert app.refresh("db") == ()
    assert app.catalog.generation == generation


def test_an_equal_answer_changes_nothing():
    app = Satchel(providers=[Given(lambda: skills("a", "b"))])
    before = app.catalog
    assert app.refresh() == ()
    assert app.catalog is before


def test_it_is_asked_with_what_it_gave_last():
    first = skills("a")
    provider = Given(first)
    Satchel(providers=[provider]).refresh()
    assert provider.asked == [(None, None), (first, None)]


def test_it_may_be_a_coroutine_function():
    class Remote:
        name = "remote"

        async def contribute(self, last, changed):
            return skills("a")

    assert list(Satchel(providers=[Remote()]).catalog.skills) == ["a"]


def test_the_user_can_disable_it_and_its_skills(config_folder):
    config_folder.mkdir()
    choices = config_folder / "satchel.toml"
    choices.write_text('disable = ["db:a", "tools"]\n')
    app = Satchel(
        providers=[Given(skills("a", "b")), Given(Contribution(tools=[greet]), name="tools")]
    )
    assert list(app.catalog.skills) == ["b"]
    assert not app.catalog.tools
    assert app.catalog.plugin("tools").state is Status.DISABLED


# ---- errors cost only itself -------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("no connection"), SystemExit(3), 42, Contribution(skills=7), None],
    ids=str,
)
def test_a_failure_keeps_the_last_contribution_and_says_so_once(answer):
    parts = Contribution(skills=skills("a").skills, tools=[greet])
    other = Given(skills("other"), name="other")
    app = Satchel(providers=[Given(parts, answer), other])
    app.refresh()
    assert {name: entry.state for name, entry in app.catalog.skills.items()} == {
        "a": Status.STALE,
        "other": Status.OK,
    }
    assert app.catalog.tools["greet"].state is Status.STALE
    assert app.catalog.plugins["db"].state is Status.STALE
    assert codes(app) == ["provider-failed"]


def test_what_went_wrong_and_what_to_do_is_said():
    app = Satchel(providers=[Given([]), Given(RuntimeError("no connection"), name="other")])
    texts = [str(item) for item in app.catalog.diagnostics if item.code == "provider-failed"]
    assert "so it contributes nothing: contribute returned list -> return a satchel" in texts[0]
    assert "RuntimeError: no connection -> fix it, and call refresh" in texts[1]


@pytest.mark.parametrize("kind", [RuntimeError, DefinitionError])
def test_a_failure_shows_no_secret(kind):
    problem = kind("password=hunter2 postgres://me:letmein@db")
    app = Satchel(providers=Given(problem))
    (shown,) = (item for item in app.catalog.diagnostics if item.code == "provider-failed")
    assert "password=[redacted] postgres://me:[redacted]@db" in shown.message


def test_it_recovers():
    app = Satchel(providers=[Given(skills("a"), RuntimeError("no"), skills("a", "b"))])
    app.refresh()
    app.refresh()
    assert list(app.catalog.skills) == ["a", "b"]
    assert codes(app) == []


def test_a_late_answer_is_taken_when_it_comes(tmp_path):
    file = tmp_path / "a.db"
    file.write_text("1")
    go, seen = threading.Event(), threading.Event()

    def late():
        go.wait(30)
        return skills("late")

    provider = Given(skills("a"), skills("a"), late, watch=[file])
    app = Satchel(providers=[provider])
    app.subscribe(lambda change: seen.set() if change.name == "late" else None)
    with app.watching():
        file.write_text("22")
        go.set()
        assert seen.wait(30)


@pytest.mark.parametrize(
    "parts",
    [
        {"skills": [Skill(name="../x", description="D.", body="B."), 3]},
        {"tools": [3, lambda x: x]},
        {"skills": [3, Raising()]},
        {"groups": [3, Group(name="a b")]},
        {"plugins": [3, b"plugins"]},
        {"diagnostics": ["x", 5]},
    ],
    ids=lambda parts: next(iter(parts)),
)
def test_a_bad_item_is_left_out_and_the_others_stay(parts):
    good = {"skills": [Skill(name="a", description="D.", body="B.")], "tools": [greet]}
    items = {name: [*items, *parts.get(name, ())] for name, items in good.items()}
    app = Satchel(providers=[Given(Contribution(**{**parts, **items}))])
    assert list(app.catalog.skills) == ["a"]
    assert list(app.catalog.tools) == ["greet"]
    assert codes(app).count("provider-item-invalid") == 2


@pytest.mark.parametrize("parts", [{"description": None}, {"body": 3}, {"files": {"a.md": 3}}])
def test_a_skill_that_is_left_out_is_named(parts):
    app = Satchel(providers=[Given(skills("pdf", **parts))])
    (diagnostic,) = (
        item for item in app.catalog.diagnostics if item.code == "provider-item-invalid"
    )
    assert "of skill 'pdf' is " in diagnostic.message


@pytest.mark.parametrize("field", ["skills", "plugins"])
@pytest.mark.parametrize("path", ["a\0b", "~\0", "half \ud800"])
def test_a_path_that_cannot_exist_costs_only_itself(field, path):
    provider = Given(skills("one"), Contribution(**{field: [path]}))
    with Satchel(providers=[provider, Given(skills("other"), name="good")]) as app:
        app.refresh()

        assert app.catalog.skill("other").state == Status.OK
        (diagnostic,) = (item for item in app.catalog.diagnostics if item.where.path == "db://")
        assert diagnostic.code == "provider-item-invalid"
        assert "a path that cannot exist" in diagnostic.message


def test_the_second_of_one_name_is_left_out():
    app = Satchel(providers=[Given(skills("a", "a"))])
    assert list(app.catalog.skills) == ["a"]
    assert codes(app) == ["provider-item-invalid"]


def test_a_broken_skill_keeps_its_last_good_version():
    app = Satchel(providers=[Given(skills("a", "b"), skills("a", "b", description=""))])
    app.refresh()
    assert [entry.state for entry in app.catalog.all_skills] == [Status.STALE] * 2


def test_an_invalid_tool_keeps_its_last_good_version():
    def invalid(name: open):
        """Greet."""

    invalid.__name__ = "greet"
    valid = Contribution(tools=[greet])
    broken = Contribution(tools=[invalid])
    app = Satchel(providers=[Given(valid, broken, broken, valid)])
    before = app.catalog.tools["greet"]
    for expected in (Status.STALE, Status.STALE, Status.OK):
        app.refresh()
        entry = app.catalog.tools["greet"]
        assert (entry.state, entry.tool) == (expected, before.tool)
        (*problems,) = (item.code for item in app.catalog.diagnostics)
        assert ("provider-item-invalid" in problems) is (expected == Status.STALE)
        assert call(app.session(), "greet", name="Ada") == "Hello Ada"


@pytest.mark.parametrize("is_first", [True, False])
def test_an_invalid_tool_does_not_displace_a_valid_one_of_its_name(is_first):
    def invalid(name: open):
        """Greet."""

    @tool(name="greet")
    def newer(name: str) -> str:
        """Greet briefly."""
        return f"Hi {name}"

    invalid.__name__ = "greet"
    tools = [invalid, newer] if is_first else [newer, invalid]
    app = Satchel(providers=[Given(Contribution(tools=[greet]), Contribution(tools=tools))])
    app.refresh()
    assert app.catalog.tools["greet"].state == Status.OK
    assert call(app.session(), "greet", name="Ada") == "Hi Ada"
    (diagnostic,) = (item for item in app.catalog.diagnostics if item.where.path == "db://")
    assert "an invalid tool 'greet'" in diagnostic.message


@pytest.mark.parametrize("change", [{"description": None}, {"files": {"../a": "b"}}])
def test_an_invalid_skill_keeps_its_last_good_version(change):
    invalid = Contribution(
        skills=[
            Skill(**{"name": "a", "description": "D.", "body": "B.", **change}),
            *skills("b").skills,
        ]
    )
    valid = skills("a", "b")
    app = Satchel(providers=[Given(valid, invalid, invalid, valid)])
    for expected in (Status.STALE, Status.STALE, Status.OK):
        app.refresh()
        assert [app.catalog.skills[name].state for name in "ab"] == [expected, Status.OK]
        (reported,) = (item for item in app.catalog.all_skills if item.name == "a")
        codes_of_a = [item.code for item in reported.diagnostics]
        assert ("provider-item-invalid" in codes_of_a) is (expected == Status.STALE)


# ---- adding, removing, asking ------------------------------------------------------------------


def test_providers_come_and_go():
    app = Satchel()
    app.add_provider(Given(skills("a")))
    assert list(app.catalog.skills) == ["a"]
    with pytest.raises(ConflictError, match="added already"):
        app.add_provider(Given(skills("b")))
    with pytest.raises(NotFoundError, match="did you mean db"):
        app.remove_provider("dbs")
    app.remove_provider("db")
    assert not app.catalog.skills
    assert "db" not in app.catalog.plugins


@pytest.mark.parametrize(
    "provider",
    [object(), Given, Given(None, name=3), Given(None, name="a b"), Given(None, name="host")],
)
def test_something_else_is_no_provider(provider):
    with pytest.raises(DefinitionError, match="not a provider"):
        Satchel().add_provider(provider)


def test_one_provider_can_be_asked_alone():
    one, two = Given(skills("a"), skills("b")), Given(skills("c"), name="two")
    app = Satchel(providers=[one, two])
    (removed, added) = sorted(app.refresh("db"), key=lambda change: change.name)
    assert (removed.name, added.name) == ("a", "b")
    assert len(two.asked) == 1
    with pytest.raises(NotFoundError):
        app.refresh("nobody")


@pytest.mark.parametrize("kind", ["file", "folder", "new file"])
def test_a_change_of_what_it_watches_is_a_question(tmp_path, kind):
    watched = tmp_path / "watched"
    if kind == "folder":
        watched.mkdir()
    elif kind == "file":
        watched.write_text("1")
    provider = Given(lambda: skills(*(path.name for path in tmp_path.rglob("s*"))), watch=[watched])
    timings = WatchTimings(safety_scan_active=1e6, safety_scan_idle=1e6)
    app = Satchel(providers=[provider], settings=Settings(pace=timings))
    seen = threading.Event()
    app.subscribe(lambda _change: seen.set())
    with app.watching():
        (tmp_path / "s1").write_text("1")  # not watched
        Path(watched / "x" if kind == "folder" else watched).write_text("22")
        assert seen.wait(30)
    assert list(app.catalog.skills) == ["s1"]


# ---- of plugins ----------------------------------------------------------------------------------


CODE = """
from satchel import Contribution, Skill, hookimpl, tool

class Texts:
    name = "texts"

    def contribute(self, last, changed):
        return Contribution(skills=[Skill(name="{name}", description="D.", body="B.")])

@hookimpl
def satchel_providers():
    return [Texts()]

@tool
def hello() -> str:
    "Say hello."
    return "hello"
"""


def test_a_plugin_offers_providers_and_takes_them_with_it(tmp_path, write_plugin):
    folder = write_plugin(tmp_path / "plugins", "clock", tools=CODE.format(name="one"))
    app = Satchel(plugins=[tmp_path / "plugins"])
    assert app.catalog.skills["one"].source == "texts"
    code = next(folder.rglob("*.py"))
    code.write_text(CODE.format(name="two"))
    app.refresh()
    assert list(app.catalog.skills) == ["two"]
    with pytest.raises(NotFoundError):
        app.remove_provider("texts")
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
    app.refresh()
    assert not app.catalog.skills


def test_a_failure_of_a_plugins_provider_shows_no_value_of_its_configuration(
    tmp_path, write_plugin
):
    fails = "raise RuntimeError(f'no answer to {self.password}')"
    code = CODE.format(name="one").replace(
        "        return Contribution", f"        {fails}\n        #"
    )
    code += "@hookimpl\ndef satchel_startup(config):\n    Texts.password = config['password']\n"
    write_plugin(tmp_path / "plugins", "clock", "config:\n  password: {type: secret}\n", tools=code)
    app = Satchel(plugins=[tmp_path / "plugins"], config={"clock": {"password": "blue horse"}})
    (shown,) = (item for item in app.catalog.diagnostics if item.code == "provider-failed")
    assert "no answer to [redacted]" in shown.message


def test_a_hook_that_returns_no_provider_fails_the_plugin(tmp_path, write_plugin):
    code = CODE.format(name="one").replace("[Texts()]", "[3]")
    write_plugin(tmp_path / "plugins", "clock", tools=code)
    app = Satchel(plugins=[tmp_path / "plugins"])
    assert "plugin-hook-failed" in codes(app)


# ---- skills of the host --------------------------------------------------------------------------


def test_the_host_gives_skills_in_code():
    app = Satchel()
    app.create_group("office", "Office work.")
    skill = Skill(name="pdf", description="Fills forms.", body="Do it.", files={"a.md": "More."})
    app.register_skill(skill, group="office")
    assert app.catalog.skills["pdf"].groups == ("office",)
    session = app.session()
    assert "pdf" not in session.prompt()
    session.activate("office")
    assert "Skill of the application" in call(session, "load_skill", name="pdf")
    with pytest.raises(ConflictError, match="registered already"):
        app.register_skill(skill)
    app.remove_skill("pdf")
    assert not app.catalog.skills


def test_an_invalid_skill_of_the_host_is_refused_at_once():
    with pytest.raises(DefinitionError, match="description"):
        Satchel().register_skill(Skill(name="a", description="", body="B."))


def test_it_wins_over_a_folder(tmp_path, write_skill):
    write_skill(tmp_path, "a")
    app = Satchel(skills=[tmp_path])
    app.register_skill(Skill(name="a", description="Mine.", body="B."))
    assert app.catalog.skills["a"].description == "Mine."


@pytest.mark.parametrize("parts", [5, None, "pdf", ["pdf"], Given])
def test_what_is_no_provider_is_refused_with_the_reason(parts):
    with pytest.raises(DefinitionError, match="this is not a provider: "):
        Satchel(providers=parts)
