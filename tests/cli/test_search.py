"""`search`: what it finds, prints and runs."""

import json

import pytest


@pytest.fixture
def world(here, write_skill, toolkit):
    write_skill(here / "skills", "pdf", description="Converts PDF files to text.")
    write_skill(here / "skills", "brand", description="Says it in the colours of the brand.")
    hidden = "---\nname: release\ndescription: Ship it.\ndisable-model-invocation: true\n---\nDo.\n"
    write_skill(here / "skills", "release", text=hidden)
    return ("--skills", "skills", "--plugins", "plugins")


def test_the_best_comes_first_with_its_kind_and_where_it_belongs(run, world):
    result = run("search", "convert", "a", "pdf", "to", "text", *world)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].split() == [
        *("pdf", "skill", "skills", "Converts", "PDF", "files", "to", "text."),
    ]
    tool = run("search", "again", *world).stdout.split()
    assert tool == ["echo", "tool", "demo", "Say", "it", "again."]


def test_json_has_the_same_with_scores(run, world):
    (record,) = json.loads(run("search", "again", "--json", *world).stdout)
    assert record.pop("score") > 0
    assert record == {
        "kind": "tool",
        "name": "echo",
        "description": "Say it again.",
        "group": "demo",
        "source": "demo",
        "contains": [],
    }
    (skill,) = json.loads(run("search", "pdf", "--json", *world).stdout)
    assert list(skill) == ["kind", "name", "description", "group", "source", "score", "contains"]
    assert (skill["kind"], skill["group"], skill["source"]) == ("skill", None, "skills")


def test_what_is_found_by_a_skill_inside_it_names_that(run, here, write_skill):
    folder = write_skill(here / "skills", "outdoors", description="For the weekend.")
    write_skill(folder / "parts", "hike", description="Walks up a mountain.")
    assert "(contains hike) For the weekend." in run("search", "hikes", "--skills", "skills").stdout
    (hit,) = json.loads(run("search", "hike", "--json", "--skills", "skills").stdout)
    assert hit["contains"] == ["hike"]
    assert "contains" not in run("search", "weekend", "--skills", "skills").stdout


def test_a_kind_and_a_limit_are_kept(run, world):
    def names(*args):
        return [line.split()[0] for line in run("search", "say", *args, *world).stdout.splitlines()]

    assert sorted(names()) == ["brand", "echo"]
    assert names("--kind", "tool") == ["echo"]
    assert names("--kind", "skill") == ["brand"]
    assert names("--limit", "1") == names()[:1]


def test_a_typing_error_finds_what_looks_alike(run, world):
    assert run("search", "pfd", *world).stdout.startswith("pdf ")


def test_a_skill_that_is_for_people_is_found(run, world):
    assert run("search", "ship", *world).stdout.startswith("release ")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_nothing_found_is_exit_code_one_and_a_line_on_stderr(run, world, options):
    result = run("search", "quantum", "--kind", "tool", *options, *world)
    assert result.exit_code == 1
    assert result.stdout.strip() == ("[]" if options else "")
    assert "no tool matches" in result.stderr


def test_wrong_usage_is_exit_code_two(run):
    assert run("search").exit_code == 2
    assert run("search", "a", "--limit", "0").exit_code == 2
    assert run("search", "a", "--kind", "plugin").exit_code == 2


def test_searching_is_not_running(run, was_run, world):
    run("search", "again", *world)
    assert not was_run()


def test_operators_are_words(run, world):
    assert run("search", '"pdf* NOT', *world).stdout.startswith("pdf ")
    assert run("search", "--json", *world, "--", "-pdf").exit_code == 0
