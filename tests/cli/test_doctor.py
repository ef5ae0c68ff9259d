"""`doctor`: what is off, why, and the command that mends it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from satchel import Satchel


@pytest.fixture
def commands(run):
    """The command for each code that the doctor reports, but for our own bundled plugin."""

    def commands(*args):
        findings = json.loads(run("doctor", "--json", *args).stdout)["findings"]
        return {item["code"]: item["command"] for item in findings if item["name"] != "builtin"}

    return commands


def test_a_healthy_world_is_exit_code_zero(run, here, write_skill):
    write_skill(here / "skills", "good")
    result = run("doctor", "--skills", "skills")
    assert result.exit_code == 0
    assert "ok watching" in result.stdout
    assert "ok search: sqlite3 has FTS5, so models can search tools and skills" in result.stdout


def test_servers_are_started_only_with_run(run, config_folder):
    table = '[mcp.gone]\ncommand = "no-such-command"\n'
    config_folder.mkdir()
    (config_folder / "satchel.toml").write_text(table)
    result = run("doctor")
    assert "MCP servers that only --run starts: gone" in result.stderr
    assert "mcp-server-down" not in result.stdout
    result = run("doctor", "--run")
    assert "not started" not in result.stderr
    assert "mcp-server-down" in result.stdout


def test_findings_stand_below_their_entry_the_worst_first(run, here, write_skill):
    write_skill(here / "skills", "Odd")
    write_skill(here / "skills", "broken", text="nothing")
    (here / "plugins" / "demo").mkdir(parents=True)
    (here / "plugins" / "demo" / "toolkit.yml").touch()
    result = run("doctor", "--skills", "skills", "--plugins", "plugins")
    assert result.exit_code == 1
    titles = [line for line in result.stdout.splitlines() if line.startswith("skill ")]
    assert titles == ["skill broken (skills): failed"]
    result = run("doctor", "-v", "--skills", "skills", "--plugins", "plugins")
    titles = [line for line in result.stdout.splitlines() if line.startswith(("skill ", "sources"))]
    assert titles == ["skill broken (skills): failed", "sources", "skill Odd (skills): ok"]
    assert result.stderr == "1 error, 2 warnings\n"


def test_the_commands_fix_what_they_are_for(commands, run, here, write_skill):
    write_skill(here / "skills", "wrong-folder", text="---\nname: right\ndescription: d\n---\nb\n")
    (here / "skills" / "lower").mkdir()
    (here / "skills" / "lower" / "skill.md").write_text(
        "---\nname: lower\ndescription: d\n---\nb\n"
    )
    (here / "plugins" / "demo").mkdir(parents=True)
    (here / "plugins" / "demo" / "toolkit.yml").write_text("name: demo\nnotes: Be kind.\n")
    sources = ("--skills", "skills", "--plugins", "plugins", "--trust", "data")
    (here / "satchel.toml").write_text("[sources]\nskills = ['not there']\n")
    result = commands(*sources)
    assert result == {
        "skill-name-folder": "mv -n skills/wrong-folder skills/right",
        "skill-file-case": "mv -n skills/lower/skill.md skills/lower/SKILL.md",
        "plugin-manifest-missing": "mv -n plugins/demo/toolkit.yml plugins/demo/toolkit.yaml",
        "source-missing": None,
    }
    for command in filter(None, result.values()):
        subprocess.run(shlex.split(command), check=True)
    (here / "satchel.toml").unlink()
    assert run("doctor", *sources).exit_code == 0


def test_a_folder_that_holds_other_skills_is_not_to_be_renamed(commands, here, write_skill):
    text = "---\nname: right\ndescription: d\n---\nb\n"
    outer = write_skill(here / "all", "skills", text=text)
    write_skill(outer, "inner")
    assert not commands("--skills", "all")["skill-name-folder"]


def test_the_folder_of_a_plugins_skill_is_not_to_be_renamed(
    commands, here, write_plugin, write_skill
):
    """Its commands, and the entries of a marketplace, name the folder."""
    folder = write_plugin(here / "plugins", "demo")
    write_skill(folder / "skills", "rules", text="---\nname: other-rules\ndescription: d\n---\nb\n")
    result = commands("--plugins", "plugins")
    assert result["skill-name-folder"] is None


def test_broken_copies_in_a_hidden_folder_are_no_error(run, here, write_skill):
    for name in ("one", "two"):
        write_skill(here / "skills", name)
        (here / ".gemini" / "skills" / name).mkdir(parents=True)
        (here / ".gemini" / "skills" / name / "SKILL.md").symlink_to("../gone")
    result = run("doctor", "--skills", ".")
    assert (result.exit_code, "skill-mirrored      info      2" in result.stdout) == (0, True)
    (here / "skills" / "two" / "SKILL.md").unlink()
    assert "skill two (.): failed" in run("doctor", "--skills", ".").stdout


def test_many_errors_of_one_cause_are_grouped(run, here):
    for number in range(9):
        (here / "skills" / f"s{number}").mkdir(parents=True)
        (here / "skills" / f"s{number}" / "SKILL.md").symlink_to(f"../gone{number}")
    result = run("doctor", "--skills", "skills")
    assert result.exit_code == 1
    assert "error[skill-unreadable] (9 times) skills/s0/SKILL.md" in result.stdout
    assert "and 6 more places" in result.stdout
    assert result.stdout.count("correct the link") == 1
    assert "gone0" in result.stdout
    assert "gone1" in result.stdout
    full = run("doctor", "-v", "--skills", "skills").stdout
    assert full.count("correct the link") == 9


@pytest.mark.parametrize("is_ours", [True, False])
def test_what_is_in_a_clone_of_others_is_not_to_be_renamed(
    commands, run, write_skill, monkeypatch, is_ours
):
    here = Path.cwd()
    clone = here / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / "src").mkdir()
    write_skill(clone / "skills", "folder", text="---\nname: right\ndescription: d\n---\nb\n")
    for part in ("one", "two"):
        write_skill(clone / "skills" / part, "twin", description=part)
    if is_ours:
        monkeypatch.chdir(clone / "src")
    result = commands("--skills", str(clone / "skills"))
    assert bool(result["skill-name-folder"]) == is_ours
    text = run("doctor", "-v", "--skills", str(clone / "skills")).stdout
    assert ("rename one of the two" in text) == is_ours
    assert "ask for '" in text
    assert ("report it there" in text) != is_ours


def test_the_table_of_findings_fits_a_narrow_screen(run, here, write_skill, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    deep = here / ("long-" * 20) / "skills"
    write_skill(deep, "odd", text="---\nname: right\ndescription: d\nmore: x\n---\nb\n")
    lines = run("doctor", "--skills", str(deep)).stdout.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("code "))
    table = lines[start : lines.index("", start)]
    assert "skill-name-folder    warning   1      The name differs from the folder's name" in table
    place = f"    {deep.relative_to(here)}/odd/SKILL.md:2"
    assert place in table, "a path is never cut"
    assert all(len(line) <= 80 for line in table if not line.startswith(" " * 4))


def test_a_tool_that_was_not_run_has_one_status_everywhere(run, here, write_plugin):
    code = "from satchel import tool\n\n@tool\ndef f():\n    'Do it.'\n"
    write_plugin(here / "plugins", "demo", tools=code)
    listed = run("list", "tools", "--plugins", "plugins").stdout
    shown = run("show", "f", "--plugins", "plugins").stdout
    assert "not run" in listed.splitlines()[1]
    assert shown.startswith("tool f: not run\n")
    app = Satchel(plugins=["plugins"], run_code=False)
    assert "its plugin was read and not run" in app.session().call_sync("f", {}).text


def test_a_plugin_whose_code_was_not_run_says_so_everywhere(run, here, write_plugin):
    code = "from satchel import missing, tool\n\n@tool\ndef f():\n    'Do it.'\n"
    write_plugin(here / "plugins", "demo", tools=code)
    listed = run("list", "plugins", "--plugins", "plugins").stdout
    assert ["demo", "not", "run"] in [line.split()[:3] for line in listed.splitlines()]
    assert "plugin demo: not run\n" in run("show", "demo", "--plugins", "plugins").stdout
    line = "the code of 1 plugin was not run; --run runs it"
    assert line in run("doctor", "--plugins", "plugins").stderr.splitlines()
    assert "was not run" not in run("doctor", "--run", "--plugins", "plugins").stderr


HOOKS = "from satchel import hookimpl\n\n@hookimpl\ndef satchel_tools():\n    return []\n"
TOOL = "from satchel import tool\n\n@tool\ndef f():\n    'Do it.'\n"


@pytest.mark.parametrize(("code", "parts"), [(TOOL, 2), (HOOKS, 1)])
def test_json_and_text_agree_on_what_was_not_run(run, here, write_plugin, code, parts):
    write_plugin(here / "plugins", "demo", "active: true\nodd: 1\n", tools=code)

    def states(*args):
        records = json.loads(run(*args, "--plugins", "plugins", "--json").stdout)
        records = [*records["tools"], *records["plugins"]] if args[0] == "list" else records
        return [item["state"] for item in records if item["name"] in {"f", "demo"}]

    assert states("list") == ["not run"] * parts
    assert states("show", "demo", "--kind", "plugin") == ["not run"]
    findings = json.loads(run("doctor", "--plugins", "plugins", "--json").stdout)["findings"]
    assert [item["state"] for item in findings if item["name"] == "demo"] == ["not run"]
    assert "plugin demo: not run" in run("show", "demo", "--plugins", "plugins").stdout
    message = "the code of 1 plugin was not run"
    assert message in run("doctor", "--plugins", "plugins").stderr
    assert states("list", "--run") == ["ok"] * parts


def test_an_enabled_package_whose_code_was_not_run_says_so(run):
    listed = run("list", "plugins", "--entry-points", "builtin").stdout
    assert ["builtin", "not", "run"] in [line.split()[:3] for line in listed.splitlines()]


def test_with_run_nothing_says_to_use_run(run, here, write_plugin):
    code = "from satchel import missing, tool\n\n@tool\ndef f():\n    'Do it.'\n"
    write_plugin(here / "plugins", "demo", tools=code)
    for name in ("demo", "f"):
        done = run("show", name, "--run", "--plugins", "plugins")
        assert "--run" not in done.stdout, done.stdout


def test_a_plugin_of_which_nothing_is_used_says_so_in_the_list(run, here):
    manifest = here / "plugins" / "agents-only" / ".claude-plugin" / "plugin.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text('{"name": "agents-only"}')
    listed = run("list", "plugins", "--long", "--plugins", "plugins").stdout
    (line,) = (line for line in listed.splitlines() if line.startswith("agents-only"))
    assert line.split("  ")[1] == "ok, brings nothing"


def test_no_command_installs_a_package_by_guessing_its_name(commands):
    """An entry point's name need not be its package's, and a stranger may own the package's."""
    assert commands("--entry-points", "acme") == {"plugin-not-installed": None}


