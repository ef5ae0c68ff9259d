"""What the user enables and disables, as an application sees it."""

import asyncio
import os
import re
import sys
from textwrap import dedent

import pytest

from satchel import (
    ConflictError,
    Contribution,
    DefinitionError,
    Limits,
    Project,
    Satchel,
    Settings,
    SkillPrompt,
    tool,
)

TOOLS = """
    from pathlib import Path
    from satchel import tool

    Path(__file__).with_name("was-run").touch()

    @tool
    def near(city: str) -> str:
        "Find what is near."
        return city

    @tool
    def far(city: str) -> str:
        "Find what is far."
        return city
"""

PACKAGE = """
    from satchel import hookimpl, tool

    @tool
    def send(text: str) -> str:
        "Send something."
        return text

    @hookimpl
    def satchel_tools():
        return [send]
"""


@tool
def lookup(word: str) -> str:
    """Look a word up."""
    return word


@tool
def stored() -> str:
    """Return what is stored."""
    return "stored"


@pytest.fixture
def write_choices(config_folder):
    """Write the user's own file."""

    def write(text: str):
        config_folder.mkdir(exist_ok=True)
        (config_folder / "satchel.toml").write_text(text)

    return write


@pytest.fixture
def skills(tmp_path, write_skill):
    for name in ("doc", "pdf"):
        write_skill(tmp_path / "skills", name)
    return tmp_path / "skills"


@pytest.fixture
def maps(tmp_path, write_plugin, write_skill):
    """A plugin with two tools, a skill and another group."""
    manifest = "active: true\nnotes: Ask.\ngroups:\n  - name: afar\n    tools: [far]\n"
    folder = write_plugin(tmp_path / "plugins", "maps", manifest, tools=TOOLS)
    write_skill(folder / "skills", "routes")
    return folder


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package whose one plugin is `acme`."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(distribution: str = "Acme_Tools", module: str = "acme_tools_of_the_test"):
        info = tmp_path / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (tmp_path / f"{module}.py").write_text(dedent(PACKAGE))
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[satchel.plugins]\nacme = {module}\n")
        (info / "RECORD").write_text(f"{module}.py,,\n")

    yield install
    sys.modules.pop("acme_tools_of_the_test", None)


def state(app, kind, name):
    (entry,) = [item for item in getattr(app.catalog, f"all_{kind}s") if item.name == name]
    return str(entry.state)


def reasons(app, kind, name):
    (entry,) = [item for item in getattr(app.catalog, f"all_{kind}s") if item.name == name]
    return [(item.code, item.message) for item in entry.diagnostics]


# ---- skills -------------------------------------------------------------------------------


def test_a_disabled_skill_is_listed_with_the_reason_and_not_served(
    skills, write_choices, config_folder
):
    write_choices("disable = ['pdf']")
    app = Satchel(skills=[skills])
    assert list(app.catalog.skills) == ["doc"]
    assert "pdf" not in app.session().prompt()
    (problem,) = app.catalog.skill("pdf").diagnostics
    assert (problem.severity, problem.code) == ("info", "disabled")
    assert problem.where.path == str(config_folder / "satchel.toml")
    assert problem.fix == "satchel enable pdf"


def test_with_everything_disabled_only_enabled_entries_are_served(skills, write_choices):
    write_choices("disable = ['*']\nenable = ['pdf']")
    app = Satchel(skills=[skills])
    assert list(app.catalog.skills) == ["pdf"]
    assert list(app.catalog.groups) == ["basic"]


def test_disabled_entries_shadow_nothing(skills, tmp_path, write_skill, write_choices):
    write_skill(tmp_path / "more", "pdf", description="Another.")
    write_choices(f"disable = ['{skills}:pdf']")
    app = Satchel(skills=[skills, tmp_path / "more"])
    assert app.catalog.skills["pdf"].source == str(tmp_path / "more")
    assert [item.code for item in app.catalog.skills["pdf"].diagnostics] == []


def test_a_disabled_broken_skill_reports_no_errors(skills, write_skill, write_choices):
    write_skill(skills, "pdf", text="broken")
    write_choices("disable = ['skill:pdf']")
    app = Satchel(skills=[skills])
    assert state(app, "skill", "pdf") == "disabled"
    assert [code for code, _ in reasons(app, "skill", "pdf")] == ["disabled"]


# ---- tools and groups ---------------------------------------------------------------------


def test_a_disabled_tool_cannot_be_called_and_the_others_can(maps, write_choices):
    write_choices("disable = ['tool:f*']")
    app = Satchel(plugins=[maps.parent])
    assert list(app.catalog.tools) == ["near"]
    assert state(app, "tool", "far") == "disabled"
    assert app.catalog.groups["afar"].tools == ()


