"""`validate`: strict, all at once, and it survives what strangers write."""

import json
import os
import re
import subprocess
import sys

import pytest

from satchel import Satchel, Settings
from satchel.cli.commands.validate_command import github_line
from satchel.cli.format_checks import check_path
from satchel.diagnostics import Diagnostic, Severity, Where


@pytest.fixture
def bad(here):
    folder = here / "skills" / "bad"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: Good Name\nextra: 1\n---\n")
    return folder


def test_all_problems_are_reported_at_once_with_paths_from_here(run, bad):
    result = run("validate", "skills")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert all(line.startswith("skills/bad/SKILL.md:") for line in lines)
    for code in ("skill-name-shape", "skill-description-missing", "skill-field-unknown"):
        assert any(f"error[{code}]" in line for line in lines)
    assert result.stderr == f"1 skill, 0 plugins checked: {len(lines) - 1} errors, 1 warning\n"


@pytest.mark.parametrize(
    "path", ["skills/bad/SKILL.md", "skills/bad", "skills", ".", "skills/bad/"]
)
def test_a_path_may_be_the_file_the_skill_or_a_folder_above(run, bad, path):
    assert run("validate", path).stdout == run("validate", bad).stdout != ""


def test_a_good_skill_is_silence_and_exit_code_zero(run, here, write_skill):
    write_skill(here / "skills", "good")
    result = run("validate", "skills/good")
    assert (result.exit_code, result.stdout) == (0, "")


def test_plugins_and_their_skills_are_found_at_any_depth(run, here, write_plugin, write_skill):
    folder = write_plugin(here / "a" / "b", "demo", "surprise: 1\n", tools="def broken(:\n")
    write_skill(folder / "skills", "Loud")
    codes = {item["code"] for item in json.loads(run("validate", ".", "--json").stdout)}
    assert codes >= {"plugin-field-unknown", "plugin-syntax", "skill-name-shape"}
    for path in (folder, folder / "toolkit.yaml"):
        assert run("validate", path).stdout == run("validate", ".").stdout


@pytest.mark.parametrize("path", ["nowhere", "empty", "note.txt", "empty/SKILL.md"])
def test_nothing_to_check_is_an_error(run, here, path):
    (here / "empty").mkdir()
    (here / "note.txt").touch()
    result = run("validate", path)
    assert result.exit_code == (1 if (here / path).exists() else 2)
    assert f"{path}: error[" in result.stdout


def test_a_file_nearly_named_right_is_reported_as_that(run, here):
    (here / "s").mkdir()
    (here / "s" / "skill.md").touch()
    result = run("validate", "s")
    assert result.exit_code == 1
    assert [line.split(" ")[1] for line in result.stdout.splitlines()] == [
        "error[skill-file-case]:"
    ]


def test_one_finding_of_two_paths_is_reported_once(run, bad):
    assert run("validate", "skills", "skills/bad").stdout == run("validate", "skills").stdout


def test_github_gets_workflow_commands(run, bad):
    lines = run("validate", "skills", "--format", "github").stdout.splitlines()
    assert "::error file=skills/bad/SKILL.md,line=3,title=skill-field-unknown::" in "\n".join(lines)
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)


def test_workflow_commands_are_escaped_as_the_runner_unescapes_them():
    where = Where("a,b:c%\n\x1b.md", 2, 3)
    item = Diagnostic(
        severity=Severity.ERROR, code="some-code", where=where, message="100%: a,\r\nb", fix="mend"
    )
    assert github_line(item) == (
        "::error file=a%2Cb%3Ac%25%0A.md,line=2,col=3,title=some-code::100%25: a,%0D%0Ab -> mend"
    )


def test_json_is_the_format_json(run, bad):
    assert run("validate", "skills", "--json").stdout == (
        run("validate", "skills", "--format", "json").stdout
    )


def test_each_real_skill_gets_its_verdict(shared):
    files = sorted((shared / "corpus").rglob("SKILL.md"))
    assert len(files) > 500
    for file in files:
        problems = check_path(str(file))
        assert len(problems.skills) == 1, file
        assert all(it.where.path.startswith(str(file.parent)) for it in problems.problems), file


def test_hostile_skills_end_in_a_verdict(shared, run, tmp_path):
    world = tmp_path / "hostile"
    subprocess.run(
        [sys.executable, shared / "hostile" / "make.py", "build", world],
        check=True,
        capture_output=True,
    )
    cases = sorted(os.listdir(world))
    assert len(cases) > 40
    for case in cases:
        for form in ("text", "json", "github"):
            result = run("validate", world / case, "--format", form)
            assert result.exit_code in (0, 1), case
            assert all(letter.isprintable() or letter == "\n" for letter in result.output), case
    assert not list(tmp_path.rglob("PWNED"))