def test_an_installed_plugin_must_be_enabled(run, commands, tmp_path, monkeypatch):
    info = tmp_path / "site" / "acme_weather-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-weather\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[satchel.plugins]\nweather = acme_weather\n")
    (info / "RECORD").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "site")
    result = commands()
    assert result["plugin-not-enabled"] == "satchel enable weather"
    assert "plugin weather (acme-weather): available, not enabled" in run("doctor", "-v").stdout
    assert "plugin-not-enabled" not in commands("--entry-points", "weather")


def test_a_command_that_cannot_be_shown_as_it_is_is_not_offered(commands, here, write_skill):
    def renamed(folder):
        write_skill(here, folder, text="---\nname: right\ndescription: d\n---\nb\n")
        command = commands("--skills", ".")["skill-name-folder"]
        shutil.rmtree(here / folder)
        return command

    assert renamed("a\u001b[31mb") is None
    assert renamed("-rf") == "mv -n ./-rf right"


@pytest.mark.parametrize("manifest", ["plugin.json", "marketplace.json"])
def test_no_folder_inside_a_plugin_or_marketplace_is_renamed(commands, here, write_skill, manifest):
    write_skill(here / "p" / "skills", "odd", text="---\nname: right\ndescription: d\n---\nb\n")
    assert commands("--skills", "p")["skill-name-folder"] == "mv -n p/skills/odd p/skills/right"
    (here / "p" / ".claude-plugin").mkdir()
    (here / "p" / ".claude-plugin" / manifest).write_text('{"name": "p", "plugins": []}')
    assert commands("--skills", "p")["skill-name-folder"] is None