def test_a_disabled_tool_needs_no_values(tmp_path, write_plugin, write_choices):
    source = TOOLS.replace("@tool\n    def far(", '@tool(state=["key"])\n    def far(key: str, ')
    write_plugin(tmp_path / "plugins", "maps", "active: true\n", tools=source)
    app = Satchel(plugins=[tmp_path / "plugins"], config={"maps": {}})
    assert "tool-state-missing" in [item.code for item in app.catalog.diagnostics]
    write_choices("disable = ['far']")
    app.refresh()
    assert "tool-state-missing" not in [item.code for item in app.catalog.diagnostics]
    assert list(app.catalog.tools) == ["near"]


@pytest.mark.parametrize("owner", ["host", "maps"])
def test_a_tool_that_is_enabled_again_can_be_called(maps, write_choices, owner):
    app = Satchel(plugins=[maps.parent])
    app.register_tool(lookup)
    name = {"host": "lookup", "maps": "near"}[owner]
    for text in (f"disable = ['{name}']", ""):
        write_choices(text)
        app.refresh()
    result = asyncio.run(
        app.session().call(name, {"word": "a"} if owner == "host" else {"city": "a"})
    )
    assert result.text == "a"


def test_a_disabled_tool_lets_another_of_its_name_serve(maps, write_choices):
    @tool
    def near(city: str) -> str:
        """Find it in another way."""
        return city

    write_choices("disable = ['host:near']")
    app = Satchel(plugins=[maps.parent])
    app.register_tool(near)
    assert app.catalog.tools["near"].source == "maps"


def test_a_disabled_group_disables_tools_that_are_in_no_other_group(maps, write_choices):
    write_choices("disable = ['group:afar']")
    app = Satchel(plugins=[maps.parent])
    assert list(app.catalog.groups) == ["basic", "maps"]
    assert state(app, "group", "afar") == "disabled"
    assert list(app.catalog.tools) == ["near"]
    assert reasons(app, "tool", "far") == [
        ("disabled", "tool 'far' is disabled with the group 'afar'")
    ]


def test_a_tool_of_two_groups_stays_in_the_enabled_one(write_choices):
    write_choices("disable = ['one']")
    app = Satchel()
    app.create_group("one")
    app.create_group("two", active=True)
    app.register_tool(lookup, group=["one", "two"])
    assert list(app.catalog.tools) == ["lookup"]
    assert app.catalog.groups["two"].tools == ("lookup",)
    assert list(app.catalog.groups) == ["basic", "two"]


def test_a_group_of_two_owners_is_disabled_only_with_both_definitions(maps, write_choices):
    write_choices("disable = ['maps:afar']")
    app = Satchel(plugins=[maps.parent])
    assert state(app, "group", "afar") == "disabled"
    app.create_group("afar", "By the host.")
    assert app.catalog.groups["afar"].source == "host"
    assert "far" in app.catalog.tools


def test_entries_of_the_host_can_be_disabled(write_choices):
    write_choices("disable = ['lookup', 'words']")
    app = Satchel()
    app.create_group("words")
    app.register_tool(lookup)
    with pytest.raises(ConflictError, match="satchel enable words"):
        app.session().activate("words")
    assert (list(app.catalog.tools), list(app.catalog.groups)) == ([], ["basic"])
    with pytest.raises(ConflictError):
        app.create_group("words")
    app.remove_tool("lookup")
    app.remove_group("words")
    assert [entry.name for entry in app.catalog.entries if entry.source == "host"] == []


def test_the_source_host_disables_all_entries_of_the_host(write_choices):
    write_choices("disable = ['host']")
    app = Satchel()
    app.register_tool(lookup)
    assert list(app.catalog.tools) == []
    assert app.catalog.groups["basic"].is_served


# ---- plugins ------------------------------------------------------------------------------


def test_a_disabled_plugin_provides_nothing_and_is_not_imported(maps, write_choices):
    write_choices("disable = ['maps']")
    app = Satchel(plugins=[maps.parent])
    assert state(app, "plugin", "maps") == "disabled"
    assert not (maps / "was-run").exists()
    assert (app.catalog.all_tools, app.catalog.all_skills) == ((), ())
    assert [group.name for group in app.catalog.all_groups] == ["basic"]
    write_choices("")
    app.refresh()
    assert list(app.catalog.tools) == ["far", "near"]
    assert list(app.catalog.skills) == ["routes"]


