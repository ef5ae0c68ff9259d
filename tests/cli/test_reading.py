"""`list`, `show`, `prompt` and `schema`: what they read, run and print."""

import json
import os
import re
from pathlib import Path

import pytest

from satchel import Satchel
from satchel.catalog.catalog_entries import Status
from satchel.prompt.token_estimate import about_tokens


@pytest.fixture
def skills(here, write_skill):
    write_skill(here / "skills", "pdf", description="Reads PDF files.")
    (here / "skills" / "bad").mkdir()
    (here / "skills" / "bad" / "SKILL.md").write_text("no frontmatter")
    write_skill(here / "more", "pdf", description="Another one.")
    return here / "skills"


@pytest.mark.parametrize(
    "command", [["list"], ["show", "demo"], ["doctor"], ["validate", "plugins"]]
)
def test_reading_is_not_running(run, was_run, toolkit, command):
    sources = () if command[0] == "validate" else ("--plugins", "plugins")
    run(*command, *sources)
    assert not was_run()


@pytest.mark.parametrize("command", [["prompt"], ["schema"], ["call", "echo", "text=a"]])
def test_what_needs_the_code_runs_it(run, was_run, toolkit, command):
    assert run(*command, "--plugins", "plugins").exit_code == 0
    assert was_run()


def test_a_list_holds_also_what_failed_and_what_is_shadowed(run, skills):
    result = run("list", "skills", "--json", "--skills", "skills", "--skills", "more")
    states = {(item["name"], item["source"]): item["state"] for item in json.loads(result.stdout)}
    assert states == {
        ("bad", "skills"): Status.FAILED,
        ("pdf", "more"): Status.SHADOWED,
        ("pdf", "skills"): Status.OK,
    }
    assert (
        "1 error and 1 warning; run 'satchel doctor --skills skills --skills more'" in result.stderr
    )


def test_a_list_in_text_names_the_state_of_what_is_not_well(run, skills):
    lines = run("list", "skills", "--skills", "skills").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["name", "status", "source", "description"],
        ["bad", "failed", "skills"],
        ["pdf", "ok", "skills", "Reads", "PDF", "files."],
    ]


def test_a_list_fits_the_screen(run, here, write_skill, monkeypatch):
    for number in range(3):
        write_skill(here / "s", "n" * (20 * number + 5), description="word " * 40)
    wide = run("list", "--skills", "s").stdout
    assert max(map(len, wide.splitlines())) > 200
    monkeypatch.setenv("COLUMNS", "70")
    narrow = run("list", "--skills", "s").stdout
    assert max(map(len, narrow.splitlines())) <= 70
    assert "…" in narrow


@pytest.mark.parametrize("option", [(), ("--long",)])
@pytest.mark.parametrize("size", [5, 30, 50, 64])
def test_at_80_columns_each_row_has_a_useful_part_of_its_description(
    run, write_skill, monkeypatch, size, option
):
    monkeypatch.setenv("COLUMNS", "80")
    here = Path.cwd()
    long = here / ("long-" * 10)
    for name in ("n" * size, "off"):
        write_skill(long, name, description="word " * 40)
    run("disable", "off", "--skills", str(long), "--force")
    lines = run("list", "skills", *option, "--skills", str(long)).stdout.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    text = "\n".join(lines)
    assert f"{'n' * size}  ok" in text
    assert "description" in text
    shown = [line[line.index("word") :] for line in lines if "word" in line]
    assert len(shown) == 2
    assert all(len(part) >= 17 and part.endswith("…") for part in shown), shown