def test_no_two_skills_are_advised_to_have_one_name(run, here, write_skill):
    for name in ("One Tool", "Other Tool"):
        folder = here / name.partition(" ")[0] / "skills"
        write_skill(folder, "tool", text=f"---\nname: {name}\ndescription: d\n---\nb\n")
    write_skill(here, "single", text="---\nname: Single\ndescription: d\n---\nb\n")
    doctor = run("doctor", "-v", "--skills", ".").stdout
    validate = run("validate", ".").stdout.replace("\n", " ")
    for output in (doctor, validate):
        assert "Write 'name: one-tool'; 'tool' is the name or the folder of another" in output
        assert "Write 'name: other-tool'" in output
        assert "Write 'name: single'." in output
        assert "Write 'name: tool'" not in output


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_must_be_allowed(commands, here, write_skill):
    file = write_skill(here / "skills", "shut") / "SKILL.md"
    file.chmod(0)
    assert commands("--skills", "skills")["skill-unreadable"] == ("chmod u+rX skills/shut/SKILL.md")


def test_a_listing_that_is_cut_is_not_called_ok_and_unknown_first_skills_are_named(
    run, here, write_skill, config_folder
):
    for number in range(300):
        write_skill(here / "skills", f"skill-{number}", description="Does things. " * 20)
    config_folder.mkdir()
    (config_folder / "satchel.toml").write_text('[skills]\nfirst = ["skill-1", "skil-2"]\n')
    result = run("doctor", "--skills", "skills")
    assert "\ninfo skill listing: 300 skills in lines, descriptions cut at" in result.stdout
    warning = "[skills] first in satchel.toml: no tool and no skill matches 'skil-2'"
    assert f"warning skill listing: {warning}" in " ".join(result.stdout.split())
    assert "'skill-1'" not in result.stdout
    assert result.exit_code == 1


