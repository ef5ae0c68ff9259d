"""`install` and `uninstall`: what they put in place, what they leave, and what they tell."""

import hashlib
import json
import os
import pty
import select
import shutil
import stat
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import satchel.cli.installer
from satchel.cli.main import cli
from satchel.errors import SatchelError
from satchel.settings import Limits
from satchel.setup.artefact_signatures import Signer
from satchel.setup.pip_packages import package_file

PATIENCE = 120.0
CTRL_C = b"\x03"
CANARY = "s3cr3t-canary"
MANIFEST = "version: {version}\nactive: true\n"
FIELDS = """config:
  api_key: {type: secret, description: From your account.}
  retries: {type: integer, default: 2, max: 9}
"""
TOOLS = """
from satchel import tool

@tool(state=["api_key"])
def forecast(city: str, api_key: str) -> str:
    "Forecast."
    return city

@tool
def cities() -> str:
    "List them."
    return "Oslo {version}"
"""


@pytest.fixture
def asking(run):
    """Run a command as `run`, but `install` gets no consent."""

    def asking(*args, **options):
        return CliRunner().invoke(cli, [str(arg) for arg in args], **options)

    return asking


@pytest.fixture
def run(run):
    """Run a command; `install` gets the user's consent."""

    def agreeing(*args, **options):
        return run(*args, *(["--yes"] if args[0] == "install" else []), **options)

    return agreeing


@pytest.fixture
def weather(here, write_plugin, write_skill):
    """Write the plugin `weather` into the current folder; by keyword what is special about it."""

    def write(version="1.0", manifest=FIELDS, **modules):
        modules.setdefault("tools", TOOLS.replace("{version}", version))
        folder = write_plugin(
            here, "weather", MANIFEST.format(version=version) + manifest, **modules
        )
        write_skill(folder / "skills", "read-the-sky")
        return folder

    return write


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("SATCHEL_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data/plugins/weather"


@pytest.fixture
def home(an_empty_world):
    """The folder that plugins are installed into."""
    return Path.home() / ".satchel/plugins"


@pytest.fixture
def env(config_folder):
    return config_folder / "plugins/weather.env"


@pytest.fixture
def choices(config_folder):
    return config_folder / "satchel.toml"


def names(folder):
    return sorted(os.listdir(folder)) if folder.exists() else []


def served(run):
    """Return the names of the plugins that are used."""
    records = json.loads(run("list", "plugins", "--json").stdout)
    return [item["name"] for item in records if item["state"] in {"not run", "ok", "degraded"}]


# ---- consent ------------------------------------------------------------------------------


def test_without_a_terminal_nothing_that_runs_is_installed(asking, weather, home, here):
    weather(setup="def setup(ctx):\n    open('was-run', 'w').close()\n")
    done = asking("install", "./weather")
    assert (done.exit_code, done.stdout) == (3, "")
    assert (
        "Error: nothing was changed, as there is no terminal to ask on: Install and run this? "
        "(read the above, then give --yes)" in done.stderr
    )
    assert (names(home), (here / "was-run").exists()) == ([], False)


def test_what_will_run_is_shown_and_escaped(asking, weather, here):
    weather(
        manifest="isolation: process\ndependencies: ['acme-sky>=2']\n",
        setup="def setup(ctx):\n    pass\n",
        **{"more\u200b": "x = 1\n"},
    )
    output = asking("install", "./weather").stderr
    assert "  code: more\\u200b.py\n" in output
    assert "  pip installs when it is loaded: acme-sky>=2\n" in output
    (here / "project").mkdir()
    (here / "project/setup.py").touch()
    (here / "project/pyproject.toml").write_text(
        "[build-system]\nrequires = ['evil-build']\nbuild-backend = 'evil.build'\n"
        "[project]\nname = 'p'\nversion = '1'\ndependencies = ['other']\n"
        "[project.entry-points.'satchel.plugins']\np = 'p'\n"
    )
    output = asking("install", "./project").stderr
    for part in ("the build backend evil.build", "evil-build", "runs now: setup.py", "with: other"):
        assert part in output


def test_scripts_of_the_skills_of_a_plugin_are_named(asking, here, write_plugin, write_skill):
    write_plugin(here, "texts", "notes: Be kind.\n")
    write_skill(here / "texts/skills", "kindness")
    scripts = here / "texts/skills/kindness/scripts"
    scripts.mkdir()
    (scripts / "go.sh").write_text("echo\n")
    output = asking("install", "./texts").stderr
    assert "  script: skills/kindness/scripts/go.sh\n" in output


def test_other_files_are_counted_and_named(asking, here):
    folder = here / "open"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts/serve.py").touch()
    schema = "https://agent-plugins.org/schemas/1.0.0/{}.schema.json"
    whole = {"$schema": schema.format("plugin"), "name": "open", "version": "1.0.0"}
    (folder / "plugin.json").write_text(json.dumps({**whole, "description": "d"}))
    server = {"type": "stdio", "command": "python3", "args": ["scripts/serve.py"]}
    servers = {"$schema": schema.format("mcp"), "mcpServers": {"s": server}}
    (folder / "mcp.json").write_text(json.dumps(servers))
    shown = asking("install", "./open").stderr
    files = "mcp.json, plugin.json"
    assert f"  2 other files that its scripts or MCP servers may use: {files}\n" in shown
    assert shown.count("  script: ") == 1
    for name in ("a.md", "b.md", "c.md", "d.md"):
        (folder / name).touch()
    shown = asking("install", "./open").stderr
    files = "a.md, b.md, c.md, d.md, mcp.json, ..."
    assert f"  6 other files that its scripts or MCP servers may use: {files}\n" in shown


def test_a_plugin_of_texts_needs_no_consent(asking, here, write_plugin, write_skill, home):
    write_plugin(here, "texts", "notes: Be kind.\n")
    write_skill(here / "texts/skills", "kindness")
    assert asking("install", "./texts").exit_code == 0
    assert names(home) == ["texts"]


def test_a_person_on_a_terminal_is_asked_before_it_runs(weather, home):
    weather(manifest="")
    question = "Install and run this?"
    code, seen = on_a_terminal("install", "./weather", "--ask", answers=[(question, "n\n")])
    assert (code, names(home)) == (3, []), seen
    code, seen = on_a_terminal("install", "./weather", "--ask", answers=[(question, "y\n")])
    assert (code, names(home)) == (0, ["weather"]), seen


def test_code_that_changes_after_it_was_shown_is_not_installed(run, weather, home, monkeypatch):
    folder = weather(manifest="")
    copy = satchel.cli.installer.staged_copy

    def late(*args):
        (folder / "tools.py").write_text("print('something else')\n")
        return copy(*args)

    monkeypatch.setattr("satchel.cli.installer.staged_copy", late)
    done = run("install", "./weather")
    assert (done.exit_code, names(home)) == (1, [])
    assert "tools.py changed after it was shown" in done.stderr


# ---- folders ------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_compared_completely_is_not_installed(
    run, weather, home, write_skill, monkeypatch
):
    monkeypatch.setattr("satchel.trust.runnable_files._MOST_BYTES", 10)
    path = weather()
    write_skill(path / "skills", "forecast")
    (path / "skills/forecast/scripts").mkdir()
    (path / "skills/forecast/scripts/run.py").write_text("print('too much')")
    result = run("install", path)
    assert result.exit_code == 1
    assert "cannot be compared completely" in result.stderr
    assert not (home / ".satchel/plugins").exists()