def test_at_80_columns_no_source_is_cut(run, here, write_plugin, write_skill, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    source = "a-plugin-with-a-name-of-35-letters"
    folder = write_plugin(here / "plugins", source)
    write_skill(folder / "skills", "a-skill-with-a-name-of-30-letters", description="word " * 40)
    lines = run("list", "skills", "--plugins", "plugins").stdout.splitlines()
    assert lines[2].split() == ["a-skill-with-a-name-of-30-letters", "ok", source]
    assert lines[3].startswith("    word word")
    assert max(map(len, lines)) <= 80


def test_without_folders_the_well_known_places_are_read(run, here, tmp_path, write_skill):
    write_skill(tmp_path / "home" / "skills", "mine")
    write_skill(here / ".agents" / "skills", "projects")
    write_skill(here / ".claude" / "skills", "claudes")
    write_skill(here / "named", "named")

    def names(*args):
        return [item["name"] for item in json.loads(run("list", "skills", "--json", *args).stdout)]

    assert names() == ["mine"]
    assert names("--trust", "data") == ["mine", "projects"]
    assert names("--trust", "data", "--claude") == ["claudes", "mine", "projects"]
    assert names("--skills", "named") == ["named"]
    assert names("--skills", "named", "--trust", "data") == ["named", "projects"]


def test_the_number_of_folders_that_are_searched_can_be_set(run, here, write_skill):
    for name in ("a", "b", "c"):
        write_skill(here / "skills", name)
    few = run("list", "skills", "--json", "--skills", "skills", "--find-folders", "1")
    assert [item["name"] for item in json.loads(few.stdout)] == ["a"]
    assert "1 warning" in few.stderr
    assert len(json.loads(run("list", "skills", "--json", "--skills", "skills").stdout)) == 3
    assert run("list", "--find-folders", "0").exit_code == 2


@pytest.mark.parametrize(
    "command", [("list",), ("prompt",), ("doctor",), ("call", "x"), ("watch",)]
)
def test_a_named_folder_that_does_not_exist_is_wrong_usage(run, command):
    result = run(*command, "--skills", "nowhere")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--skills: the folder 'nowhere' does not exist" in result.stderr


def test_a_file_is_not_a_folder_of_plugins(run, here):
    (here / "plugins").touch()
    result = run("list", "--plugins", "plugins")
    assert result.exit_code == 2
    assert "--plugins: 'plugins' is not a folder" in result.stderr


def test_satchel_toml_names_folders_of_the_user_and_skills_of_a_project(
    run, here, write_skill, write_plugin, config_folder
):
    config = config_folder
    write_skill(config / "mine", "users")
    write_plugin(config / "code", "demo", "description: d\n")
    (config / "satchel.toml").write_text("[sources]\nskills = ['mine']\nplugins = ['code']\n")
    write_skill(here / "docs" / "skills", "projects")
    (here / "satchel.toml").write_text("[sources]\nskills = ['docs/skills']\n")

    def listed(*args):
        entries = json.loads(run("list", "--json", *args).stdout)
        names = [item["name"] for kind in ("skills", "plugins") for item in entries[kind]]
        return [name for name in names if name in {"users", "demo", "projects"}]

    assert listed() == ["users", "demo"]
    assert listed("--trust", "data") == ["projects", "users", "demo"]
    assert listed("--skills", "docs") == ["projects"]


@pytest.mark.parametrize("key", ["plugins", "entry-points"])
def test_a_project_cannot_name_code(run, here, write_plugin, write_skill, key):
    write_plugin(here / "code", "demo", "description: d\n")
    write_skill(here / "more", "pdf")
    (here / "satchel.toml").write_text(f"[sources]\n{key} = ['code']\nskills = ['more']\n")
    result = run("doctor", "--trust", "code", "--json")
    findings = {item["code"]: item for item in json.loads(result.stdout)["findings"]}
    problem = findings["choices-unknown"]
    assert f"{key!r} below [sources] is ignored in a project" in problem["message"]
    assert problem["line"] == 2
    assert not any(item["name"] == "demo" for item in findings.values())
    assert "pdf" in run("list", "skills", "--trust", "code").stdout


def test_a_projects_folder_outside_of_it_is_not_read(run, here, write_skill):
    write_skill(here.parent / "outside", "secret")
    (here / "satchel.toml").write_text("[sources]\nskills = ['../outside']\n")
    assert "secret" not in run("list", "skills", "--trust", "code").stdout


@pytest.mark.parametrize("command", ["list", "prompt", "schema", "doctor"])
def test_a_folder_that_brings_nothing_is_said_once_with_the_cause(run, here, command):
    (here / "empty").mkdir()
    result = run(command, "--skills", "empty")
    assert result.exit_code == 0
    assert result.stderr.count("empty: info[source-empty]: brings no skills: it is empty") == 1


def test_the_projects_folders_are_found_and_named_with_the_option_that_uses_them(
    run, here, write_skill
):
    write_skill(here / "skills", "pdf")
    (here / ".agents" / "skills").mkdir(parents=True)
    result = run("list", "skills")
    assert result.stdout == ""
    line = result.stderr.splitlines()[0]
    assert line.startswith("not read: ./skills, ./.agents/skills; name folders with --skills and ")
    assert line.endswith(", or run 'satchel trust', which shows everything and asks")
    untrusted = run("list", "skills", "--project").stderr
    assert "not trusted, so nothing of it is used; it has ./skills, ./.agents/skills" in untrusted
    assert "not read" not in run("list", "skills", "--trust", "data").stderr
    assert "not read" not in run("list", "skills", "--skills", "skills").stderr


def test_the_skills_of_a_project_in_the_folder_of_claude_are_named(run, here, write_skill):
    write_skill(here / ".claude" / "skills", "pdf")
    line = run("list", "skills").stderr.splitlines()[0]
    assert line.startswith("not read: ./.claude/skills; name folders with --skills and --plugins")
    assert line.endswith("; .claude/skills also needs --claude then")
    assert "pdf" in run("list", "skills", "--skills", ".claude/skills").stdout
    assert "pdf" in run("list", "skills", "--claude", "--trust", "data").stdout


def test_broken_file_names_survive_json(run, here, write_skill):
    folder = write_skill(here / "skills", "odd")
    broken = bytes(here) + b"/skills/br\xffken"
    os.mkdir(broken)
    result = run("list", "--json", "--skills", "skills")
    assert result.exit_code == 0
    assert [item["path"] for item in json.loads(result.stdout)["skills"]] == [str(folder)]


def test_show_reports_everything_about_a_skill(run, here, write_skill):
    text = (
        "---\nname: pdf\ndescription: Reads.\nlicense: MIT\nallowed-tools: Bash Read\n"
        "metadata:\n  author: me\n---\n# How\n"
    )
    folder = write_skill(here / "skills", "pdf", text=text)
    (folder / "table.csv").touch()
    shown = run("show", "pdf", "--skills", "skills").stdout
    for part in (
        "skill pdf: ok",
        "MIT",
        "Bash, Read",
        "author: me",
        "SKILL.md, table.csv",
        "# How",
    ):
        assert part in shown


FOR_USERS = "---\nname: tidy\ndescription: d\ndisable-model-invocation: true\n---\n{text}\n"


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("Tidy $1, then $2.", "'a b' c", "Tidy a b, then c."),
        ("Tidy $ARGUMENTS now.", "", "Tidy  now."),
        ("Tidy.", "a\x1b[31m", "Tidy.\n\nARGUMENTS: a[31m"),
    ],
)
def test_show_prints_a_skill_as_the_model_reads_it(run, write_skill, text, arguments, expected):
    write_skill(Path("skills"), "tidy", text=FOR_USERS.format(text=text))
    done = run("show", "tidy", "--arguments", arguments, "--skills", "skills")
    assert done.stdout.startswith('<skill_content name="tidy">\n')
    assert expected in done.stdout
    assert "\x1b" not in done.stdout