def test_a_disabled_plugin_lets_another_of_its_name_serve(
    maps, write_plugin, tmp_path, write_choices
):
    write_plugin(tmp_path / "more", "maps", tools=TOOLS)
    write_choices(f"disable = ['{maps.parent}:maps']")
    app = Satchel(plugins=[maps.parent, tmp_path / "more"])
    assert app.catalog.plugins["maps"].source == str(tmp_path / "more")
    assert not (maps / "was-run").exists()


@pytest.mark.parametrize("name", ["acme", "Acme_Tools", "acme-tools", "plugin:acme", "ac*"])
def test_an_installed_plugin_is_enabled_by_its_name_or_its_package(install, write_choices, name):
    install()
    write_choices(f"enable = ['{name}']")
    app = Satchel()
    assert list(app.catalog.tools) == ["send"]
    assert state(app, "plugin", "acme") == "ok"


@pytest.mark.parametrize("name", ["acm", "all", "tool:acme", "plugin:all"])
def test_other_patterns_enable_no_installed_plugin(install, write_choices, name):
    install()
    write_choices(f"enable = ['{name}']")
    app = Satchel()
    assert state(app, "plugin", "acme") == "disabled"
    assert [code for code, _ in reasons(app, "plugin", "acme")] == ["plugin-not-enabled"]


def test_the_user_can_disable_what_the_host_enabled(install, write_choices):
    install()
    write_choices("disable = ['acme']")
    app = Satchel(entry_points=["acme"])
    assert [code for code, _ in reasons(app, "plugin", "acme")] == ["disabled"]
    assert "acme_tools_of_the_test" not in sys.modules


def test_a_disabled_installed_plugin_is_listed_as_disabled(install, write_choices):
    install()
    write_choices("disable = ['acme']")
    assert [code for code, _ in reasons(Satchel(), "plugin", "acme")] == ["disabled"]


def test_one_of_two_packages_with_the_same_plugin_can_be_disabled(install, write_choices):
    install()
    install("other-tools")
    assert list(Satchel(entry_points=["acme"]).catalog.tools) == []
    write_choices("disable = ['other-tools:acme']")
    assert list(Satchel(entry_points=["acme"]).catalog.tools) == ["send"]


# ---- whose file counts --------------------------------------------------------------------


def test_a_named_project_wins_over_the_user(skills, tmp_path, write_choices, monkeypatch):
    (tmp_path / "satchel.toml").write_text("disable = ['doc']\nenable = ['pdf']\n")
    write_choices("disable = ['pdf']")
    monkeypatch.chdir(tmp_path)
    assert list(Satchel(skills=[skills]).catalog.skills) == ["doc"]
    app = Satchel(skills=[skills], project=Project(".", trust="code"))
    assert list(app.catalog.skills) == ["pdf"]
    monkeypatch.chdir(os.sep)
    app.refresh()
    assert list(app.catalog.skills) == ["pdf"]


def test_the_configuration_folder_can_be_given(skills, tmp_path):
    (tmp_path / "satchel.toml").write_text("disable = ['doc']")
    app = Satchel(skills=[skills], settings=Settings(config_folder=str(tmp_path)))
    assert list(app.catalog.skills) == ["pdf"]


def test_a_project_has_a_path():
    with pytest.raises(DefinitionError, match="empty path"):
        Satchel(project="")


def test_errors_in_the_file_are_reported_and_skills_are_loaded(skills, write_choices):
    write_choices("disable = 1")
    app = Satchel(skills=[skills])
    assert list(app.catalog.skills) == ["doc", "pdf"]
    assert "choices-unreadable" in [item.code for item in app.catalog.source_diagnostics]


def test_the_user_limits_the_folders_that_are_searched(tmp_path, write_skill, write_choices):
    for name in ("a", "b", "c"):
        write_skill(tmp_path / "skills", name)
    write_choices("find_folders = 2")
    app = Satchel(skills=[tmp_path / "skills"])
    assert list(app.catalog.skills) == ["a", "b"]
    assert "source-too-many" in {item.code for item in app.catalog.diagnostics}
    write_choices("find_folders = 3")
    app.refresh()
    assert list(app.catalog.skills) == ["a", "b", "c"]
    own = Settings(limits=Limits(find_folders=1))
    assert list(Satchel(skills=[tmp_path / "skills"], settings=own).catalog.skills) == ["a"]


@pytest.mark.parametrize("value", ["0", "-1", "true", "'many'", "1.5"])
def test_a_number_of_folders_is_a_positive_number(value, write_choices):
    write_choices(f"find_folders = {value}")
    (problem,) = (i for i in Satchel().catalog.diagnostics if i.code == "choices-unreadable")
    assert "'find_folders' is not a positive number" in problem.message