def test_values_are_kept_if_the_configuration_is_in_the_folder_of_plugins(
    weather, home, monkeypatch
):
    weather()
    monkeypatch.setenv("SATCHEL_CONFIG_DIR", str(home.parent))
    command = [sys.executable, "-m", "satchel", "install", "./weather", "--yes"]
    subprocess.run([*command, "--set", "api_key=k"], check=True, timeout=PATIENCE)
    assert (home / "weather.env").read_text() == "API_KEY=k\n"


def test_a_folder_is_copied_and_reported_with_what_it_brings(run, weather, home, env):
    weather()
    done = run("install", "./weather", "--set", f"api_key={CANARY}")
    assert done.exit_code == 0
    assert done.stdout == (
        "installed weather 1.0 (~/.satchel/plugins/weather): 2 tools, 1 skill, 1 group\n"
    )
    assert done.stderr.splitlines() == [
        "1 thing to trust:",
        "  code: tools.py",
        "next: satchel show weather --kind plugin",
    ]
    assert names(home) == ["weather"]
    assert not (home / "weather").is_symlink()
    assert served(run) == ["weather"]
    assert env.read_text() == f"API_KEY={CANARY}\n"
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    assert run("call", "cities").stdout == "Oslo 1.0\n"


def test_a_bare_word_is_a_folder_with_a_manifest(run, weather):
    weather()
    assert "treated as the folder ./weather" in run("install", "weather").stderr


def test_the_name_is_that_of_the_manifest(run, here, write_plugin, home):
    write_plugin(here, "maps").rename(here / "other")
    assert run("install", "./other").exit_code == 0
    assert names(home) == ["maps"]


def test_what_is_missing_is_reported_with_the_command_and_no_fault(run, weather):
    weather()
    done = run("install", "./weather")
    assert done.exit_code == 0
    assert "'api_key' has no value; run: satchel config set weather api_key\n" in done.stderr
    assert served(run) == ["weather"]


def test_several_missing_values_are_one_line(run, here, write_plugin):
    write_plugin(here, "maps", "config:\n  key: {type: secret}\n  region: {required: true}\n")
    lines = [it for it in run("install", "./maps").stderr.splitlines() if "no value" in it]
    commands = "satchel config set maps key && satchel config set maps region"
    assert lines == [f"'key', 'region' have no value; run: {commands}"]


def test_a_link_leads_to_the_folder_and_follows_it(run, weather, home):
    folder = weather()
    done = run("install", "-e", "./weather", "--json")
    (record,) = json.loads(done.stdout)
    assert record == {
        "name": "weather",
        "version": "1.0",
        "kind": "link",
        "path": str(home / "weather"),
        "enabled": True,
        "missing": ["api_key"],
    }
    assert os.readlink(home / "weather") == str(folder)
    weather("2.0")
    assert run("call", "cities").stdout == "Oslo 2.0\n"


def test_an_upgrade_takes_the_place_of_what_was_there(run, weather, home):
    folder = weather()
    (folder / "gone.py").write_text("")
    run("install", "./weather")
    (folder / "gone.py").unlink()
    weather("2.0")
    assert run("install", "./weather").stdout.startswith("reinstalled weather 2.0 ")
    assert names(home) == ["weather"]
    assert "gone.py" not in names(home / "weather")
    assert run("call", "cities").stdout == "Oslo 2.0\n"


@pytest.mark.parametrize(
    ("manifest", "modules"),
    [
        ("config: nonsense\n", {}),
        ("setup: gone\n", {}),
        ("setup: other\n", {"other": "X = 1\n"}),
        ("", {"tools": "def f(:\n"}),
    ],
)
def test_a_plugin_with_errors_is_refused_and_nothing_changes(run, weather, home, manifest, modules):
    weather(manifest=manifest, **modules)
    done = run("install", "./weather")
    assert done.exit_code == 1
    assert "weather/t" in done.stderr
    assert "has errors; nothing was installed" in done.stderr
    assert not home.exists()


@pytest.mark.parametrize(
    "word", ["./nowhere", "~/nowhere", "-", "a b", "./empty", "./note.txt", ""]
)
def test_what_is_no_plugin_is_refused_and_pip_never_asked(run, here, word, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("pip was run"))
    (here / "empty").mkdir()
    (here / "note.txt").write_text("")
    exit_code = 1 if word in {"./empty", "./note.txt"} else 2  # what does not exist
    assert run("install", word).exit_code == exit_code


@pytest.mark.parametrize("word", ["./wether", "wether", "wether/", "-e wether", "{here}/wether"])
def test_a_mistyped_folder_is_named_and_pip_never_asked(run, weather, here, word, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("pip was run"))
    weather()
    refused = run("install", *word.format(here=here).split())
    assert refused.exit_code == 2
    assert "did you mean" in refused.stderr
    assert "/weather?" in refused.stderr
    assert "'wether>=0'" in refused.stderr or word != "wether"
    far = run("install", "./nothing-alike").stderr
    assert "'./nothing-alike' does not exist; give a plugin's folder" in far
    assert "'no.whl' does not exist; give" in run("install", "no.whl").stderr


def write_marketplace(folder, *plugins):
    (folder / ".claude-plugin").mkdir(parents=True, exist_ok=True)
    whole = {"name": "m", "plugins": plugins}
    (folder / ".claude-plugin" / "marketplace.json").write_text(json.dumps(whole))