def test_show_prints_a_command_as_the_model_reads_it(run, here):
    for path, text in (
        (".claude-plugin/plugin.json", '{"name": "demo"}'),
        ("commands/do.md", "Do $1."),
    ):
        (here / "demo" / path).parent.mkdir(parents=True)
        (here / "demo" / path).write_text(text)
    done = run("show", "do", "--arguments", "it", "--plugins", "demo")
    assert "Do it." in done.stdout


def test_show_takes_arguments_for_a_skill_only(run, toolkit):
    done = run("show", "echo", "--arguments", "x", "--plugins", "plugins")
    assert (done.exit_code, "there is no skill named 'echo'" in done.stderr) == (1, True)
    done = run("show", "echo", "--kind", "tool", "--arguments", "x", "--plugins", "plugins")
    assert (done.exit_code, "--arguments is for a skill" in done.stderr) == (2, True)


@pytest.mark.parametrize("key", ["skills", "plugins"])
def test_a_missing_folder_of_the_users_file_is_an_error_and_the_others_are_served(
    run, config_folder, write_skill, tmp_path, key
):
    config_folder.mkdir(exist_ok=True)
    write_skill(tmp_path / "others", "of-another-folder")
    sources = {"skills": [str(tmp_path / "others")]}
    sources[key] = [str(tmp_path / "gone"), *sources.get(key, ())]
    lines = "".join(f"{name} = {folders}\n" for name, folders in sources.items())
    (config_folder / "satchel.toml").write_text(f"[sources]\n{lines}")
    done = run("list")
    assert (done.exit_code, "of-another-folder" in done.stdout) == (2, True)
    assert "gone: error[source-missing]: does not exist" in done.stderr
    result = run("doctor")
    assert (result.exit_code, "source-missing" in result.stdout) == (1, True)