# ---- open plugins and Claude bundles ------------------------------------------------------

OPEN = '{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "demo"%s}'
MCP = '{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": {%s}}'


@pytest.fixture
def open_plugin(here, write_skill):
    """An open plugin to the letter, with a part of ours."""
    folder = here / "a" / "demo"
    write_skill(folder / "skills", "use-demo")
    (folder / "plugin.json").write_text(OPEN % "")
    (folder / "mcp.json").write_text(MCP % '"a": {"type": "stdio", "command": "x"}')
    (folder / "dev.satchel").mkdir()
    (folder / "dev.satchel" / "toolkit.yaml").write_text("active: true\n")
    (folder / "dev.satchel" / "tools.py").write_text("raise SystemExit(3)\n")
    return folder


@pytest.mark.parametrize(
    "path",
    ["", "plugin.json", "mcp.json", "dev.satchel", "dev.satchel/toolkit.yaml", "..", "../.."],
)
def test_an_open_plugin_to_the_letter_is_silence(run, open_plugin, path):
    result = run("validate", open_plugin / path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.endswith(" checked: 0 errors, 0 warnings\n")


def test_an_author_of_an_open_plugin_hears_of_everything_as_an_error(run, open_plugin, write_skill):
    (open_plugin / "plugin.json").write_text(OPEN % ', "hooks": {}, "extensions": 1')
    (open_plugin / "mcp.json").write_text(MCP % '"a": {"type": "ws"}')
    (open_plugin / "toolkit.yaml").write_text("name: demo\n")
    (open_plugin / "dev.satchel" / "toolkit.yaml").write_text("name: demo\n")
    write_skill(open_plugin / "skills", "Loud")
    records = json.loads(run("validate", ".", "--json").stdout)
    assert {item["severity"] for item in records} == {"error"}
    assert sorted(item["code"] for item in records) == [
        "mcp-server-invalid",
        *["plugin-field-unknown"] * 3,
        "plugin-toolkit-ignored",
        "skill-name-shape",
    ]


def test_what_is_wrong_with_the_place_of_the_skills_is_reported(run, open_plugin):
    (open_plugin / "skills").rename(open_plugin / "was")
    (open_plugin / "skills").symlink_to("..")
    assert "error[source-link-outside]" in run("validate", open_plugin).stdout


def test_a_claude_bundle_is_checked_and_the_manifests_of_other_clients_are_not(
    run, here, write_skill
):
    folder = here / "demo"
    write_skill(folder / "skills", "use-demo")
    for client in ("claude", "codex", "cursor"):
        (folder / f".{client}-plugin").mkdir()
        (folder / f".{client}-plugin" / "plugin.json").write_text('{"version": 1}')
    for path in ("demo", "demo/.claude-plugin", "demo/.claude-plugin/plugin.json"):
        records = json.loads(run("validate", path, "--json").stdout)
        assert [item["code"] for item in records] == ["plugin-field-missing", "plugin-field-type"]


@pytest.mark.parametrize("manifest", ["toolkit.yaml", "plugin.json"])
def test_a_skill_beside_a_manifest_does_not_hide_the_plugin(run, here, write_skill, manifest):
    folder = write_skill(here, "demo")
    (folder / manifest).write_text("{}")
    assert "error[plugin-field-missing]" in run("validate", "demo").stdout


def test_the_skills_of_an_open_plugin_are_looked_for_as_loading_does(run, open_plugin, write_skill):
    write_skill(open_plugin / "skills", "Loud")
    write_skill(open_plugin / "skills" / "group", "inner")
    write_skill(open_plugin / "elsewhere", "Other")
    (open_plugin / "skills" / "SKILL.md").write_text("---\nname: x\ndescription: d\n---\nb\n")
    records = json.loads(run("validate", open_plugin, "--json").stdout)
    messages = sorted(
        (item["code"], os.path.relpath(item["path"], "a/demo/skills")) for item in records
    )
    assert messages == [
        ("skill-name-shape", "Loud/SKILL.md"),
        ("source-too-deep", "SKILL.md"),
        ("source-too-deep", "group/inner/SKILL.md"),
    ]


def test_skills_are_listed_though_their_plugin_cannot_load(run, open_plugin, write_skill):
    write_skill(open_plugin / "skills", "Loud")
    (open_plugin / "plugin.json").write_text("{")
    codes = [item["code"] for item in json.loads(run("validate", ".", "--json").stdout)]
    assert sorted(codes) == ["plugin-json-invalid", "skill-name-shape"]


def test_a_plugin_inside_an_open_plugin_brings_its_own_skills(
    run, open_plugin, write_plugin, write_skill
):
    write_skill(write_plugin(open_plugin, "inner") / "skills", "Loud")
    assert "error[skill-name-shape]" in run("validate", open_plugin).stdout


def test_the_manifest_of_a_package_needs_no_name(run, here):
    run("new", "plugin", "acme-maps", "--package")
    manifest = here / "acme-maps/src/acme_maps/toolkit.yaml"
    text = manifest.read_text()
    manifest.write_text("".join(line for line in text.splitlines(True) if "name: " not in line[:6]))
    for path in ("acme-maps", "acme-maps/src/acme_maps"):
        result = run("validate", path)
        assert result.exit_code == 0, result.output
        assert result.stderr.endswith("1 skill, 1 plugin checked: 0 errors, 0 warnings\n")
    assert "acme-maps: 1 call, 0 failed" in run("test", "acme-maps").stderr
    (here / "acme-maps/pyproject.toml").unlink()
    assert "plugin-field-missing" in run("validate", "acme-maps").stdout


# ---- marketplaces and commands ------------------------------------------------------------


@pytest.fixture
def market(here):
    """Write a marketplace with these entries."""
    folder = here / "market"

    def write(*entries):
        (folder / ".claude-plugin").mkdir(parents=True, exist_ok=True)
        listing = folder / ".claude-plugin" / "marketplace.json"
        listing.write_text(json.dumps({"name": "m", "plugins": entries}))
        return folder

    return write


@pytest.mark.parametrize(
    "path", ["market", "market/.claude-plugin", "market/.claude-plugin/marketplace.json"]
)
def test_a_marketplace_is_checked_as_it_is_loaded(run, market, write_skill, path):
    folder = market(
        {"name": "bare", "source": "./bare"},
        {"name": "gone", "source": "./gone"},
        {"source": "./bare"},
        {"name": "far", "source": {"source": "github", "repo": "o/r"}},
    )
    write_skill(folder / "bare" / "skills", "use-bare")
    result = run("validate", path, "--json")
    loaded = Satchel(plugins=[folder], settings=Settings(mcp_servers=False)).catalog.diagnostics
    expected = {
        item.code: item.message for item in loaded if item.where.path.startswith(str(folder))
    }
    records = json.loads(result.stdout)
    assert {item["code"]: item["message"] for item in records} == expected
    assert sorted((item["severity"], item["code"]) for item in records) == [
        ("error", "marketplace-entry-invalid"),
        ("error", "source-missing"),
        ("info", "marketplace-remote"),
    ]
    assert result.stderr == "1 skill, 1 plugin, 1 marketplace checked: 2 errors, 0 warnings\n"


def test_a_listed_plugin_is_checked_once_and_with_its_entry(run, market, write_skill):
    folder = market({"name": "own", "source": "./own", "strict": False})
    write_skill(folder / "own" / "skills", "use-own")
    (folder / "own" / ".claude-plugin").mkdir()
    (folder / "own" / ".claude-plugin" / "plugin.json").write_text("[")  # the entry replaces it
    result = run("validate", "market")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "plugin-json-invalid" in run("validate", "market/own").stdout


def test_plugins_that_share_a_folder_count_one_by_one(run, market, write_skill):
    folder = market(
        *(
            {"name": name, "source": "./", "strict": False, "skills": [f"./skills/{name}"]}
            for name in ("one", "two")
        )
    )
    for name in ("one", "two"):
        write_skill(folder / "skills", name)
    for options in ((), ("--run",)):
        result = run("validate", "market", *options)
        assert result.stderr == "2 skills, 2 plugins, 1 marketplace checked: 0 errors, 0 warnings\n"


def test_what_a_marketplace_leaves_out_is_named_and_not_counted(
    run, market, write_skill, write_plugin
):
    folder = market({"name": "a", "source": "./a", "strict": False, "skills": ["./skills/x"]})
    for skill in ("a/skills/x", "a/skills/y", "left/skills/z"):
        write_skill(folder / skill[:-2], skill[-1])
    (folder / "left/skills/z/SKILL.md").write_text("no front matter")
    write_plugin(folder, "code", "active: true\n")
    result = run("validate", "market")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        "not checked, since the marketplace does not list it: "
        "market/a/skills/y, market/code, market/left/skills/z\n"
        "1 skill, 1 plugin, 1 marketplace checked: 0 errors, 0 warnings\n"
    )
    assert run("list", "skills", "--plugins", "market").stderr == "1 skill\n"
    assert run("validate", "market/left").exit_code == 1


