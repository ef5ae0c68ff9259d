"""`new`: what it writes is good at once, and it never writes over anything."""

import json

import pytest


def test_a_new_skill_passes_validate(run, here):
    result = run("new", "skill", "fill-forms")
    assert result.stdout == "skills/fill-forms/SKILL.md\n"
    assert "satchel validate skills/fill-forms" in result.stderr
    assert json.loads(run("validate", "skills", "--json").stdout) == []


@pytest.mark.parametrize("name", ["maps", "Acme.Maps_2", "9lives", "a" * 64, "class"])
def test_a_new_plugin_passes_validate_and_works(run, here, name):
    assert run("new", "plugin", name).exit_code == 0
    assert json.loads(run("validate", "plugins", "--json").stdout) == []
    schema, *_own = json.loads(run("schema", "--plugins", "plugins").stdout)
    tool = schema["function"]["name"]
    assert run("call", tool, "text=a", "times=2", "--plugins", "plugins").stdout == "a a\n"


@pytest.mark.parametrize(
    "text", ['say "hi": #1', "- x", "line\nbreak", "naïve ünïcode ✓", "{a}", "'"]
)
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
    assert "exists already" in result.stderr
    assert not list((here / "skills" / "mine").iterdir())


def test_another_folder_can_be_named(run, here):
    assert run("new", "skill", "s", "--dir", "a/b").stdout == "a/b/s/SKILL.md\n"
    (here / "file").touch()
    assert run("new", "skill", "s", "--dir", "file").exit_code == 1