@pytest.fixture
def market(here, write_skill):
    """Write a marketplace: one plugin with a manifest, one without, and two in one folder."""
    folder = here / "market"
    write_marketplace(
        folder,
        {"name": "own", "source": "./own", "strict": False, "version": "2"},
        {"name": "bare", "source": "./bare", "description": "Has no manifest."},
        {"name": "one", "source": "./", "strict": False, "skills": ["./skills/one"]},
        {"name": "two", "source": "./", "strict": False, "skills": ["./skills/two"]},
        {"name": "far", "source": {"source": "github", "repo": "acme/far"}},
        {"name": "npm", "source": {"source": "npm", "package": "far"}},
    )
    for name in ("own", "bare"):
        write_skill(folder / name / "skills", f"use-{name}")
    for name in ("one", "two"):
        write_skill(folder / "skills", name)
    write_manifest(folder / "own", "own")
    return folder


def write_manifest(folder, name):
    (folder / ".claude-plugin").mkdir(parents=True, exist_ok=True)
    (folder / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": name}))


def served_skills(run):
    return [skill["name"] for skill in json.loads(run("list", "skills", "--json").stdout)]


def test_without_a_choice_a_marketplace_names_its_plugins_and_the_option(run, market, home):
    for source in ("./market", "market", market):
        done = run("install", source)
        assert (done.exit_code, names(home)) == (1, [])
        assert "with the plugins bare, one, own, two; nothing was installed" in done.stderr
        assert "choose one with --plugin NAME" in done.stderr
        assert "not loaded: far" in done.stderr


@pytest.mark.parametrize(
    ("name", "skill"), [("bare", "use-bare"), ("own", "use-own"), ("one", "one"), ("two", "two")]
)
def test_one_plugin_of_a_marketplace_is_installed_as_it_is_listed(run, market, home, name, skill):
    title = "own 2" if name == "own" else name
    before = sorted(market.rglob("*"))
    for verb in ("installed", "reinstalled"):
        done = run("install", "./market", "--plugin", name)
        assert (done.exit_code, done.stderr.count("\n")) == (0, 1), done.stderr
        assert done.stdout.startswith(f"{verb} {title} (")
        assert (names(home), served(run), served_skills(run)) == ([name], [name], [skill])
    assert sorted(market.rglob("*")) == before
    assert run("uninstall", name).exit_code == 0
    assert (names(home), served(run)) == ([], [])


def test_plugins_of_one_folder_are_installed_beside_each_other(run, market):
    for name in ("one", "two"):
        assert run("install", "./market", "--plugin", name).exit_code == 0
    assert (served(run), served_skills(run)) == (["one", "two"], ["one", "two"])


def test_alike_warnings_of_a_plugin_are_written_once(run, here, write_plugin, write_skill):
    folder = write_plugin(here, "demo")
    for name in ("one", "two", "six"):
        text = f"---\nname: other-{name}\ndescription: d\n---\nb\n"
        write_skill(folder / "skills", name, text=text)
    done = run("install", "./demo", "--yes")
    assert done.stderr.count("warning[skill-name-folder]") == 1
    assert "  and 2 more warnings [skill-name-folder] at 2 other places\n" in done.stderr


def test_a_name_that_a_marketplace_does_not_have_is_refused(run, market, home):
    for name, text in (("bear", "did you mean bare?"), ("far", "satchel add ./market --only far")):
        done = run("install", "./market", "--plugin", name)
        assert (done.exit_code, text in done.stderr) == (1, True), done.stderr
    assert "'far' is at another address" in done.stderr
    done = run("install", "./market", "--plugin", "npm")
    assert "'npm' is at 'npm', from where Satchel takes no plugins (get its folder" in done.stderr
    assert names(home) == []


@pytest.mark.parametrize("name", ["../evil", "/evil", "..", "a/b", ".hidden", "a#b"])
def test_a_listed_name_that_is_no_name_is_not_installed(run, here, write_skill, home, name):
    write_marketplace(here / "market", {"name": name, "source": "./bare"})
    write_skill(here / "market" / "bare" / "skills", "use-bare")
    for options in ((), ("--plugin", name)):
        done = run("install", "./market", *options)
        assert (done.exit_code, "is left out" in done.stderr) == (1, True), done.stderr
    assert not home.exists()


def test_on_a_terminal_the_plugin_is_asked_for(market, home):
    answers = [("Which plugin?", "5\n"), ("with a name", ""), ("Which plugin?", "bare\n")]
    code, seen = on_a_terminal("install", "./market", answers=answers)
    assert (code, names(home)) == (0, ["bare"]), seen
    assert "1. bare: Has no manifest.\r\n2. one\r\n3. own\r\n4. two\r\n" in seen


def test_ctrl_c_instead_of_a_choice_installs_nothing(market, home):
    code, seen = on_a_terminal("install", "./market", answers=[("Which plugin?", CTRL_C.decode())])
    assert (code != 0, names(home)) == (True, []), seen


def test_with_no_input_the_plugin_is_not_asked_for(market, home):
    code, seen = on_a_terminal("install", "./market", "--no-input", answers=[])
    assert (code, "--plugin NAME" in seen, names(home)) == (1, True, [])


def test_the_only_plugin_of_a_marketplace_is_installed(run, here, write_skill, home):
    write_marketplace(here / "market", {"name": "bare", "source": "./bare"})
    write_skill(here / "market" / "bare" / "skills", "use-bare")
    assert run("install", "./market").exit_code == 0
    assert (names(home), served_skills(run)) == (["bare"], ["use-bare"])


def test_a_plugin_that_lists_itself_is_installed(run, here, write_skill, home):
    write_marketplace(here / "power", {"name": "power", "source": "./"})
    (here / "power" / ".claude-plugin" / "plugin.json").write_text('{"name": "power"}')
    write_skill(here / "power" / "skills", "fly")
    for options in ((), ("-e",)):
        done = run("install", "./power", *options)
        assert (done.exit_code, "1 skill" in done.stdout) == (0, True)
        assert (names(home), served(run)) == (["power"], ["power"])


def test_a_plugin_that_lists_others_is_installed_without_them(run, market):
    write_marketplace(market, {"name": "bare", "source": "./bare"})
    write_manifest(market, "all")
    done = run("install", "./market")
    assert (done.exit_code, "the plugins all, bare" in done.stderr) == (1, True)
    assert run("install", "./market", "--plugin", "all").exit_code == 0
    assert served(run) == ["all"]
    assert served_skills(run) == ["one", "two"]


def test_the_choice_of_a_folder_that_is_no_marketplace_is_wrong_usage(run, weather, market):
    weather()
    for source in ("./weather", "./market/own", "acme-weather"):
        assert run("install", source, "--plugin", "own").exit_code == 2


def test_a_plugin_of_a_marketplace_is_not_linked(run, market, home):
    done = run("install", "-e", "./market", "--plugin", "bare")
    assert (done.exit_code, "copied, not linked" in done.stderr) == (1, True)
    assert names(home) == []


def test_an_entry_that_replaces_a_manifest_of_satchel_is_not_installed_alone(run, market, home):
    (market / "own" / "toolkit.yaml").write_text("name: own\n")
    done = run("install", "./market", "--plugin", "own")
    assert (done.exit_code, "its entry replaces its toolkit.yaml" in done.stderr) == (1, True)
    assert names(home) == []


def test_a_chosen_plugin_with_errors_is_refused_and_others_do_not_matter(run, market, home):
    write_marketplace(
        market,
        {"name": "own", "source": "./own"},
        {"name": "bare", "source": "./bare"},
        {"name": "gone", "source": "./gone"},
    )
    (market / "own" / ".claude-plugin" / "plugin.json").write_text("[")
    done = run("install", "./market", "--plugin", "own")
    assert (done.exit_code, names(home)) == (1, [])
    assert "plugin-json-invalid" in done.stderr
    assert run("install", "./market", "--plugin", "bare").exit_code == 0


def test_an_entry_whose_folder_has_a_plugin_json_of_another_kind_is_installed(run, market, home):
    (market / "bare" / "plugin.json").write_text('{"name": "bare"}')
    assert run("install", "./market", "--plugin", "bare").exit_code == 0
    assert (names(home), served(run)) == (["bare"], ["bare"])


def test_a_marketplace_without_local_plugins_is_refused(run, here, home):
    write_marketplace(here / "market", {"name": "far", "source": {"source": "github"}})
    done = run("install", "./market")
    assert (done.exit_code, "lists no plugin that can be installed" in done.stderr) == (1, True)
    assert "not loaded: far" in done.stderr


def test_the_list_of_a_copy_replaces_a_link_not_its_target(run, market, home):
    listing = market / ".claude-plugin" / "marketplace.json"
    listing.rename(market / "list.json")
    listing.symlink_to("../list.json")
    assert run("install", "./market", "--plugin", "one").exit_code == 0
    copy = home / "one"
    assert "two" in (market / "list.json").read_text()
    assert not (copy / ".claude-plugin" / "marketplace.json").is_symlink()
    assert served(run) == ["one"]


def test_a_plugin_of_which_nothing_is_used_says_so(run, here):
    (here / "agents-only" / ".claude-plugin").mkdir(parents=True)
    manifest = here / "agents-only" / ".claude-plugin" / "plugin.json"
    manifest.write_text('{"name": "agents-only"}')
    (here / "agents-only" / "agents").mkdir()
    done = run("install", "./agents-only")
    assert (done.exit_code, "nothing of it is used" in done.stderr) == (0, True)


def test_wrong_usage_is_reported(run, weather):
    weather()
    for args in (["--set", "a"], ["--set", "a=1", "--set", "A=2"], ["--set", "=1"]):
        assert run("install", "./weather", *args).exit_code == 2
    assert run("install", "-e", "weather-tools").exit_code == 2


def test_values_are_checked_before_anything_is_written(run, weather, home, env):
    weather()
    for assignment, messages in (
        ("retires=1", "did you mean retries"),
        ("retries=12", "at most 9"),
        ("api_key=", "counts as not set"),
    ):
        done = run("install", "./weather", "--set", assignment)
        assert (done.exit_code, messages in done.stderr) == (1, True), done.stderr
    assert (names(home), env.exists()) == ([], False)


def test_a_value_may_come_from_stdin(weather, env):
    weather()
    args = ["install", "./weather", "--yes", "--set", "api_key=-"]
    assert CANARY not in CliRunner().invoke(cli, args, input=f"{CANARY}\n").output
    assert env.read_text() == f"API_KEY={CANARY}\n"


def test_one_that_was_disabled_is_enabled(run, weather, choices):
    weather()
    run("install", "./weather")
    run("disable", "weather")
    assert served(run) == []
    assert run("install", "./weather").exit_code == 0
    assert served(run) == ["weather"]
    assert tomllib.loads(choices.read_text()) == {}


def test_one_that_another_stands_before_is_reported(run, weather, tmp_path):
    weather()
    shutil.copytree("weather", Path.home() / "plugins/weather")
    assert "the plugin is not in use: shadowed" in run("install", "./weather").stderr


def test_a_folder_that_is_no_plugin_is_never_replaced(run, weather, home):
    weather()
    (home / "weather").mkdir(parents=True)
    (home / "weather/diary.txt").write_text("")
    done = run("install", "./weather")
    assert (done.exit_code, "is not a plugin" in done.stderr) == (1, True)
    assert names(home / "weather") == ["diary.txt"]


@pytest.mark.parametrize("option", [(), ("-e",)])
def test_what_is_installed_is_not_installed_onto_itself(run, weather, home, option):
    weather()
    run("install", "./weather")
    done = run("install", home / "weather", *option)
    assert (done.exit_code, "already" in done.stderr) == (1, True)
    assert "toolkit.yaml" in names(home / "weather")


# ---- setup --------------------------------------------------------------------------------


SETUP = """
def setup(ctx):
    (ctx.data / "model.bin").write_text("m")
    ctx.set("api_key", "from-setup")
    ctx.say(f"hello from {ctx.folder}, {ctx.interactive}")
    print("NOISE")
"""


def test_full_prints_the_code_before_the_question(asking, weather, home):
    weather(more="# \x1b[2J\u200b\n")
    result = asking("install", "./weather", "--full")
    assert result.exit_code == 3
    assert "=== more.py\n  # \\x1b[2J\\u200b\n" in result.stderr
    assert "read the code with --full" not in result.stderr
    hint = "read the code with --full, or look for lures with 'satchel scan'"
    assert hint in asking("install", "./weather").stderr
    refused = asking("install", "acme-weather>=1", "--full")
    assert (refused.exit_code, "not for what pip installs" in refused.stderr) == (2, True)
    assert not home.exists()


def test_a_setup_is_run_and_reported(run, weather, home, env, data):
    weather(setup=SETUP)
    done = run("install", "./weather", "--json")
    assert (done.exit_code, json.loads(done.stdout)[0]["missing"]) == (0, [])
    messages = done.stderr.splitlines()
    assert messages[0] == "3 things to trust:"
    assert "  runs now: setup(ctx) of setup.py" in messages
    # What a setup says is a message, whose paths are short.
    folder = home.relative_to(Path.home()) / "weather"
    assert messages[4:6] == ["running setup.py of weather", f"hello from ~/{folder}, False"]
    assert env.read_text() == "API_KEY=from-setup\n"
    assert (data / "model.bin").exists()


def test_a_linked_folder_is_set_up_where_it_lies(run, weather):
    weather(setup=SETUP)
    assert "hello from weather, False" in run("install", "-e", "./weather").stderr.splitlines()


def test_what_builds_a_package_is_not_run(run, weather):
    weather(setup="raise SystemExit(3)\n")
    done = run("install", "./weather")
    assert (done.exit_code, "setup.py is not run" in done.stderr) == (0, True)


def test_the_setup_of_a_plugin_that_asks_for_a_process_of_its_own_is_not_run(run, weather, home):
    folder = weather(setup=SETUP)
    (folder / "toolkit.yaml").write_text("name: weather\nisolation: process\n")
    done = run("install", folder)
    assert (done.exit_code, "runs in its own process" in done.stderr) == (0, True)
    assert "hello from" not in done.stderr


@pytest.mark.parametrize("option", [(), ("-e",)])
def test_a_setup_that_fails_takes_everything_back(run, weather, home, env, option):
    weather(setup="def setup(ctx):\n    1 / 0\n")
    done = run("install", "./weather", "--set", "api_key=k", *option)
    assert done.exit_code == 1
    assert "setup.py:2: ZeroDivisionError: division by zero" in done.stderr
    assert "nothing was installed" in done.stderr
    assert f"the values are kept in {env}" in done.stderr
    assert (names(home), served(run)) == ([], [])
    assert env.read_text() == "API_KEY=k\n"
    assert (Path("weather/toolkit.yaml")).exists()


def test_an_upgrade_whose_setup_fails_brings_back_what_was_there(run, weather, home):
    weather()
    run("install", "./weather")
    weather("2.0", setup="def setup(ctx):\n    raise SystemExit\n")
    done = run("install", "./weather")
    assert (done.exit_code, "the old version was restored" in done.stderr) == (1, True)
    assert names(home) == ["weather"]
    assert run("call", "cities").stdout == "Oslo 1.0\n"


def test_choices_that_cannot_be_written_take_everything_back(run, weather, home, choices):
    weather(
        setup=f"""
        from pathlib import Path

        def setup(ctx):
            Path({str(choices)!r}).write_text("not toml")
    """
    )
    choices.parent.mkdir(parents=True, exist_ok=True)
    done = run("install", "./weather")
    assert (done.exit_code, "nothing was installed" in done.stderr) == (1, True)
    assert names(home) == []


def test_broken_choices_are_found_before_anything_is_done(run, weather, home, choices, pip):
    weather(setup="raise SystemExit(3)\n")
    run("install", "./weather")
    choices.write_text("not toml")
    for command in (
        ("install", "./weather"),
        ("install", "acme-weather"),
        ("uninstall", "weather", "--purge"),
    ):
        done = run(*command)
        assert (done.exit_code, "cannot be read" in done.stderr) == (1, True)
    assert (names(home), pip[0]) == (["weather"], [])


def test_values_that_a_failing_setup_wrote_are_reported(run, weather, env):
    weather(setup="def setup(ctx):\n    ctx.set('api_key', 'k')\n    1 / 0\n")
    assert f"the values are kept in {env}" in run("install", "./weather").stderr
    assert "kept" not in run("install", "./weather").stderr


def test_what_another_tool_stands_before_is_reported(run, weather, here, write_plugin):
    weather()
    write_plugin(Path.home() / "plugins", "atlas", tools=TOOLS)
    done = run("install", "./weather")
    assert done.exit_code == 0
    assert "cities" in done.stderr
    assert "tool-shadowed" in done.stderr


# ---- questions ----------------------------------------------------------------------------


def on_a_terminal(*args, answers):
    """Run a command in a session of its own, and type each answer when its question comes."""
    if "--ask" in args:
        args = [item for item in args if item != "--ask"]
    elif args[0] == "install":
        args = [*args, "--yes"]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-m", "satchel", *args])
    seen, at, waiting, typed = "", 0, list(answers), ""
    deadline = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 1.0)[0]:
                # Between a question and the waiting for its answer Ctrl-C may be missed.
                os.write(terminal, CTRL_C if typed.encode() == CTRL_C else b"")
                continue
            seen += os.read(terminal, 1000).decode()
            while waiting and (match := seen.find(waiting[0][0], at)) >= 0:
                at = match + len(waiting[0][0])
                typed = waiting.pop(0)[1]
                os.write(terminal, typed.encode())
    except OSError:  # how Linux tells that the other side has ended
        pass
    finally:
        os.close(terminal)  # which ends a child that waits in vain
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), seen