def test_an_entry_point_that_is_not_installed_is_named_at_once(run, here):
    done = run("list", "--entry-points", "bultin")
    assert "no installed distribution has a plugin 'bultin'" in done.stderr
    assert "did you mean builtin?" in done.stderr


def test_show_reports_the_signature_of_a_tool_and_the_notes_of_its_group(run, toolkit):
    tool = run("show", "echo", "--plugins", "plugins").stdout
    assert "echo(text: str, times: int=1, hint: Optional[str]=None) -> str" in tool
    both = run("show", "demo", "--plugins", "plugins").stdout
    assert "plugin demo: not run" in both
    assert "group demo: ok" in both
    assert "Be kind." in both
    assert "echo, kinds" in both
    only = run("show", "demo", "--kind", "plugin", "--plugins", "plugins").stdout
    assert "group demo" not in only


def test_show_hides_a_context_without_annotation_in_code_that_is_not_run(run, here, write_plugin):
    tools = "from satchel import tool\n\n@tool\ndef one(n: int, ctx, context=None):\n    'Do.'\n"
    write_plugin(here / "plugins", "demo", tools=tools)
    lines = run("show", "one", "--plugins", "plugins").stdout.splitlines()
    assert [line.split()[-4:] for line in lines if "hidden from the model" in line] == [
        ["hidden", "from", "the", "model"]
    ] * 2


def test_copies_in_one_folder_are_listed_with_their_places(run, here, write_skill):
    for folder in ("one", "two"):
        text = f"---\nname: pdf\ndescription: {folder}\n---\nb\n"
        write_skill(here / "skills" / folder, "pdf", text=text)
    lines = run("list", "skills", "--skills", "skills").stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:3]] == [
        ["pdf", "ok", "skills/one/pdf"],
        ["pdf", "shadowed", "skills/two/pdf"],
    ]


def test_show_finds_the_shadowed_one_by_its_address(run, skills):
    places = ("--skills", "skills", "--skills", "more")
    assert "Reads PDF files." in run("show", "pdf", *places).stdout
    shown = run("show", "more:pdf", *places).stdout
    assert "skill pdf: shadowed" in shown
    assert "rename one of the two" in shown


def test_show_reports_near_misses(run, skills):
    result = run("show", "pfd", "--skills", "skills")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "did you mean pdf?" in result.stderr


def test_the_prompt_is_that_of_a_session(run, here, skills, toolkit):
    expected = Satchel(skills=["skills"], plugins=["plugins"]).session().prompt()
    result = run("prompt", "--skills", "skills", "--plugins", "plugins")
    assert result.stdout == expected + "\n"
    assert f"{len(expected):,} characters" in result.stderr


def test_a_budget_shortens_the_listing(run, here, write_skill):
    for number in range(50):
        write_skill(here / "skills", f"skill-{number}", description="word " * 50)
    whole = run("prompt", "--skills", "skills").stdout
    short = run("prompt", "--skills", "skills", "--budget", "3000").stdout
    assert len(short) <= 3001 < len(whole)


def test_without_a_budget_the_listing_is_bounded_all_the_same(run, here, write_skill):
    for number in range(50):
        write_skill(here / "skills", f"skill-{number}", description="word " * 100)
    prompt = run("prompt", "--skills", "skills").stdout
    assert 0.8 * 16_000 < len(prompt) <= 16_001
    assert prompt.count("…\n") == 50