def test_a_system_without_events_is_a_warning(run, monkeypatch):
    def no_notifier(_roots):
        raise OSError("no inotify")

    monkeypatch.setattr("satchel.files.watcher.native_notifier", no_notifier)
    result = run("doctor")
    assert result.exit_code == 1
    assert "warning watching: the system does not report file changes (no inotify)" in result.stdout


KEYED = """
from satchel import hookimpl, tool

@tool(state=["api_key"])
def ask(api_key: str) -> str:
    "Ask somebody."
    return api_key
"""


def test_what_fails_when_plugins_are_imported_is_reported_on_demand(
    run, commands, here, write_plugin
):
    write_plugin(here / "plugins", "broken", tools="import satchel\n1/0")
    write_plugin(here / "plugins", "keyed", tools=KEYED.replace("ask", "ask_keyed"))
    manifest = "config:\n  token: {type: secret}\n"
    startup = "\n@hookimpl\ndef satchel_startup(): pass\n"
    write_plugin(here / "plugins", "waiting", manifest, tools=KEYED + startup)
    sources = ("--plugins", "plugins")
    assert set(commands(*sources)) == {"config-invalid", "tool-state-missing"}
    assert commands("--run", *sources) == {
        "plugin-import-failed": None,
        "tool-state-missing": "satchel config set --plugins plugins keyed api_key",
        "plugin-startup-failed": "satchel config set --plugins plugins waiting token",
        "config-invalid": "satchel config set --plugins plugins waiting token",
    }
    assert "satchel doctor --plugins plugins --run" in run("list", "--run", *sources).stderr
    assert run("doctor", "--run", *sources).exit_code == 1


def test_an_installed_plugin_is_enabled_with_one_command(run):
    findings = json.loads(run("doctor", "--json").stdout)["findings"]
    (command,) = [item["command"] for item in findings if item["name"] == "builtin"]
    assert command == "satchel enable builtin"
    assert run(*shlex.split(command)[1:]).exit_code == 0
    assert json.loads(run("doctor", "--json").stdout)["findings"] == []