def test_what_is_missing_is_asked_for_until_it_is_right(weather, env, home):
    fields = FIELDS.replace("default: 2, ", "")
    weather(manifest=fields, setup="def setup(ctx):\n    ctx.say(ctx.ask('Town?'))\n")
    code, seen = on_a_terminal(
        "install",
        "./weather",
        answers=[
            ("api_key (secret", f"{CANARY}\n"),
            ("retries (integer: a whole number of at most 9", "many\n"),
            ("not a whole number", ""),
            ("retries (integer", "3\n"),
            ("Town?", "Oslo\n"),
        ],
    )
    assert code == 0, seen
    assert "api_key: From your account." in seen
    assert CANARY not in seen
    assert env.read_text() == f"API_KEY={CANARY}\nRETRIES=3\n"


def test_an_empty_answer_leaves_a_value_for_later(weather, env, home):
    weather()
    code, seen = on_a_terminal("install", "./weather", answers=[("api_key (", "\n")])
    assert (code, env.exists(), names(home)) == (0, False, ["weather"])
    assert "'api_key' has no value" in seen


def test_no_one_is_asked_who_does_not_want_it(weather, home):
    weather()
    code, seen = on_a_terminal("install", "./weather", "--no-input", answers=[])
    assert (code, "api_key (" in seen, names(home)) == (1, False, ["weather"])
    code, seen = on_a_terminal(
        "install", "./weather", "--no-input", "--set", "api_key=k", answers=[]
    )
    assert (code, names(home)) == (0, ["weather"]), seen