def test_the_form_of_the_listing_is_said_with_what_would_change_it(run, here, write_skill):
    def reports():
        prompt = run("prompt", "--skills", "skills", "--budget", "3000")
        outcome = json.loads(
            run("prompt", "--skills", "skills", "--budget", "3000", "--json").stdout
        )
        return prompt.stderr.splitlines()[1], outcome["listing"]

    for number in range(3):
        write_skill(here / "skills", f"skill-{number}", description="word " * 50)
    message, listing = reports()
    assert message == "skill listing: 3 skills in full"
    assert listing == {"form": "full", "total": 3, "described": 3, "left_out": 0, "cut_at": None}
    for number in range(50):
        write_skill(here / "skills", f"skill-{number}", description="words")
    message, listing = reports()
    assert (listing["form"], listing["cut_at"]) == ("lines", None)
    assert message.endswith("would also show each skill's folder")
    for number in range(50):
        write_skill(here / "skills", f"skill-{number}", description="word " * 50)
    message, listing = reports()
    assert (listing["form"], listing["described"], listing["left_out"]) == ("lines", 50, 0)
    assert message.startswith(
        f"skill listing: 50 skills in lines, descriptions cut at {listing['cut_at']} characters; "
        "the budget is 3,000 characters; "
    )
    assert message.endswith("; you can also disable skills, or put them into groups")
    budget = re.search("; ([0-9,]+) would show all", message)[1].replace(",", "")
    full = run("prompt", "--skills", "skills", "--budget", budget)
    assert "skill listing: 50 skills in full" in full.stderr
    for number in range(300):
        write_skill(here / "skills", f"skill-{number}", description="word " * 50)
    message, listing = reports()
    assert listing["form"] == "names"
    assert f"of 300 skills, {listing['described']} have a description, " in message
    assert "[skills] first in satchel.toml" in message
    checks = json.loads(run("doctor", "--skills", "skills", "--json").stdout)["checks"]
    assert "300 skills in lines" in checks[-1]["message"]


def test_a_budget_can_be_in_tokens(run, here, write_skill):
    for number in range(15):
        write_skill(here / "skills", f"skill-{number}", description="word " * 200)
    for arguments, most in (((), 4_000), (("--budget", "2000"), 2_000)):
        result = run("prompt", "--skills", "skills", "--tokens", *arguments)
        tokens = about_tokens(result.stdout.removesuffix("\n"))
        assert 0.8 * most < tokens <= most
        assert f"about {tokens:,} tokens" in result.stderr


def test_nothing_to_say_is_an_empty_prompt(run):
    assert run("prompt").stdout == ""


def test_the_prompt_names_the_groups_that_are_not_active(run, here, write_plugin):
    manifest = (
        "active: false\nnotes: Geocode first.\ngroups: {extra: {notes: More., active: true}}\n"
    )
    write_plugin(here / "plugins", "maps", manifest)
    result = run("prompt", "--plugins", "plugins")
    assert "not in it, because they are not active (--group NAME): maps\n" in result.stderr
    assert "not active" not in run("prompt", "--plugins", "plugins", "--group", "maps").stderr


def test_groups_are_activated_by_name(run, here, write_plugin):
    write_plugin(
        here / "plugins",
        "maps",
        "active: false\nnotes: Geocode first.\n",
        tools='from satchel import tool\n@tool\ndef geocode(place: str) -> str:\n    "Find."\n',
    )
    (meta,) = json.loads(run("schema", "--plugins", "plugins").stdout)
    assert meta["function"]["name"] == "reset_equipped_tools"
    assert run("prompt", "--plugins", "plugins").stdout == ""
    schemas = json.loads(run("schema", "--plugins", "plugins", "--group", "maps").stdout)
    names = [item["function"]["name"] for item in schemas]
    assert names == ["geocode", "reset_equipped_tools"]
    assert "Geocode first." in run("prompt", "--plugins", "plugins", "--group", "maps").stdout


def test_a_long_list_of_plugins_reports_what_each_brings(run, toolkit, was_run):
    demo = next(
        line
        for line in run("list", "plugins", "--long", "--plugins", "plugins").stdout.splitlines()
        if line.startswith("demo")
    )
    assert re.search(r"not run +plugins +2 tools, 1 group$", demo)
    assert not was_run()