def test_a_folder_beside_plugins_or_alone_that_lacks_its_manifest_is_an_error(
    run, here, write_plugin, write_skill
):
    write_plugin(here / "plugins", "fine", "active: true\n")
    for name in ("plugins/bare", "alone/bare", "project/src"):
        (here / name).mkdir(parents=True)
        (here / name / "tools.py").touch()
    result = run("validate", "plugins")
    assert result.stdout.startswith("plugins/bare/tools.py: error[plugin-manifest-missing]: ")
    assert result.stderr == "0 skills, 1 plugin checked: 1 error, 0 warnings\n"
    for path in ("alone", "alone/bare"):
        assert "error[plugin-manifest-missing]" in run("validate", path).stdout
    # A project's code beside its skills was never meant as a plugin.
    write_skill(here / "project" / "skills", "pdf")
    assert run("validate", "project").exit_code == 0


def test_an_empty_or_broken_marketplace_is_something_to_check(run, market):
    folder = market()
    assert run("validate", "market").exit_code == 0
    (folder / ".claude-plugin" / "marketplace.json").write_text("[")
    result = run("validate", "market", "--json")
    assert [item["code"] for item in json.loads(result.stdout)] == ["marketplace-invalid"]


@pytest.mark.parametrize(
    ("manifest", "command", "text"),
    [
        (".claude-plugin/plugin.json", "do.md", "Do it."),
        ("gemini-extension.json", "do.toml", 'prompt = "Do it."'),
    ],
)
def test_the_commands_of_a_plugin_are_checked(run, here, manifest, command, text):
    file = here / "demo" / "commands" / command
    file.parent.mkdir(parents=True)
    file.write_text(text)
    (here / "demo" / manifest).parent.mkdir(exist_ok=True)
    (here / "demo" / manifest).write_text('{"name": "demo", "version": "1"}')
    result = run("validate", "demo")
    assert result.stderr == "1 skill, 1 plugin checked: 0 errors, 0 warnings\n"
    file.write_text("")
    result = run("validate", "demo")
    assert result.exit_code == 1
    assert f"demo/commands/{command}: error[command-invalid]" in result.stdout