@pytest.mark.parametrize("question", ["Install and run this?", "api_key (", "Town?"])
def test_ctrl_d_at_a_question_is_no_and_takes_everything_back(weather, home, question):
    manifest = FIELDS if "api" in question else ""
    weather(manifest=manifest, setup="def setup(ctx):\n    ctx.ask('Town?')\n")
    ask = ["--ask"] if "Install" in question else []
    code, seen = on_a_terminal("install", "./weather", *ask, answers=[(question, "\x04")])
    assert (code, names(home)) == (3, []), seen
    assert "you did not agree" in seen


@pytest.mark.parametrize("question", ["api_key (", "Town?"])
def test_ctrl_c_at_a_question_takes_everything_back(weather, home, question):
    manifest = FIELDS if "api" in question else ""
    tools = "X = 1\n"
    weather(manifest=manifest, tools=tools, setup="def setup(ctx):\n    ctx.ask('Town?')\n")
    code, seen = on_a_terminal("install", "./weather", answers=[(question, "\x03")])
    assert (code, names(home)) == (1, []), seen
    assert "Traceback" not in seen


# ---- packages -----------------------------------------------------------------------------


def test_a_project_that_offers_no_plugin_is_refused_before_pip_is_asked(run, here, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("pip was run"))
    (here / "other").mkdir()
    (here / "other/pyproject.toml").write_text('[project]\nname = "other"\n')
    done = run("install", "./other")
    assert (done.exit_code, "contains no plugin" in done.stderr) == (1, True)


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """Stand in for pip: note how it is called, and put a distribution where we look."""
    calls = []
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def called(line, **_):
        if "--dry-run" in line:  # only who signed it is looked up
            return subprocess.CompletedProcess(line, 1)
        calls.append(line[1:])
        info = site / "acme_weather-1.2.dist-info"
        if line[3] == "uninstall":
            shutil.rmtree(info)
        else:
            info.mkdir(exist_ok=True)
            (info / "METADATA").write_text("Name: acme-weather\nVersion: 1.2\n")
            (info / "entry_points.txt").write_text(calls_offer[0])
            (info / "RECORD").write_text("")
        return subprocess.CompletedProcess(line, code[0])

    code, calls_offer = [0], ["[satchel.plugins]\nacme = acme_weather\n"]
    monkeypatch.setattr(subprocess, "run", called)
    return calls, calls_offer, code


