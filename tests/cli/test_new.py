"""`new`: what it writes is good at once, and it never writes over anything."""

import json
import os
import subprocess
import sys
import tomllib

import pytest

from satchel.cli.new_templates import package_name

NAMES = ["maps", "Acme.Maps_2", "9lives", "a" * 64, "class", "json", "acme-maps"]
DESCRIPTIONS = ['say "hi": #1', "- x", "line\nbreak", "naïve ünïcode ✓", "{a}", "'", "\\n"]


def test_a_new_skill_passes_validate(run, here):
    result = run("new", "skill", "fill-forms")
    assert result.stdout == "skills/fill-forms/SKILL.md\n"
    assert "satchel validate skills/fill-forms" in result.stderr
    assert json.loads(run("validate", "skills", "--json").stdout) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_new_plugin_passes_validate_and_works(run, here, name):
    assert run("new", "plugin", name).exit_code == 0
    assert json.loads(run("validate", "plugins", "--json").stdout) == []
    schema, *_own = json.loads(run("schema", "--plugins", "plugins").stdout)
    tool = schema["function"]["name"]
    assert run("call", tool, "text=a", "times=2", "--plugins", "plugins").stdout == "a a\n"
    assert run("test", f"plugins/{name}").stderr == f"{name}: 1 call, 0 failed\n"


@pytest.mark.parametrize("name", ["Acme.Maps_2", "9lives", "class"])
def test_a_new_package_passes_validate_and_test(run, here, name):
    result = run("new", "plugin", name, "--package")
    assert result.exit_code == 0, result.stderr
    assert f"satchel validate {name} && satchel test {name}" in result.stderr
    assert run("validate", name).exit_code == 0
    assert run("test", name).stderr == f"{name}: 1 call, 0 failed\n"
    project = tomllib.loads((here / name / "pyproject.toml").read_text())["project"]
    assert project["entry-points"] == {"satchel.plugins": {name: package_name(name)}}


def test_a_package_has_a_name_that_python_can_import():
    assert [package_name(name) for name in NAMES[4:]] == [
        "class_plugin",
        "json_plugin",
        "acme_maps",
    ]
    assert package_name("9lives") == "plugin_9lives"


@pytest.mark.parametrize("name", ["Click", "json"])
def test_a_package_takes_no_name_of_another_owner(run, here, name):
    result = run("new", "plugin", name, "--package")
    assert f"the distribution is named '{name}-plugin'" in result.stderr
    project = tomllib.loads((here / name / "pyproject.toml").read_text())["project"]
    assert project["name"] == f"{name}-plugin"
    assert project["entry-points"]["satchel.plugins"] == {name: f"{name.lower()}_plugin"}
    assert run("validate", name).exit_code == 0
    assert run("test", name).exit_code == 0


def test_a_package_may_spell_the_name_as_python_does(run):
    run("new", "plugin", "acme-maps", "--package")
    assert json.loads(run("validate", "acme-maps", "--json").stdout) == []


@pytest.mark.parametrize("text", ["- x\nna\u00efve {a}", '\'say "hi": #1 \\n'])
def test_a_package_says_its_description_wherever_it_stands(run, here, text):
    assert run("new", "plugin", "maps", "--package", "--description", text).exit_code == 0
    message = " ".join(text.split())
    project = tomllib.loads((here / "maps" / "pyproject.toml").read_text())["project"]
    assert project["description"] == message
    (plugin,) = [
        item
        for item in json.loads(
            run("list", "plugins", "--json", "--plugins", "maps/src/maps").stdout
        )
        if item["name"] == "maps"
    ]
    assert plugin["description"] == message


def test_the_tests_of_a_new_package_pass_before_it_is_installed(run, here):
    run("new", "plugin", "acme-maps", "--package")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=here / "acme-maps",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "3 passed" in done.stdout, done.stdout


@pytest.mark.slow
def test_a_new_package_is_built_installed_and_used(run, here, execute):
    run("new", "plugin", "acme-maps", "--package")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    for words in (
        ("wheel", "--no-deps", "--wheel-dir", "wheels", "./acme-maps"),
        ("install", "--no-deps", "--no-index", "--find-links", "wheels", "--target", "site",
         "acme-maps"),
    ):  # fmt: skip
        subprocess.run([*pip, *words], check=True, capture_output=True, text=True, timeout=120)
    world = {"PYTHONPATH": os.pathsep.join([str(here / "site")])}
    done = execute(
        "call", "acme_maps_repeat", "text=a", "times=2", "--entry-points", "acme-maps", **world
    )
    assert done.stdout == "a a\n", done.stderr
    listed = execute("list", "skills", "--json", "--entry-points", "acme-maps", **world)
    assert listed.code == 0
    tested = execute("test", "acme-maps", "--json", **world)
    assert json.loads(tested.stdout)["passed"], tested.stderr
    prompt = execute("prompt", "--entry-points", "acme-maps", **world).stdout
    assert "Explain here how to use the tools together." in prompt
    assert "<name>acme-maps</name>" in prompt


def test_a_package_goes_into_the_current_folder_or_the_one_that_is_named(run, here):
    assert "maps/pyproject.toml\n" in run("new", "plugin", "maps", "--package").stdout
    shown = run("new", "plugin", "maps", "--package", "--dir", "a/b").stdout
    assert shown.startswith("a/b/maps/pyproject.toml\n")


@pytest.mark.parametrize("text", DESCRIPTIONS)
def test_any_description_is_written_so_that_it_is_read_back(run, here, text):
    assert run("new", "skill", "s", "--description", text).exit_code == 0
    assert json.loads(run("validate", "skills", "--json").stdout) == []
    (skill,) = json.loads(run("list", "skills", "--json", "--skills", "skills").stdout)
    assert skill["description"] == " ".join(text.split())


@pytest.mark.parametrize("description", ["", "  ", "x" * 1025])
def test_a_description_that_would_not_pass_is_refused(run, here, description):
    result = run("new", "skill", "s", "--description", description)
    assert result.exit_code == 1
    assert not (here / "skills").exists()


@pytest.mark.parametrize("kind", ["skill", "plugin"])
@pytest.mark.parametrize("name", ["Bad Name", "../up", "a/b", "", ".", "a\nb"])
def test_a_bad_name_is_refused_with_the_reason(run, here, kind, name):
    result = run("new", kind, name)
    assert result.exit_code == 1
    assert "must be" in result.stderr
    assert not list(here.iterdir())


def test_an_existing_folder_is_never_touched(run, here):
    (here / "skills" / "mine").mkdir(parents=True)
    result = run("new", "skill", "mine")
    assert result.exit_code == 1
    assert "already exists" in result.stderr
    assert not list((here / "skills" / "mine").iterdir())


def test_another_folder_can_be_named(run, here):
    assert run("new", "skill", "s", "--dir", "a/b").stdout == "a/b/s/SKILL.md\n"
    (here / "file").touch()
    assert run("new", "skill", "s", "--dir", "file").exit_code == 1