def test_a_project_does_not_change_the_limit(tmp_path):
    (tmp_path / "satchel.toml").write_text("find_folders = 9")
    app = Satchel(project=Project(tmp_path, trust="data"))
    codes = {item.code for item in app.catalog.diagnostics}
    assert "choices-unknown" in codes


def test_skills_that_come_first_are_described_in_a_listing_of_names(
    tmp_path, write_skill, write_choices
):
    for number in range(400):
        write_skill(tmp_path, f"skill-{number:03}", description="word " * 30)

    def described(session):
        return re.findall("(?m)^- ([a-z0-9-]+): ", session.skill_prompt())

    with Satchel(skills=tmp_path) as app:
        session = app.session()
        session.skill_style = SkillPrompt(budget=4_000)
        assert described(session) == []
        assert session.step().skill_listing.form == "names"
        write_choices("[skills]\nfirst = ['skill-39*']\n")
        app.refresh()
        assert described(session) == [f"skill-{number}" for number in range(390, 400)]
        session.load_skill("skill-111")
        session.skill_style = SkillPrompt(budget=4_000, first=("skill-222", "tool:*"))
        assert described(session)[:3] == ["skill-111", "skill-222", "skill-390"]
        assert described(app.session()) != described(session)
        write_choices("")
        app.refresh()
        assert described(session) == ["skill-111", "skill-222"]


def test_a_typo_below_a_table_costs_only_itself(tmp_path, write_skill, write_choices):
    write_skill(tmp_path, "pdf")
    write_choices("disable = ['pdf']\n\n[skills]\nfrist = ['pdf']\n\n[sources]\nskill = ['a']\n")
    with Satchel(skills=tmp_path) as app:
        problems = [item for item in app.catalog.diagnostics if item.code == "choices-unknown"]
        assert [(item.where.line, item.message, item.fix) for item in problems] == [
            (4, "the key 'frist' below [skills] is unknown", "did you mean 'first'?"),
            (7, "the key 'skill' below [sources] is unknown", "did you mean 'skills'?"),
        ]
        assert "pdf" not in app.catalog.skills


@pytest.mark.parametrize("text", ["skills = 1", "[skills]\nfirst = 'pdf'", "[skills]\nfirst = [1]"])
def test_a_table_of_skills_that_is_no_such_table_is_reported(write_choices, text):
    write_choices(text)
    with Satchel() as app:
        problems = {item.code: item for item in app.catalog.diagnostics}
    assert "'skills' " in problems["choices-unreadable"].message


# ---- while the file cannot be read --------------------------------------------------------

UNKNOWN = {
    "not TOML": "disable = ['plugin:maps'\n",
    "not UTF-8": b"disable = ['plugin:maps', '\xff']\n",
    "disable is no list": "disable = 'plugin:maps'\n",
    "mcp is no table": "mcp = 1\ndisable = ['tool:other']\n",
    "too large": b"#" * 300_000,
    "a folder": None,
    "a link to nothing": "",
}


@pytest.fixture
def break_choices(config_folder):
    """Write the user's file so that it cannot be read."""

    def break_file(text: str | bytes | None):
        config_folder.mkdir(exist_ok=True)
        path = config_folder / "satchel.toml"
        if text is None:
            path.mkdir()
        elif text:
            path.write_bytes(text.encode() if isinstance(text, str) else text)
        else:
            path.symlink_to("nothing")

    return break_file


def was_run(maps):
    return (maps / "was-run").exists()


@pytest.mark.parametrize("is_link", [True, False])
def test_no_plugin_is_imported_while_the_folder_of_the_settings_leads_to_nothing(
    maps, config_folder, write_choices, is_link
):
    config_folder.symlink_to("nothing") if is_link else config_folder.write_text("")
    with Satchel(plugins=[maps.parent]) as app:
        assert (was_run(maps), [*app.catalog.tools]) == (False, [])
        assert "choices-unreadable" in {item.code for item in app.catalog.diagnostics}
        config_folder.unlink()
        write_choices("disable = ['tool:near']")
        app.refresh()
        assert [*app.catalog.tools] == ["far"]