def test_a_distribution_is_installed_by_pip_and_enabled_by_name(run, pip, choices):
    calls, _, _ = pip
    done = run("install", "acme_weather>=1", "--json")
    options = ["--disable-pip-version-check", "--no-input"]
    assert calls == [["-P", "-m", "pip", "install", *options, "acme_weather>=1"]]
    (record,) = json.loads(done.stdout)
    assert (record["name"], record["version"], record["kind"]) == ("acme", "1.2", "package")
    assert record["enabled"]
    assert "treated as a distribution" in done.stderr
    assert tomllib.loads(choices.read_text()) == {"enable": ["acme"]}
    gone = run("uninstall", "acme")
    assert gone.stdout.startswith("uninstalled acme (")
    assert calls[-1] == ["-P", "-m", "pip", "uninstall", "--yes", "acme-weather"]
    assert tomllib.loads(choices.read_text()) == {}


def test_a_distribution_without_a_plugin_stays_and_is_reported(run, pip, choices):
    pip[1][0] = "[console_scripts]\nx = y\n"
    done = run("install", "acme-weather")
    assert (done.exit_code, "contains no plugin; it stays installed" in done.stderr) == (1, True)
    assert "pip uninstall acme-weather" in done.stderr
    assert not choices.exists()


def test_a_pip_that_fails_is_reported(run, pip, choices):
    pip[2][0] = 1
    done = run("install", "acme-weather")
    assert (done.exit_code, "could not install 'acme-weather'" in done.stderr) == (1, True)
    assert not choices.exists()