def test_it_says_which_groups_are_off_in_a_new_session(run, here, write_plugin):
    write_plugin(here / "plugins", "maps", "")
    write_plugin(here / "plugins", "danger", "active: false\n")
    write_plugin(here / "plugins", "clock", "active: true\n")
    lines = run("validate", "plugins").stderr.splitlines()
    assert lines[:-1] == [
        (
            "active in 'satchel serve' but not in a new session: maps; "
            "'active: true' activates it in both"
        ),
        "off until it is switched on: danger",
    ]


def test_what_is_too_deep_for_a_source_is_checked_and_named(run, here, write_skill):
    write_skill(here / "work" / "a", "near")
    write_skill(here / "work/b/c/d/e/f/g", "far")
    assert run("list", "skills", "--skills", "work").stderr.startswith("1 skill\n")
    result = run("validate", "work")
    assert result.stderr == (
        "1 skill too deep to be loaded from here (limit find_depth, 6): work/b/c/d/e/f/g/far\n"
        "2 skills, 0 plugins checked: 0 errors, 0 warnings\n"
    )
    assert "too deep" not in run("validate", "work/b/c").stderr


def test_validate_counts_as_list_does(run, here, write_skill):
    bundle = here / "work" / "demo"
    write_skill(bundle / "skills", "pdf")
    write_skill(here / "work" / "more", "pdf")
    (bundle / ".claude-plugin").mkdir()
    (bundle / ".claude-plugin" / "plugin.json").write_text('{"name": "demo", "version": "1"}')
    (bundle / "commands").mkdir()
    (bundle / "commands" / "do.md").write_text("Do it.")
    listed = run("list", "--skills", "work", "--plugins", "work").stderr.splitlines()[0]
    assert listed.startswith("3 skills, ")
    assert re.search(r", 1 plugin( and \d+ not enabled)?$", listed), listed
    for paths in (["work"], ["work", "work"], ["work", "./work/demo", "work/more/pdf"]):
        result = run("validate", *paths)
        assert result.stderr == "3 skills, 1 plugin checked: 0 errors, 0 warnings\n", paths


def test_a_package_that_imports_itself_by_name_is_run_as_if_it_were_installed(run, here):
    run("new", "plugin", "acme-maps", "--package")
    package = here / "acme-maps/src/acme_maps"
    (package / "names.py").write_text("NAME = 'maps'\n")
    tools = (package / "tools.py").read_text()
    (package / "tools.py").write_text(f"from acme_maps.names import NAME\n{tools}")
    result = run("validate", "acme-maps", "--run")
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    (package / "tools.py").write_text(f"from acme_maps.nothing import NAME\n{tools}")
    result = run("validate", "acme-maps", "--run")
    assert (result.exit_code, "error[plugin-import-failed]" in result.stdout) == (1, True)