def test_values_that_others_may_read_are_reported_with_the_command(run, config_folder):
    file = config_folder / "plugins/demo.env"
    file.parent.mkdir(parents=True)
    file.write_text("A=1\n")
    file.chmod(0o644)
    done = run("doctor")
    assert f"other users can read {file}" in done.stdout
    assert f"$ chmod 600 {file}" in done.stdout
    file.chmod(0o600)
    assert "others may read" not in run("doctor").stdout


@pytest.fixture
def crowd(here, write_skill):
    for number in range(40):
        write_skill(
            here / "skills",
            f"folder-{number:02}",
            text=f"---\nname: name-{number}\ndescription: d\ntags: [a]\n---\nb\n",
        )
    write_skill(here / "skills", "broken", text="nothing")


def test_many_findings_are_a_table_with_the_errors_in_full(run, crowd):
    lines = run("doctor", "--skills", "skills").stdout.splitlines()
    assert len(lines) < 40
    (title,) = (line for line in lines if line.startswith("code "))
    assert title.split() == ["code", "severity", "count", "meaning", "first"]
    counts = {line.split()[0]: line.split()[1:3] for line in lines[lines.index(title) + 1 :][:4]}
    assert counts["skill-no-frontmatter"] == ["error", "1"]
    assert counts["skill-name-folder"] == ["warning", "40"]
    assert counts["skill-field-foreign"] == ["info", "40"]
    assert "skill broken (skills): failed" in lines
    assert "warning[skill-name-folder] (40 times) skills/folder-00/SKILL.md:2" in lines
    assert "    and 37 more places (37 with another text or fix)" in lines
    assert "    $ mv -n skills/folder-01 skills/name-1" in lines


def test_a_group_with_one_fix_names_it_once(run, here, write_skill):
    for name in "abcde":
        text = f"---\nname: {name}\ndescription: {'d' * 1100}\n---\nb\n"
        write_skill(here / "skills", name, text=text)
    stdout = run("doctor", "--skills", "skills").stdout
    assert stdout.count("-> Move the details into the body.") == 1
    assert "    and 2 more places\n" in stdout


def test_a_group_shows_the_texts_that_differ(run, here):
    listing = here / "market" / ".claude-plugin" / "marketplace.json"
    listing.parent.mkdir(parents=True)
    plugins = ["text", "more text", 5, {"source": "./x"}, {}]
    listing.write_text(json.dumps({"name": "m", "owner": {"name": "o"}, "plugins": plugins}))
    stdout = run("doctor", "--plugins", "market").stdout
    assert "(5 times)" in stdout
    for reason in ("it is text, not an object", "it is a number, not an object", "no name"):
        assert stdout.count(reason) == 1
    assert stdout.count("-> Fix or remove it.") == 1
    assert "    and 2 more places\n" in stdout


def test_several_missing_values_are_one_error_with_one_command(run, here, write_plugin):
    manifest = "config:\n  key: {type: secret}\n  region: {}\n  many: {type: integer}\n  more: {}\n"
    code = "@tool(state=['key', 'region'])\ndef one(key: str, region: str) -> str: 'Do.'\n"
    folder = write_plugin(
        here / "plugins", "demo", manifest, tools=f"from satchel import tool\n{code}"
    )
    lines = run("doctor", "--run", "--plugins", "plugins").stdout.splitlines()
    assert "    tool 'one' is left out: 'key', 'region' have no value" in lines
    assert "    'many', 'more' have no value; allowed is a whole number, allowed is text" in lines
    set_ = "satchel config set --plugins plugins demo"
    assert f"    $ {set_} key && {set_} region" in lines
    assert f"    $ {set_} many && {set_} more" in lines
    hooks = "@hookimpl\ndef satchel_startup(config): ...\n"
    (folder / "tools.py").write_text(f"from satchel import hookimpl\n{hooks}")
    lines = run("doctor", "--run", "--plugins", "plugins").stdout
    assert "has no tools: 'key', 'region', 'many', 'more' have no value" in lines