def test_without_pip_uv_is_asked_and_without_both_that_is_reported(run, pip, monkeypatch):
    calls, _, _ = pip
    monkeypatch.setattr("satchel.setup.pip_packages.find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: "/bin/uv")
    run("install", "acme-weather")
    assert calls == [["pip", "install", "--python", sys.executable, "acme-weather"]]
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert "neither pip nor uv" in run("install", "acme-weather").stderr


@pytest.mark.parametrize("damage", ["data", "size"])
def test_a_damaged_wheel_is_left_to_pip(run, pip, here, damage):
    path = here / "acme_weather-1.2-py3-none-any.whl"
    compression = zipfile.ZIP_LZMA if damage == "data" else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", compression) as wheel:
        wheel.writestr("acme_weather-1.2.dist-info/METADATA", b"Name: acme-weather\n" * 100)
    data = bytearray(path.read_bytes())
    if damage == "data":  # an LZMAError
        data[80:100] = bytes(byte ^ 0x55 for byte in data[80:100])
    else:  # an EOFError: the directory claims that the file is larger
        sizes = data.index(b"PK\x01\x02") + 20
        data[sizes : sizes + 8] = (len(data) + 100_000).to_bytes(4, "little") * 2
    path.write_bytes(data)
    outcome = run("install", path.name)
    assert "dependencies that cannot be read" in outcome.stderr
    assert "unexpected" not in outcome.stderr


def test_a_project_and_a_wheel_are_given_to_pip_by_their_paths(run, pip, here):
    calls, _, _ = pip
    (here / "acme").mkdir()
    points = '[project.entry-points."satchel.plugins"]\nacme = "acme_weather"\n'
    (here / "acme/pyproject.toml").write_text(f'[project]\nname = "acme-weather"\n{points}')
    assert run("install", "-e", "./acme").exit_code == 0
    assert calls[-1][-2:] == ["--editable", str(here / "acme")]
    (here / "acme_weather-1.2-py3-none-any.whl").write_text("")
    assert run("install", "acme_weather-1.2-py3-none-any.whl").exit_code == 0
    path = (here / "acme_weather-1.2-py3-none-any.whl").as_uri()
    assert calls[-1][-1] == f"{path}#sha256={hashlib.sha256(b'').hexdigest()}"


def test_a_wheel_whose_metadata_is_too_large_still_shows_what_it_runs(run, pip, here):
    name = "acme_weather-1.2-py3-none-any.whl"
    with zipfile.ZipFile(here / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("acme_weather/setup.py", "")
        metadata = b"Name: acme-weather\n\n" + b" " * Limits().plugin_source
        wheel.writestr("acme_weather-1.2.dist-info/METADATA", metadata)
    messages = run("install", name).stderr
    assert "runs now: setup(ctx) of acme_weather/setup.py" in messages
    assert "with: dependencies that cannot be read" in messages


SIGNER = "https://github.com/trailofbits/rfc8785.py/.github/workflows/release.yml"
ISSUER = "https://token.actions.githubusercontent.com"


@pytest.fixture
def signed_wheel(here) -> Path:
    """A wheel with a real signature."""
    for path in (Path(__file__).parents[1] / "data/signed").glob("rfc8785*"):
        shutil.copy(path, here)
    return here / "rfc8785-0.1.2-py3-none-any.whl"


def test_a_signature_beside_a_wheel_is_verified_and_its_signer_shown(run, pip, signed_wheel):
    done = run("install", signed_wheel, "--signer", SIGNER, "--issuer", ISSUER)
    assert f"signature: signed by {SIGNER}@refs/tags/v0.1.2 (issuer {ISSUER})" in done.stderr
    assert pip[0][-1][-1].startswith(f"{signed_wheel.as_uri()}#sha256=")


def test_the_lock_names_who_signed_an_installed_package_until_it_is_another(
    run, pip, here, tmp_path, monkeypatch
):
    wheel = here / "acme_weather-1.2-py3-none-any.whl"
    wheel.write_text("")
    signer = Signer(f"{SIGNER}@refs/tags/v1.2", ISSUER)
    monkeypatch.setattr("satchel.cli.installer.signers_of", lambda *_: (signer,))
    assert run("install", wheel).exit_code == 0
    assert run("lock", "--no-connect").exit_code == 0
    lock = tomllib.loads(Path("satchel.lock").read_text())
    (plugin,) = (it for it in lock["plugin"] if it["name"] == "acme")
    assert (plugin["from"], plugin["signer"]) == (wheel.name, f"{SIGNER} (issuer {ISSUER})")
    (tmp_path / "site/acme_weather-1.2.dist-info/RECORD").write_text("other,,\n")
    assert run("lock", "--no-connect").exit_code == 0
    assert "signer" not in Path("satchel.lock").read_text()


def test_what_an_index_does_not_attest_is_said(run, pip):
    assert "signature: not verified: pip finds no wheel" in run("install", "acme-weather").stderr


def test_a_wheel_that_differs_from_its_signature_is_not_installed(run, pip, signed_wheel):
    with signed_wheel.open("ab") as file:
        file.write(b"x")
    done = run("install", signed_wheel)
    assert done.exit_code == 1
    assert "does not verify" in done.stderr
    assert pip[0] == []


def test_what_the_wanted_signer_did_not_sign_is_not_installed(run, pip, signed_wheel, weather):
    options = ("--signer", "somebody@example.org", "--issuer", ISSUER)
    for source in (signed_wheel, weather(), "acme_weather>=1"):
        done = run("install", source, *options)
        assert done.exit_code == 1
        assert "not signed by somebody@example.org" in done.stderr
    assert pip[0] == []
    assert run("install", signed_wheel, "--signer", "me@example.org").exit_code == 2


def test_pip_does_not_install_a_file_with_another_content(tmp_path):
    wheel = tmp_path / "acme-1.2-py3-none-any.whl"
    wheel.write_bytes(b"one")
    package = package_file(str(wheel))
    assert package is not None
    wheel.write_bytes(b"another")
    with pytest.raises(SatchelError, match="could not install"):
        package.install()


def test_a_distribution_may_bring_several_plugins(run, pip, choices):
    pip[1][0] = "[satchel.plugins]\none = acme_one\ntwo = acme_two\n"
    done = run("install", "acme-weather", "--set", "token=t")
    assert (done.exit_code, "satchel config set NAME" in done.stderr) == (1, True)
    assert not choices.exists()
    records = json.loads(run("install", "acme-weather", "--json").stdout)
    assert [record["name"] for record in records] == ["one", "two"]
    done = run("uninstall", "two")
    assert "acme-weather also contains one" in done.stderr
    assert tomllib.loads(choices.read_text()) == {}


def test_a_plugin_of_two_distributions_is_removed_by_the_name_of_one(run, pip, tmp_path):
    calls, _, _ = pip
    run("install", "acme-weather")
    shutil.copytree(tmp_path / "site/acme_weather-1.2.dist-info", tmp_path / "site/b-1.dist-info")
    (tmp_path / "site/b-1.dist-info/METADATA").write_text("Name: b\nVersion: 1\n")
    done = run("uninstall", "acme")
    assert "name the distribution: acme-weather or b" in done.stderr
    assert run("uninstall", "Acme_Weather").exit_code == 0
    assert calls[-1][-1] == "acme-weather"


def test_a_requirement_may_be_an_address(run, pip):
    assert run("install", "acme-weather @ https://example.org/acme.whl").exit_code == 0
    assert pip[0][0][-1] == "acme-weather @ https://example.org/acme.whl"


def test_a_token_in_an_address_is_passed_to_pip_and_not_printed(run, pip):
    target = f"acme-weather @ git+https://bob:{CANARY}@example.org/acme.git"
    unsigned = run("install", target, "--yes", "--signer", SIGNER, "--issuer", ISSUER)
    done = run("install", target)
    assert pip[0][0][-1] == target
    assert "pip installs: acme-weather @ git+https://***:***@example.org/acme.git" in done.stderr
    assert "is unsigned, not signed by" in unsigned.stderr
    assert CANARY not in done.output + unsigned.output


def test_an_address_without_a_name_is_reported_and_not_quoted(run, pip):
    done = run("install", f"git+https://bob:{CANARY}@example.org/acme.git")
    assert (done.exit_code, "NAME @ git+https://" in done.stderr) == (1, True)
    assert (CANARY in done.output, pip[0]) == (False, [])


def test_a_word_that_is_a_project_and_may_be_a_distribution_is_not_guessed(run, pip, here):
    (here / "acme-weather").mkdir()
    (here / "acme-weather/pyproject.toml").write_text("")
    done = run("install", "acme-weather")
    assert "write ./acme-weather for the local project, 'acme-weather>=0'" in done.stderr
    assert (done.exit_code, pip[0]) == (1, [])
    assert run("install", "acme-weather>=0").exit_code == 0
    assert run("install", "acme_weather").exit_code == 0  # the same to pip: no typing error
    points = '[project.entry-points."satchel.plugins"]\nacme = "acme_weather"\n'
    (here / "acme-weather/pyproject.toml").write_text(f'[project]\nname = "acme-weather"\n{points}')
    assert run("install", "-e", "acme-weather").exit_code == 0
    assert pip[0][-1][-2:] == ["--editable", str(here / "acme-weather")]


def test_one_that_pip_has_already_is_reported(run, pip):
    assert "was there already" not in run("install", "acme-weather").stderr
    assert "acme-weather 1.2 was already installed" in run("install", "acme-weather").stderr


def fields_of_a_project(here):
    points = '[project.entry-points."satchel.plugins"]\nacme = "acme_weather.plugin:thing"\n'
    folder = here / "acme/src/acme_weather"
    folder.mkdir(parents=True)
    (here / "acme/pyproject.toml").write_text(f'[project]\nname = "acme-weather"\n{points}')
    (folder / "toolkit.yaml").write_text(f"name: acme\n{FIELDS}")
    return "./acme"


def fields_of_a_wheel(here):
    path = here / "acme_weather-1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        points = "[satchel.plugins]\nacme = acme_weather\n"
        wheel.writestr("acme_weather-1.2.dist-info/entry_points.txt", points)
        wheel.writestr("acme_weather/toolkit.yaml", f"name: acme\n{FIELDS}")
    return str(path)


@pytest.mark.parametrize("written", [fields_of_a_project, fields_of_a_wheel])
def test_values_of_a_package_that_is_here_are_checked_before_pip_is_asked(
    run, here, pip, written, config_folder
):
    word = written(here)
    done = run("install", word, "--set", "retries=12")
    assert (done.exit_code, "at most 9" in done.stderr) == (1, True)
    assert (pip[0], config_folder.exists()) == ([], False)
    assert run("install", word, "--set", "retries=3").exit_code == 0
    assert (config_folder / "plugins/acme.env").read_text() == "RETRIES=3\n"


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06" + bytes(18), b"no zip"])
def test_a_wheel_that_cannot_be_read_is_left_to_pip(run, here, pip, data):
    (here / "acme_weather-1.2-py3-none-any.whl").write_bytes(data)
    assert run("install", "./acme_weather-1.2-py3-none-any.whl").exit_code == 0
    assert len(pip[0]) == 1


def test_values_of_a_package_are_written(run, pip, config_folder):
    assert run("install", "acme-weather", "--set", "token=t").exit_code == 0
    assert (config_folder / "plugins/acme.env").read_text() == "TOKEN=t\n"


# ---- uninstalling -------------------------------------------------------------------------


@pytest.mark.parametrize("option", [(), ("-e",)])
def test_what_was_installed_is_removed_and_its_values_and_data_are_kept(  # noqa: PLR0917
    run, weather, home, env, data, option
):
    folder = weather(setup=SETUP)
    run("install", "./weather", *option)
    done = run("uninstall", "weather")
    assert done.stdout == "uninstalled weather (~/.satchel/plugins/weather)\n"
    assert done.stderr.count("--purge removes it") == 2
    assert (names(home), env.exists(), data.exists()) == ([], True, True)
    assert (folder / "toolkit.yaml").exists()


def test_a_purge_leaves_nothing(run, weather, home, env, data):
    weather(setup=SETUP)
    run("install", "./weather")
    done = run("uninstall", "weather", "--purge", "--json")
    assert json.loads(done.stdout)["kept"] == []
    assert (names(home), env.exists(), data.exists()) == ([], False, False)


def test_what_is_left_of_a_plugin_can_be_purged_later(run, weather, env, data):
    weather(setup=SETUP)
    run("install", "./weather")
    run("uninstall", "weather")
    done = run("uninstall", "weather")
    assert (done.exit_code, "--purge removes" in done.stderr) == (1, True)
    record = json.loads(run("uninstall", "weather", "--purge", "--json").stdout)
    assert (record["kind"], record["kept"]) == ("values", [])
    assert (env.exists(), data.exists()) == (False, False)
    assert run("uninstall", "weather", "--purge").exit_code == 1


def test_a_package_is_forgotten_under_each_of_its_names(run, pip, choices):
    run("install", "acme-weather")
    run("enable", "acme-weather")
    choices.write_text('# mine\nenable = ["acme", "acme-weather", "other"]\n')
    assert run("uninstall", "Acme_Weather").exit_code == 0
    assert choices.read_text() == '# mine\nenable = ["other"]\n'


def test_a_folder_and_a_package_of_one_name_are_removed_one_by_one(run, weather, pip, home):
    pip[1][0] = "[satchel.plugins]\nweather = acme_weather\n"
    run("install", "acme-weather")
    run("install", weather())
    done = run("uninstall", "weather")
    assert "acme-weather also has a plugin weather, which stays installed" in done.stderr
    assert (names(home), pip[0][-1][3]) == ([], "install")
    assert run("uninstall", "weather").exit_code == 0
    assert pip[0][-1][3] == "uninstall"


def test_a_link_that_leads_nowhere_is_removed(run, weather, home):
    shutil.rmtree(weather()) if run("install", "-e", str(weather())).exit_code == 0 else None
    assert run("uninstall", "weather").exit_code == 0
    assert names(home) == []


def test_what_was_not_installed_is_refused(run, weather, tmp_path):
    shutil.copytree(weather(), Path.home() / "plugins/weather")
    done = run("uninstall", "weather")
    assert (done.exit_code, "delete the folder yourself" in done.stderr) == (1, True)
    done = run("uninstall", "builtin")
    assert (done.exit_code, "satchel disable builtin" in done.stderr) == (1, True)
    assert run("uninstall", "../weather").exit_code == 2


def test_a_folder_that_is_no_plugin_is_never_removed(run, home):
    (home / "diary").mkdir(parents=True)
    assert run("uninstall", "diary").exit_code == 1
    assert names(home) == ["diary"]


def test_a_mistyped_name_has_near_misses(run, weather):
    weather()
    run("install", "./weather")
    done = run("uninstall", "wether")
    assert (done.exit_code, "did you mean weather?" in done.stderr) == (1, True)