@pytest.mark.parametrize("case", UNKNOWN)
def test_no_plugin_is_imported_while_it_is_not_known_which_are_disabled(
    maps, config_folder, break_choices, write_choices, case
):
    break_choices(UNKNOWN[case])
    with Satchel(plugins=[maps.parent]) as app:
        assert (was_run(maps), [*app.catalog.tools]) == (False, [])
        assert "choices-unreadable" in {item.code for item in app.catalog.diagnostics}
        ((code, message),) = reasons(app, "plugin", "maps")
        assert code == "choices-held"
        assert message.startswith("plugin 'maps' is not used: satchel.toml cannot be read")
        assert reasons(app, "tool", "near")[0][0] == "choices-held"
        # What is data is served.
        assert [*app.catalog.skills] == ["routes"]
        assert "Ask." in app.session().prompt()
        answer = asyncio.run(app.session().call("near", {"city": "Oslo"}))
        assert "the user's settings cannot be read" in answer.text
        path = config_folder / "satchel.toml"
        path.rmdir() if path.is_dir() else path.unlink()
        write_choices("disable = ['tool:near']")
        app.refresh()
        assert (was_run(maps), [*app.catalog.tools]) == (True, ["far"])
        with Satchel(plugins=[maps.parent]) as cold:
            assert [*cold.catalog.tools] == ["far"]
            assert cold.catalog.diagnostics == app.catalog.diagnostics


def test_a_configuration_folder_that_cannot_be_reached_is_no_empty_one(maps, config_folder):
    config_folder.symlink_to(config_folder)
    with Satchel(plugins=[maps.parent]) as app:
        assert (was_run(maps), [*app.catalog.tools]) == (False, [])
    config_folder.unlink()
    with Satchel(plugins=[maps.parent]) as app:
        assert [*app.catalog.tools] == ["far", "near"]


@pytest.mark.parametrize(
    "line", ["enable = 'x'", "find_folders = 'x'", "plugin_import = 0", "sources = 1", "skills = 1"]
)
def test_one_wrong_key_costs_only_itself(maps, skills, write_choices, line):
    write_choices(f"{line}\ndisable = ['plugin:maps', 'pdf']\n")
    with Satchel(plugins=[maps.parent], skills=[skills]) as app:
        (problem,) = [it for it in app.catalog.diagnostics if it.code == "choices-unreadable"]
        assert problem.message.endswith("; its other keys count")
        assert (was_run(maps), [*app.catalog.skills]) == (False, ["doc"])
        assert [code for code, _ in reasons(app, "plugin", "maps")] == ["disabled"]
        # No valid version is known, so the next one is read in the same way.
        write_choices(f"{line}\ndisable = ['doc']\n")
        app.refresh()
        assert [*app.catalog.skills] == ["pdf", "routes"]
        write_choices("disable = 1")
        app.refresh()
        assert (state(app, "plugin", "maps"), [*app.catalog.tools]) == ("degraded", [])


def test_a_program_that_runs_keeps_its_last_good_choices(maps, write_choices):
    write_choices("disable = ['far']")
    with Satchel(plugins=[maps.parent]) as app:
        write_choices("disable = ['far'")
        app.refresh()
        assert [*app.catalog.tools] == ["near"]


def test_what_the_host_enables_waits_as_well_and_its_own_tools_are_served(install, write_choices):
    class Store:
        name = "store"

        def contribute(self, _last, _changed):
            return Contribution(tools=[stored])

    install()
    write_choices("disable = ['acme'")
    with Satchel(entry_points=["acme"]) as app:
        app.register_tool(lookup)
        app.add_provider(Store())
        assert [*app.catalog.tools] == ["lookup"]
        assert state(app, "plugin", "store") == "revoked"
        assert [code for code, _ in reasons(app, "plugin", "acme")] == ["choices-held"]
        assert "acme_tools_of_the_test" not in sys.modules
        write_choices("")
        app.refresh()
        assert {*app.catalog.tools} == {"lookup", "send", "stored"}


def test_no_script_of_a_skill_runs_while_it_is_not_known_which_skills_are_disabled(
    skills, maps, write_choices
):
    for folder in (skills / "pdf", maps / "skills" / "routes"):
        (folder / "scripts").mkdir()
        (folder / "scripts" / "run.py").write_text("print('ran')\n")
    write_choices("disable = ['pdf'")
    with Satchel(skills=[skills], plugins=[maps.parent]) as app:
        for name in ("pdf", "routes"):
            assert not app.catalog.skills[name].access.is_runnable
        write_choices("")
        app.refresh()
        for name in ("pdf", "routes"):
            assert app.catalog.skills[name].access.is_runnable


def test_a_project_holds_what_its_settings_may_disable_only_if_its_code_is_trusted(
    maps, tmp_path, write_choices
):
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "satchel.toml").write_text("disable = ['plugin:maps'")
    for trust, names in (("none", ["far", "near"]), ("data", ["far", "near"]), ("code", [])):
        with Satchel(
            plugins=[maps.parent], project=Project(tmp_path / "clone", trust=trust)
        ) as app:
            assert ([*app.catalog.tools], was_run(maps)) == (names, bool(names))
        (maps / "was-run").unlink(missing_ok=True)
