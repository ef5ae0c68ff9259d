"""State fields of tools, filled in from code, the environment and files."""

import asyncio
import json
import threading
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner

from satchel import ConflictError, DefinitionError, Satchel, SatchelError, Settings, tool
from satchel.cli.main import cli

CANARY = "s3cr3t-canary"

SOURCE = """
    from satchel import tool

    @tool(state=["api_key", "retries"])
    def fetch(city: str, api_key: str, retries: int = 2) -> str:
        "Fetch something."
        return f"{city} {api_key} {retries!r}"

    @tool
    def other() -> str:
        "Something else."
        return "other"
"""

PACKAGE = """
from satchel import hookimpl, tool

@tool(state=["api_key"])
def send(text: str, api_key: str) -> str:
    "Send something."
    return f"{text} {api_key}"

@hookimpl
def satchel_tools():
    return [send]
"""


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    """A separate configuration folder, and a function that writes into it."""
    folder = tmp_path / "config" / "plugins"
    folder.mkdir(parents=True)
    monkeypatch.setenv("SATCHEL_CONFIG_DIR", str(folder.parent))
    return lambda plugin, text: (folder / f"{plugin}.env").write_text(text)


@pytest.fixture
def plugins(tmp_path, write_plugin):
    write_plugin(tmp_path / "plugins", "demo", "active: true\n", tools=SOURCE)
    return tmp_path / "plugins"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed plugin `sender`."""
    site = tmp_path / "site"
    info = site / "acme_sender-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "acme_sender_module.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-sender\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[satchel.plugins]\nsender = acme_sender_module\n")
    (info / "RECORD").write_text("acme_sender_module.py,,\n")
    monkeypatch.syspath_prepend(str(site))


def say(app, name, **arguments) -> str:
    session = app.session()
    session.activate(app.catalog.tools[name].group)
    return asyncio.run(session.call(name, arguments)).text


def problem_codes(app) -> list[str]:
    return [item.code for item in app.catalog.diagnostics if item.code != "plugin-not-enabled"]


def test_a_folder_plugins_tool_gets_values_that_the_model_does_not_see(plugins, config):
    config("demo", "API_KEY=abc\nRETRIES=7\n")
    app = Satchel(plugins=[plugins])
    assert say(app, "fetch", city="Oslo") == "Oslo abc 7"
    fetch, _ = app.session(meta_tool=False).schemas()
    assert list(fetch["function"]["parameters"]["properties"]) == ["city"]


@pytest.mark.parametrize("default", ["", " | None = None"])
@pytest.mark.parametrize("how", ["def", "async def"])
def test_a_tool_of_any_kind_gets_its_value(tmp_path, write_plugin, how, default):
    source = f"""
        from satchel import tool
        @tool(state=["key"])
        {how} fetch(key: str{default}) -> str:
            return str(key)
    """
    write_plugin(tmp_path, "demo", "active: true\n", tools=source)
    assert say(Satchel(plugins=[tmp_path], config={"demo": {"key": "abc"}}), "fetch") == "abc"


def test_a_pip_plugins_tool_gets_its_values(package, config):
    config("sender", "API_KEY=abc\n")
    assert say(Satchel(entry_points=["sender"]), "send", text="hi") == "hi abc"
    assert say(Satchel(entry_points=["acme-sender"]), "send", text="hi") == "hi abc"


def test_code_wins_over_the_environment_and_that_over_the_file(plugins, config, monkeypatch):
    config("demo", "API_KEY=file\nRETRIES=3\n")
    assert say(Satchel(plugins=[plugins]), "fetch", city="a") == "a file 3"
    monkeypatch.setenv("SATCHEL_DEMO_API_KEY", "environment")
    assert say(Satchel(plugins=[plugins]), "fetch", city="a") == "a environment 3"
    app = Satchel(plugins=[plugins], config={"demo": {"api_key": "code"}})
    assert say(app, "fetch", city="a") == "a code 3"


def test_the_settings_name_another_folder_and_it_stays_where_it_was(plugins, tmp_path, monkeypatch):
    folder = tmp_path / "mine" / "plugins"
    folder.mkdir(parents=True)
    (folder / "demo.env").write_text("API_KEY=mine\n")
    monkeypatch.chdir(tmp_path)
    app = Satchel(plugins=[plugins], settings=Settings(config_folder="mine"))
    monkeypatch.chdir("/")
    assert app.refresh() == ()
    assert say(app, "fetch", city="a") == "a mine 2"


def test_a_tool_without_its_value_is_refused_and_the_others_serve(plugins, tmp_path):
    app = Satchel(plugins=[plugins])
    assert say(app, "other") == "other"
    assert "fetch" not in app.catalog.tools
    (problem,) = app.catalog.plugins["demo"].diagnostics
    assert problem.code == "tool-state-missing"
    assert "'fetch'" in problem.message
    assert "'api_key'" in problem.message
    assert str(tmp_path / "config" / "plugins" / "demo.env") in problem.fix
    assert app.catalog.plugins["demo"].state == "degraded"
    (fetch,) = (entry for entry in app.catalog.all_tools if entry.name == "fetch")
    assert (fetch.state, fetch.diagnostics) == ("held", (problem,))
    messages = asyncio.run(app.session().call("fetch", {"city": "a"})).text
    assert messages == (
        "Tool 'fetch' cannot be used now: a value that it needs is not configured. "
        "Ask the user to run: satchel config set --plugins FOLDER demo api_key, where FOLDER is "
        "the folder of the plugin. Continue without it if you can."
    )


def test_the_command_in_the_sentence_for_the_model_works(plugins):
    app = Satchel(plugins=[plugins])
    messages = asyncio.run(app.session().call("fetch", {"city": "a"})).text
    command = messages.partition("run: satchel ")[2].partition(",")[0]
    folder = str(plugins / "demo")
    arguments = f"{command.replace('FOLDER', folder)}=k".split()  # without a terminal to ask
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    assert say(Satchel(plugins=[plugins]), "fetch", city="a") == "a k 2"


def test_each_command_for_several_missing_values_works(tmp_path, write_plugin):
    source = """
        from satchel import tool
        @tool(state=["key", "account"])
        def fetch(key: str, account: str) -> str:
            return key + account
    """
    folder = write_plugin(tmp_path / "p", "demo", "active: true\n", tools=source)
    app = Satchel(plugins=[tmp_path / "p"])
    messages = asyncio.run(app.session().call("fetch", {})).text
    line = messages.partition("run: ")[2].partition(",")[0].replace("FOLDER", str(folder))
    for command in line.split(" && "):
        arguments = f"{command.removeprefix('satchel ')}=k".split()
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == 0, result.output
    assert asyncio.run(Satchel(plugins=[tmp_path / "p"]).session().call("fetch", {})).text == "kk"


def test_the_command_for_a_folder_that_the_host_named_names_a_folder(tmp_path, write_plugin):
    fails = "\n@hookimpl\ndef satchel_startup(config):\n    1 / 0\n"
    source = dedent(SOURCE).replace("import tool", "import hookimpl, tool") + fails
    write_plugin(tmp_path / "p", "demo", "active: true\n", tools=source)
    app = Satchel(plugins=[tmp_path / "p"], config={"demo": {"api_key": "k"}})
    messages = asyncio.run(app.session().call("fetch", {"city": "a"})).text
    assert "run: satchel doctor --plugins FOLDER --run, where FOLDER is the folder of" in messages


def test_a_python_default_makes_the_value_optional(plugins, config):
    config("demo", "API_KEY=abc\n")
    assert say(Satchel(plugins=[plugins]), "fetch", city="a") == "a abc 2"


def test_equal_names_in_two_plugins_do_not_collide(tmp_path, write_plugin, config):
    for name in ("one", "two"):
        source = SOURCE.replace("def fetch", f"def fetch_{name}").replace(
            "def other", f"def o_{name}"
        )
        write_plugin(tmp_path / "p", name, "active: true\n", tools=source)
        config(name, f"API_KEY=of-{name}\n")
    app = Satchel(plugins=[tmp_path / "p"])
    assert say(app, "fetch_one", city="a") == "a of-one 2"
    assert say(app, "fetch_two", city="a") == "a of-two 2"


def test_a_value_that_cannot_be_copied_suggests_a_tool_class(plugins):
    app = Satchel(plugins=[plugins], config={"demo": {"api_key": threading.Lock()}})
    (problem,) = app.catalog.plugins["demo"].diagnostics
    assert "cannot be copied" in problem.message
    assert "subclass of Tool" in problem.fix
    assert say(app, "other") == "other"


def test_a_tool_has_a_copy_of_the_hosts_value(tmp_path, write_plugin):
    source = """
        from satchel import tool
        @tool(state=["things"])
        def add(things: list[int]) -> int:
            things.append(1)
            return len(things)
    """
    write_plugin(tmp_path, "demo", "active: true\n", tools=source)
    config_of_host = [0]
    app = Satchel(plugins=[tmp_path], config={"demo": {"things": config_of_host}})
    assert [say(app, "add"), say(app, "add")] == ["2", "3"]
    assert config_of_host == [0]


@pytest.mark.parametrize("config", [{"demo": "abc"}, {"demo": 5}, {"demo": [("api_key", "abc")]}])
def test_a_config_that_is_not_a_mapping_of_mappings_is_refused(plugins, config):
    with pytest.raises(DefinitionError, match="'demo'"):
        Satchel(plugins=[plugins], config=config)


def test_configured_values_are_never_shown(plugins, config, package, monkeypatch):
    config("demo", f"API_KEY={CANARY}\nRETRIES={CANARY}\n=== {CANARY}\n")
    monkeypatch.setenv("SATCHEL_SENDER_API_KEY", CANARY)
    codes = {"demo": {"unused": CANARY}, "host": {"token": CANARY}}
    app = Satchel(plugins=[plugins], entry_points=["sender"], config=codes)

    def send_too(token: str) -> int:
        """Send more."""
        return len(token)

    app.register_tool(send_too, state=["token"])
    assert sorted(problem_codes(app)) == ["config-unreadable", "tool-unfit"]
    session = app.session()
    session.activate("sender")
    shown: list[Any] = [
        app,
        *vars(app).values(),
        app.catalog,
        *app.catalog.entries,
        *(entry.tool for entry in app.catalog.tools.values()),
        *(vars(entry.tool).get("parameters") for entry in app.catalog.tools.values()),
        *(entry.version for entry in app.catalog.all_tools),
        app.tools,
        session,
        session.prompt(),
        session.schemas("mcp"),
        *map(str, app.catalog.diagnostics),
        *app.refresh(),
    ]
    assert CANARY not in repr(shown)


@pytest.mark.parametrize(
    "words",
    [
        ["list", "--json"],
        ["list"],
        ["doctor"],
        ["doctor", "--json"],
        ["show", "fetch"],
        ["show", "fetch", "--json"],
        ["show", "demo", "--json"],
        ["schema", "--dialect", "mcp"],
        ["prompt"],
        ["call", "fetch", "city=a"],
        ["call", "other", "--json"],
    ],
)
def test_no_command_shows_a_value(plugins, config, words):
    config("demo", f"API_KEY={CANARY}\nRETRIES={CANARY}\n'{CANARY}\n")
    result = CliRunner().invoke(cli, [*words, "--plugins", str(plugins)])
    assert CANARY not in result.stdout + result.stderr


def test_the_same_values_keep_the_same_tool_in_later_generations(plugins, config):
    config("demo", "API_KEY=abc\n")
    app = Satchel(plugins=[plugins])
    before = app.catalog.tools["fetch"].tool
    app.register_tool(lambda: "x", name="more")
    app.refresh()
    assert app.catalog.generation > 1
    assert app.catalog.tools["fetch"].tool is before
    config("demo", "# a remark\nAPI_KEY=abc\n")
    assert app.refresh() == ()
    assert app.catalog.tools["fetch"].tool is before


def test_a_new_value_changes_only_the_tools_that_use_it(plugins, config):
    config("demo", "API_KEY=abc\n")
    app = Satchel(plugins=[plugins])
    before = app.catalog.tools
    config("demo", "API_KEY=xyz\n")
    changes = [(str(change.event), change.kind, change.name) for change in app.refresh()]
    assert ("changed", "tool", "fetch") in changes
    assert ("changed", "tool", "other") not in changes
    assert app.catalog.tools["other"].tool is before["other"].tool
    assert say(app, "fetch", city="a") == "a xyz 2"


def test_a_refresh_reads_a_new_environment_variable(plugins, monkeypatch):
    app = Satchel(plugins=[plugins])
    monkeypatch.setenv("SATCHEL_DEMO_API_KEY", "abc")
    assert "fetch" not in app.catalog.tools
    app.refresh()
    assert say(app, "fetch", city="a") == "a abc 2"
    assert problem_codes(app) == []


# ---- what groups require -----------------------------------------------------------------------

REQUIRING = """
groups:
  web:
    description: The web.
    active: true
    requires: [TOKEN]
    tools: [fetch]
    skills: [surfing]