def test_with_run_it_reports_the_time_of_the_import(run, toolkit, was_run):
    result = run("list", "plugins", "--long", "--run", "--plugins", "plugins")
    assert re.search(r"^demo +ok +plugins +2 tools, 1 group +\d+ ms$", result.stdout, re.MULTILINE)
    arguments = ("list", "plugins", "--long", "--run", "--json", "--plugins", "plugins")
    shapes = json.loads(run(*arguments).stdout)
    assert next(it for it in shapes if it["name"] == "demo")["import_seconds"] > 0
    assert was_run()


def test_an_installed_plugin_that_is_not_enabled_is_available_and_not_imported(run):
    assert "available, not enabled" in run("list", "plugins", "--long", "--run").stdout
    (shape,) = json.loads(run("list", "plugins", "--long", "--run", "--json").stdout)
    assert (shape["name"], shape["state"], shape["import_seconds"]) == ("builtin", "disabled", None)


def test_what_is_not_enabled_is_listed_as_what_it_is(run, site, monkeypatch):
    info = site / "acme-1.dist-info"
    (site / "acme/.agents/skills/a").mkdir(parents=True)
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme\nVersion: 1\nSummary: Maps.\n"
    )
    (info / "RECORD").write_text("acme/.agents/skills/a/SKILL.md,,\n")
    monkeypatch.syspath_prepend(str(site))
    lines = run("list", "plugins").stdout
    assert "Ships skills. Maps." in lines
    assert "Tools for files, dates, Python code and shell commands." in lines
    text = run("doctor", "--code", "plugin-not-enabled").stdout
    assert "acme 1 ships skills, which are available, not enabled" in text


def test_a_plugin_that_fails_at_its_import_is_reported_with_its_state(run, here, write_plugin):
    write_plugin(here / "plugins", "broken", tools="1/0")
    result = run("list", "plugins", "--long", "--run", "--plugins", "plugins")
    assert re.search(r"^broken +failed", result.stdout, re.MULTILINE)
    assert "1 error" in result.stderr


def test_a_long_list_reports_state_groups_and_place(run, here, toolkit, write_skill):
    write_skill(here / "skills", "pdf", description="Reads PDF files.")
    sources = ("--skills", "skills", "--plugins", "plugins")
    lines = [line.split() for line in run("list", "--long", *sources).stdout.splitlines()]
    assert ["pdf", "ok", "skills", "skills/pdf", "Reads", "PDF", "files."] in lines
    place = "plugins/demo/tools.py"
    assert ["echo", "not", "run", "demo", "demo", place, "Say", "it", "again."] in lines
    contents = ["2", "tools", "0", "skills"]
    assert ["demo", "ok", "demo", "active", *contents, "Shows", "how."] in lines


@pytest.mark.parametrize("name", ["plugins", "contracts"])
def test_a_word_that_is_a_list_is_reported_as_such(run, name):
    result = run(name)
    assert result.exit_code == 2
    assert f"Did you mean list {name}?" in result.stderr


def test_a_plugin_without_its_tools_file_is_not_said_to_wait_for_a_run(run, here, write_plugin):
    write_plugin(here / "plugins", "demo", "notes: Use it.\n", helpers="x = 1\n")
    (line,) = [
        it
        for it in run("list", "plugins", "--plugins", "plugins").stdout.splitlines()
        if it.startswith("demo")
    ]
    assert "not run" not in line


def test_list_explains_that_code_was_only_read(run, toolkit):
    explained = "not run: list reads the code of 1 plugin but does not run it; add --run to run it"
    assert explained in run("list", "--plugins", toolkit).stderr
    assert explained in run("list", "tools", "--plugins", toolkit).stderr
    assert explained not in run("list", "skills", "--plugins", toolkit).stderr
    assert explained not in run("list", "--run", "--plugins", toolkit).stderr


def test_the_groups_of_a_plugin_that_failed_are_listed_as_failed(run, here, write_plugin):
    manifest = "groups:\n  sky: {description: Above.}\n"
    write_plugin(here / "plugins", "weather", manifest, tools="import nosuch")
    listed = run("list", "groups", "--run", "--plugins", "plugins").stdout
    assert "sky    failed  weather  Above." in listed


@pytest.mark.parametrize("command", ["install", "add", "test"])
def test_a_path_that_does_not_exist_is_wrong_usage(run, command):
    result = run(command, "./nonono")
    assert (result.exit_code, "does not exist" in result.stderr) == (2, True)