def test_the_path_of_an_entry_is_printed_once_in_full(run, here, write_skill):
    for folder in ("one", "two"):
        write_skill(
            here / "skills" / folder, "pdf", text=f"---\nname: pdf\ndescription: {folder}\n---\nb\n"
        )
    lines = run("doctor", "-v", "--skills", "skills").stdout.splitlines()
    assert lines.count("  skills/two/pdf") == 1
    assert "  warning[skill-shadowed]" in lines


def test_one_code_or_severity_is_shown_in_full(run, crowd):
    for options in (["--code", "skill-name-folder"], ["--severity", "warning"]):
        done = run("doctor", "--skills", "skills", *options)
        assert done.stdout.count("warning[skill-name-folder]") == 40
        assert "info[" not in done.stdout
        assert "python" not in done.stdout
        assert done.stderr == "1 error, 40 warnings\n"
        assert done.exit_code == 1
    assert run("doctor", "--skills", "skills", "-v").stdout.count("info[skill-field-foreign]") == 40
    wrong = run("doctor", "--code", "skill-name-foldr")
    assert wrong.exit_code == 2
    assert "did you mean skill-name-folder" in wrong.stderr


def test_a_reason_that_plugin_and_tools_share_is_reported_once(run, here, write_plugin):
    write_plugin(here / "plugins", "keyed", tools=KEYED)
    done = run("doctor", "--plugins", "plugins")
    assert done.stdout.count("'ask' is left out") == 1
    assert "plugin keyed (plugins): degraded" in done.stdout


def test_a_plugin_that_brings_nothing_says_so_everywhere(run, here, write_plugin, write_skill):
    plugins = here / "plugins"
    write_plugin(plugins, "empty", "active: true\n")
    write_plugin(plugins, "plain", tools="def f():\n    'Not marked.'\n")
    write_plugin(plugins, "late", tools="import satchel\n")
    write_plugin(plugins, "noted", "notes: Be kind.\n")
    write_plugin(plugins, "skilled")
    write_skill(plugins / "skilled" / "skills", "pdf")
    options = ("--plugins", "plugins")

    def unused(*other_options):
        records = json.loads(run("doctor", *options, *other_options, "--json").stdout)["findings"]
        return [item["name"] for item in records if item["code"] == "plugin-unused"]

    assert unused() == ["empty", "plain"]
    # Only its code can say what it brings.
    assert unused("--run") == ["empty", "late", "plain"]
    for name in ("empty", "plain"):
        listed = run("list", "plugins", *options).stdout
        assert re.search(rf"^{name} +ok, brings nothing ", listed, re.MULTILINE)
        shown = run("show", name, "--kind", "plugin", *options).stdout
        assert shown.startswith(f"plugin {name}: ok, brings nothing\n")
    assert "warning[plugin-unused]" in run("list", *options).stderr + run("doctor", *options).stdout


def test_an_open_plugin_that_brings_nothing_says_so_and_names_the_parts_for_others(run, here):
    folder = here / "plugins" / "emp"
    folder.mkdir(parents=True)
    manifest = {
        "$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json",
        "name": "emp",
        "description": "D.",
        "version": "1.0.0",
        "extensions": {"com.example.other": {"agents": ["./a.md"]}},
    }
    (folder / "plugin.json").write_text(json.dumps(manifest))
    assert "ok, brings nothing" in run("list", "plugins", "--plugins", "plugins").stdout
    report = " ".join(run("doctor", "--plugins", "plugins").stdout.split())
    assert "it has only com.example.other (agents), for other clients" in report


def test_a_python_that_cannot_search_is_a_warning(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    result = run("doctor")
    assert result.exit_code == 1
    assert (
        "warning search: models cannot search tools and skills: this Python has no module sqlite3 "
        "with FTS5 (use a Python that has it)"
    ) in result.stdout


def test_a_server_that_would_not_start_is_named(run, here):
    (here / "satchel.toml").write_text('[mcp.box]\ncommand = "make"\n')
    run("trust", "--code")
    assert "MCP server 'box' is not used" not in run("doctor", "--project").stdout
    (here / "Makefile").write_text("x")
    result = run("doctor", "--project")
    assert result.exit_code == 1
    assert "warning MCP server: MCP server 'box' is not used: Makefile, which" in result.stdout