"""
FETCH = """
from satchel import tool

@tool
def fetch() -> str:
    "Fetch a page."
    return "fetched"
"""


@pytest.fixture
def requiring(tmp_path, write_plugin, write_skill):
    folder = write_plugin(tmp_path / "plugins", "demo", REQUIRING, tools=FETCH)
    write_skill(folder / "skills", "surfing")
    return tmp_path / "plugins"


def shown(app) -> tuple[list[str], list[str]]:
    session = app.session(meta_tool=False, skill_tools=False, search=False)
    names = [schema["name"] for schema in session.schemas("mcp")]
    return [*session.active_groups], names


def test_an_unavailable_group_says_where_to_set_its_key(requiring, tmp_path):
    app = Satchel(plugins=[requiring])
    assert shown(app) == (["basic"], [])
    assert app.session().prompt() == ""
    session = app.session()
    with pytest.raises(ConflictError, match="TOKEN"):
        session.activate("web")
    assert app.catalog.groups["web"].missing == ("TOKEN",)
    assert app.catalog.groups["web"].tools == ("fetch",)
    (problem,) = app.catalog.plugins["demo"].diagnostics
    assert problem.code == "group-unavailable"
    assert "group 'web' is unavailable: it requires TOKEN" in problem.message
    assert str(tmp_path / "config" / "plugins" / "demo.env") in problem.fix
    assert "SATCHEL_DEMO_TOKEN" in problem.fix


def test_a_required_key_may_have_its_value_from_any_place(requiring, config, monkeypatch):
    both = (["basic", "web"], ["fetch"])
    config_of_host = {"demo": {"token": CANARY}}
    assert shown(Satchel(plugins=[requiring], config=config_of_host)) == both
    monkeypatch.setenv("SATCHEL_DEMO_TOKEN", CANARY)
    assert shown(Satchel(plugins=[requiring])) == both
    monkeypatch.setenv("SATCHEL_DEMO_TOKEN", "")
    app = Satchel(plugins=[requiring])
    assert shown(app) == (["basic"], []), "an empty value is none"
    config("demo", f"TOKEN={CANARY}\n")
    app.refresh()
    assert shown(app) == both
    assert "surfing" in app.session().prompt()
    assert problem_codes(app) == []
    assert CANARY not in repr([app.catalog, *app.catalog.entries, app.session().prompt()])


def test_diagnostics_of_missing_keys_show_no_values(requiring, config):
    manifest = requiring / "demo" / "toolkit.yaml"
    manifest.write_text(manifest.read_text().replace("[TOKEN]", "[TOKEN, URL]"))
    config("demo", f"TOKEN={CANARY}\n")
    catalog = Satchel(plugins=[requiring]).catalog
    (problem,) = catalog.plugins["demo"].diagnostics
    assert "it requires URL" in problem.message
    assert CANARY not in "".join(map(repr, catalog.diagnostics))


def test_a_group_of_the_host_requires_keys_of_the_hosts_configuration(config):
    app = Satchel()
    app.create_group("web", active=True, requires=["TOKEN"])
    assert shown(app)[0] == ["basic"]
    assert problem_codes(app) == ["group-unavailable"]
    (problem,) = [item for item in app.catalog.diagnostics if item.code == "group-unavailable"]
    assert "SATCHEL_HOST_TOKEN" in problem.fix
    config("host", "TOKEN=abc\n")
    app.refresh()
    assert (shown(app)[0], problem_codes(app)) == (["basic", "web"], [])
    app = Satchel(config={"host": {"token": "abc"}})
    app.create_group("web", active=True, requires="token")
    assert shown(app)[0] == ["basic", "web"]


def test_without_running_code_a_group_reports_its_missing_keys(requiring):
    catalog = Satchel(plugins=[requiring], run_code=False).catalog
    assert catalog.groups["web"].missing == ("TOKEN",)


# ---- the host's own ----------------------------------------------------------------------------


@tool(state=["token"])
def look_up(word: str, token: str) -> str:
    return f"{word} {token}"


def test_a_tool_of_the_host_gets_its_value_from_the_same_places(config, monkeypatch):
    config("host", "TOKEN=file\n")
    app = Satchel()
    app.register_tool(look_up)
    assert say(app, "look_up", word="a") == "a file"
    monkeypatch.setenv("SATCHEL_HOST_TOKEN", "environment")
    app.register_tool(look_up, name="second")
    assert say(app, "second", word="a") == "a environment"
    app = Satchel(config={"host": {"token": "code"}})
    app.register_tool(look_up)
    assert say(app, "look_up", word="a") == "a code"
    app.register_tool(look_up, name="third", presets={"token": "preset"})
    assert say(app, "third", word="a") == "a preset"


def test_a_tool_of_the_host_without_its_value_is_refused_at_once():
    with pytest.raises(DefinitionError, match=r"'token' has no value.*config="):
        Satchel().register_tool(look_up)


def test_an_invalid_value_for_a_tool_of_the_host_is_never_shown():
    def pause(seconds: int) -> int:
        return seconds

    with pytest.raises(DefinitionError, match="'seconds'") as caught:
        Satchel(config={"host": {"seconds": CANARY}}).register_tool(pause, state=["seconds"])
    assert CANARY not in str(caught.value)


# ---- the bundled plugin ------------------------------------------------------------------------


def test_the_built_in_tools_are_disabled_until_they_are_enabled(tmp_path):
    app = Satchel(config={"builtin": {"base_directory": tmp_path}})
    (entry,) = [entry for entry in app.catalog.all_plugins if entry.name == "builtin"]
    assert entry.state == "disabled"
    assert "get_today_date" not in app.catalog.tools


def test_all_six_built_in_tools_work_in_the_configured_folder(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    app = Satchel(entry_points=["builtin"], config={"builtin": {"base_directory": work}})
    session = app.session()
    session.activate("files", "code", "shell")

    def call(name, **arguments):
        result = asyncio.run(session.call(name, arguments))
        assert not result.is_error, result.text
        return result

    assert call("get_today_date").text
    call("write_text_file", path="a.txt", content="one\ntwo\n")
    call("insert_text_file", path="a.txt", content="zero", line_number=1)
    assert call("view_text_file", path="a.txt").text == "1\tzero\n2\tone\n3\ttwo"
    code = "print(open('a.txt').read(), end='')"
    assert call("execute_python_code", code=code).structured["stdout"] == "zero\none\ntwo\n"
    assert call("execute_shell_command", command="ls").structured["stdout"] == "a.txt\n"
    assert len(app.catalog.tools) == 6
    assert "base_directory" not in json.dumps(session.schemas())


def test_without_a_folder_the_file_tools_are_left_out():
    app = Satchel(entry_points=["builtin"])
    names = ["execute_python_code", "execute_shell_command", "get_today_date"]
    assert list(app.catalog.tools) == names
    assert problem_codes(app) == ["tool-state-missing"]
    assert {app.catalog.all_tools[at].groups for at in range(6)} == {
        ("code",), ("dates",), ("files",), ("shell",),
    }  # fmt: skip


def test_values_that_do_not_fit_are_refused_and_change_nothing(write_plugin, tmp_path):
    fields = (
        "config:\n  api_key: {type: secret}\n  unit: {type: choice, options: [C, F], default: C}\n"
    )
    source = """
        from satchel import tool

        @tool(state=["api_key", "unit"])
        def show(api_key: str, unit: str) -> str:
            \"\"\"Show the unit.\"\"\"
            return unit
    """
    write_plugin(tmp_path, "acme", f"active: true\n{fields}", tools=source)
    write_plugin(tmp_path, "plain", tools=source.replace("show", "other"))
    app = Satchel(plugins=[tmp_path])
    app.configure("acme", api_key="x", unit="F")
    app.configure("plain", api_key="x", unit="any")
    assert say(app, "other") == "any"
    for plugin, values, reason in (
        ("acmee", {"api_key": "x"}, "did you mean acme"),
        ("acme", {"api_kee": "x"}, "did you mean api_key"),
        ("acme", {"UNIT": "C"}, "did you mean unit"),
        ("acme", {"nope": 1, "unit": "C"}, "declares no field 'nope'"),
        ("acme", {"unit": "K"}, "the value of 'unit' of plugin 'acme'"),
    ):
        with pytest.raises(SatchelError, match=reason):
            app.configure(plugin, **values)
        assert say(app, "show") == "F"


def test_values_given_in_code_can_be_changed_on_a_live_satchel(plugins, config):
    config("demo", "API_KEY=file\n")
    app = Satchel(plugins=[plugins], config={"demo": {"api_key": "code"}})
    assert say(app, "fetch", city="a").startswith("a code")
    step = app.session().step()
    app.configure("demo", api_key="new")
    assert say(app, "fetch", city="a").startswith("a new")
    assert asyncio.run(step.call("fetch", {"city": "a"})).text.startswith("a code")
    app.configure("demo", api_key=None)
    assert say(app, "fetch", city="a").startswith("a file")
    app.close()
    with pytest.raises(ConflictError):
        app.configure("demo", api_key="late")
